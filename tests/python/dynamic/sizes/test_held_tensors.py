"""Tensors and numbers of changing size that the program holds itself, and not its arguments."""

import pytest
import torch

import oxyfuel


class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = None

    def forward(self, x):
        self.kept = x if self.kept is None else torch.cat([self.kept, x], 1)
        return self.kept.sum(1)


def closure():
    kept = torch.zeros(2, 1, 4)

    def program(x):
        nonlocal kept
        kept = torch.cat([kept, x], 1)
        return kept.sum(1)

    return program


def in_a_list():
    kept = [torch.zeros(2, 1, 4)]

    def program(x):
        kept[0] = torch.cat([kept[0], x], 1)
        return kept[0].sum(1)

    return program


def in_a_dict():
    kept = {"all": torch.zeros(2, 1, 4)}

    def program(x):
        kept["all"] = torch.cat([kept["all"], x], 1)
        return kept["all"].sum(1)

    return program


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("make", [Cache, closure, in_a_list, in_a_dict], ids=lambda make: make.__name__)
def test_a_cache_that_grows(make, dynamic):
    oxyfuel.reset()
    program, compiled = make(), oxyfuel.compile(make(), dynamic=dynamic)
    for length in (3, 1, 1, 1, 2, 1, 4, 1, 1, 1):
        x = torch.randn(2, length, 4)
        torch.testing.assert_close(compiled(x), program(x))
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] <= 5 and not metrics["calls_eager"], metrics["recompile_reasons"]


def detached():
    kept = torch.zeros(2, 1, 4)

    def program(x):
        nonlocal kept
        kept = torch.cat([kept, x.detach()], 1)
        return x * kept.sum(1, keepdim=True)

    return program


def test_a_cache_beside_gradients():
    program, compiled = detached(), oxyfuel.compile(detached())
    for length in (3, 1, 1, 1, 2, 1, 4, 1):
        values, gradients = torch.randn(2, length, 4), []
        for function in (program, compiled):
            x = values.clone().requires_grad_()
            function(x).sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] <= 5 and not metrics["calls_eager"], metrics["recompile_reasons"]


class Holder:
    tensor = None


def test_a_tensor_of_an_object_that_is_replaced():
    holder = Holder()

    def program(x):
        return holder.tensor.sum(1) + x

    compiled = oxyfuel.compile(program)
    for length in (3, 5, 2, 7, 1, 9, 0, 4):
        holder.tensor = torch.randn(2, length, 4)
        x = torch.randn(2, 4)
        torch.testing.assert_close(compiled(x), program(x))
    assert oxyfuel.metrics()["graphs"] <= 3, oxyfuel.metrics()["recompile_reasons"]


def test_a_buffer_that_is_replaced():
    class Table(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.randn(5, 4))

        def forward(self, x):
            return self.rows[: x.size(0)] * x

    module = Table()
    compiled = oxyfuel.compile(module)
    for size in (2, 3, 4):
        torch.testing.assert_close(compiled(torch.ones(size, 4)), module(torch.ones(size, 4)))
    module.rows = torch.randn(7, 4)
    torch.testing.assert_close(compiled(torch.ones(6, 4)), module(torch.ones(6, 4)))


def counts_in_a_list():
    count = [1]

    def program(x):
        count[0] += 1
        return x * count[0]

    return program


def counts_by_methods():
    counts = [1, 5]

    def program(x):
        counts.__setitem__(1, counts[0] + counts[1])
        counts[0] = counts[1] - counts[0]
        return x * counts[0] + counts[-1]

    return program


@pytest.mark.parametrize("make", [counts_in_a_list, counts_by_methods], ids=lambda make: make.__name__)
def test_numbers_in_a_list_that_is_written(make):
    oxyfuel.reset()
    program, compiled = make(), oxyfuel.compile(make())
    for _ in range(10):
        torch.testing.assert_close(compiled(torch.ones(2)), program(torch.ones(2)))
    assert oxyfuel.metrics()["graphs"] <= 3, oxyfuel.metrics()["recompile_reasons"]


def test_numbers_in_a_list_that_is_an_argument():
    def program(x, numbers):
        numbers[0] += 1
        return x * numbers[0]

    compiled = oxyfuel.compile(program)
    for k in range(2, 10):
        mine, eagers = [k, 3], [k, 3]
        torch.testing.assert_close(compiled(torch.ones(2), mine), program(torch.ones(2), eagers))
        assert mine == eagers
    assert oxyfuel.metrics()["graphs"] <= 2, oxyfuel.metrics()["recompile_reasons"]
