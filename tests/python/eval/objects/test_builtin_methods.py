"""Every method of the builtin types, and what else can be done with their objects, with arguments that fit and others."""

import array
import collections
import datetime
import decimal
import fractions
import functools
import io
import itertools
import operator
import re
import types

import numpy as np
import pytest
import torch

import oxyfuel

ADDRESS = re.compile("0x[0-9a-f]+")


class Numbers(list):
    pass


class Missing(dict):
    def __missing__(self, key):
        return 7


class Kept:
    def __init__(self, number):
        self.number, self.items = number, [number]

    def add(self, item):
        self.items.append(item)
        return self

    @property
    def twice(self):
        return 2 * self.number

    @twice.setter
    def twice(self, value):
        self.number = value // 2


Pair = collections.namedtuple("Pair", "a b")
OBJECTS = {
    "list": lambda i: [i, 2, 3],
    "dict": lambda i: {i: 1, "a": 2},
    "set": lambda i: {i, 2, 3},
    "frozenset": lambda i: frozenset([i, 2]),
    "tuple": lambda i: (i, 2, 2),
    "str": lambda i: f"ab{i}",
    "bytes": lambda i: b"ab%d" % i,
    "bytearray": lambda i: bytearray(b"ab%d" % i),
    "int": lambda i: i,
    "float": lambda i: i + 0.5,
    "bool": lambda i: i > 1,
    "range": lambda i: range(i, 9, 2),
    "slice": lambda i: slice(i, 5),
    "deque": lambda i: collections.deque([i, 2, 3], 5),
    "OrderedDict": lambda i: collections.OrderedDict([(i, 1), ("a", 2)]),
    "defaultdict": lambda i: collections.defaultdict(list, {i: [1]}),
    "Counter": lambda i: collections.Counter([i, 2, 2]),
    "ChainMap": lambda i: collections.ChainMap({i: 1}, {"a": 2}),
    "UserList": lambda i: collections.UserList([i, 2]),
    "array": lambda i: array.array("i", [i, 2]),
    "Fraction": lambda i: fractions.Fraction(i, 3),
    "Decimal": decimal.Decimal,
    "date": lambda i: datetime.date(2000, 1, i),
    "int64": np.int64,
    "ndarray": lambda i: np.array([i, 2]),
    "Size": lambda i: torch.Size([i, 2]),
    "exception": lambda i: ValueError(i, "a"),
    "list iterator": lambda i: iter([i, 2, 3]),
    "map": lambda i: map(abs, [i, -2]),
    "islice": lambda i: itertools.islice([i, 2, 3], 2),
    "keys": lambda i: {i: 1, "a": 2}.keys(),
    "items": lambda i: {i: 1}.items(),
    "partial": lambda i: functools.partial(max, i),
    "namespace": lambda i: types.SimpleNamespace(a=i),
    "mapping proxy": lambda i: types.MappingProxyType({i: 1}),
    "namedtuple": lambda i: Pair(i, 2),
    "match": lambda i: re.match("a(.)(\\d)?", f"ab{i}"),
    "StringIO": lambda i: io.StringIO(f"a\nb{i}"),
    "subclass of list": lambda i: Numbers([i, 2]),
    "subclass of dict": lambda i: Missing({i: 1}),
    "object": Kept,
    "super": lambda i: super(Numbers, Numbers([i])),
    "function": lambda i: lambda x=0, y=i: (x, y),
    "method": lambda i: Kept(i).add,
    "method of C": lambda i: [i].append,
    "itemgetter": lambda i: operator.itemgetter(0),
}
ARGUMENTS = ("", "1", "-1", "'a'", "b'a'", "[1, 2]", "{1: 5, 'z': 6}", "'a', 1", "None", "{1, 9}", "o", "[('a', 1)]", "slice(0, 2), [7]")
EXPRESSIONS = (
    "len(o) | iter(o) | list(o) | sorted(o) | sum(o) | max(o) | any(o) | str(o) | repr(o) | bool(o) | int(o) | abs(o) | dict(o) | reversed(o) | next(o) |"
    "[*o] | {**o} | (lambda *a: a)(*o) | o[0] | o[-1] | o['a'] | o[0:2] | 1 in o | 'a' in o | o == o | o == [1, 2] | o != 1 | o + o | o * 2 | 2 * o |"
    "o & o | o - o | -o | not o | o < o | o < 2 | o is o | [e for e in o] | {e for e in o} | f'{o}' | f'{o!r:>9}' | '%s' % (o,) | o % 2 | o // 2 |"
    "o() | o(1) | zip(o, o) | list(map(str, o)) | isinstance(o, (int, list)) | max(o, key=str) | dict.fromkeys(o) | [1, *o, 2] | vars(o) | type(o)"
)
STATEMENTS = (
    "o[0] = 9 | o['a'] = 9 | o[0:1] = [7, 8] | del o[0] | del o['a'] | o += [5] | o += (5,) | o *= 2 | o.a = 9 | del o.a | a, *b = o | a, b = o |"
    "for e in o: break | o[:] = [] | o.number += 1 | o.twice = 4 | o -= {2}"
)
# Not what a program calls, or of what follows from where an object lies.
LEFT_OUT = set(
    "__class__ __init_subclass__ __subclasshook__ __sizeof__ __del__ __dir__ __getstate__ __setstate__ __reduce__ __reduce_ex__ __new__ __doc__ "
    "__module__ __dict__ __weakref__ __annotations__ __hash__ __code__ __globals__ __builtins__ __closure__ fileno tofile fromfile dump dumps tobytes "
    "ctypes data buffer_info getfield setfield setflags resize __array__ __array_interface__ __array_struct__ __array_wrap__ __array_finalize__ "
    "__array_ufunc__ __array_function__ __dlpack__ __dlpack_device__ __class_getitem__".split()
)


