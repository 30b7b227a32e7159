"""Classes derived from builtin ones that override a special method: what is asked of their objects, in which order, and what
comes of it. Each override logs the call and does what its base does. A part of all combinations is drawn, the same each time."""

import collections
import contextlib
import copy
import datetime
import decimal
import fractions
import functools
import io
import itertools
import json
import math
import operator
import random
import re
import types

import pytest
import torch
import torch.nn as nn

import oxyfuel

LOG = []
X = torch.ones(3)

BASES = {
    int: (5,), float: (2.5,), str: ("ab",), bytes: (b"ab",), complex: (1 + 2j,), bytearray: (b"ab",), list: ([3, 1, 2],),
    tuple: ((3, 1, 2),), dict: ({"a": 1, "b": 2},), set: ({1, 2},), frozenset: ({1, 2},), collections.deque: ([3, 1, 2],),
    collections.defaultdict: (int, {"a": 1}), collections.OrderedDict: ({"a": 1, "b": 2},), collections.Counter: ("aab",),
    collections.UserDict: ({"a": 1},), collections.UserList: ([3, 1, 2],), collections.UserString: ("ab",),
    collections.ChainMap: ({"a": 1}, {"b": 2}), collections.namedtuple("Pair", "x y"): (1, 2), ValueError: ("e", 1), KeyError: ("k",),
    StopIteration: (3,), OSError: (2, "no", "f"), object: (), decimal.Decimal: ("1.5",), fractions.Fraction: (1, 3),
    datetime.date: (2020, 1, 2), functools.partial: (max, 3), random.Random: (3,), nn.Linear: (2, 2),
    nn.Sequential: (nn.ReLU(),),
}  # fmt: skip

SPECIALS = """__repr__ __str__ __format__ __bool__ __len__ __eq__ __ne__ __hash__ __iter__ __next__ __contains__ __getitem__ __setitem__
__delitem__ __add__ __radd__ __iadd__ __mul__ __rmul__ __mod__ __rmod__ __or__ __ror__ __and__ __sub__ __rsub__ __lt__ __gt__ __le__
__int__ __index__ __float__ __neg__ __abs__ __call__ __getattr__ __getattribute__ __setattr__ __delattr__ __reversed__ __missing__
__copy__ __deepcopy__ __reduce__ __reduce_ex__ __new__ __init__ __dir__ __length_hint__ __round__ __enter__ __trunc__ __complex__
__bytes__ keys items values get append extend update pop add copy join split index count sort""".split()

EXPRESSIONS = """o | repr(o) | str(o) | f"{o}" | f"{o!r:>5}" | f"{o!s}" | f"{o:>9}" | "%s" % (o,) | "%r" % (o,) | "{}".format(o)
"{0!r}".format(o) | format(o) | bool(o) | not o | 1 if o else 2 | len(o) | o == o | o != 3 | 3 == o | hash(o) | {o: 1}[o] | o in [o]
3 in o | "a" in o | list(o) | tuple(o) | set(o) | sorted(o) | dict(o) | [*o] | {**o} | [x for x in o] | next(iter(o)) | max(o) | sum(o)
any(o) | list(zip(o, o)) | list(enumerate(o)) | list(map(str, o)) | list(reversed(o)) | reversed(o) | iter(o) | o[0] | o["a"] | o["zz"]
o[1:] | o + o | o + 1 | 1 + o | [1] + o | "a" + o | o * 2 | 2 * o | o % 3 | "%s" % o | "%d" % o | o - o | o < o | o > 3 | int(o) | float(o)
complex(o) | [1, 2, 3, 4, 5, 6, 7][o] | range(o) | abs(o) | -o | round(o) | math.floor(o) | operator.index(o) | bin(o) | o() | o(5) | o.foo
getattr(o, "foo", 7) | hasattr(o, "foo") | (setattr(o, "foo", 3), o.foo, delattr(o, "foo")) | vars(o) | o.__class__ | callable(o)
isinstance(o, (int, str, list, dict)) | copy.copy(o) | copy.deepcopy(o) | ",".join(o) | ",".join([o]) | "abab".split(o) | o.upper()
"xaby".replace(o, "q") | o.count(1) | o.index(1) | o.get("a") | o.keys() | list(o.items()) | o.pop() | o.copy() | o.append(4)
(o.extend([4, 5]), list(o)) | (o.update({"q": 1}), dict(o)) | (o.add(9), sorted(o)) | sorted([o, o]) | min(o, o) | sum([o, 1]) | print(o)
print(o, [o], sep="-") | str([o]) | repr((o,)) | json.dumps(o) | json.dumps({"a": o}) | str.upper(o) | int.__add__(o, 1) | list.__len__(o)
dict.__getitem__(o, "a") | list.append(o, 3) | super(type(o), o).__repr__() | o.__repr__() | o.__len__() | o.__eq__(o) | o.__hash__()
o.__iter__() | o.__init__() | o.__reduce_ex__(2)[0] | functools.reduce(lambda a, b: b, o) | list(itertools.chain(o, [1]))
list(itertools.islice(o, 1)) | collections.Counter(o) | collections.deque(o) | dict.fromkeys(o, 0) | dict([o]) | dict(a=o)
(lambda *a: a)(*o) | (lambda **a: a)(**o) | X + o | X * o | X[o] | torch.tensor(o) | torch.full((2,), o) | torch.stack([X, X])[o] | X == o
o + X | operator.add(o, o) | operator.contains(o, 3) | operator.itemgetter(0)(o) | operator.methodcaller("copy")(o) | in_place_add(o)
in_place_or(o) | in_place_multiply(o) | delete(o) | assign(o) | loop(o) | enter(o) | match(o) | unpack(o)"""
EXPRESSIONS = [expression.strip() for line in EXPRESSIONS.split("\n") for expression in line.split(" | ")]


