"""torch.utils.checkpoint inside of compiled functions: one graph, and what was under it is computed again."""

import functools
import importlib.util

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

import oxyfuel
from eager_comparison import outcome, program
from training_checks import X, check

BOTH = pytest.mark.parametrize("use_reentrant", [True, False], ids=["reentrant", "not reentrant"])


class Block(nn.Module):
    def __init__(self, width=16, dropout=0.0):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = dropout

    def forward(self, x):
        return x + F.dropout(self.down(F.gelu(self.up(self.norm(x)))), self.dropout, self.training)


class Stack(nn.Module):
    def __init__(self, depth=3, dropout=0.0, **settings):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dropout=dropout) for _ in range(depth))
        self.head = nn.Linear(16, 3)
        self.settings = settings

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, **self.settings) if self.settings else block(x)
        return self.head(x)


def new_stack(**settings):
    torch.manual_seed(0)
    return Stack(**settings)


def batch():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(5, 16, generator=generator).requires_grad_(), torch.randint(3, (5,), generator=generator)


def gradients_of(model, call):
    x, y = batch()
    model.zero_grad()
    loss = F.cross_entropy(call(x), y)
    loss.backward()
    return loss.detach(), x.grad, *(p.grad for p in model.parameters())


def products(model):
    """Matrix products in the forward and the backward graph."""
    oxyfuel.reset()
    results = gradients_of(model, oxyfuel.compile(model, fullgraph=True))
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] == 1 and not metrics["breaks"]
    return results, metrics["extern_calls"]


@BOTH
def test_products_are_computed_again(use_reentrant):
    plain, checkpointed = new_stack(), new_stack(use_reentrant=use_reentrant)
    expected, without = products(plain)
    found, with_checkpoints = products(checkpointed)
    torch.testing.assert_close(found, expected)
    # In each block the first product: the second one's result is needed for the block's result alone.
    assert with_checkpoints == without + len(plain.blocks)


@BOTH
def test_dropout_is_the_same_when_computed_again(use_reentrant):
    model = new_stack(depth=1, dropout=0.5, use_reentrant=use_reentrant)
    compiled = oxyfuel.compile(model, fullgraph=True)
    with torch.no_grad():
        model.blocks[0].down.weight.zero_()
        model.blocks[0].down.bias.fill_(1)
        model.head.weight.fill_(1)
    x = torch.zeros(5, 16, requires_grad=True)
    for _ in range(2):
        model.zero_grad()
        out = compiled(x)
        kept = (out[:, 0].sum() - 5 * model.head.bias[0]) / 2  # each kept one counts 2
        out[:, 0].sum().backward()
        assert model.blocks[0].down.bias.grad.sum().item() == pytest.approx(2 * kept.item())
        assert 0 < kept < 80


@BOTH
def test_functions_that_are_compiled_themselves(use_reentrant):
    check(lambda a: checkpoint(lambda t: t.sin().exp(), a, use_reentrant=use_reentrant), X)
    inner = oxyfuel.compile(lambda t: t.sin().exp())
    check(lambda a: checkpoint(inner, a, use_reentrant=use_reentrant), X)


@BOTH
@program(whole=True, grad=True)
def test_gradients(compile, use_reentrant):
    model = new_stack(use_reentrant=use_reentrant)
    return gradients_of(model, compile(model))


@program(whole=True, grad=True)
def test_checkpoints_in_checkpoints(compile):
    model = new_stack(use_reentrant=False)

    def pair(x):
        return checkpoint(model.blocks[1], checkpoint(model.blocks[0], x, use_reentrant=False), use_reentrant=False)

    return gradients_of(model, compile(lambda x: model.head(checkpoint(pair, x, use_reentrant=False))))


@BOTH
@program(whole=True, grad=True)
def test_sequences(compile, use_reentrant):
    model = new_stack()
    parts = nn.Sequential(*model.blocks)
    return gradients_of(model, compile(lambda x: model.head(checkpoint_sequential(parts, 2, x, use_reentrant=use_reentrant))))


@program(whole=True, grad=True)
def test_arguments_by_keyword_and_in_containers(compile):
    weight = torch.full((16,), 0.5, requires_grad=True)

    def inner(x, pair, *, scale):
        return {"a": (x * pair[0]).sin() * scale, "b": pair[1]}

    @compile
    def outer(x):
        out = checkpoint(inner, x, (weight, 3), scale=2.0, use_reentrant=False, preserve_rng_state=True)
        return out["a"] + out["b"]

    x, _ = batch()
    outer(x).sum().backward()
    return x.grad, weight.grad


