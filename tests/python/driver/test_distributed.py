"""DistributedDataParallel around compiled modules, and compiled modules around it: two processes, gloo."""

import copy
import os

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn as nn

import oxyfuel

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="this torch has no torch.distributed")


def new_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.BatchNorm1d(16), nn.Dropout(0.0), nn.Linear(16, 2))


def train(model, steps, rank):
    """The parameters and gradients after some steps on data of this rank's own."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        optimizer.zero_grad()
        x = torch.randn(4, 6, generator=generator)
        nn.functional.mse_loss(model(x), x[:, :2]).backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()], [p.grad.clone() for p in model.parameters()]


def compare(rank, folder, order):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/{order}", rank=rank, world_size=2)
    try:
        model = new_model()
        twin = copy.deepcopy(model)
        expected = train(nn.parallel.DistributedDataParallel(twin), 3, rank)
        if order == "inside":
            wrapped = nn.parallel.DistributedDataParallel(oxyfuel.compile(model))
        else:
            wrapped = oxyfuel.compile(nn.parallel.DistributedDataParallel(model))
        actual = train(wrapped, 3, rank)
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
        assert oxyfuel.metrics()["graphs"] >= 1
        # The gradients are averages over both: the same everywhere.
        first = actual[1][0].clone()
        dist.broadcast(first, 0)
        torch.testing.assert_close(actual[1][0], first)
    finally:
        dist.destroy_process_group()
    # gloo's threads outlive the group, without oxyfuel too, and one that lets go of a tensor while Python finalizes
    # aborts the process (pytorch/pytorch#190489): a process that found no difference ends without finalizing.
    os._exit(0)


@pytest.mark.parametrize("order", ["inside", "outside"])
def test_data_parallel_training(order, tmp_path):
    torch.multiprocessing.spawn(compare, args=(str(tmp_path), order), nprocs=2)


def test_a_process_group_that_is_made_later(tmp_path):
    @oxyfuel.compile
    def f(x):
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return x * 2
        return x + 1

    x = torch.full((2,), 5.0)
    for _ in range(2):
        assert f(x).tolist() == [6.0, 6.0]
        torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
        assert f(x).tolist() == [10.0, 10.0]
        torch.distributed.destroy_process_group()
    assert not oxyfuel.metrics()["breaks"]
