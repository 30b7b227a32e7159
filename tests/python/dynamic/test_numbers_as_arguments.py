"""Ints that change, as arguments of torch's functions: numbers, tensors in whose place a number may stand, and sizes."""

import warnings

import pytest
import torch

import oxyfuel

PROGRAMS = {
    "a half product": lambda x, n: x.half() * n,
    "add": lambda x, n: torch.add(x, n),
    "where": lambda x, n: torch.where(x > 0, n, x),
    "mul": lambda x, n: x.mul(n),
    "maximum of a literal": lambda x, n: torch.maximum(x, torch.tensor(n)),
    "a power of integers": lambda x, n: x.int() ** n,
    "eq": lambda x, n: x.eq(n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "lerp": lambda x, n: torch.lerp(x, x + 1, n),
    "fill_": lambda x, n: x.clone().fill_(n),
    "index_fill_": lambda x, n: x.clone().index_fill_(0, torch.tensor([0]), n),
    "a difference from a number": lambda x, n: n - x.int(),
    "remainder": lambda x, n: torch.remainder(x, n),
    "bitwise_and": lambda x, n: x.int().bitwise_and(n),
    "clamp": lambda x, n: torch.clamp(x, n, n + 2),
    "the number that torch.SymInt hides behind": lambda x, n: 7777777 + x * n,
    "a tensor of numbers": lambda x, n: torch.tensor([n, 2]) + x[:2],
    "new_tensor": lambda x, n: x.new_tensor([n]),
    "a power of a number": lambda x, n: torch.pow(n, x),
    "a floor division": lambda x, n: torch.stack([x, x * n]).sum(0) // n,
    "a size": lambda x, n: torch.zeros(n, 2) + x[0],
}


@pytest.mark.parametrize("backend", ["native", "eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_int_that_changes(name, backend):
    function = PROGRAMS[name]
    compiled = oxyfuel.compile(function, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (3, 5, 7, 2):
            actual, expected = compiled(torch.ones(3), n), function(torch.ones(3), n)
            assert actual.dtype == expected.dtype and torch.equal(actual, expected), n
