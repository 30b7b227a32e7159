"""Which object something is, where equal ones are not the same: objects without equality, NaN, texts made twice."""

import collections
import operator

import pytest
import torch

from eager_comparison import outcome, program

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


# --- id() and hash()

NET, OTHER = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
BY_ID = {id(NET): "net", id(NET.weight): "weight"}
FUNCTIONS = frozenset({torch.add, torch.relu, torch.nn.functional.gelu, operator.add, len, torch.Tensor.mul, torch.ops.aten.mul.Tensor, torch.float32, Thing})
NAMES = {torch.relu: "relu", torch.Tensor.mul: "mul", torch.ops.aten.mul.Tensor: "overload", torch.float32: "float", Thing: "class", len: "len"}


class Numbered:
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number


@program(whole=True)
def test_ids_of_what_stays(compile):
    @compile
    def f(x):
        ids = id(NET), id(NET.weight), id(Thing), id(torch.relu), id(BY_ID), id(THINGS[0])
        return x + 1, [BY_ID[id(NET)], BY_ID[id(NET.weight)], BY_ID.get(id(OTHER))], id(OTHER) in {id(m) for m in (NET, OTHER)}, ids

    return [f(X) for _ in range(3)]


@program()
def test_ids_are_guarded(compile):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.weight = NET, torch.nn.Parameter(torch.ones(2))

        def forward(self, x, module=None):
            return x + 1, id(self.inner), id(self.weight), id(module) == id(self.inner), hash(self.inner) == hash(module)

    model = Model()
    f = compile(model)
    results = [f(X, NET), f(X, OTHER), f(X, NET)]
    model.inner, model.weight = OTHER, NET.weight
    results += [f(X, NET), f(X, OTHER)]
    results = [(y, *[i == id(NET) for i in ids]) for y, *ids in results]
    return results


@program()
def test_ids_of_what_each_call_has_anew(compile):
    @compile
    def f(x, items):
        made = [1]
        same = id(made) == id(made), id(x) == id(x), id(items) == id(made), hash(x) == id(x)
        return x + 1, same, id(None) == id(None), outcome(lambda: id()), outcome(lambda: id(1, 2))

    return [f(torch.ones(2), [i]) for i in range(3)]


HASHES = {
    "constants": lambda: (hash("text"), hash(1.5), hash(None), hash((1, "a", (2,)))),
    "values": lambda: (hash(torch.float32), hash(torch.device("cpu")), hash(torch.Size([1, 2])), hash(range(3)), hash(frozenset({1, 2})), hash(torch.strided)),
    "what stays": lambda: (hash(NET), hash(NET.weight), hash(Thing), hash(torch.relu), hash(len), hash(THINGS[0]), hash(FUNCTIONS), hash(X)),
    "own": lambda: [hash(Numbered(n)) for n in (3, -1, -2, 2**61, 2**62, 2**63, 2**64 - 1, -(2**70))],
    "own that is no number": lambda: outcome(lambda: hash(Numbered("a")))[:3],
    "unhashable": lambda: [outcome(lambda value=value: hash(value))[:3] for value in ([1], {}, set(), ([1],), slice(1))],
    "tuples of objects": lambda: hash((1, THINGS[0])) == hash((1, THINGS[0])),
    "not a number": lambda: hash(float("nan")) == 0,
    "bound": lambda: hash(THINGS[0].__init__) == hash(THINGS[1].__init__),
}


@pytest.mark.parametrize("name", HASHES)
@program()
def test_hashes(compile, name):
    @compile
    def f(x):
        return x + 1, HASHES[name]()

    return [f(X) for _ in range(3)]


@program()
def test_hashes_are_of_the_object_at_each_call(compile):
    @compile
    def f(x, thing, number, values):
        return x + 1, hash(thing), hash(number), hash(values), hash((thing, 1))

    things = [THINGS[0], THINGS[1], Numbered(3), Numbered(4), Numbered(3)]
    return [f(X, thing, number, frozenset([value])) for thing, number, value in zip(things, (1, 2, 1.5, 2, 1), (*THINGS[:2], 3, 3, THINGS[0]))]


@program(whole=True)
def test_functions_as_members_and_keys(compile):
    @compile
    def f(x, function, method, overload, dtype, kind):
        asked = function, method, overload, dtype, kind
        calls = function(x), method(x, 2), overload(x, x)
        return calls, [each in FUNCTIONS for each in asked], [NAMES.get(each) for each in asked], torch.mul in FUNCTIONS, len(FUNCTIONS | {torch.sub}), FUNCTIONS == frozenset(FUNCTIONS)

    first = torch.relu, torch.Tensor.mul, torch.ops.aten.mul.Tensor, torch.float32, Thing
    second = torch.sigmoid, torch.Tensor.add, torch.ops.aten.add.Tensor, torch.float64, Numbered
    return [f(X, *asked) for asked in (first, second, first)]


@program()
def test_a_set_of_functions_that_is_another_one(compile):
    @compile
    def f(x, functions):
        return x + (1 if torch.relu in functions else 2), sorted(each.__name__ for each in functions if each is not torch.relu)

    return [f(X, frozenset(s)) for s in ({torch.relu}, {torch.add}, {torch.relu, torch.add}, {torch.relu})]


@program(whole=True)
def test_resolution_orders(compile):
    class Base:
        pass

    class Derived(Base):
        pass

    @compile
    def f(x, kind):
        return x + 1, [each.__name__ for each in kind.mro()], type.mro(kind)[-1] is object

    return [f(X, kind) for kind in (Derived, Base, Derived, torch.nn.Linear)]


@program()
def test_subclasses_are_those_at_the_call(compile):
    class Base:
        pass

    kept = []

    @compile
    def f(x):
        return x + 1, [each.__name__ for each in Base.__subclasses__()], len(type.__subclasses__(Base))

    results = []
    for name in "abc":
        kept.append(type(name, (Base,), {}))
        results.append(f(X))
    return results
