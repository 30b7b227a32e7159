"""Exceptions of the program and of torch: the same ones, from the same lines, caught in the same places."""

import pytest
import torch
import torch.nn as nn

import oxyfuel
from eager_comparison import outcome, program


def x23():
    return torch.arange(6.0).reshape(2, 3)


@program()
def test_exceptions_of_user_code(compile):
    class Custom(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)
            self.a = a

    def helper(x, kind):
        y = x + 1
        if kind == "custom":
            raise Custom(1, "two")
        if kind == "index":
            return [1, 2][5]
        if kind == "key":
            return {"a": 1}["b"]
        if kind == "type":
            return 1 + "a"
        if kind == "zero":
            return 1 / 0
        if kind == "attribute":
            return y.missing
        if kind == "name":
            return undefined_name  # noqa: F821
        if kind == "assert":
            assert y is None, f"not {kind}"
        if kind == "unpack":
            a, b = [1, 2, 3]
        if kind == "call":
            return helper(1, 2, 3)
        if kind == "unbound":
            del y
            return y
        if kind == "none":
            return None + 1
        if kind == "from":
            try:
                raise KeyError("inner")
            except KeyError as error:
                raise Custom(3, 4) from error
        if kind == "iter":
            for _ in 5:
                pass
        if kind == "next":
            next(iter([]))
        if kind == "notcallable":
            return y.shape(1)
        if kind == "int":
            return int("x")
        return y

    @compile
    def f(x, kind):
        return helper(x * 2, kind) * 3

    kinds = ("custom", "index", "key", "type", "zero", "attribute", "name", "assert", "unpack", "call", "unbound", "none", "from", "iter", "next", "notcallable", "int", "fine")
    return [outcome(f, x23(), kind) for kind in kinds for _ in range(2)]


@program()
def test_exceptions_of_torch(compile):
    def body(x, y, kind):
        if kind == "shape":
            return (x + 1) + y
        if kind == "matmul":
            return x @ y
        if kind == "view":
            return x.view(5)
        if kind == "cat":
            return torch.cat([x, y[0]])
        if kind == "dtype":
            return torch.ones(2, dtype=torch.int64).add_(1.5)
        if kind == "linear":
            return nn.functional.linear(x, y)
        if kind == "argument":
            return torch.relu(x, 1, 2)
        if kind == "index":
            return x[5]
        if kind == "gather":
            return x[torch.tensor([7])]
        if kind == "bool":
            return x + 1 if x > 0 else x
        if kind == "dim":
            return x.sum(4)

    f = compile(body)
    kinds = ("shape", "matmul", "view", "cat", "dtype", "linear", "argument", "index", "gather", "bool", "dim")
    return [outcome(f, x23(), torch.ones(4, 5), kind) for kind in kinds for _ in range(2)]


@program()
def test_exceptions_caught_inside(compile):
    @compile
    def f(x, items):
        results = []
        for key in ("a", "b"):
            try:
                results.append(x * items[key])
            except KeyError as error:
                results.append(str(error))
            finally:
                results.append(key)
        try:
            x.view(5)
        except RuntimeError as error:
            results.append(str(error))
        try:
            try:
                raise ValueError("a")
            finally:
                results.append("finally")
        except (TypeError, ValueError):
            results.append("outer")
        return results

    return f(x23(), {"a": 2}), f(x23(), {"b": 3, "a": 1})


@program()
def test_exception_groups_and_notes(compile):
    @compile
    def f(x):
        try:
            raise ExceptionGroup("g", [ValueError("v"), KeyError("k")])
        except* ValueError as group:
            y = x + len(group.exceptions)
        except* KeyError:
            y = x * 3
        return y

    return f(x23()), f(x23())


@program()
def test_index_out_of_range_in_a_kernel(compile):
    table = torch.arange(12.0).reshape(4, 3)

    @compile
    def f(index, x, log):
        x.add_(1)
        log["before"] = 1
        picked = table[index] * 2
        x.mul_(2)
        log["after"] = 1
        return picked + x

    results = []
    for index in ([0, 1], [3, 2], [1, 9], [-4, 3], [-5, 0], [0, 0]):
        x, log = torch.ones(2, 3), {}
        results.append((outcome(f, torch.tensor(index), x, log), x, log))
    return results


@program()
def test_embedding_out_of_range(compile):
    net = nn.Embedding(4, 3)
    nn.init.ones_(net.weight)
    f = compile(lambda i: net(i) * 2 + 1)
    results = [f(torch.tensor([0, 3])), outcome(lambda: f(torch.tensor([0, 4]))), outcome(lambda: f(torch.tensor([-1, 0])))]
    return results + [f(torch.tensor([1, 2]))]


@program()
def test_random_state_after_an_out_of_range_index(compile):
    table = torch.arange(12.0).reshape(4, 3)

    @compile
    def f(index):
        noise = torch.rand(2, 3)
        return table[index] + noise + torch.rand(2, 3)

    results = [f(torch.tensor([0, 1]))]
    results.append(outcome(f, torch.tensor([0, 9])))
    return results + [torch.rand(2), f(torch.tensor([1, 1]))]


def test_endless_recursion_with_breaks():
    def down(x):
        print("", end="")
        return down(x)

    with pytest.raises(RecursionError), torch.no_grad():
        oxyfuel.compile(down)(x23())


@program()
def test_deep_recursion(compile):
    def down(x, n):
        return x + 1 if n == 0 else down(x, n - 1)

    return compile(down)(x23(), 400)


@program(whole=False)
def test_keyboard_interrupt_passes(compile):
    def stop():
        raise KeyboardInterrupt("now")

    @compile
    def f(x):
        y = x + 1
        print("a")
        stop()
        return y

    try:
        f(x23())
    except KeyboardInterrupt as error:
        return str(error)
