"""Objects that programs make anew at every call: known by what they are made of, so that nothing is compiled again."""

import functools
import itertools
from collections import OrderedDict

import pytest
import torch

import oxyfuel
from eager_comparison import outcome, program

X = torch.ones(1, 3)


def closure(k):
    return lambda x, scale=2: x * k * scale


def read(x, value):
    """What can be read of the values below, with a tensor."""
    if isinstance(value, torch.Size):
        return x.expand(value) * value[0], value[1:], value.numel(), list(value), value + (1,), value * 2, len(value)
    if isinstance(value, torch.device):
        return x + torch.ones(3, device=value), value.type, value.index, {value: 1}, value == torch.device("cpu")
    if isinstance(value, range):
        return x * len(value), list(value), value.step, value[1:], 2 in value, sum(value)
    if isinstance(value, frozenset):
        return x * len(value), sorted(value), 1 in value, value | {7}, {value: 1}, list(value)
    return value(x)


VALUES = {
    "size": lambda: torch.zeros(2, 3).shape,
    "device": lambda: torch.device("cpu"),
    "range": lambda: range(1, 6, 2),
    "frozenset": lambda: frozenset([3, 1, 2]),
    "lambda": lambda: lambda x: x * 2,
    "closure": lambda: closure(3),
    "method of a list": lambda: [X, X].copy,
    "method of a tensor": lambda: X.mul,
    "method of a text": lambda: ", ".join,
    "method of a number": lambda: (5).bit_length,
    "method of a class": lambda: Shape.mro,
    "class method of C": lambda: dict.fromkeys,
}

GIVEN = {"copy": (), "mul": (X,), "join": ("ab",), "bit_length": (), "mro": (), "fromkeys": ("ab",)}


class Shape:
    pass


def values(function):
    return pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)(function)


def compiled_once(target, arguments):
    """Compares with eager, at three calls."""
    oxyfuel.reset()
    compiled = oxyfuel.compile(target)
    for _ in range(3):
        expected, actual = outcome(lambda: target(*arguments())), outcome(lambda: compiled(*arguments()))
        assert repr(expected) == repr(actual)
    assert not oxyfuel.metrics()["recompile_reasons"]


def usable(value):
    return (lambda x, method: (method(*GIVEN[method.__name__]), x + 1)) if getattr(value, "__name__", "") in GIVEN else read


@values
def test_as_an_argument(make):
    compiled_once(usable(make()), lambda: (X, make()))


@values
def test_in_a_list(make):
    use = usable(make())
    compiled_once(lambda x, held: use(x, held[0]), lambda: (X, [make()]))


@values
def test_across_a_break(make):
    use = usable(make())

    def f(x):
        value = make()
        y = x * 2
        print(end="")
        return use(y, value)

    compiled_once(f, lambda: (X,))


@values
def test_returned_and_compared(make):
    def f(x, value, other):
        return x + 1, value, [value, other], value is other, value == other, value is value

    compiled = oxyfuel.compile(f)
    for same in (False, False, True, False, True):
        value = make()
        other = value if same else make()
        expected, actual = f(X, value, other), compiled(X, value, other)
        assert actual[1] is value and actual[2][0] is value and actual[2][1] is other
        assert expected[3:] == actual[3:]


@program()
def test_other_values(compile):
    f = compile(read)
    results = []
    for size in ((2, 3), (2, 3), (4, 3)):
        results.append(f(X, torch.Size(size)))
    for numbers in (range(3), range(0, 4, 2), range(0, 3, 2), range(3)):
        results.append(f(X, numbers))
    for items in ([1, 2], [2, 1], [1.0, 2], [True, 2], [8, 0], [0, 8]):
        results.append([repr(part) for part in f(X, frozenset(items))[1:]])
    return results


@program()
def test_functions_of_the_same_code(compile):
    class Counter:
        count = 0

    def counting(step):
        total = 0

        def count(x):
            nonlocal total
            total += step
            return x + total

        return count

    def default(value):
        return lambda x, y=value, *, z=value: x + y * z

    @compile
    def f(x, function, other):
        return function(x), other(x), function(x), function is other, function == other, {function: 1}.get(other)

    @compile
    def named(x, function):
        return function.__name__, function.__defaults__, function(x)

    results = []
    for i in (1, 1, 2):
        one, two = counting(i), counting(i + 1)
        results += [f(X, one, two), f(X, one, one), f(X, two, one), one(X), two(X)]
        results += [f(X, default(i), default(2 * i)), named(X, default(i))]
        function = default(i)
        function.__name__ = f"name {i}"
        results.append(named(X, function))
        function.__defaults__ = (7,)
        results.append(named(X, function))
    return results


@program()
def test_wrappers_of_the_same_code(compile):
    def logged(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args) * 2

        return wrapper

    @logged
    def twice(x):
        return x * 2

    @logged
    def plus(x):
        return x + 1

    @compile
    def f(x, function):
        return function(x), function.__name__, function.__wrapped__(x)

    @compile
    def mapped(x, functions):
        return [function(x) for function in functions]

    return [f(X, function) for function in (twice, plus, twice)], mapped(X, [twice, plus]), mapped(X, [plus, plus])


@program()
def test_disabled_and_compiled_functions_of_the_same_code(compile):
    f = compile(lambda x, function: function(x))

    def scaled(k):
        return lambda x: x * k

    kinds = [scaled(1), oxyfuel.disable(scaled(2)), scaled(3), compile(scaled(4)), torch.no_grad()(scaled(5)), functools.lru_cache(scaled(6))]
    return [f(X, function) for function in kinds + kinds[::-1]]


@program()
def test_bound_methods_of_lists(compile):
    @compile
    def f(x, numbers):
        held = []
        add = held.append
        for number in numbers:
            print("in the loop")
            add(x * number)
        return held, add.__self__ is held

    @compile
    def given(x, method, other):
        method(x + 1)
        return method.__self__, method is other, method == other, method.__name__

    first, second = [], []
    calls = [given(X, held.append, other.append) for held, other in ((first, second), (first, first), (second, first))]
    numbers = list(range(3))
    return [f(X, numbers) for _ in range(3)], numbers, calls, first, second, outcome(lambda: given(X, first.extend, first.append))


@program()
def test_classes_that_bear_the_names_of_torch(compile):
    compared = []

    def equal(self, other):
        compared.append(type(self).__name__)
        return True

    sized = type("torch.Size", (tuple,), {"__eq__": equal, "__hash__": None})
    device = type("torch.device", (), {"__eq__": equal, "__hash__": None})
    f = compile(lambda x, value: (x + 1, type(value).__name__))
    return [f(X, kind(*given)) for kind, given in ((sized, [(1,)]), (sized, [(2,)]), (device, []), (device, []))], compared


@program()
def test_what_a_bound_method_belongs_to(compile):
    class Number(int):
        pass

    f = compile(lambda x, method: (x + 1, method(b"ab", "big")))
    g = compile(lambda x, method, other: (x + 1, method is other, method == other, {method: 1}.get(other), method.__self__))
    made = [f(X, kind.from_bytes) for _ in range(2) for kind in (int, bool, Number)]
    methods = dict.fromkeys, dict.fromkeys, OrderedDict.fromkeys, ",".join, ";".join, torch.add, torch.mul
    return made, [type(value) for _, value in made], [g(X, a, b) for a, b in itertools.product(methods, repeat=2)]