@program(whole=True, grad=True)
def test_results_that_are_read_inside_and_outside(compile):
    def inner(x):
        hidden = x.exp()
        return hidden, hidden.view(-1)[3:], hidden.sin()

    @compile
    def outer(x):
        hidden, part, wave = checkpoint(inner, x * 2, use_reentrant=False)
        return hidden.cos().sum() + part.square().sum() + (wave * hidden).sum()

    x, _ = batch()
    outer(x).backward()
    return x.grad


@pytest.mark.filterwarnings("ignore:None of the inputs")
@BOTH
@program(grad=True)
def test_no_gradients_asked_for(compile, use_reentrant):
    model = new_stack(use_reentrant=use_reentrant)
    with torch.no_grad():
        return compile(model)(batch()[0])


@program(whole=True, grad=True)
def test_requiring_grad_what_does(compile):
    def f(x):
        return (x * 2).requires_grad_().sum() + x.detach().requires_grad_(False).sum(), x.requires_grad_(requires_grad=True) is x

    x, _ = batch()
    total, same = compile(f)(x)
    total.backward()
    return total, same, x.grad


def test_a_whole_step_computes_again():
    counts, losses = [], []
    for settings in ({}, {"use_reentrant": False}):
        oxyfuel.reset()
        model = new_stack(**settings)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        @functools.partial(oxyfuel.compile, fullgraph=True)
        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        x, y = batch()
        step(x.detach(), y)
        counts.append(oxyfuel.metrics()["extern_calls"])
        losses.append([step(x.detach(), y) for _ in range(4)])
    torch.testing.assert_close(*losses)
    assert counts[1] == counts[0] + 3


def noisy(x):
    print("inside", end=" ")
    return x.sin()


def counting(x, log=[]):  # noqa: B006
    log.append(len(log))
    return x.sin() * len(log)


def raising(x):
    raise KeyError("inside")


def writing(x):
    x.add_(1)
    return x.sin()


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)

    def forward(self, x):
        return self.norm(x).sin()


NORMED = Normed()

# What eager's second run of the function does to the world, or what the reentrant form refuses.
LEFT_TO_EAGER = {
    "prints": (noisy, {}),
    "changes a list": (counting, {}),
    "raises": (raising, {}),
    "writes to its argument": (lambda x: checkpoint(writing, x * 2, use_reentrant=False), None),
    "batch norm": (NORMED, {}),
    "other random numbers": (lambda x: F.dropout(x, 0.5), {"preserve_rng_state": False}),
    "selects": (torch.sin, {"context_fn": functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.sin.default])}),
    "debug": (torch.sin, {"debug": True}),
    "grad mode": (lambda x: x.sin() if torch.is_grad_enabled() else x.cos(), {"use_reentrant": True}),
    "containers": (lambda pair: pair[0].sin(), None),
    "no setting": (torch.sin, {"use_reentrant": None}),
    "no gradient": (lambda x: x.detach(), {"use_reentrant": True}),
}


@pytest.mark.parametrize("name", LEFT_TO_EAGER)
@pytest.mark.filterwarnings("ignore")
@program(grad=True)
def test_what_is_left_to_eager(compile, name):
    function, settings = LEFT_TO_EAGER[name]
    NORMED.norm.reset_running_stats()
    counting.__defaults__[0].clear()
    torch.manual_seed(3)

    @compile
    def outer(x):
        if name == "containers":
            return checkpoint(function, (x * 2,), use_reentrant=True) + 1
        if settings is None:
            return function(x) + 1
        return checkpoint(function, x * 2, **{"use_reentrant": False, **settings}) + 1

    x, _ = batch()
    first = outcome(lambda: outer(x))
    second = outcome(lambda: outer(x).sum().backward())
    return first, second, x.grad, NORMED.norm.running_mean, NORMED.norm.num_batches_tracked, counting.__defaults__[0]


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_enable`")
@BOTH
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_gradient_checkpointing_of_transformers(name, use_reentrant):
    import models

    case = models.Case(name, "small", 2, labels=True, mode="training")
    results = []
    for compiled in (False, True):
        model = case.build()
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
        call = oxyfuel.compile(model, fullgraph=True) if compiled else model
        results.append(case.step(model, call, case.inputs()))
    torch.testing.assert_close(*results)
