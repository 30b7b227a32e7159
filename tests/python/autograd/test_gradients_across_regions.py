"""Backward passes inside of compiled functions, of tensors whose history, hooks or values come from outside."""

import pytest
import torch

import oxyfuel
from eager_comparison import outcome, program


def ones():
    return torch.ones(3, requires_grad=True)


def hooked(tensor, times=7):
    tensor.register_hook(lambda gradient: gradient * times)
    return tensor


def keeping(tensor):
    tensor.retain_grad()
    return tensor


def followed(tensor):
    tensor.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.mul_(5))
    return tensor


def pair(x, follow):
    return x, follow(x)


# Two tensors, the second of which may depend on the first, or the first on the second.
PAIRS = {
    "two leaves": lambda: (ones(), torch.full((3,), 2.0, requires_grad=True)),
    "a leaf and what follows": lambda: pair(ones(), lambda x: x * 2),
    "a view": lambda: pair(ones(), lambda x: x[:]),
    "the other way round": lambda: pair(ones(), lambda x: x * 2)[::-1],
    "two results": lambda: (lambda x: (x * 2, x * 6))(ones()),
    "a chain": lambda: pair(ones() * 2, lambda x: x * 3),
    "no gradient": lambda: (ones(), torch.full((3,), 2.0)),
    "a hook on the leaf": lambda: pair(hooked(ones()), lambda x: x * 2),
    "a hook on the result": lambda: pair(hooked(ones() * 2), lambda x: x + 1),
    "a hook on the second": lambda: (ones(), hooked(ones() * 4)),
    "a kept gradient": lambda: pair(keeping(ones() * 2), lambda x: x * 3),
    "a hook behind the leaf": lambda: pair(followed(ones()), lambda x: x * 2),
}


def sum_of_product(x, y):
    return (x * y).sum()


def grad_of_first(x, y):
    return torch.autograd.grad(sum_of_product(x, y), x)


def grad_of_both(x, y):
    return torch.autograd.grad(sum_of_product(x, y), [x, y], allow_unused=True)


def grad_through_the_second(x, y):
    return torch.autograd.grad(y.sum(), x, allow_unused=True)


def grad_or_zeros(x, y):
    return torch.autograd.grad(y.sum(), x, allow_unused=True, materialize_grads=True)


def grad_of_a_result(x, y):
    z = x * y
    return torch.autograd.grad((z * z).sum(), z)


def grad_of_a_detached(x, y):
    z = (x.detach() * 2).requires_grad_()
    return torch.autograd.grad((z * y).sum(), z)


def grad_of_a_hooked_result(x, y):
    z = x * 2
    z.register_hook(lambda gradient: gradient * 3)
    return torch.autograd.grad(sum_of_product(z, y), [x, z])


def grad_of_a_kept_result(x, y):
    z = x * 2
    z.retain_grad()
    return torch.autograd.grad(z.sum(), z), z.grad


def backward(x, y):
    sum_of_product(x, y).backward()


def backward_into_the_first(x, y):
    sum_of_product(x, y).backward(inputs=[x])


def backward_of_the_second(x, y):
    y.sum().backward()


def backward_of_a_hooked_result(x, y):
    z = x * 2
    z.register_hook(lambda gradient: gradient * 3)
    sum_of_product(z, y).backward()


def what_autograd_knows(x, y):
    return [(t.is_leaf, t.grad_fn is None, t.retains_grad) for t in (x, y)], x + y


def write_to_the_first(x, y):
    x.add_(1)
    return x * y


PASSES = [
    grad_of_first,
    grad_of_both,
    grad_through_the_second,
    grad_or_zeros,
    grad_of_a_result,
    grad_of_a_detached,
    grad_of_a_hooked_result,
    grad_of_a_kept_result,
    backward,
    backward_into_the_first,
    backward_of_the_second,
    backward_of_a_hooked_result,
    what_autograd_knows,
    write_to_the_first,
]


@pytest.mark.parametrize("order", [list(PAIRS), list(PAIRS)[::-1]], ids=["forwards", "backwards"])
@pytest.mark.parametrize("run", PASSES, ids=lambda run: run.__name__)
@program(grad=True, options={"recompile_limit": 40})
def test_history_from_before_the_region(compile, run, order):
    compiled = compile(run)
    answers = []
    for name in order * 2:
        given = PAIRS[name]()
        answers.append((outcome(compiled, *given), [t.grad for t in given if t.is_leaf]))
    return answers


def test_the_reason_names_the_leaf():
    f = oxyfuel.compile(lambda x: torch.autograd.grad((x * x).sum(), x)[0])
    f(ones()), f(ones() * 2)
    assert "history in autograd: was none (a leaf), is known" in str(oxyfuel.metrics()["recompile_reasons"])


