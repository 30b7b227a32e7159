"""Results from which other results of a region are computed: what their hooks see, what may be written to them, what is freed."""

import pytest
import torch

from eager_comparison import outcome, program

first = torch.nn.Linear(3, 3)
with torch.no_grad():
    first.weight.copy_(torch.tensor([[2.0, 0, 1], [0.5, 1, 0], [0, 1, 2]])), first.bias.fill_(0.5)


def views_of_one_base(x):
    product = x * 2
    q, k, v = product.chunk(3)
    mixed = (q * k).sin() * v
    return q, k, v, mixed, q[:1], mixed.view(-1)


def a_view_of_a_view(x):
    rows = x.view(2, 3)
    row = rows[0]
    return rows, row, row.sin() * rows, rows.t().exp()


def an_expanded_view(x):
    rows = x.expand(2, 6)
    return rows, rows * rows.sin(), rows.sum(0)


def a_complex_view(x):
    pairs = torch.view_as_complex(x.view(3, 2))
    return pairs, pairs.real * 2, (pairs * pairs).abs()


def a_history_shared_with_one_of_two(x):
    y = x[:3] @ first.weight
    z = first(y)
    y = torch.where(z > 0, z, y)
    return y, z, y.relu()


def a_written_view(x):
    product = x * 2
    part = product[:3]
    part.add_(product[3:])
    return part, product, part * part, product.view(2, 3)


@pytest.mark.parametrize("hook", [None, lambda gradient: None if gradient is None else gradient * 2], ids=["no hook", "a hook"])
@pytest.mark.parametrize("f", [views_of_one_base, a_view_of_a_view, an_expanded_view, a_complex_view, a_history_shared_with_one_of_two, a_written_view])
@program(grad=True)
def test_results_from_which_other_results_are_computed(compile, f, hook):
    """Hooks that are registered outside see and change what other results send through a result, be it a view."""
    compiled, answers = compile(f), []
    for _ in range(2):
        first.zero_grad()
        x = torch.linspace(-1, 2, 6).requires_grad_()
        results = compiled(x)
        for result in results:
            if hook:
                result.register_hook(hook)
            result.retain_grad()
        for result in results:
            result.abs().sum().backward(retain_graph=True)
            answers += [x.grad.clone(), first.weight.grad is None or first.weight.grad.clone(), first.bias.grad is None or first.bias.grad.clone()]
        answers.append([(result.grad, result.is_leaf, result.stride()) for result in results])
    return answers


@pytest.mark.parametrize("f", [lambda x: x[1], lambda x: (x.t(), x.split(2)), lambda x: (x[None] * 2, x[1:, :2])], ids=["row", "all", "part"])
@pytest.mark.parametrize("made", [lambda x: x.expand(4, 6), lambda x: x.unfold(0, 3, 1), lambda x: x[:4, None].expand(4, 6)], ids=["rows", "windows", "columns"])
@program(grad=True)
def test_views_of_arguments_whose_elements_share_memory(compile, made, f):
    """Each element has a gradient of its own, wherever it lies."""
    compiled, answers = compile(f), []
    leaf = torch.linspace(-1, 2, 6).requires_grad_()
    for x in (made(leaf), made(leaf.detach()).requires_grad_()):
        x.retain_grad()
        results = compiled(x)
        results = torch.utils._pytree.tree_leaves(results)
        sum((result * torch.arange(1, result.numel() + 1).view(result.shape)).sum() for result in results).backward()
        answers.append(x.grad)
    return answers, leaf.grad


@program(grad=True)
def test_views_of_results_whose_elements_share_memory(compile):
    def rows(x):
        y = x.expand(2, 6)
        return y, y[0], (y * y).sin(), y[0].exp()

    def windows(x):
        y = (x * 2).unfold(0, 3, 1)
        return y, y[1], y[0] * y[1]

    answers = []
    for f in (rows, windows):
        x = torch.linspace(-1, 2, 6).requires_grad_()
        results = compile(f)(x)
        for result in results:
            result.retain_grad()
        sum((result * torch.arange(1, result.numel() + 1).view(result.shape)).sum() for result in results).backward()
        answers.append((x.grad, [result.grad for result in results]))
    return answers


@program(grad=True)
def test_writes_to_results_that_are_computed_again(compile):
    """What eager saves and a region computes anew from its inputs must not be written to either."""

    def both_need(x):
        y = x * first.weight
        z = y * x
        return y, z, (x * 2).exp()

    def needs_itself(x):
        return x.relu(), (x * 3).sigmoid()

    def needs_another(x):
        y = x.masked_fill(x > 1, 0.0)
        return y, first(y), x.sin()

    def needs_what_it_calculates_of_another(x):
        y = x.exp() * 2
        return y, y.sin(), (y**3).sum()

    answers = []
    for f in (both_need, needs_itself, needs_another, needs_what_it_calculates_of_another):
        compiled = compile(f)
        for written in range(2):
            for used in range(len(compiled(torch.ones(3, requires_grad=True)))):
                first.zero_grad()
                x = torch.tensor([0.3, -0.2, 1.7], requires_grad=True)
                results = compiled(x)
                with torch.no_grad():
                    results[written].add_(1)
                how = outcome(lambda: results[used].sum().backward())
                answers.append((written, used, how[:2], x.grad))
    return answers


