"""Objects that die, and others that come to lie at their addresses: what was read of the old is read of the new."""

import collections
import functools
import operator
import types

import numpy
import pytest
import torch

from eager_comparison import program

X = torch.ones(2)


class Named:
    def __init__(self, name):
        self.name = name


class Slot:
    __slots__ = ("value",)


def make_cell(value):
    return (lambda: value).__closure__[0]


def made_function(value):
    return lambda: value


# What is read of an object that was made for a number, and how it is made: anew each time, of the same size.
RECYCLED = {
    "string": (lambda n: "".join(["number ", str(n)]), lambda v: v == "number 0"),
    "tuple": (lambda n: (int(str(1000 + n)),), lambda v: v[0] == 1000),
    "tuple of a list": (lambda n: ([n],), lambda v: v[0][0]),
    "nested tuple": (lambda n: (("a", 1000 + n),), lambda v: v[0][1]),
    "length of a tuple": (lambda n: ([],) * (n + 1), len),
    "list": (lambda n: [1000 + n], lambda v: v[0]),
    "instance": (lambda n: Named(f"number {n}"), lambda v: v.name),
    "method": (lambda n: Named(f"number {n}").__str__ if n else Named("a").__repr__, lambda v: v.__name__),
    "bound to": (lambda n: types.MethodType(len, "a" * (n + 1)), lambda v: v()),
    "C method": (lambda n: [3].count if n else [3].index, lambda v: v(3)),
    "function": (lambda n: made_function(1000 + n), lambda v: v()),
    "type": (lambda n: [dict, list, set, collections.deque][n](), lambda v: isinstance(v, (list, set))),
    "deque": (lambda n: collections.deque([1], maxlen=n + 1), lambda v: v.maxlen),
    "partial": (lambda n: functools.partial(max, n), lambda v: v(1)),
    "slice": (lambda n: slice(1000 + n), lambda v: v.stop),
    "range": (lambda n: range(1000 + n), len),
    "big integer": (lambda n: int("9" * 30) + n, lambda v: v % 7),
    "numpy": (lambda n: numpy.float64(n), lambda v: v == 1),
    "tensor": (lambda n: torch.full((n + 1,), 2.0), lambda v: v.sum()),
    "class": (lambda n: type("Made", (), {"value": n}), lambda v: v.value),
}


@pytest.mark.parametrize("kind", RECYCLED)
@program()
def test_objects_at_recycled_addresses(compile, kind):
    make, look = RECYCLED[kind]
    items, table, slot, cell, named = [None], {"k": None}, Slot(), make_cell(None), Named("n")
    places = [
        (lambda v: operator.setitem(items, 0, v), lambda: items[0]),
        (lambda v: operator.setitem(table, "k", v), lambda: table["k"]),
        (lambda v: setattr(slot, "value", v), lambda: slot.value),
        (lambda v: setattr(cell, "cell_contents", v), lambda: cell.cell_contents),
        (lambda v: setattr(named, "name", v), lambda: named.name),
        (lambda v: setattr(types, "made_up", v), lambda: types.made_up),
    ]
    results = []
    for store, read in places:
        f = compile(lambda x: (x + 1, look(read())))
        for number in (0, 0, 0, 1, 0, 1, 0, 2, 3, 1, 0, 3):
            store(None)
            store(make(number))
            results.append(f(X))
    del types.made_up
    return results