def in_place_add(o):
    first = o
    o += o
    return first is o, o


def in_place_or(o):
    first = o
    o |= o
    return first is o, o


def in_place_multiply(o):
    first = o
    o *= 2
    return first is o, o


def delete(o):
    del o[0]
    return o


def assign(o):
    o[0] = 9
    return o


def loop(o):
    count = 0
    while o and count < 2:
        count += 1
    return count


def enter(o):
    with o as entered:
        return entered


def match(o):
    match o:
        case int(x) | str(x):
            return "value", x
        case [first, *rest]:
            return first, rest
        case {"a": value, **rest}:
            return value, rest
        case _:
            return "none"


def unpack(o):
    first, *rest = o
    return first, rest


ANSWERS = dict.fromkeys(["__repr__", "__str__", "__format__"], "text") | dict.fromkeys(
    ["__len__", "__int__", "__index__", "__hash__", "__length_hint__", "__round__", "__trunc__"], 1
)
ANSWERS |= {"__float__": 1.5, "__complex__": 1j, "__bytes__": b"q", "__enter__": 5}


def without_base(name, arguments):
    """What an override gives if there is nothing that it overrides."""
    if name in ANSWERS:
        return ANSWERS[name]
    if name == "__getattr__":
        raise AttributeError(arguments[0])
    if name == "__getitem__" and arguments[0] not in (0, 1, 2):
        raise IndexError
    if name == "__next__":
        raise StopIteration
    if name == "__iter__":
        return iter([7, 8])
    return arguments[0] if name == "__getitem__" else NotImplemented


def derived(base, names):
    members = {}
    for name in names:

        def method(self, *arguments, name=name, **keywords):
            LOG.append((name, len(arguments)))
            if name == "__new__":
                return super(made, made).__new__(self, *arguments, **keywords)
            inherited = getattr(super(made, self), name, None)
            if inherited is None:
                return without_base(name, arguments)
            return not inherited() if name == "__bool__" else inherited(*arguments, **keywords)

        members[name] = method
    if "__eq__" in names:
        members["__hash__"] = base.__hash__
    if "__enter__" in names:
        members["__exit__"] = lambda *_: LOG.append("exit")
    made = type("Derived", (base,), members)
    return made


NATIVE = (list, tuple, set, frozenset, dict, collections.deque, str, int, float, bytes, bytearray, complex)


def shown(value, depth=0):
    """A text that asks nothing of the value's own."""
    name = type(value).__name__
    native = next((base for base in NATIVE if isinstance(value, base)), None)
    if depth > 4:
        return name
    if native is dict:
        return name, [(shown(key, depth + 1), shown(dict.__getitem__(value, key), depth + 1)) for key in dict.__iter__(value)]
    if native in NATIVE[:6]:
        return name, [shown(item, depth + 1) for item in native.__iter__(value)]
    if native is int and abs(value) > 2**32:
        return name, "a hash, which may be an address"
    if native:
        return name, re.sub("0x[0-9a-f]+", "", native.__repr__(value))
    if isinstance(value, type):
        return "class", name
    if isinstance(value, torch.Tensor):
        return name, value.dtype, value.tolist() if value.numel() < 20 else value.shape
    if isinstance(value, (nn.Module, types.GeneratorType)) or type(value).__module__ == __name__:
        return name
    return name, re.sub("0x[0-9a-f]+", "", repr(value))


