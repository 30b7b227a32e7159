"""Tensors of one integer as bounds of slices and as indices: numbers of data, which one graph serves."""

import pytest
import torch
from size_checks import check, compiles, same

import oxyfuel

X = torch.randn(20, 6, generator=torch.Generator().manual_seed(0))


def numbers(seed, size, low=0, high=9):
    return torch.randint(low, high, (size,), generator=torch.Generator().manual_seed(seed))


def assigned(x, key, value):
    y = x.clone()
    y[key] = value
    return y


PROGRAMS = {
    "an end": (lambda x, t: x[:, : t.max()] * 2, lambda i: numbers(i, 5, 1, 6)),
    "an element": (lambda x, t: x[: t[0]].sum(0), lambda i: torch.tensor([i + 1, 2])),
    "a pair": (lambda x, t: [x[t[k] : t[k + 1]].sum() for k in range(3)], lambda i: torch.tensor([0, i + 1, i + 3, i + 9])),
    "a count": (lambda x, t: x[: (t > 4).sum()] + 1, lambda i: numbers(i, 12)),
    "a tensor of one dimension": (lambda x, t: x[: t[:1]] + 1, lambda i: numbers(i, 3)),
    "an index": (lambda x, t: x[t] * 2, lambda i: torch.tensor(i)),
    "an index behind others": (lambda x, t: x[1:, t.argmin(), None], lambda i: numbers(i, 6)),
    "an index before an ellipsis": (lambda x, t: x[t.argmax(), ...], lambda i: numbers(i, 20)),
    "the first of an order": (lambda x, t: x[t.argsort()[0]], lambda i: torch.randperm(20, generator=torch.Generator().manual_seed(i))),
    "a negative index": (lambda x, t: x[-1 - t.argmax()], lambda i: numbers(i, 20)),
    "of another type": (lambda x, t: x[t.argmax().int()] + x[: t.max().short()].sum(), lambda i: numbers(i, 20)),
    "assignment to a row": (lambda x, t: assigned(x, t.argmax(), 5.0), lambda i: numbers(i, 20)),
    "assignment to rows": (lambda x, t: assigned(x, slice(None, t.max()), 5.0), lambda i: numbers(i, 20)),
    "assignment to an element": (lambda x, t: assigned(x, (t.argmax(), 2), t.sum()), lambda i: numbers(i, 20)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_numbers_of_data(name):
    program, made = PROGRAMS[name]
    # The elements of small integer tensors are known until they change.
    is_negative = name == "a negative index"  # less likely
    check(program, [(X, made(i)) for i in range(8)], most=3 if is_negative else 2)
    assert is_negative or (oxyfuel.metrics()["breaks"] == [] and oxyfuel.metrics()["calls_eager"] == 0)


@pytest.mark.parametrize("name", ["an end", "a count", "an index", "the first of an order"])
def test_gradients(name):
    program, made = PROGRAMS[name]
    compiled = oxyfuel.compile(program)

    def run():
        for i in range(6):
            results = []
            for f in (compiled, program):
                x, t = X.clone().requires_grad_(), made(i)
                y = f(x, t)
                y.sum().backward()
                results.append((y.detach(), x.grad))
            same(*results)

    assert compiles(run) <= 2


def test_a_row_is_a_view():
    compiled = oxyfuel.compile(lambda x, t: x[t.argmax()])
    for i in range(4):
        x, t = X.clone(), numbers(i, 20)
        compiled(x, t).zero_()
        assert x[t.argmax()].abs().max() == 0


def test_other_tensors_index_as_they_do():
    """Bytes and bools are masks, tensors with dimensions gather."""
    for t in (torch.tensor(True), torch.tensor([2]), torch.tensor([[1, 2]]), torch.tensor(1, dtype=torch.int16)):
        same(oxyfuel.compile(lambda x, t: x[t])(X, t), X[t])


def test_an_index_out_of_range_is_eagers_error():
    compiled = oxyfuel.compile(lambda x, t: x[t.max()] * 2)
    for i in (3, 5, 19):
        same(compiled(X, torch.tensor([i, 0])), X[i] * 2)
    for _ in range(2):
        with pytest.raises(IndexError, match="index 20 is out of bounds for dimension 0 with size 20"):
            compiled(X, torch.tensor([20, 0]))


SLICES = {
    "one": lambda x, t: (lambda a, b: x[a:b].sum())(*t.tolist()[:2]),
    "packed": lambda x, t: torch.cat([x[a:b].softmax(0) for a, b in zip(t.tolist()[:-1], t.tolist()[1:])]),
    "of tensors": lambda x, t: torch.cat([x[t[k] : t[k + 1]].softmax(0) for k in range(3)]),
}


@pytest.mark.parametrize("name", SLICES)
def test_gradients_of_slices_between_numbers_of_data(name):
    """A slice does not end before it begins, whatever the numbers are."""
    program = SLICES[name]
    compiled = oxyfuel.compile(program)

    def run():
        for i in range(7):
            results = []
            for f in (compiled, program):
                x = X.clone().requires_grad_()
                y = f(x, torch.tensor([i, 2 * i + 1, 2 * i + 2, 20]))
                y.square().sum().backward()
                results.append((y.detach(), x.grad))
            same(*results)

    assert compiles(run) <= 2
