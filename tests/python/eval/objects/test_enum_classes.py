"""Enum classes: members while the class is made, each an object of its own, and the program's code that classes run."""

import collections
import dataclasses
import enum

import pytest
import torch

from eager_comparison import outcome, program

compile_source = compile
X = torch.arange(6.0).reshape(2, 3)
Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    left: int
    right: list


class Wide(tuple):
    def __new__(cls, *items):
        return tuple.__new__(cls, items)


class Labelled(int):
    def __new__(cls, value, label="none"):
        made = int.__new__(cls, value)
        made.label = label
        return made


class Text(str):
    def __new__(cls, *parts):
        return str.__new__(cls, "-".join(parts))


KINDS = {  # by name: what else the class is of, the values of its members, and their common methods
    "plain": ((), [1, (2, 3), "x", [4], [4]]),
    "namedtuple": ((Point,), [(0, []), (1, [2]), (1, [2]), (3, 4)]),
    "tuple": ((tuple,), [(1, 2), (3,), ((1, 2),)]),
    "wide": ((Wide,), [(1, 2), (3, 4), (1, 2)]),
    "dataclass": ((Pair,), [(1, [2]), (3, [4]), (1, [2])]),
    "labelled": ((Labelled,), [(1, "one"), (2, "two"), 3, (1, "uno")]),
    "text": ((Text,), [("a", "b"), ("c",), ("a-b",)]),
    "float": ((float,), [1.5, 2, -0.0, 0.0]),
}
BASES = {"plain": enum.Enum, "int": enum.IntEnum, "flag": enum.Flag, "int flag": enum.IntFlag}


def seen_of(kind):
    """What tells the members apart: names, aliases, values, attributes, and which are the same objects."""
    members = kind.__members__
    identities = [[a is b for b in members.values()] for a in members.values()]
    return [(name, member.name, member.value, repr(member), sorted(vars(member))) for name, member in members.items()], identities


@pytest.mark.parametrize("kind", KINDS)
@program()
def test_of_another_class(compile, kind):
    bases, values = KINDS[kind]
    @compile
    def f(x):
        class Made(*bases, enum.Enum):
            A, B, C = values[:3]
            if len(values) > 3:
                D = values[3]

        return x + len(Made), Made.C.name, seen_of(Made)

    return [f(X + i) for i in range(3)]


@pytest.mark.parametrize("how", ["new", "init", "both"])
@program()
def test_with_methods_that_make_members(compile, how):
    made = []

    class Methods:
        if how in ("new", "both"):

            def __new__(cls, value, extra=0):
                member = object.__new__(cls)
                member._value_ = value * 10
                member.extra = extra
                made.append(member)
                return member

        if how in ("init", "both"):

            def __init__(self, value, extra=0):
                made.append(self)
                self.doubled = 2 * value, extra, len(made)

    @compile
    def f(x, count):
        class Made(Methods, enum.Enum):
            A = 1
            B = 2, 5
            C = 3
            D = 1

        del made[count:]
        return x * len(Made), seen_of(Made), [[a is b for b in Made] for a in made], Made.B in made

    return [f(X, count) for count in (9, 9, 1)]


@program()
def test_flags_and_their_combinations(compile):
    def use(kind, x):
        both = kind.A | kind.B
        return x + both.value, both, both is (kind.B | kind.A), ~kind.A, kind(3) is both, both & kind.B, kind(0), repr(kind(0))

    @compile
    def f(x):
        class Made(enum.IntFlag):
            A = enum.auto()
            B = enum.auto()
            C = 8

        class Kept(enum.Flag):
            A = 1
            B = 2

        return [tuple(map(str, use(kind, x)[1:])) for kind in (Made, Kept)], use(Kept, x)[0], outcome(lambda: Kept(64))[:2]

    return [f(X) for _ in range(3)]


@pytest.mark.parametrize("base", BASES)
@program()
def test_compiled_methods_that_meet_members_in_the_making(compile, base):
    met = []

    @compile
    def greet(member, value, x):
        met.append(member)
        return x * value, member is met[0], type(member).__name__

    sums = []

    class Made(BASES[base]):
        A = 1
        B = 2
        C = 4
        D = 8

        def __init__(self, *values):
            sums.append(greet(self, values[0] if values else 0, X))

    later = [greet(member, 3, X) for member in Made]
    return sums, later, [member.name for member in met], [[a is b for b in met] for a in met]


@pytest.mark.parametrize("base", BASES)
@program()
def test_a_search_of_its_own_for_members(compile, base):
    """What ``_missing_`` finds is not known by the value alone, and each call runs it, once."""
    found, default = [], ["A"]

    class Made(BASES[base]):
        A = 1
        B = 2

        @classmethod
        def _missing_(cls, value):
            found.append(value)
            return cls[default[0]] if value != 99 else None

    @compile
    def f(x, value):
        member = Made(value)
        print("behind")
        return x * member.value, member.name

    g = compile(lambda x, value: x * Made(value).value)
    results = []
    for name, value in (("A", 7), ("A", 7), ("B", 7), ("B", 1), ("A", 1), ("A", 99), ("A", 8)):
        default[0] = name
        results.append([outcome(lambda: h(X, value))[:2] for h in (f, g)])
    return results, found


@program()
def test_calls_that_the_metaclass_answers(compile):
    calls = []

    class Meta(enum.EnumMeta):
        def __call__(cls, *arguments, **keywords):
            calls.append(arguments)
            return super().__call__(*arguments, **keywords)

    class Made(enum.Enum, metaclass=Meta):
        A = 1
        B = 2

    f = compile(lambda x, value: x * Made(value).value)
    results = [f(X, value) for value in (1, 1, 2, 1)]
    return results, calls


SOURCE = """
import enum

VALUE = [1]
LOG = []


class Made(enum.Enum):
    A = 1
    B = 2

    def __str__(self):
        LOG.append("str")
        return f"{self.name}{VALUE[0]}"

    def __hash__(self):
        LOG.append("hash")
        return VALUE[0]

    def __eq__(self, other):
        return self is other or VALUE[0] == 3


class Generic:
    def __class_getitem__(cls, item):
        LOG.append(item)
        return VALUE[0]


def f(x):
    return x * Generic[3], str(Made.A), f"{Made.B}", "%s" % Made.A, len({Made.A, Made.B})
"""


@pytest.mark.parametrize("file", ["module.py", "<string>", "<stdin>", "<ipython-input-1>", "<any name>"])
@program()
def test_special_methods_of_code_without_a_file(compile, file):
    names = {"__name__": "made"}
    exec(compile_source(SOURCE, file, "exec"), names)
    f = compile(names["f"])
    results = []
    for value in (1, 1, 2, 3, 1):
        names["VALUE"][0] = value
        results.append((f(X), list(names["LOG"])))
        names["LOG"].clear()
    return results