def observed(function, make):
    torch.manual_seed(0)
    argument = make()
    LOG.clear()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            outcome = shown(function(argument))
        except Exception as error:
            outcome = type(error), [shown(part) for part in error.args]
        calls = list(LOG)
    return outcome, calls, re.sub("0x[0-9a-f]+", "", printed.getvalue())


def cases():
    draw = random.Random(0)
    for base, arguments in BASES.items():
        # PyTorch looks into the characters of what is like a str without end.
        fitting = [e for e in EXPRESSIONS if base is not collections.UserString or ("X" not in e and "torch" not in e)]
        pairs = [(special, expression) for special in SPECIALS for expression in fitting]
        yield pytest.param(base, arguments, draw.sample(pairs, 150), id=base.__name__)


@pytest.mark.parametrize(("base", "arguments", "pairs"), list(cases()))
@pytest.mark.filterwarnings("ignore")
def test_one_override(base, arguments, pairs):
    different = []
    for special, expression in pairs:
        if not special.startswith("__") and not hasattr(base, special):
            continue
        made = derived(base, [special])
        try:
            made(*copy.deepcopy(arguments))
        except Exception:
            continue
        names = globals() | {"made": made}
        exec(f"def given(o): return {expression}\ndef inside(a):\n  o = made(*a)\n  return {expression}", names)
        for function, make in (
            (names["given"], lambda made=made: made(*copy.deepcopy(arguments))),
            (names["inside"], lambda: copy.deepcopy(arguments)),
        ):
            observed(function, make)
            expected = observed(function, make)
            compiled = oxyfuel.compile(function)
            for _ in range(2):
                if (got := observed(compiled, make)) != expected:
                    different.append(f"{special} {function.__name__} {expression}\n  {expected}\n  {got}")
                    break
    assert not different, "\n".join(different)


OPERATORS = "+ - * / // % ** & | ^ << < > <= >= == != += *= |= -= &=".split()
VALUES = {
    int: 3, float: 2.5, str: "ab", bytes: b"ab", list: [1, 2], tuple: (1, 2), dict: {1: 2}, set: {1}, frozenset: {1}, complex: 1j,
    collections.deque: [1], collections.OrderedDict: {1: 2}, collections.Counter: "a", fractions.Fraction: 3, decimal.Decimal: 2,
    bytearray: b"a",
}  # fmt: skip
OVERRIDES = ["radd rmul ror rsub rand rmod", "add mul or sub and mod", "gt ge", "lt le", "eq", "ne", "radd", "add", "iadd imul ior", "lt gt le ge eq", ""]


def operands():
    yield from ((lambda base=base, value=value: base(value)) for base, value in VALUES.items())
    yield from [lambda: None, lambda: True, object]
    for names in OVERRIDES:
        names = [f"__{name}__" for name in names.split()]
        yield derived(object, names)
        yield from (functools.partial(derived(base, names), value) for base, value in VALUES.items())


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_of_two(symbol):
    draw = random.Random(symbol)
    makers = list(operands())
    names = {}
    is_in_place = symbol.endswith("=") and symbol not in ("<=", ">=", "==", "!=")
    statement = f"a {symbol} b" if is_in_place else f"a = a {symbol} b"
    exec(f"def function(both):\n  a, b = both\n  {statement}\n  return a", names)
    different = []
    for _ in range(150):
        left = draw.choice(makers)
        right = left if draw.random() < 0.3 else draw.choice(makers)
        expected = observed(names["function"], lambda left=left, right=right: (left(), right()))
        got = observed(oxyfuel.compile(names["function"]), lambda left=left, right=right: (left(), right()))
        if got != expected:
            different.append(f"{left} {symbol} {right}\n  {expected}\n  {got}")
    assert not different, "\n".join(different)


@pytest.mark.parametrize("symbol", ["|", "&", "-", "^", "+", "*", "<", "=="])
@pytest.mark.parametrize("left", [set, frozenset, dict, collections.OrderedDict, collections.Counter, int, float, decimal.Decimal, list, tuple])
def test_right_operand_with_reflected_operators(symbol, left):
    names = {}
    exec(f"def function(both):\n  a, b = both\n  return a {symbol} b", names)
    overrides = [f"__{name}__" for name in "ror rand rsub rxor radd rmul gt eq".split()]
    for right in VALUES:
        for first in (left, derived(left, [])):
            other = derived(right, overrides)
            make = lambda first=first, other=other, right=right: (first(VALUES[left]), other(VALUES[right]))
            assert observed(oxyfuel.compile(names["function"]), make) == observed(names["function"], make), (first, right)
