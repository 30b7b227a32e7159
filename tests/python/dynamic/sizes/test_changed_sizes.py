"""Sizes that change between calls become symbols: one compilation serves all their values, with eager's answers."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from size_checks import check, compiles, same


def rows(*sizes, columns=6):
    return [(torch.randn(n, columns),) for n in sizes]


POINTWISE = {
    "one operator": lambda x: x + 1,
    "several operators": lambda x: torch.relu(x * 2 - 1).sum(-1, keepdim=True) / x,
    "softmax over rows": lambda x: torch.softmax(x, -1),
    "a sum over what varies": lambda x: x.sum(0),
    "a mean over what varies": lambda x: x.mean(0),
    "a transpose": lambda x: x.t().contiguous() + 1,
    "a view": lambda x: x.view(x.size(0), 2, 3).sum(1),
    "a view with -1": lambda x: x.view(-1, 2) * 2,
    "a flattened tensor": lambda x: x.flatten(),
    "sizes as ints": lambda x: (x.shape[0] * 2 + 1, x.numel(), x.size(), len(x)),
    "a slice by a size": lambda x: x[: x.size(0) // 2] + 1,
    "new tensors": lambda x: torch.zeros(x.size(0), 2) + torch.ones_like(x[:, :2]),
    "a range": lambda x: torch.arange(x.size(0)) * 2,
    "a range with bounds": lambda x: torch.arange(2, x.size(0) + 7, 3, dtype=torch.float32),
    "filled with a size": lambda x: torch.full((2, x.size(0)), x.size(0)),
    "bounded by a size": lambda x: (x * 9).clamp(max=x.size(0)),
    "powers of a size": lambda x: x.abs() ** x.size(0),
    "an index": lambda x: x[x.size(0) // 2 :, 1] + x[-1:].sum(),
    "rolled by a size": lambda x: x.roll(x.size(0) // 2, 0),
    "repeated": lambda x: x.repeat(2, 1),
    "stacked": lambda x: torch.stack([x, x + 1], 1),
    "padded": lambda x: torch.nn.functional.pad(x, (1, 2, 0, 1)),
    "where": lambda x: torch.where(x > 0, x, x.new_zeros(x.shape)),
    "a norm": lambda x: torch.nn.functional.layer_norm(x, (6,)),
    "a loss": lambda x: torch.nn.functional.cross_entropy(x, torch.zeros(x.size(0), dtype=torch.long)),
    "cumulated": lambda x: x.cumsum(0),
    "sorted": lambda x: x.sort(0).values,
    "the largest": lambda x: x.flatten().argmax() if x.size(0) else x,
    "a mask": lambda x: torch.tril(torch.ones(x.size(0), x.size(0))),
    "einsum": lambda x: torch.einsum("nc,mc->nm", x, x),
    "split by sizes": lambda x: torch.cat([x, x]).split(x.size(0)),
    "unbound": lambda x: x.unbind(1),
    "a size in a tuple": lambda x: x.new_empty(x.shape[:-1] + (3,)).zero_(),
    "an in-place write": lambda x: x.clone().mul_(2).t().add_(1),
    "a slice written": lambda x: torch.zeros(x.size(0) + 2, 6).index_put_((torch.arange(x.size(0)),), x),
    "cat with itself": lambda x: torch.cat([x, x * 2]),
    "a division by a size": lambda x: x.sum() / x.size(0),
    "a float of sizes": lambda x: x * x.size(0) ** -0.5,
    "a branch on a size": lambda x: x + 1 if x.size(0) > 2 else x - 1,
    "an output that is a view": lambda x: x.t(),
    "the argument itself": lambda x: (x, x + 1),
    "expanded": lambda x: x.unsqueeze(0).expand(3, -1, -1) * 2,
    "chunks": lambda x: x.chunk(2, 1),
    "a matrix product": lambda x: x @ x.t(),
}


@pytest.mark.parametrize("name", POINTWISE)
def test_rows_that_change(name):
    check(POINTWISE[name], rows(4, 5, 6, 7, 12, 33), 3)


@pytest.mark.parametrize("name", POINTWISE)
def test_one_row_and_none(name):
    function = POINTWISE[name]
    none = () if name == "a float of sizes" else (0,)  # it divides by the size
    check(function, rows(4, 5, 1, *none, 2), 6)


def test_a_layer():
    layer = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)).eval()
    with torch.no_grad():
        check(layer, rows(4, 5, 1, 8, 64), 2)


def test_two_sizes_are_two_symbols():
    check(lambda x, y: x @ y, [(torch.randn(n, 4), torch.randn(4, m)) for n, m in [(3, 3), (4, 5), (7, 2), (6, 6)]], 2)


def test_sizes_that_have_to_be_equal():
    def function(x, y):
        return x + y

    compiled = oxyfuel.compile(function)
    for n in (3, 4, 7):
        x, y = torch.randn(n, 2), torch.randn(n, 2)
        same(compiled(x, y), function(x, y))
    with pytest.raises(RuntimeError, match="must match the size"):
        compiled(torch.randn(5, 2), torch.randn(6, 2))
    same(compiled(torch.ones(5, 2), torch.ones(1, 2)), torch.full((5, 2), 2.0))


def test_an_int_that_changes():
    check(lambda x, n: x[:n] * n, [(torch.randn(9), n) for n in (2, 3, 5, 9, 1, 0)], 3)


def test_dynamic_from_the_first_call():
    check(lambda x: x * 2 + x.size(0), rows(4, 5, 9, 2), 1, dynamic=True)


def test_never():
    check(lambda x: x * 2, rows(4, 5), 2, dynamic=False)
    assert compiles(lambda: [oxyfuel.compile(lambda x: x * 3, dynamic=False)(*a) for a in rows(4, 5)]) == 2


def test_gradients():
    def step(x, w):
        w = w.detach().requires_grad_()
        x = x.detach().requires_grad_()
        loss = compiled(x, w) if use_compiled else function(x, w)
        loss.backward()
        return loss.detach(), x.grad, w.grad

    def function(x, w):
        return torch.nn.functional.gelu(x @ w).pow(2).mean()

    compiled = oxyfuel.compile(function)
    w = torch.randn(6, 3)
    for (x,) in rows(4, 5, 9, 1):
        use_compiled = True
        mine = step(x, w)
        use_compiled = False
        same(mine, step(x, w))


@pytest.mark.parametrize("pad", [(-1, 2), (2, -3), (-2, -1), (1, 2), (0, -1), (-1, 2, -2, 1)])
def test_padding_that_takes_more_than_there_is(pad):
    """It raises as in eager, although what is added would make up for it."""
    compiled = oxyfuel.compile(lambda x: F.pad(x, pad) * 2, dynamic=True)
    for size in [6, 7, 4, 3, 2, 1, 0, 5]:
        x = torch.randn(size, size)
        try:
            expected = F.pad(x, pad) * 2
        except RuntimeError:
            with pytest.raises(RuntimeError):
                compiled(x)
        else:
            same(compiled(x), expected)
