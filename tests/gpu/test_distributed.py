"""DistributedDataParallel on GPUs: a process a GPU, NCCL; two where the machine has two. Gradients meet in hooks of autograd,
which run while the recorded backward pass is under way or behind its CUDA graph."""

import copy
import os

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn as nn

import oxyfuel

pytestmark = pytest.mark.skipif(not (dist.is_available() and dist.is_nccl_available()), reason="this torch has no NCCL")

STEPS = 6  # graphs are recorded at the third


class Block(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.mix(self.norm(x)).unflatten(-1, (3, 4, -1)).transpose(1, 3).unbind(2)
        x = x + nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x + self.down(nn.functional.gelu(self.up(x)))


def new_model(device):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), Block(), Block(), nn.Linear(64, 4)).to(device)


def train(model, rank, device, half):
    """Losses and gradients of some steps on data of this rank's own."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator(device).manual_seed(rank)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        x = torch.randn(4, 32, 16, generator=generator, device=device)
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            loss = nn.functional.mse_loss(model(x).float(), x[..., :4])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses), [p.grad.clone() for p in model.parameters()]


def compare(rank, folder, order, half, world):
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    try:
        model = new_model(device)
        twin = copy.deepcopy(model)
        expected = train(nn.parallel.DistributedDataParallel(twin, device_ids=[rank]), rank, device, half)
        if order == "inside":
            wrapped = nn.parallel.DistributedDataParallel(oxyfuel.compile(model), device_ids=[rank])
        else:
            wrapped = oxyfuel.compile(nn.parallel.DistributedDataParallel(model, device_ids=[rank]))
        actual = train(wrapped, rank, device, half)
        tolerance = {"rtol": 5e-2, "atol": 5e-3} if half else {"rtol": 1e-3, "atol": 1e-4}
        torch.testing.assert_close(actual, expected, **tolerance)
        assert oxyfuel.metrics()["graphs"] >= 1
        for gradient in actual[1]:  # averages over all processes: the same everywhere
            first = gradient.clone()
            dist.broadcast(first, 0)
            torch.testing.assert_close(gradient, first, rtol=0, atol=0)
    finally:
        dist.destroy_process_group()
    os._exit(0)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("order", ["inside", "outside"])
def test_data_parallel_training(order, half, tmp_path):
    world = min(torch.cuda.device_count(), 2)
    torch.multiprocessing.spawn(compare, args=(str(tmp_path), order, half, world), nprocs=world)
