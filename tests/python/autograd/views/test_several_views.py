"""Views of one tensor: autograd refuses writes to those that one operator made, and their use once their memory was written to.

A view that was made before its tensor required grad counts as a leaf until its history is asked for.
"""

import pytest
import torch

from eager_comparison import outcome, program

MAKERS = {
    "unbind": lambda y: y.unbind(0),
    "split into sizes": lambda y: y.split([1, 3], 1),
    "rows of a transposed view": lambda y: y.t().unbind(0),
    "views of pieces": lambda y: [piece.view(-1)[1:] for piece in y.split(1)],
    "pieces and views of them": lambda y: [view for piece in y.split(1) for view in (piece, piece.view(-1)[1:])],
    "one piece": lambda y: [y.unbind(0)[1]],
    "sections": lambda y: y.tensor_split(2),
    "views of their own": lambda y: [y.view_as(y), y[1], y[1][2:]],
    "made without grad": lambda y: without_grad(y),
    "rows of what was made without grad": lambda y: rows_of_a_view_without_grad(y),
}


def without_grad(y):
    with torch.no_grad():
        return [y[0], y[1]]


def rows_of_a_view_without_grad(y):
    with torch.no_grad():
        v = y.view(4, 2)
    return v[1], v.unbind(0)[2]


def write(tensor):
    tensor.mul_(2)


def write_without_grad(tensor):
    with torch.no_grad():
        tensor.mul_(2)


SCALE = torch.nn.Parameter(torch.tensor(1.5))

# Given the tensor and its views.
EVENTS = {
    "nothing": lambda y, pieces: None,
    "a piece is written": lambda y, pieces: write(pieces[-1]),
    "a piece is written without grad": lambda y, pieces: write_without_grad(pieces[0]),
    "the whole is written": lambda y, pieces: write(y),
    "the whole is written without grad": lambda y, pieces: write_without_grad(y),
    "another view is written": lambda y, pieces: write(y[0]),
    "a piece's data is written": lambda y, pieces: write(pieces[0].data),
    "a piece is multiplied by what requires grad": lambda y, pieces: pieces[0].mul_(torch.ones((), requires_grad=True)),
    "the whole is multiplied by what requires grad": lambda y, pieces: y.mul_(SCALE),
    "a piece is written after that": lambda y, pieces: (y.mul_(SCALE), write(pieces[0])),
    "the history of a piece is asked for after that": lambda y, pieces: (y.mul_(SCALE), pieces[0].grad_fn is None, write(pieces[0])),
    "a piece is used after that": lambda y, pieces: (y.mul_(SCALE), pieces[0] * 2, write(pieces[0]), write(pieces[-1])),
}


def looks(tensor):
    """What autograd tells of a tensor, and what a backward pass gives; each may be an error."""

    def gradient():
        tensor.abs().sum().backward(retain_graph=True)

    def hooked():
        tensor.register_hook(lambda g: g * 3)

    return tensor.detach().clone(), tensor.requires_grad, [outcome(ask)[:3] for ask in (lambda: tensor.is_leaf, lambda: tensor.grad_fn is None, gradient, hooked, gradient)]


def leaf(kind):
    x = torch.arange(8.0).view(2, 4).requires_grad_(kind != "plain")
    return x * 1 if kind == "result" else x


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("make", MAKERS)
@program(grad=True)
def test_written_behind_the_region(compile, make, event):
    results = []
    for kind, whole_is_result in (("leaf", True), ("result", True), ("result", False), ("plain", True)):

        @compile
        def f(x):
            y = x * 2
            pieces = MAKERS[make](y)
            return y if whole_is_result else None, pieces

        x = leaf(kind)
        y, pieces = f(x)
        if y is None:
            y = pieces[0]._base if pieces[0]._base is not None else pieces[0]
        happened = outcome(EVENTS[event], y, pieces)[:3]
        results.append((happened, [looks(piece) for piece in pieces], x.grad))
    return results


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("make", MAKERS)
@program(grad=True)
def test_written_in_the_region(compile, make, event):
    results = []
    for kind in ("leaf", "result", "plain"):
        for returns in (lambda y, pieces: (y, *pieces), lambda y, pieces: pieces, lambda y, pieces: (pieces[0],), lambda y, pieces: (y, y * pieces[-1].sum())):

            @compile
            def f(x):
                y = x * 2
                pieces = MAKERS[make](y)
                EVENTS[event](y, pieces)
                return returns(y, pieces)

            x = leaf(kind)
            happened = outcome(f, x)
            if happened[0] == "returned":
                happened = [looks(piece) for piece in happened[1]]
            results.append((happened, x.grad))
    return results


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("make", [make for make in MAKERS if make != "sections"])
@program(grad=True)
def test_views_of_an_argument(compile, make, event):
    results = []
    for kind in ("leaf", "result", "plain"):

        @compile
        def f(x):
            pieces = MAKERS[make](x)
            return pieces, pieces[0] * 2

        @compile
        def g(x):
            pieces = MAKERS[make](x)
            EVENTS[event](x, pieces)
            return pieces, pieces[0] * 2

        x = leaf(kind)
        pieces, product = f(x)
        happened = outcome(EVENTS[event], x, pieces)[:3]
        results.append((happened, [looks(piece) for piece in pieces], looks(product), x.grad))
        x = leaf(kind)
        happened = outcome(g, x)
        if happened[0] == "returned":
            happened = [looks(tensor) for tensor in (*happened[1][0], happened[1][1])]
        results.append((happened, x.grad))
    return results


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("make", MAKERS)
@program(grad=True)
def test_views_that_are_arguments(compile, make, event):
    results = []
    for kind in ("leaf", "result", "plain"):

        @compile
        def f(y, *pieces):
            return pieces[0].view(pieces[0].shape), pieces[-1] * 2, y.sum()

        @compile
        def g(y, *pieces):
            EVENTS[event](y, pieces)
            return pieces[0] * 2

        for first, second in ((EVENTS[event], f), (lambda y, pieces: None, g)):
            x = leaf(kind)
            y = x * 2
            pieces = MAKERS[make](y)
            happened = [outcome(first, y, pieces)[:3], outcome(second, y, *pieces)[:3]]
            if happened[1][0] == "returned":
                tensors = happened[1][1] if isinstance(happened[1][1], tuple) else [happened[1][1]]
                happened[1] = [looks(tensor) for tensor in tensors]
                happened.append(outcome(EVENTS[event], y, [tensors[0]])[:3])
            results.append((happened, [looks(piece) for piece in pieces], x.grad))
    return results


