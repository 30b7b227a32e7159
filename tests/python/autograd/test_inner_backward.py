"""Backward passes inside of compiled functions: .backward(), torch.autograd.grad, and what is left of their graphs."""

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch._dynamo  # as the constructors of optimizers do

import oxyfuel
from eager_comparison import outcome, program


def new_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.BatchNorm1d(8), nn.Linear(8, 2))


def batch(seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(5, 6, generator=generator), torch.randn(5, 2, generator=generator)


def gradients(model):
    return [p.grad for p in model.parameters()]


@program(whole=True, grad=True)
def test_backward_of_a_loss(compile):
    model = new_model()

    @compile
    def step(x, y):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss.detach()

    # The first call puts gradients there, the others add to them.
    log = []
    for seed in range(3):
        loss = step(*batch(seed))
        log.append((loss, [g.clone() for g in gradients(model)]))
    return log, gradients(model)


@program(whole=True, grad=True)
def test_the_same_tensors_take_what_is_added(compile):
    model = new_model()
    step = compile(lambda x, y: F.mse_loss(model(x), y).backward())
    step(*batch())
    first = gradients(model)
    views = [g.view(-1) for g in first]
    step(*batch(2))
    return [a is b for a, b in zip(first, gradients(model))], views


@program(whole=True, grad=True)
def test_what_is_returned_has_a_history_that_is_spent(compile):
    model = new_model()

    @compile
    def step(x, y):
        out = model(x)
        loss = F.mse_loss(out, y)
        loss.backward()
        return loss, out, out.detach(), out + 1

    loss, out, detached, more = step(*batch())
    flags = [t.requires_grad for t in (loss, out, detached, more)], [t.is_leaf for t in (loss, out, detached, more)]
    return flags, loss.item(), outcome(loss.backward), outcome(more.sum().backward), gradients(model)


@program(whole=True, grad=True)
def test_what_can_be_run_again(compile):
    w = torch.ones(3, requires_grad=True)

    @compile
    def step(x):
        y = w + x
        z = y + x
        z.sum().backward()
        return y, z

    y, z = step(torch.ones(3))
    (y.sum() + z.sum()).backward()
    return w.grad


@program(whole=True, grad=True)
def test_retained_graphs(compile):
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @compile
    def step(x):
        y = (w.sin() * x).sum()
        y.backward(retain_graph=True)
        before = w.grad.clone()
        y.backward(retain_graph=True)
        return before, y

    before, y = step(torch.ones(3))
    y.backward()
    return before, w.grad


@program(grad=True)
def test_errors_of_autograd(compile):
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @compile
    def twice(x):
        y = (w.sin() * x).sum()
        y.backward()
        y.backward()

    @compile
    def no_number(x):
        (w * x).backward()

    @compile
    def no_gradient(x):
        x.sum().backward()

    @compile
    def unused(x):
        return torch.autograd.grad((w * x).sum(), [w, torch.ones(2, requires_grad=True)])

    @compile
    def other_shape(x):
        (w * x).backward(torch.ones(2))

    x = torch.ones(3)
    return [(outcome(f, x), w.grad.clone() if w.grad is not None else None)
            for f in (twice, no_number, no_gradient, unused, other_shape)]


@program(whole=True, grad=True)
def test_gradients_as_arguments(compile):
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = torch.tensor([3.0, 2.0, 1.0], requires_grad=True)

    @compile
    def step(x):
        a, b = w * x, (v * v * x)
        torch.autograd.backward([a, b.sum()], [x.flip(0), None])
        (w * v).backward(x, inputs=[w])
        return a.detach()

    return step(torch.arange(3.0)), w.grad, v.grad


@program(whole=True, grad=True)
def test_gradients_that_are_results(compile):
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

    @compile
    def f(x):
        y = (w * x * x).sum()
        gw, gx = torch.autograd.grad(y, (w, x))
        return gw + 1, gx

    x = torch.arange(3.0, requires_grad=True)
    gw, gx = f(x)
    return gw, gx, gw.requires_grad, w.grad, x.grad


@program(whole=True, grad=True)
def test_gradient_penalty(compile):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    @compile
    def loss(x):
        y = net(x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return y + (g.norm(dim=1) - 1).square().mean()

    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(3)).requires_grad_(True)
    result = loss(x)
    result.backward()
    return result.detach(), x.grad, gradients(net)


@program(whole=True, grad=True)
def test_gradient_penalty_and_step_inside(compile):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    @compile
    def step(x):
        y = net(x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        total = y + (g.norm(dim=1) - 1).square().mean()
        total.backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
                p.grad = None
        return total.detach()

    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(3)).requires_grad_(True)
    return [step(x) for _ in range(3)], list(net.parameters()), gradients(net), x.grad


@program(whole=True, grad=True)
def test_unused_gradients(compile):
    w, u = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)

    @compile
    def f(x):
        y = (w * x).sum()
        some = torch.autograd.grad(y, [w, u], allow_unused=True, retain_graph=True)
        all_ = torch.autograd.grad(y, [w, u], materialize_grads=True, retain_graph=True)
        y.backward()
        return some, all_

    return f(torch.ones(3)), w.grad, u.grad


