"""Ways to train on the GPU: types, hooks, checkpoints, gradients that are added up, gradients of gradients.

Gradients are as near to float64 as eager's, within a factor of 2 and a rounding.
"""

import copy

import pytest
import torch
import torch.nn.functional as F
from comparison import error_of, tensors_of
from torch import nn
from torch.utils.checkpoint import checkpoint

import oxyfuel

if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

CUDA = torch.device("cuda")
CALLS = 5  # the third one records its work, and those behind it replay it


@pytest.fixture(autouse=True)
def full_precision(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


class Block(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, 4, batch_first=True)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Stack(nn.Module):
    def __init__(self, checkpoints=False):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(64, 10)
        self.checkpoints = checkpoints

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoints else block(x)
        return self.head(x.mean(1))


def new_model(**settings):
    torch.manual_seed(0)
    return Stack(**settings).to(CUDA)


def batch(call=0):
    generator = torch.Generator().manual_seed(call)
    return torch.randn(4, 16, 64, generator=generator).to(CUDA), torch.randint(10, (4,), generator=generator).to(CUDA)


def loss_of(call, x, y):
    output = call(x)
    return F.cross_entropy(output if x.dtype == torch.float64 else output.float(), y)


def check_near(ours, eager, exact):
    for mine, theirs, best in zip(tensors_of(ours), tensors_of(eager), tensors_of(exact), strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        (own,), (others,) = error_of([mine], [best]), error_of([theirs], [best])
        rounding = torch.finfo(mine.dtype).eps * max(1.0, best.abs().max().item())
        assert own <= 2 * others + 2 * rounding, f"error {own}, eager's {others}"


def counts_one_graph():
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] == 1 and not metrics["breaks"] and metrics["calls_eager"] == 0, metrics["breaks"]


def compare(gradients, dtype=torch.float32, **settings):
    """`gradients(model, call, dtype)`: what is compared of a model whose calls go through `call`."""
    model = new_model(**settings).to(dtype)
    eager = gradients(copy.deepcopy(model), None, dtype)
    exact = gradients(copy.deepcopy(model).double(), None, torch.float64)
    mirror = copy.deepcopy(model)
    compiled = oxyfuel.compile(mirror, fullgraph=True)
    for _ in range(CALLS):
        check_near(gradients(mirror, compiled, dtype), eager, exact)


def gradients_of(model, call, dtype):
    x, y = batch()
    x = x.to(dtype).requires_grad_()
    model.zero_grad()
    loss = loss_of(call or model, x, y)
    loss.backward()
    return [loss.detach(), x.grad, *(p.grad.clone() for p in model.parameters())]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_types(dtype):
    compare(gradients_of, dtype)
    counts_one_graph()


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW", "AdamW, fused"])
def test_steps_in_bfloat16(optimizer):
    """Parameters, gradients and state are of bfloat16. The whole step is compiled."""
    kind = torch.optim.SGD if optimizer == "SGD" else torch.optim.AdamW

    def train(compile, dtype):
        model = new_model().to(torch.bfloat16).to(dtype)
        steps = kind(model.parameters(), lr=0.001, fused="fused" in optimizer or None)

        def step(x, y):
            steps.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            steps.step()
            return loss.detach()

        step = compile(step)
        return [step(x.to(dtype), y) for x, y in map(batch, [0, 1] * 6)]

    eager, exact = (train(lambda f: f, dtype) for dtype in (torch.bfloat16, torch.float64))
    ours = train(oxyfuel.compile(fullgraph=True), torch.bfloat16)
    distances = [max((a.double() - b).abs().item() for a, b in zip(losses, exact, strict=True)) for losses in (ours, eager)]
    assert distances[0] <= 2 * distances[1] + 0.02, distances
    assert not oxyfuel.metrics()["calls_eager"]


def test_checkpoints():
    compare(gradients_of, checkpoints=True)
    counts_one_graph()


def test_checkpoints_outside_of_the_region():
    """Each block is computed again in the backward pass. Calls under the hooks of a checkpoint run in eager."""

    def gradients(model, call, dtype):
        x, y = batch()
        x = x.to(dtype).requires_grad_()
        model.zero_grad()
        blocks = call or list(model.blocks)
        h = x
        for block in blocks:
            h = checkpoint(block, h, use_reentrant=False)
        loss = F.cross_entropy(model.head(h.mean(1)), y)
        loss.backward()
        return [loss.detach(), x.grad, *(p.grad.clone() for p in model.parameters())]

    model = new_model()
    eager, exact = gradients(model, None, torch.float32), gradients(copy.deepcopy(model).double(), None, torch.float64)
    compiled = [oxyfuel.compile(block) for block in model.blocks]
    for _ in range(CALLS):
        check_near(gradients(model, compiled, torch.float32), eager, exact)


def test_tensor_hooks():
    """Hooks of an argument, a parameter and a result, around a compiled model."""

    def gradients(model, call, dtype):
        x, y = batch()
        x = x.to(dtype).requires_grad_()
        model.zero_grad()
        seen = []
        handles = [
            x.register_hook(lambda g: g * 2),
            model.head.weight.register_hook(lambda g: seen.append(g.clone()) or g + 1),
            model.head.bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone())),
        ]
        output = (call or model)(x)
        output.register_hook(lambda g: seen.append(g.clone()) or g * 3)
        F.cross_entropy(output, y).backward()
        for handle in handles:
            handle.remove()
        seen.sort(key=lambda t: t.numel())
        return [x.grad, *seen, *(p.grad.clone() for p in model.parameters())]

    compare(gradients)