@program(grad=True)
def test_writes_to_what_the_backward_pass_needs(compile):
    weight, scale, shared = ones(), torch.ones(3), torch.ones(2, 3).t()

    def reset():
        with torch.no_grad():
            weight.fill_(1.0), scale.fill_(1.0), shared.fill_(1.0)
        weight.grad = None

    @compile
    def written_under_no_grad(x):
        with torch.no_grad():
            weight.mul_(1.5)
        return x * weight

    @compile
    def written(x):
        scale.add_(x.detach()[0])
        return (x * scale).sin()

    @compile
    def written_in_part(x):
        scale[:2].add_(1)
        return x * scale

    @compile
    def transposed(x):
        shared.mul_(2)
        return x @ shared

    @compile
    def needed_in_part(x):
        scale.add_(1)
        return x * scale.cos()

    def write():
        with torch.no_grad():
            weight.mul_(2), scale.mul_(2), shared.mul_(2)

    def attempt(f, between):
        reset()
        x = torch.full((2, 3), 0.5, requires_grad=True)
        y = f(x)
        between()
        kind, *rest = outcome(lambda: y.sum().backward())
        return kind, "modified by an inplace operation" in str(rest), x.grad, weight.grad, scale.clone(), shared.clone()

    functions = written_under_no_grad, written, written_in_part, transposed, needed_in_part
    return [attempt(f, between) for f in functions for between in (lambda: None, write) for _ in range(2)]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        print("backward")
        return gradient * 2


LEAVES = {
    "a hook": lambda leaf, log: leaf.register_hook(log.append),
    "a hook behind": lambda leaf, log: leaf.register_post_accumulate_grad_hook(lambda leaf: log.append(leaf.grad)),
    "a hook on a result": lambda leaf, log: (leaf * 3).register_hook(log.append),
    "a backward pass": lambda leaf, log: ((leaf * leaf).sum().backward(), log.append(leaf.grad)),
    "nobody": lambda leaf, log: None,
}