@program(whole=True, grad=True)
def test_leaves_made_inside(compile):
    @compile
    def f(x):
        w = torch.ones(3, requires_grad=True)
        before = w.grad
        ((w * x) ** 2).sum().backward()
        return before, w.grad * 2

    return f(torch.arange(3.0))


@program(grad=True)
def test_a_leaf_with_a_gradient_leaves(compile):
    @compile
    def f(x):
        w = torch.ones(3, requires_grad=True)
        ((w * x) ** 2).sum().backward()
        return w

    w = f(torch.arange(3.0))
    return w, w.grad


@program(grad=True)
def test_hooks(compile):
    log = []
    w = torch.ones(3, requires_grad=True)

    @compile
    def step(x):
        (w * x).sum().backward()
        return x + 1

    def clip(grad):
        log.append("hook")
        return grad.clamp(max=1)

    results = []
    for i in range(6):
        if i == 2:
            handle = w.register_hook(clip)
        if i == 3:
            handle.remove()
        if i == 4:
            handle = w.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.sum().item()))
        if i == 5:
            handle.remove()
        w.grad = None
        step(torch.arange(3.0))
        results.append(w.grad.clone())
    return results, log


@program(grad=True)
def test_gradients_of_what_was_computed_before(compile):
    w = torch.ones(3, requires_grad=True)

    @compile
    def step(x, y):
        loss = (x * y).sum()
        loss.backward()
        return loss.detach()

    @compile
    def only(x, y):
        return torch.autograd.grad((x * y).sum(), x)[0] * 2

    return step(w * 2, torch.arange(3.0)), w.grad, only(w * 2, torch.arange(3.0))


@program(whole=True, grad=True)
def test_part_of_the_tensors_is_frozen(compile):
    model = new_model()
    for p in model[0].parameters():
        p.requires_grad_(False)

    @compile
    def step(x, y):
        F.mse_loss(model(x), y).backward()

    for seed in range(2):
        step(*batch(seed))
    return gradients(model)


@program(whole=True, grad=True)
def test_gradients_are_assigned(compile):
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    @compile
    def step(x):
        (w * v * x).sum().backward()
        w.grad = w.grad * 2
        w.grad.add_(1)
        v.grad.mul_(3)
        v.grad, w.grad = w.grad, v.grad
        (w * x).sum().backward()
        return w.grad.sum()

    return [step(torch.arange(3.0)) for _ in range(2)], w.grad, v.grad


@program(whole=True, grad=True)
def test_in_bfloat16_regions(compile):
    model = new_model()

    @compile
    def step(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(model(x).float(), y)
        loss.backward()
        return loss.detach()

    result = step(*batch())
    return result.dtype, [(g.dtype, g.shape, g.stride()) for g in gradients(model)]


@program(whole=True, grad=True)
def test_layouts_of_gradients(compile):
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    w = torch.randn(4, 6).t().requires_grad_(True)
    table = nn.Embedding(5, 4)

    @compile
    def step(x):
        (conv(x).mean() + (w * w.detach().cos()).sum() + w.expand(2, 6, 4).sum() + table(torch.tensor([1, 2, 2])).sum()).backward()

    step(torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(2)))
    return gradients(conv), w.grad, table.weight.grad


def test_a_step_is_one_graph_and_never_compiled_again():
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @oxyfuel.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(*batch()).item() for _ in range(6)]
    assert losses[-1] < losses[0]
    metrics = oxyfuel.metrics()
    assert not metrics["breaks"] and metrics["graphs"] == 2, metrics  # without gradients, and with
    with pytest.raises(RuntimeError, match="a second time"):
        step(*batch()).backward()


@program(grad=True)
def test_spent_results_lie_behind_each_other(compile):
    """What asks for the gradient of one with regard to another one meets the history that is gone."""

    @compile
    def freed(x, w):
        z = x * 2
        y = (z * w).exp()
        y.sum().backward()
        return z, y, y * z

    @compile
    def written(x, w):
        z = x * 2
        y = z + z
        torch.autograd.grad(w.sum(), z, allow_unused=True)
        y.mul_(y)
        return z, y, y * z

    answers = []
    for f in (freed, written):
        x, w = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
        z, y, product = f(x, w)
        answers += [outcome(torch.autograd.grad, *pair, torch.ones(3), retain_graph=True)[1] for pair in ((product, z), (product, x), (y, z))]
    return answers


@pytest.mark.parametrize("after_another", [False, True])
@pytest.mark.parametrize("view", [lambda x: x[..., 0], lambda x: x.view(1, -1), lambda x: x.unbind(0)[0]])
@program(grad=True)
def test_of_a_view_that_was_made_without_grad(compile, view, after_another):
    """It says that it requires grad, and autograd has no place for it."""
    other = torch.ones(1, requires_grad=True)

    @compile
    def f(x):
        if after_another:
            x.sum().backward(inputs=[other], retain_graph=True)
        with torch.no_grad():
            seen = view(x.unsqueeze(0))
            asked = [outcome(lambda: seen.backward(torch.ones_like(seen)))[:3], outcome(torch.autograd.grad, seen.sum(), x)[:3]]
        of_it = outcome(torch.autograd.grad, (x * 2).sum(), seen)[:3]
        return asked, of_it, seen.requires_grad, seen.is_leaf

    return [f(torch.ones(1, requires_grad=True)) for _ in range(3)]
