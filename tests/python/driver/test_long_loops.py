"""Loops behind a break without a tensor operator are left to CPython; what they call is compiled as before."""

import torch

import oxyfuel

X = torch.arange(3.0)


def graphs():
    return oxyfuel.metrics()["graphs"]


def layer(x):
    return (x * 2).sin()


def numbers(items):
    seen = []
    for item in items:
        seen.append(len(str(item)))
    return seen


def calls(items):
    seen = []
    for item in items:
        seen.append(layer(item) if isinstance(item, torch.Tensor) else item)
    return seen


def test_iterations_are_all_done():
    items = range(20_000)
    compiled = oxyfuel.compile(numbers)
    for _ in range(2):
        assert compiled(iter(items)) == numbers(items)


def test_functions_that_are_called_later_are_compiled():
    items = [*range(20_000), X, X + 1]
    compiled = oxyfuel.compile(calls)
    actual, expected = compiled(iter(items)), calls(items)
    assert actual[:-2] == expected[:-2]
    torch.testing.assert_close(actual[-2:], expected[-2:])
    assert graphs() >= 1


def halved(items, x):
    for item in items:
        if len(str(item)) > 4:
            x = x * 0.5 + item
    return x


def test_another_call_begins_in_segments():
    compiled = oxyfuel.compile(halved)
    for items in (range(10_010), range(10_000, 10_010)):
        torch.testing.assert_close(compiled(iter(items), X), halved(iter(items), X))
    assert graphs() >= 1