class Attention(torch.nn.Module):
    """A residual stream: every layer's probabilities and the layers behind it share what lies before."""

    def __init__(self, layers):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 12) for _ in range(layers))

    def forward(self, x):
        kept = []
        for layer in self.layers:
            q, k, v = layer(x).chunk(3, -1)
            kept.append((q @ k.transpose(-1, -2)).softmax(-1))
            x = x + kept[-1] @ v
        return x.sum(-1), kept


@pytest.mark.parametrize("layers", [1, 3])
@program(grad=True)
def test_gradients_of_attention_that_is_returned(compile, layers):
    model = Attention(layers)
    compiled, answers = compile(model), []
    for _ in range(2):
        model.zero_grad()
        result, kept = compiled(torch.linspace(-1, 1, 12).view(3, 4))
        for probabilities in kept:
            probabilities.retain_grad()
        result.square().sum().backward()
        answers += [[probabilities.grad for probabilities in kept], [p.grad.clone() for p in model.parameters()]]
        result, kept = compiled(torch.linspace(-1, 1, 12).view(3, 4))
        answers.append(torch.autograd.grad(result.sum(), kept))
    return answers


def two_heads(x, y):
    trunk = y.sin() @ first.weight
    return trunk * x, trunk.exp(), (trunk * 2).tanh()


def one_of_them_shared(x, y):
    part = y.masked_fill(y > 1, 0.0)
    return x + part, part.expand(2, 3), part.sin()


@pytest.mark.parametrize("f", [two_heads, one_of_them_shared])
@pytest.mark.parametrize("together", [False, True])
@program(grad=True)
def test_hooks_of_arguments_are_for_gradients_that_come(compile, f, together):
    compiled, answers, seen = compile(f), [], []
    for _ in range(2):
        first.zero_grad()
        x, y = torch.ones(3, requires_grad=True) * 2, torch.full((3,), 0.5, requires_grad=True)
        x.register_hook(lambda g: seen.append(g.clone()))
        y.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.clone()))
        results = compiled(x, y)
        if together:
            sum(result.sum() for result in results).backward()
        for result in () if together else results:
            result.sum().backward(retain_graph=True)
        answers += [y.grad, first.weight.grad, outcome(lambda: results[0].sum().backward())[:2], outcome(lambda: results[1].sum().backward())[:2]]
    return answers, seen


@program(grad=True)
def test_gradients_that_do_not_come_in_may_be_views(compile):
    """The sum of two slices of one gradient, of which one comes in."""

    def f(x, y):
        joined = torch.cat([y, x])[:3]
        result = torch.cat([joined, x])[:3]
        return result, joined * first.weight[0], (y**2).sum()

    compiled, answers = compile(f), []
    for _ in range(2):
        first.zero_grad()
        x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3.0, requires_grad=True)
        for result in compiled(x, y):
            result.sum().backward(retain_graph=True)
            answers += [x.grad.clone(), y.grad.clone(), None if first.weight.grad is None else first.weight.grad.clone()]
    return answers


@program(grad=True)
def test_results_of_views_made_without_grad(compile):
    def f(x, w):
        with torch.no_grad():
            view = w.view(3)
        y = view.sin()
        return y - x, y

    x, w = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    first, second = compile(f)(x, w)
    (first.sin() + (second * 3).sin()).sum().backward(inputs=[x, w, second])
    return x.grad, w.grad, second.grad


MASKED = {
    "chosen by a comparison": lambda x, y: torch.where(y > 0, y, x),
    "times a sine": lambda x, y: x * y.detach().sin(),
    "masked": lambda x, y: x.masked_fill(y > 1, 0.0) + y,
    "times a mask": lambda x, y: (x * (y > 0)).exp(),
    "times the tensor itself": lambda x, y: x * y,
}


@pytest.mark.parametrize("function", MASKED)
@program(grad=True)
def test_each_result_needs_what_eager_keeps_for_it(compile, function):
    """Of two results one needs the tensor that is written to, the other what was computed from it."""

    @compile
    def of_argument(x, y, w):
        return y, MASKED[function](x, y), (y * w).sum()

    @compile
    def of_result(x, y, w):
        z = y * 2
        return z, MASKED[function](x, z), (z * w).sum()

    def backward(result):
        result.sum().backward(retain_graph=True)

    answers = []
    for f in (of_argument, of_result):
        for order in ((0, 1), (1, 0)):
            x, y, w = (torch.tensor(values, requires_grad=True) for values in ([1.0, -2.0, 3.0], [0.5, -1.0, 2.0], [1.0, 2.0, 3.0]))
            written, *results = f(x, y * 3, w)
            with torch.no_grad():
                written.add_(1)
            answers.append([outcome(backward, results[i])[:2] for i in order])
            answers.append((x.grad, y.grad, w.grad))
    return answers