@pytest.mark.parametrize("note", LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize("use", [lambda leaf, x: leaf * 2, lambda leaf, x: leaf * x, lambda leaf, x: Doubled.apply(leaf) * x], ids=["alone", "with another", "in a function"])
@program(grad=True)
def test_gradients_of_leaves_that_the_region_makes(compile, note, use):
    log = []

    @compile
    def f(x):
        leaf = x.detach().requires_grad_()
        note(leaf, log)
        return use(leaf, x).sum()

    gradients = []
    for _ in range(2):
        x = ones()
        f(x).backward()
        gradients.append(x.grad)
    return gradients, log


first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

RESULTS = {
    "of their own": lambda x: (first(x).sin().sum(), second(x).cos().sum()),
    "of one tensor": lambda x: (lambda h: (h.sin().sum(), h.cos().sum()))(first(x).exp()),
    "one of the other": lambda x: (lambda h: (h.sum(), h.sin().sum()))(first(x).exp()),
    "of what keeps nothing": lambda x: (lambda h: (h.sin().sum(), h.cos().sum()))(x + 1),
    "three": lambda x: (lambda h: (first(x).sin().sum(), h.sin().sum(), h.cos().sum()))(second(x).exp()),
    "many": lambda x: tuple((x * k).sin().sum() for k in range(12)),
    "that share an argument": lambda x: (x.sum(), x.mean(), (x * 2).sum()),
    "that are views": lambda x: (lambda h: (h[0], h[1].sin(), x.sin()))(first(x).exp()),
}


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("f", RESULTS.values(), ids=RESULTS)
@program(grad=True)
def test_backward_passes_of_one_result_after_the_other(compile, f, retain):
    compiled = compile(f)
    answers = []
    for order in (1, -1, 1):
        x = torch.full((3,), 0.5, requires_grad=True)
        first.zero_grad(), second.zero_grad()
        results = compiled(x)[::order]
        raised = [outcome(lambda: r.sum().backward(retain_graph=retain))[0] for r in results]
        answers.append((raised, x.grad, first.weight.grad, second.weight.grad))
    return answers


@program(grad=True)
def test_hooks_of_parameters_that_take_no_part(compile):
    log = []
    weights = [ones(), ones()]
    weights[0].register_hook(lambda gradient: log.append(gradient is None))
    f = compile(lambda x: ((x * weights[0]).sin().sum(), (x * weights[1]).cos().sum()))
    for number in (0, 1):
        f(torch.full((3,), 0.5))[number].backward()
    return log, [weight.grad for weight in weights]


def chain(x):
    y = (x * first.weight[0]).sin()
    return y, (y * second.weight[0]).exp()


def three_in_a_row(x):
    a = (x * first.weight[0]).sin()
    b = (a * second.weight[0]).exp()
    return a, b, (a * b).cos()


def diamond(x):
    a = (x * first.weight[0]).sin()
    b, c = a * second.weight[0], a.cos()
    return a, b, c, (b * c).tanh()


def loss_and_scores(x):
    scores = first(x)
    return scores.log_softmax(0).sum(), scores


def written_in_place(x):
    y = first(x).sin()
    z = y.cos()
    w = y.clone().mul_(2)
    return w, z, w * z


def that_keep_nothing(x):
    a = x + 1
    b = a + 2
    return a, b, b * 3


def twelve(x):
    results = [first(x)]
    for _ in range(11):
        results.append(results[-1].sin())
    return tuple(results)


def also_detached(x):
    y = first(x).sin()
    return y, y.detach() * second.weight[0], y * second.weight[0]


def hook_the_first(results, log):
    results[0].register_hook(lambda gradient: gradient * 3)
    results[-1].sum().backward()


def hook_all(results, log):
    for number, result in enumerate(results):
        result.register_hook(lambda gradient, number=number: log.append((number, gradient)) or gradient * (number + 2) / 4)
    sum(result.sum() for result in results).backward()


def keep_all(results, log):
    for result in results:
        result.retain_grad()
    results[-1].sum().backward()
    log.append([result.grad for result in results])


def ask_for_the_first(results, log):
    log.append(torch.autograd.grad(results[-1].sum(), results, allow_unused=True))


def one_after_the_other(results, log):
    for result in results:
        log.append(outcome(lambda: result.sum().backward())[0])


def twice(results, log):
    results[-1].sum().backward(retain_graph=True)
    for result in (results[-1], results[0]):
        log.append(outcome(lambda: result.sum().backward())[0])


def with_one_another(results, log):
    (results[0] * results[-1]).sum().backward()


USES = [hook_the_first, hook_all, keep_all, ask_for_the_first, one_after_the_other, twice, with_one_another]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
@pytest.mark.parametrize("f", [chain, three_in_a_row, diamond, loss_and_scores, written_in_place, that_keep_nothing, twelve, also_detached], ids=lambda f: f.__name__)
@program(whole=True, grad=True)
def test_gradients_through_other_results(compile, f, use):
    compiled = compile(f)
    answers = []
    for _ in range(2):
        x = torch.tensor([0.3, -0.2, 0.7], requires_grad=True)
        first.zero_grad(), second.zero_grad()
        log = []
        use(compiled(x), log)
        answers.append((log, x.grad, first.weight.grad, second.weight.grad))
    return answers


def flags(result):
    return result._is_view(), result.requires_grad, result.is_leaf, result._version


@program(grad=True)
def test_detached_results_are_no_views(compile):
    alone = [compile(f) for f in (lambda x: x.detach(), lambda x: x.view(-1), lambda x: x.view(-1).detach(), lambda x: x.data)]
    both = compile(lambda x: (x.detach(), x[:1], x.sin().detach()))
    given = [torch.ones(3), ones(), ones() * 2]
    written = compile(lambda x: x.detach())(given[1])
    written.mul_(ones())
    answers = [[flags(f(x)) for f in alone] + [flags(result) for result in both(x)] for x in given]
    return answers, written.requires_grad, given[1]


pause = oxyfuel.disable(lambda: None)


@program(grad=True)
def test_writes_to_results_that_other_results_need(compile):
    def through_a_view(x):
        y = first(x)
        z = second(y)
        pause()
        y.add_(1)
        return z

    def one_of_two_equal(x):
        y, z = x.softmax(-1), x.softmax(-1)
        pause()
        y[0] = 2
        return z

    answers = []
    for f in (compile(through_a_view), compile(one_of_two_equal)):
        for _ in range(2):
            x = torch.tensor([0.3, -0.2, 0.7], requires_grad=True)
            answers.append((outcome(lambda: f(x).sum().backward())[:2], x.grad))
    return answers


@program(grad=True)
def test_histories_that_were_freed(compile):
    def before_a_break(x):
        y = x @ first.weight
        y.sum().backward()
        pause()
        return torch.autograd.grad((y * x).sum(), x)

    def at_once(x):
        y = x @ first.weight
        y.sum().backward()
        return torch.autograd.grad((y * x).sum(), x)

    return [outcome(compile(f), ones()) for f in (before_a_break, at_once) for _ in range(2)]


@program(grad=True)
def test_hooks_of_views_of_arguments(compile):
    log = []

    @compile
    def f(x):
        view = x.expand(2, 3)
        view.register_hook(log.append)
        return view[:1]

    @compile
    def g(x):
        y = first(x)
        view = y.view(3, 1)
        view.register_hook(log.append)
        return y, view

    for _ in range(2):
        x = ones()
        f(x).sum().backward()
        sum(result.sum() for result in g(x)).backward()
        log.append(x.grad)
    return log


@program(grad=True)
def test_views_made_without_grad(compile):
    weight = torch.tensor([0.5, 1.0, -1.0])
    f = compile(lambda x, view: (view * weight).sum().backward())
    g = compile(lambda x, view: torch.autograd.grad((view * x).sum(), x)[0])
    answers = []
    for _ in range(2):
        x = ones() * 2
        with torch.no_grad():
            view = x.view(3)
        answers += [outcome(f, x, view)[:2], view.grad, g(x, view), view.is_leaf, view.requires_grad]
    return answers
