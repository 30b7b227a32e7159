"""Gradients of gradients that flow through compiled regions (create_graph=True)."""

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from eager_comparison import outcome, program
from torch.utils.checkpoint import checkpoint


def numbers(*sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=generator, dtype=torch.float64)


def written_to(x, w):
    y = x * w
    y.mul_(x)
    y[0] = w[1] * 2
    return y.sin()


def written_to_what_had_no_gradient(x, w):
    with torch.no_grad():
        base = x[:] * 1
    y = base + 1
    y[0] = w[1] * w[1]
    return y * x


def part_without_grad(x, w):
    with torch.no_grad():
        scale = (x * w).sum()
    return (x * scale * w).sum() + (x * x.detach()).sum()


def through_detached_memory(x, w):
    y = x * 1
    y.detach().mul_(2)
    return y * w


def inner_gradient(x, w):
    y = (x**3 * w).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g * w


def inner_gradient_of_its_own(x, w):
    z = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((z**3 * w).sum(), z, create_graph=True)
    return g * x


def with_statistics(x, w):
    mean, variance = torch.zeros(3, dtype=x.dtype), torch.ones(3, dtype=x.dtype)
    return F.batch_norm(x.expand(4, 3) * torch.arange(4.0, dtype=x.dtype)[:, None], mean, variance, w, training=True) ** 2


def checkpointed(x, w):
    return checkpoint(lambda v: (v * w).sin(), x, use_reentrant=False) * x


def mixed_types(x, w):
    return (x.float() * w.float()).double().exp() * w


# Results of x and w, both of three numbers.
FORMULAS = {
    "product": lambda x, w: (x * w) ** 2 * x,
    "powers": lambda x, w: x**3 + w**2 * x,
    "linear": lambda x, w: F.linear(x, w * w[:, None]).tanh(),
    "norm": lambda x, w: F.layer_norm(x * w, (3,), w),
    "softmax": lambda x, w: (x * w).softmax(0) * x,
    "activations": lambda x, w: F.gelu(x * w) + F.silu(x) + F.softplus(w * x) + F.elu(x) + x.relu() * w,
    "choice": lambda x, w: torch.where(x > 0, x * w, w**3),
    "indices": lambda x, w: (x * w)[[0, 2, 2]] ** 2,
    "views": lambda x, w: (x.view(3, 1) * w).t()[1:].flatten() ** 2,
    "views of arguments": lambda x, w: (x[1:] * w[:2], x),
    "reductions": lambda x, w: (x * w).prod() + (x * w).logsumexp(0) + (x - w).norm() + x.var(),
    "convolution": lambda x, w: F.conv1d((x * w).view(1, 1, 3), w.view(1, 1, 3), padding=1) ** 2,
    "attention": lambda x, w: F.scaled_dot_product_attention(x.view(1, 3, 1), (x * w).view(1, 3, 1), w.view(1, 3, 1)),
    "several results": lambda x, w: (x * w, (x * w).sin() * x),
    "results of results": lambda x, w: (lambda y: (y, (y.exp() * w), y.sum()))(x * w),
    "a write": written_to,
    "a write to what had no gradient": written_to_what_had_no_gradient,
    "a part without grad": part_without_grad,
    "writes to detached memory": through_detached_memory,
    "a gradient": inner_gradient,
    "a gradient of its own": inner_gradient_of_its_own,
    "statistics": with_statistics,
    "a checkpoint": checkpointed,
    "types": mixed_types,
    "linear in x": lambda x, w: x * 2 + w,
    "x alone": lambda x, w: x.sin(),
    "nothing": lambda x, w: (x * w).detach() * x,
}


def total(results, power=1):
    results = results if isinstance(results, tuple) else (results,)
    return sum((r**power).sum() * (i + 2) for i, r in enumerate(results) if r.requires_grad)


def penalty(f, x, w):
    """A gradient penalty, as of WGAN-GP."""
    results = f(x, w)
    (g,) = torch.autograd.grad(total(results), x, create_graph=True)
    return g, (g**2).sum() + total(results), g.requires_grad


def hessian(f, x, w):
    gradients = torch.autograd.grad(total(f(x, w), 2), [x, w], create_graph=True, allow_unused=True)
    rows = []
    for g in gradients:
        if g is not None and g.requires_grad:
            rows += [torch.autograd.grad(e, [x, w], retain_graph=True, allow_unused=True) for e in g]
    return gradients, rows


def third(f, x, w):
    value = total(f(x, w), 2)
    for _ in range(3):
        (g,) = torch.autograd.grad(value, x, create_graph=True)
        if not g.requires_grad:
            break
        value = (g * w).sum()
    return value


def step_of_step(f, x, w):
    """The weights after a step that is differentiated through, as of MAML."""
    (g,) = torch.autograd.grad(total(f(x, w)), w, create_graph=True, allow_unused=True)
    faster = w if g is None else w - 0.1 * g
    return total(f(x, faster), 2)