WHOLE = {
    "linear": lambda x: torch.nn.functional.linear(x, torch.ones(4, 4), torch.ones(4)),
    "view": lambda x: (x * 2).view(-1),
    "transposed": lambda x: (x * 2).t().unsqueeze(0),
    "as it is": lambda x: x * 2,
    "a view with a hook": lambda x: with_hook((x * 2).view(-1)),
    "made without grad": lambda x: made_without_grad(x * 2),
    "written through the view": lambda x: (x * 2).view(-1).mul_(3),
    "of what was written": lambda x: (x * 2).mul_(3).view(-1),
}


def with_hook(y):
    if y.requires_grad:
        y.register_hook(lambda g: g * 3)
    return y


def made_without_grad(y):
    with torch.no_grad():
        return y.view(-1)


@pytest.mark.parametrize("make", WHOLE)
@program(grad=True)
def test_a_view_of_all_is_one_in_the_result(compile, make):
    """Its hooks are not called once it was written to; those of a tensor that is no view are."""
    seen, results = [], []
    for kind in ("leaf", "result", "plain"):
        f = compile(lambda x: WHOLE[make](x))
        for _ in range(2):
            x = leaf(kind)
            y = f(x)
            is_hooked = outcome(lambda: y.register_hook(lambda g: seen.append(g.clone())) is not None)[:3]
            results.append((y._is_view() and y.requires_grad, is_hooked))
            results.append(outcome(lambda: y.mul_(2).sum().backward())[:3])
            results.append((y.detach().clone(), x.grad, len(seen)))
    return results, seen


@pytest.mark.parametrize("is_written_in_the_region", [False, True])
@pytest.mark.parametrize("returns_whole", [False, True])
@program(grad=True)
def test_views_of_a_detached_tensor(compile, returns_whole, is_written_in_the_region):
    results = []
    for kind in ("leaf", "result", "plain"):

        @compile
        def f(x):
            y = x.detach()
            pieces = [*y.unbind(0), y[:1]]
            if is_written_in_the_region:
                y.mul_(SCALE)
            return y if returns_whole else None, pieces

        x = leaf(kind)
        y, pieces = f(x)
        base = pieces[0]._base
        results.append([piece._base is base and base is not x for piece in pieces] + [y is None or y is base])
        if not is_written_in_the_region:
            base.mul_(SCALE)
        results.append([looks(piece) for piece in (base, *pieces)])
    return results


def write_first(v):
    v.mul_(2)
    return v * 1


def write_behind_a_use(v):
    y = v.sin()
    v.mul_(2)
    return y.sum() + v.detach().sum()


def write_behind_a_dead_use(v):
    v + 1
    v.mul_(2)
    return v * 1


def write_without_gradients(v):
    with torch.no_grad():
        v.mul_(2)
    return v * 1


ARGUMENT_USES = {
    "read": lambda v: v * 2,
    "a leaf or not": lambda v: v * 2 if v.is_leaf else v * 3,
    "a leaf or not, behind a use": lambda v: (v + 1, v * 2 if v.is_leaf else v * 3)[1],
    "requires grad": lambda v: v * 2 if v.requires_grad and not v.is_leaf else v * 3,
    "written": write_first,
    "written behind a use": write_behind_a_use,
    "written behind a dead use": write_behind_a_dead_use,
    "written without gradients": write_without_gradients,
    "a view of it": lambda v: v[1:] * 2,
}
ARGUMENT_VIEWS = {
    "of what came to require grad": lambda b, p: (b[:], b.mul_(p))[0],
    "a row": lambda b, p: (b.view(2, 2)[1], b.mul_(p))[0],
    "that is recorded": lambda b, p: (v := b[:], b.mul_(p), v.grad_fn)[0],
    "of a leaf": lambda b, p: (b[:], b.requires_grad_())[0],
    "made behind the write": lambda b, p: b.mul_(p)[:],
}


@pytest.mark.parametrize("view", ARGUMENT_VIEWS)
@pytest.mark.parametrize("use", ARGUMENT_USES)
@program(grad=True)
def test_views_without_a_history_as_arguments(compile, use, view):
    f = compile(ARGUMENT_USES[use])
    results = []
    for call in range(3):
        parameter = torch.full((4,), 3.0, requires_grad=True)
        v = ARGUMENT_VIEWS[view](torch.arange(4.0), parameter)
        happened = outcome(f, v)[:3]
        if happened[0] == "returned":
            happened = happened[1].detach().clone(), outcome(lambda: torch.autograd.grad(happened[1].sum(), parameter, allow_unused=True))[:3]
        results.append((happened, outcome(write, v)[:3]))
    return results
