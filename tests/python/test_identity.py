"""Which object something is, where equal ones are not the same: objects without equality, NaN, texts made twice."""

import collections
import operator

import pytest
import torch

from eager_comparison import program

X = torch.ones(2)


class Thing:
    pass


THINGS = [Thing() for _ in range(3)]


@program()
def test_equal_texts_and_numbers(compile):
    @compile
    def f(x, a, b):
        return x + (1 if a is b else 2)

    one, other = "ab" * 3, "".join(["ab"] * 3)
    large = [int("100000") for _ in range(2)]
    pairs = [(one, one), (one, other), (other, other), (one, one), (other, one), (large[0], large[0]), (large[0], large[1]), (large[1], large[1])]
    return [f(X, *pair) for pair in pairs]


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "deque": collections.deque,
    "set": set,
    "frozenset": frozenset,
    "dict": dict.fromkeys,
    "keys": lambda items: dict.fromkeys(items).keys(),
    "values": lambda items: dict(enumerate(items)).values(),
}


@pytest.mark.parametrize("kind", CONTAINERS)
@program()
def test_membership(compile, kind):
    @compile
    def f(x, items, wanted):
        return x + (1 if wanted in items else 2)

    a, b, c = THINGS
    make = CONTAINERS[kind]
    nans = [float("nan"), float("nan")]
    things = [f(X, make((a, b)), wanted) for wanted in (c, a, b, c, a)]
    return things, [f(X, make((held,)), wanted) for held in nans for wanted in nans for _ in range(2)]


LOOKS = {
    "count": lambda a, b: ([a].count(b), collections.deque([a]).count(b), (a,).count(b)),
    "index": lambda a, b: [b, a].index(a),
    "dict": lambda a, b: len({a: 1, b: 2}),
    "set": lambda a, b: (len({a, b}), {a} == {b}, len({a} & {b}), {a} <= {b, 1}),
    "tuples": lambda a, b: ((a, 1) == (b, 1), (a, 1) in {(b, 1)}, [a] == [b], {1: a} == {1: b}),
    "operator": lambda a, b: (operator.countOf([a], b), operator.contains([a], b)),
    "is": lambda a, b: (a is b, a is not b, a == b, a != b),
}


@pytest.mark.parametrize("look", LOOKS)
@program()
def test_two_objects_or_one(compile, look):
    @compile
    def f(x, a, b):
        return LOOKS[look](a, b), x

    @compile
    def g(x, a, b):
        return LOOKS[look](a, b), x

    a, b, c = THINGS
    return [f(X, *pair) for pair in ((a, a), (a, b), (b, c), (c, c))], [g(X, *pair) for pair in ((a, b), (a, a), (a, c), (b, b))]


def pair():
    return (2, 1)


@program()
def test_a_constant_of_the_code_is_given(compile):
    @compile
    def f(x, t):
        return [(2, 1)].count(t), t == (2, 1), t in ((2, 1), 3), x

    return [f(X, t) for t in (pair(), (1, 1), (2, 1), pair(), (1, 1))]
