"""Floats and bools that only data tell: in the graph, with Python's own bits, and natively where they decide a branch."""

import copy
import math
import random
import sys

import pytest
import torch
from size_checks import compiles, same

import oxyfuel

X = torch.randn(1000, generator=torch.Generator().manual_seed(0))


def total(x):
    return x.float().abs().amax().item()


def clipped(x):
    return x * min(1.0, 0.1 / (total(x) + 1e-6))


def checked(x):
    n = total(x)
    torch._check(n < 1e9)
    if n != n:
        raise AssertionError
    if not math.isfinite(n):
        raise ValueError("not finite")
    return x / n


class Log:
    pass


def kept(x):
    log = Log()
    log.last, log.all = total(x), {"max": [x.amax().item()], "mean": float(x[0])}
    return log.last, log.all


def of_a_count(x):
    n = (x > 0).sum().item()
    return x / n, x * (1.0 / n), n / 2, n / 3, 7 / n, float(n)


WHOLE = {
    "item": lambda x: x[3].item(),
    "of one element": lambda x: x[3:4].item(),
    "float": lambda x: float(x[3]),
    "float of an integer": lambda x: float((x > 0).sum()),
    "int": lambda x: (int(x[3] * 1e6), int(x[3].item() * -1e6), math.floor(x[3].item() * 1e6), math.ceil(x[3].item() * 1e6)),
    "round": lambda x: (round(x[3].item() * 1e6), round(x[3].item() * 0 + 2.5), round(x[3].item() * 0 + 3.5)),
    "truth": lambda x: ((x > 0).any().item(), (x > 1e9).any().item(), bool(x[3].item())),
    "operators": lambda x: (x * total(x), x + total(x), x - total(x), total(x) - x, x / total(x), 2.5 / (x * total(x))),
    "comparisons": lambda x: (x > total(x) / 2, x == x[3].item(), x != x[3].item(), total(x) <= x),
    "methods": lambda x: (x.mul(total(x)), x.clone().div_(total(x)), torch.add(x, total(x))),
    "clamp": lambda x: (x.clamp(max=total(x) / 2), x.clamp(-0.5, total(x)), torch.clamp_min(x, x[3].item())),
    "fill": lambda x: (x.clone().fill_(total(x)), x.masked_fill(x > 0, total(x))),
    "tensor": lambda x: (torch.tensor(total(x)), torch.tensor([total(x), 0.25, x[3].item()])),
    "numbers": lambda x: (x[3].item() * 3.7 + 1e-6) / 2.5 - 1 + -x[4].item() + abs(x[5].item()) + 2 * x[6].item(),
    "extremes": lambda x: (min(x[1].item(), x[2].item(), 0.1), max(x[1].item(), float("nan")), math.isnan(max(float("nan"), x[1].item()))),
    "functions": lambda x: (math.sqrt(total(x)), math.isnan(x[3].item()), math.isinf(x[3].item()), math.fabs(x[3].item())),
    "clipped": clipped,
    "checked": checked,
    "kept": kept,
    "of a count": of_a_count,
    "lists": lambda x: (x[:5].tolist(), (x[:4] > 0).view(2, 2).tolist(), x[3].tolist()),
    "type": lambda x: (isinstance(total(x), float), type((x > 0).any().item()) is bool),
    "snapshot": lambda x: (x[3].item(), x.add_(1).sum() * 0, x[3].item()),
    "sizes": lambda x: (total(x) * x.shape[0], x.shape[0] / total(x)),
    "foreach": lambda x: torch._foreach_mul([x, x + 1], total(x)),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", WHOLE)
def test_in_the_graph(name, dynamic):
    compiled = oxyfuel.compile(WHOLE[name], fullgraph=True, dynamic=dynamic)

    def calls():
        for x in (X, X * 2, -X, X):
            same(compiled(x.clone()), WHOLE[name](x.clone()))

    assert compiles(calls) <= 3  # stages


def positive(x):
    if (x <= 0).any():
        raise ValueError("not positive")
    assert_all(x < 100)
    return x.log()


def assert_all(mask):
    if not mask.all():
        raise AssertionError("too large")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="an instruction of its own makes the truth of a tensor")
def test_branches_on_tensors_that_raise_are_checked():
    compiled = oxyfuel.compile(positive, fullgraph=True)

    def calls():
        for seed in range(3):
            x = torch.rand(10, generator=torch.Generator().manual_seed(seed)) + 0.1
            same(compiled(x), positive(x))
        for x, error in ((-torch.ones(3), ValueError), (torch.full((3,), 200.0), AssertionError)):
            with pytest.raises(error):
                compiled(x)
        same(compiled(torch.ones(3)), torch.zeros(3))

    assert compiles(calls) <= 6


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool])
def test_beside_tensors_of_other_types(dtype):
    def program(x):
        n = X.abs().amax().item() if x.dtype == torch.bool else x.float().abs().amax().item()
        return x * n, x + n, x / n, n * x, x < n

    x = (X * 9).to(dtype)
    compiled, expected = oxyfuel.compile(program, fullgraph=True)(x), program(x)
    for a, b in zip(compiled, expected):
        assert a.dtype == b.dtype and torch.equal(a, b)