def look(value, depth=0):
    kind = type(value)
    if depth > 4:
        return "..."
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return kind.__name__, [look(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return kind.__name__, [(look(key, depth + 1), look(item, depth + 1)) for key, item in value.items()]
    if isinstance(value, BaseException):
        return kind.__name__, look(value.args, depth + 1)
    if isinstance(value, (Kept, types.SimpleNamespace)):
        return kind.__name__, look(vars(value), depth + 1)
    if isinstance(value, io.StringIO):
        return kind.__name__, "closed" if value.closed else value.getvalue()
    if hasattr(kind, "__next__"):
        return kind.__name__, [look(item, depth + 1) for item in itertools.islice(value, 4)]
    return kind.__name__, ADDRESS.sub("0x", repr(value))


def seen(function, value):
    """The outcome, and the object after it. How many arguments a method of C takes is said in the words of the class that
    defines it or of the object's, by how the interpreter has come to it."""
    try:
        result = function(value)
        immutable = isinstance(value, (str, bytes, int, float, bool, range, slice, frozenset, tuple, datetime.date))
        return look(result), immutable or result is value, look(value)
    except Exception as error:
        return type(error).__name__, "takes ..." if "takes " in str(error) else ADDRESS.sub("0x", str(error)), look(value)


def bodies(value):
    for name in dir(value):
        if name in LEFT_OUT:
            continue
        try:
            found = getattr(value, name)
        except Exception:
            found = None
        calls = [f"o.{name}({arguments})" for arguments in ARGUMENTS] if callable(found) else [f"o.{name}"]
        yield from (f"return {call}" for call in calls)
    yield from (f"return {expression.strip()}" for expression in EXPRESSIONS.split("|"))
    yield from (f"{statement.strip()}\n  return o" for statement in STATEMENTS.split("|"))


@pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS)
@pytest.mark.filterwarnings("ignore")
def test_what_can_be_done_with(make):
    for body in bodies(make(1)):
        namespace = {}
        exec(f"def f(o):\n  {body}", globals(), namespace)
        function = namespace["f"]
        oxyfuel.reset()
        compiled = oxyfuel.compile(function, backend="eager")
        for i in (1, 2, 3):
            assert seen(compiled, make(i)) == seen(function, make(i)), (body, i)