@pytest.mark.parametrize("use", [penalty, hessian, third, step_of_step], ids=lambda use: use.__name__)
@pytest.mark.parametrize("formula", FORMULAS)
@program(grad=True)
def test_same_as_eager(compile, formula, use):
    f = compile(FORMULAS[formula])
    results = []
    for seed in range(3):
        x, w = numbers(3, seed=seed).requires_grad_(), numbers(3, seed=seed + 9).requires_grad_()
        results.append(outcome(use, f, x, w)[:2])
        if isinstance(results[-1][0], tuple) and len(results[-1][0]) > 1 and use is penalty:
            results[-1][0][1].backward()
        results.append([x.grad, w.grad])
    return results


@program(grad=True)
def test_through_other_regions(compile):
    first, second = compile(lambda x, w: (x * w).sin()), compile(lambda h, w: (h * h * w).sum())
    x, w = numbers(3).requires_grad_(), numbers(3, seed=1).requires_grad_()
    h = first(x, w)
    (g,) = torch.autograd.grad(second(h, w), x, create_graph=True)
    (g**2).sum().backward()
    return g, x.grad, w.grad


@program(grad=True)
def test_behind_a_break(compile):
    @compile
    def f(x, w):
        y = (x * w).sin() ** 2
        print(len(y))
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return g, g.norm()

    x, w = numbers(3).requires_grad_(), numbers(3, seed=1).requires_grad_()
    g, size = f(x, w)
    size.backward()
    return g, x.grad, w.grad


@pytest.mark.parametrize("train", [True, False])
@program(grad=True)
def test_of_modules(compile, train):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(3, 6), torch.nn.BatchNorm1d(6), torch.nn.LeakyReLU(), torch.nn.Linear(6, 6), torch.nn.LayerNorm(6), torch.nn.GELU(), torch.nn.Linear(6, 1)]
    model = torch.nn.Sequential(*layers).double().train(train)
    critic, results = compile(model), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        x = numbers(4, 3, seed=step).requires_grad_()
        d = critic(x)
        (g,) = torch.autograd.grad(d.sum(), x, create_graph=True)
        loss = ((g.norm(dim=1) - 1) ** 2).mean() + d.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results.append((loss, x.grad, [p.grad.clone().flatten() for p in model.parameters()], [b.clone() for b in model.buffers()]))
    return results


@program(grad=True)
def test_some_of_the_results(compile):
    f = compile(lambda x, w: (x * w, (x + w).exp() * x, w.sin()))
    results = []
    for chosen in ([0], [1], [2], [0, 2], [1, 0]):
        x, w = numbers(3).requires_grad_(), numbers(3, seed=1).requires_grad_()
        out = f(x, w)
        g = torch.autograd.grad([out[i].sum() for i in chosen], [x, w], create_graph=True, allow_unused=True)
        results.append([outcome(torch.autograd.grad, h.sum(), [x, w], allow_unused=True)[:2] if h is not None and h.requires_grad else h for h in g])
    return results


@program(grad=True)
def test_hooks_and_second_passes(compile):
    f = compile(lambda x, w: (x * w).sin() * x)
    x, w = numbers(3).requires_grad_(), numbers(3, seed=1).requires_grad_()
    seen = []
    y = f(x, w)
    y.register_hook(lambda g: seen.append(g.clone()) or g * 2)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, retain_graph=True)
    (again,) = torch.autograd.grad(y.sum(), x, create_graph=False)
    return seen, g, h, again, outcome(lambda: y.sum().backward())[:2], x.grad


@program(grad=True)
def test_under_autocast(compile):
    f = compile(lambda x, w: F.linear(x, w).relu().float() ** 2)
    x, w = numbers(3).float().requires_grad_(), numbers(3, 3, seed=1).float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = f(x, w)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (g**2).sum().backward()
    return y, g, w.grad


def test_gradgradcheck():
    f = oxyfuel.compile(lambda x, w: (F.layer_norm(x * w, (3,), w).softmax(-1), (x @ w).sigmoid()))
    inputs = (numbers(2, 3).requires_grad_(), numbers(3, seed=1).requires_grad_())
    assert torch.autograd.gradgradcheck(f, inputs)
    assert torch.autograd.gradcheck(f, inputs)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def hooked(x):
    y = x * x
    y.register_hook(lambda g: g * 2)
    return y.sin()