def test_gradients_flow_past_numbers():
    def program(x):
        return (x * (1.0 / (x.detach().abs().amax().item() + 1e-6)) * x.amax().item()).square().sum()

    a, b = X.clone().requires_grad_(), X.clone().requires_grad_()
    program(a).backward()
    oxyfuel.compile(program, fullgraph=True)(b).backward()
    torch.testing.assert_close(a.grad, b.grad)


def test_only_kernels_use_it():
    """The host reads no number, so that the graph is in one piece."""
    assert compiles(lambda: oxyfuel.compile(lambda x: x * (total(x) * 0.5 + 1), fullgraph=True)(X)) == 1


def test_training_step_that_returns_its_loss():
    model = torch.nn.Linear(4, 4)
    mirror = copy.deepcopy(model)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1).item()
        optimizer.step()
        return loss.item(), norm

    ours, theirs = (torch.optim.SGD(m.parameters(), 0.1) for m in (model, mirror))
    compiled = oxyfuel.compile(step, fullgraph=True)
    for seed in range(4):
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(seed))
        a, b = compiled(model, ours, x), step(mirror, theirs, x)
        assert all(type(n) is float for n in a)
        assert a == pytest.approx(b, rel=1e-5)
    torch.testing.assert_close(model.weight, mirror.weight)


ERRORS = {
    "zero divisor": lambda x: 1.0 / x[0].item(),
    "zero count": lambda x: x * (1.0 / (x[:2] > 5).sum().item()),
    "root": lambda x: math.sqrt(x[1].item()),
    "infinity": lambda x: int(x[2].item()),
    "nan": lambda x: round(x[3].item()),
    "fill": lambda x: torch.zeros(2).fill_(x[4].item() * 1e39),
    "clamp": lambda x: x.clamp(max=x[4].item() * 1e39),
    "check": lambda x: torch._check(x[1].item() > 0),
    "several": lambda x: x.item(),
    "none": lambda x: x[:0].item(),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_eager(name):
    x = torch.tensor([0.0, -1.0, float("inf"), float("nan"), 2.0])
    with pytest.raises(Exception) as expected:
        ERRORS[name](x)
    compiled = oxyfuel.compile(ERRORS[name])
    for _ in range(2):
        with pytest.raises(type(expected.value)) as raised:
            compiled(x)
        assert str(raised.value) == str(expected.value)


NATIVE = {
    "format": lambda x: f"{x[3].item():.3f}",
    "power": lambda x: x[3].item() ** 2,
    "exp": lambda x: math.exp(x[3].item()),
    "remainder": lambda x: x[3].item() % 0.1,
    "round": lambda x: round(x[3].item(), 2),
    "key": lambda x: {x[3].item(): 1},
    "branch": lambda x: x * 2 if x[3].item() > 0 else x,
    "mixed extreme": lambda x: min(1, x[3].item()),
    "method": lambda x: x[3].item().is_integer(),
    "argument": lambda x: torch.nn.functional.leaky_relu(x, x[3].item()),
    "where": lambda x: torch.where(x > 0, x[3].item(), x),
    "membership": lambda x: x[3].item() in [0.5, x[3].item()],
    "large integer": lambda x: x[3].item() < 2**60 + 1,
    "sum": lambda x: sum([x[1].item(), x[2].item(), x[3].item()]),
    "tensor of mixed": lambda x: torch.tensor([x[1].item(), 2]),
}


@pytest.mark.parametrize("name", NATIVE)
def test_natively(name):
    compiled = oxyfuel.compile(NATIVE[name])
    for x in (X, X * 2, -X):
        same(compiled(x), NATIVE[name](x))


def test_branch_names_the_line_in_a_full_graph():
    def branch(x):
        return x * 2 if total(x) > 0 else x

    with pytest.raises(Exception, match=r"depends on .*test_floats_of_data.py:\d+"):
        oxyfuel.compile(branch, fullgraph=True)(X)


def expression(r, depth=0):
    if depth > 4 or r.random() < 0.2:
        return r.choice(["a", "b", "c", "n", "m", repr(r.uniform(-3, 3)), str(r.randrange(-3, 4)), "size"])
    left, right = expression(r, depth + 1), expression(r, depth + 1)
    kind = r.randrange(9)
    if kind < 4:
        return f"({left} {'+-*/'[kind]} {right})"
    if kind == 4:
        return f"({left} / {right})"
    return [f"(-{left})", f"abs({left})", f"min(float({left}), float({right}))", f"float({left})"][kind - 5]


@pytest.mark.parametrize("seed", range(40))
def test_random_arithmetic_has_the_bits_of_python(seed):
    r = random.Random(seed)
    text = f"lambda x: (lambda a, b, c, n, m, size: ({expression(r)}, x * float({expression(r)})))(x[0].item(), x[1].item(), float(x[2]), (x > 0).sum().item(), (x > 1).sum().item(), x.shape[0])"
    program = eval(text)
    compiled = oxyfuel.compile(program, dynamic=seed % 2 == 0 or None)
    for call in range(3):
        x = torch.randn(20 + call, generator=torch.Generator().manual_seed(seed + call))
        try:
            expected = program(x)
        except ZeroDivisionError:
            with pytest.raises(ZeroDivisionError):
                compiled(x)
            continue
        actual = compiled(x)
        assert type(actual[0]) is type(expected[0]) and repr(actual[0]) == repr(expected[0]), text
        assert torch.equal(actual[1], expected[1]), text