def test_gradients_that_are_added_up():
    def gradients(model, call, dtype):
        model.zero_grad()
        losses = []
        for part in range(3):
            x, y = batch(part)
            loss = loss_of(call or model, x.to(dtype), y) / 3
            loss.backward()
            losses.append(loss.detach())
        return [*losses, *(p.grad.clone() for p in model.parameters())]

    compare(gradients)
    counts_one_graph()


def test_gradients_that_are_added_up_in_a_compiled_step():
    def train(compile, dtype):
        model = new_model().to(dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

        def step(x, y):
            optimizer.zero_grad()
            losses = []
            for part in range(2):
                loss = F.cross_entropy(model(x[2 * part : 2 * part + 2]), y[2 * part : 2 * part + 2]) / 2
                loss.backward()
                losses.append(loss.detach())
            optimizer.step()
            return losses

        step = compile(step)
        losses = []
        for call in range(CALLS + 2):
            x, y = batch(call % 2)
            losses += step(x.to(dtype), y)
        return [*losses, *(p.detach() for p in model.parameters())]

    eager, exact = (train(lambda f: f, dtype) for dtype in (torch.float32, torch.float64))
    ours = train(oxyfuel.compile(fullgraph=True), torch.float32)
    for mine, theirs, best in zip(ours, eager, exact, strict=True):
        (own,), (others,) = error_of([mine], [best]), error_of([theirs], [best])
        assert own <= 3 * others + 1e-5, (own, others)


class Smooth(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 1)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_gradients_of_gradients(where):
    """The penalty on a gradient: outside of a compiled model, or in a compiled function with both."""

    def penalised(call, x):
        output = call(x).sum()
        (gradient,) = torch.autograd.grad(output, x, create_graph=True)
        return output + (gradient.norm(dim=1) - 1).square().mean()

    def gradients(model, loss, x):
        model.zero_grad()
        x = x.detach().clone().requires_grad_()
        total = loss(x)
        total.backward()
        return [total.detach(), x.grad, *(p.grad.clone() for p in model.parameters())]

    torch.manual_seed(0)
    model, x = Smooth().to(CUDA), torch.randn(8, 16, device=CUDA)
    exact_model = copy.deepcopy(model).double()
    eager = gradients(model, lambda x: penalised(model, x), x)
    exact = gradients(exact_model, lambda x: penalised(exact_model, x), x.double())
    if where == "outside":
        compiled = oxyfuel.compile(model, fullgraph=True)

        def ours(x):
            return penalised(compiled, x)
    else:
        ours = oxyfuel.compile(lambda x: penalised(model, x), fullgraph=True)
    for _ in range(CALLS):
        check_near(gradients(model, ours, x), eager, exact)
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_gradient_penalties_through_batch_norm():
    """Gradients of gradients run the forward pass again, beside statistics that nobody reads."""
    torch.manual_seed(0)
    layers = nn.Linear(3, 6), nn.BatchNorm1d(6), nn.LeakyReLU(), nn.Linear(6, 1)
    model = nn.Sequential(*layers).double().to(CUDA)
    other = copy.deepcopy(model)
    for call, (critic, parameters) in enumerate([(oxyfuel.compile(model), model), (other, other)] * CALLS):
        torch.manual_seed(call // 2)
        x = torch.randn(4, 3, device=CUDA, dtype=torch.float64).requires_grad_()
        result = critic(x)
        (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
        ((gradient.norm(dim=1) - 1).square().mean() + result.mean()).backward()
        if parameters is other:
            for ours, eagers in zip(model.parameters(), other.parameters(), strict=True):
                torch.testing.assert_close(ours.grad, eagers.grad)
                ours.grad = eagers.grad = None
            for ours, eagers in zip(model.buffers(), other.buffers(), strict=True):
                torch.testing.assert_close(ours, eagers)