# Functions that are not run again, with what is told of them.
REFUSED = {
    "a function": (lambda x: Doubled.apply(x) * x, "it calls a torch.autograd.Function"),
    "a hook": (hooked, "it has hooks of gradients"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_again(name):
    f, why = REFUSED[name]
    x = numbers(3).requires_grad_()
    y = oxyfuel.compile(f)(x)
    with pytest.raises(RuntimeError, match=rf"cannot be differentiated again \(create_graph=True\), since .*{why}.*oxyfuel.disable"):
        torch.autograd.grad(y.sum(), x, create_graph=True)
    torch.autograd.grad(y.sum(), x)


def test_written_activations():
    f = oxyfuel.compile(lambda x, h: (x * h.mul_(2)).sin())
    x = numbers(3).requires_grad_()
    with pytest.raises(RuntimeError, match="mul_.* writes to an argument"):
        torch.autograd.grad(f(x, x.new_ones(20000, 3)).sum(), x, create_graph=True)


@program(grad=True)
def test_written_statistics_that_are_read(compile):
    statistics = torch.ones(3, dtype=torch.float64)

    @compile
    def f(x):
        y = (x + statistics) ** 3
        statistics.mul_(2).add_(x.detach())
        return y * statistics

    x, results = numbers(3).requires_grad_(), []
    for _ in range(3):
        (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        results += [g, *torch.autograd.grad(g.sum(), x, retain_graph=True), *torch.autograd.grad(g.sum(), x), statistics.clone()]
    return results


@program(grad=True)
def test_spectral_norm(compile):
    torch.manual_seed(0)
    critic = torch.nn.Sequential(torch.nn.utils.spectral_norm(torch.nn.Linear(3, 5)), torch.nn.Tanh(), torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(5, 1)))
    f, x, results = compile(critic.double()), numbers(4, 3).requires_grad_(), []
    for _ in range(3):
        (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        critic.zero_grad()
        (g.norm(dim=1) - 1).square().mean().backward()
        results += [g, [p.grad.clone() if p.grad is not None else None for p in critic.parameters()], [b.clone() for b in critic.buffers()]]
    return results


def drawn_before_and_behind(x, w):
    noise = torch.rand(3, dtype=x.dtype)
    torch.randn(5)
    y = F.dropout(x * w, 0.5) ** 3
    return y + torch.rand(3, dtype=x.dtype), noise


def noise_in_part_of_a_tensor(x, w):
    noise = torch.zeros(2, 3, dtype=x.dtype)
    noise[1].normal_()
    return (x * noise * w).sin()


# They draw random numbers.
RANDOM = {
    "dropout": lambda x, w: F.dropout(x, 0.5) * x * w,
    "feature dropout": lambda x, w: F.dropout1d((x * w).expand(4, 3)[..., None], 0.5) ** 2,
    "noise": lambda x, w: (x + torch.randn_like(x)) ** 3 * w,
    "before and behind": drawn_before_and_behind,
    "part of a tensor": noise_in_part_of_a_tensor,
    "attention": lambda x, w: F.scaled_dot_product_attention(x.view(1, 3, 1), (x * w).view(1, 3, 1), w.view(1, 3, 1), dropout_p=0.4),
    "samples": lambda x, w: (x * w).softmax(0)[torch.multinomial(w.detach().softmax(0), 2)] * x[torch.randperm(3)[:2]],
    "leaks": lambda x, w: F.rrelu(x, 0.1, 0.9, training=True) * w * x,
    "in one of several": lambda x, w: (x.sin() * w, F.dropout(x * x, 0.3) * w),
}


@pytest.mark.parametrize("use", [penalty, hessian, third, step_of_step], ids=lambda use: use.__name__)
@pytest.mark.parametrize("formula", RANDOM)
@program(grad=True)
def test_random_numbers(compile, formula, use):
    f = compile(RANDOM[formula])
    torch.manual_seed(3)
    x, w, results = numbers(3).requires_grad_(), numbers(3, seed=9).requires_grad_(), []
    for _ in range(3):
        results += [outcome(use, f, x, w)[:2], torch.rand(2)]
    return results


def test_written_since():
    f, w = oxyfuel.compile(lambda x, w: (x * w).exp()), numbers(3)
    x = numbers(3).requires_grad_()
    y = f(x, w)
    w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


@pytest.mark.parametrize("f", [lambda h, w: h + w, lambda h, w: h.relu() * w, lambda h, w: (h * w).softmax(0), lambda h, w: (h.sum() + w, h.exp())], ids=["sum", "relu", "softmax", "several"])
@program(grad=True)
def test_of_what_is_gone(compile, f):
    compiled, results = compile(f), []
    for seed in range(3):
        x, w = numbers(3, seed=seed).requires_grad_(), numbers(3, seed=9).requires_grad_()
        y = total(compiled(x**3, w * 2))
        gc.collect()
        gradients = torch.autograd.grad(y, [x, w], create_graph=True)
        results += [gradients, outcome(lambda: torch.autograd.grad(sum(g.square().sum() for g in gradients), [x, w], allow_unused=True))[:2]]
    return results


def test_written_since_but_not_read():
    f, x = oxyfuel.compile(lambda x, w: x.sin() + w), numbers(3).requires_grad_()
    w = numbers(3)
    y = f(x, w)
    w.mul_(2)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert torch.equal(torch.autograd.grad(g.sum(), x)[0], -x.sin())


def test_tensors_that_went_in_are_let_go_of():
    f = oxyfuel.compile(lambda h: (h + 1).relu())
    x = numbers(3).requires_grad_()
    h = x * 2
    there = weakref.ref(h)
    y = f(h)
    del h
    gc.collect()
    assert there() is None
    y.sum().backward()
    assert x.grad.tolist() == (2.0 * (x * 2 + 1 > 0)).tolist()
