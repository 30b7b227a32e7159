"""User classes, enums, text, iteration, patterns, types and copies inside of a compiled function."""

import collections
import copy
import enum
import functools
import itertools
import operator
import typing

import torch
import torch.nn as nn

from capture_samples import Color, Config, Derived, x23
from eager_comparison import outcome, program


@program()
def test_properties_slots_and_getattr(compile):
    class Slotted:
        __slots__ = ("a", "b")

        def __init__(self, a):
            self.a = a

    class Dynamic:
        known = 3

        def __init__(self):
            self._scale = 2.0

        @property
        def scale(self):
            return self._scale

        @scale.setter
        def scale(self, value):
            self._scale = value * 2

        def __getattr__(self, name):
            if name.startswith("dyn_"):
                return len(name)
            raise AttributeError(f"no {name} here")

    slotted, dynamic = Slotted(2.0), Dynamic()

    @compile
    def f(x):
        dynamic.scale = dynamic.scale + 1
        slotted.b = slotted.a + 1
        return x * slotted.b * dynamic.dyn_abc + dynamic.known, dynamic.scale, hasattr(dynamic, "zzz"), getattr(dynamic, "q", 5)

    results = [f(x23()), dynamic._scale, slotted.b]
    slotted.a = 5.0
    return results + [f(x23()), dynamic._scale, slotted.b, outcome(lambda: f(x23()) and dynamic.other)]


@program()
def test_user_operators(compile):
    class Vector:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return Vector(self.value + (other.value if isinstance(other, Vector) else other))

        def __radd__(self, other):
            return Vector(other - self.value)

        def __mul__(self, other):
            return NotImplemented

        def __getitem__(self, index):
            return self.value[index]

        def __len__(self):
            return len(self.value)

        def __iter__(self):
            return iter(self.value.unbind(0))

        def __contains__(self, item):
            return item == 3

        def __call__(self, x):
            return self.value * x

        def __eq__(self, other):
            return self.value.shape == other.value.shape

        __hash__ = None

        def __neg__(self):
            return Vector(-self.value)

        def __enter__(self):
            self.value = self.value + 1
            return self

        def __exit__(self, *exc):
            self.value = self.value - 2
            return False

        def __bool__(self):
            return True

    @compile
    def f(x):
        v = Vector(x)
        w = v + 1 + v
        u = 2 + v
        with w as inside:
            y = inside.value * 2
        try:
            v * 2
        except TypeError:
            y = y + 1
        return y, w.value, u.value, v[0], len(v), [a + 1 for a in v], 3 in v, v(2), v == w, v != w, (-v).value, 1 if v else 0

    return f(x23()), f(x23())


@program()
def test_partial_lru_cache_and_wraps(compile):
    @functools.lru_cache(maxsize=None)
    def table(n):
        return tuple(range(n))

    def scaled(x, k, *, bias=0):
        return x * k + bias

    def deco(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs) + 1

        return wrapper

    triple = functools.partial(scaled, k=3)

    @compile
    @deco
    def f(x):
        inner = functools.partial(triple, bias=2)
        return triple(x) + inner(x) + sum(table(4))

    return f(x23()), f(x23()), compile(functools.partial(scaled, k=2))(x23(), bias=1), table(4)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Flags(enum.Flag):
    A = 1
    B = 2


@program(whole=True)
def test_enums(compile):
    @compile
    def f(x, color, level=Level.LOW):
        if color is Color.RED:
            x = x + 1
        elif color == Color.BLUE:
            x = x - 1
        if level > Level.LOW:
            x = x * level
        return x * color.factor(), color.name, Color["RED"], Color(2), level.value + 1, [c.name for c in Color]

    return f(x23(), Color.RED), f(x23(), Color.BLUE, Level.HIGH), f(x23(), Color.RED)


@program()
def test_flags(compile):
    @compile
    def f(x, flags):
        return x + 1 if flags & Flags.B else x - 1

    return f(x23(), Flags.A), f(x23(), Flags.A | Flags.B)


@program(whole=True)
def test_text(compile):
    @compile
    def f(x, name):
        text = f"{name!r:>6}|{name!a}|{name!s}|{[name]!r}|{3.14159:.2f}|{x.shape[0]:03d}|{[1, 'a']}|{x.dtype}|{tuple(x.shape)}|{Color.RED}"
        return x + len(text), text, "%s-%d" % (name, 3), "{} {k}".format(1, k=name), name.upper().split("B"), ",".join(["a", name]), str(x.shape)

    return f(x23(), "abc"), f(x23(), "x\u00e9")


@program(whole=True)
def test_iteration_tools(compile):
    @compile
    def f(x, items):
        a = [v * 2 for v in items if v != 2]
        b = {k: v for k, v in zip("abc", items)}
        c = list(map(lambda v: v + 1, items))
        d = list(filter(None, [0, 1, 2]))
        e = sorted(items, key=lambda v: -v)
        g = [i * v for i, v in enumerate(items, 1)]
        h = sum(v for v in items)
        i = max(items), min(items, key=lambda v: abs(v - 2)), any(v > 2 for v in items), all(items)
        j = list(itertools.chain([1], (2,))), list(itertools.product([1], [2, 3])), list(itertools.accumulate([1, 2, 3]))
        k = functools.reduce(operator.add, items), list(reversed(items)), [*range(3)], list(itertools.islice(items, 1))
        m = {v for v in items}
        return x * h, a, b, c, d, e, g, i, j, k, m

    return f(x23(), [3, 1, 2]), f(x23(), [1, 5, 4])


@program(whole=True)
def test_tensors_in_iteration_tools(compile):
    @compile
    def f(xs):
        total = sum(xs)
        total = total + sum(a * b for a, b in zip(xs, reversed(xs)))
        rows = [row * i for i, row in enumerate(xs[0])]
        best = functools.reduce(torch.maximum, xs)
        return total, torch.stack(rows), list(map(torch.relu, xs)), best

    return f([x23(), x23() - 2]), f([x23() - 2, x23() * 3])


@program(whole=True)
def test_generators_inside(compile):
    def numbers(n):
        received = yield 0
        for i in range(n):
            yield i * 2
        return 7

    def delegating(n):
        result = yield from numbers(n)
        yield result

    @compile
    def f(x):
        total = x
        for v in delegating(3):
            total = total + v
        g = numbers(2)
        first = next(g)
        rest = list(g)
        return total, first, rest, next(iter(()), "none"), tuple(v * x for v in numbers(2))

    return f(x23()), f(x23())


@program()
def test_generator_argument(compile):
    @compile
    def f(x, values):
        for v in values:
            x = x + v
        return x

    used = iter([1, 2])
    return f(x23(), (v for v in [1, 2, 3])), f(x23(), used), list(used)


@program()
def test_iterator_is_advanced_once(compile):
    steps = iter(range(100))

    @compile
    def f(x):
        return x + next(steps)

    return [f(x23()) for _ in range(3)] + [next(steps)]


@program(whole=True)
def test_pattern_matching(compile):
    @compile
    def f(x, subject):
        match subject:
            case {"kind": "scale", "by": by}:
                return x * by
            case [a, b, *rest]:
                return x + a + b + len(rest)
            case Config(scale=s):
                return x - s
            case str() | None:
                return x
            case int(n) if n > 3:
                return x + n
            case _:
                return -x

    return [f(x23(), s) for s in ({"kind": "scale", "by": 2}, [1, 2, 3], Config(4.0), "s", None, 5, 2, {"kind": 1})]


@program(whole=True)
def test_walrus_chained_and_ternary(compile):
    @compile
    def f(x, n):
        y = (z := x + 1) * 2 if 0 < n < 3 else x
        while n > 0:
            n -= 1
            if n == 1:
                continue
            if n == 0:
                break
            y = y + n
        else:
            y = y - 100
        assert n == 0, "n"
        return y, n or "zero", not n

    return f(x23(), 2), f(x23(), 5)


@program(whole=True)
def test_isinstance_and_types(compile):
    @compile
    def f(x, obj):
        checks = (
            isinstance(x, torch.Tensor), isinstance(obj, (int, str)), issubclass(Derived, Config), type(obj) is int,
            callable(obj), hasattr(x, "shape"), isinstance(x, nn.Parameter), type(x) is torch.Tensor, type(x).__name__,
            isinstance(obj, typing.Sized), torch.is_tensor(x), torch.is_floating_point(x),
        )
        return x + sum(bool(c) for c in checks), checks

    return f(x23(), 3), f(x23(), "s"), f(x23(), [1])


@program()
def test_copies_inside(compile):
    config = Config(2.0, None, ["a"])

    @compile
    def f(x):
        shallow, deep = copy.copy(config), copy.deepcopy(config)
        shallow.scale = 5.0
        deep.names.append("b")
        return x * shallow.scale, deep.names, shallow.names is config.names, copy.copy([1, 2]), copy.deepcopy({"a": [1]})

    return f(x23()), config


@program()
def test_attributes_that_metaclasses_compute(compile):
    state = {"value": 1}

    class Doubled:
        def __get__(self, instance, owner=None):
            return state["value"] * 2

    class Meta(type):
        @property
        def value(cls):
            return state["value"]

        doubled = Doubled()

        def __getattr__(cls, name):
            if name.startswith("times"):
                return int(name[5:]) * state["value"]
            raise AttributeError(name)

        def method(cls, x):
            return x + cls.value

    class Owner(metaclass=Meta):
        value = 100  # hidden by the property
        doubled = 50  # hides the descriptor
        other = Doubled()

    class Plain(metaclass=Meta):
        pass

    def f(x):
        return x + Owner.value, Owner.doubled, Plain.doubled, Owner.other, Plain.times3, Plain.method(x), hasattr(Plain, "missing")

    compiled = compile(f)
    log = [compiled(torch.ones(2))]
    for state["value"] in (5, "text"):
        log.append(outcome(compiled, torch.ones(2)))
    state["value"] = 7
    Owner.doubled = 8
    return [*log, compiled(torch.ones(2))]


@program(whole=False)
def test_a_metaclass_that_reads_all_attributes(compile):
    log = []

    class Meta(type):
        def __getattribute__(cls, name):
            log.append(name)
            return super().__getattribute__(name)

    class Owner(metaclass=Meta):
        value = 3

    compiled = compile(lambda x: x + Owner.value)
    results = [compiled(torch.ones(2)) for _ in range(2)]
    Owner.value = 4
    return results, compiled(torch.ones(2)), log.count("value")


@program()
def test_copies_of_objects(compile):
    class Options:
        kind = "plain"

        def __init__(self, **values):
            self.__dict__.update(values)

    class Empty:
        pass

    class Stateful(Options):
        def __getstate__(self):
            return {"size": self.size + 1}

    class Made(Options):
        def __new__(cls, *args, **values):
            made = super().__new__(cls)
            made.made = True
            return made

    options = Options(size=3, names=["a", "b"], nested=Options(size=5))

    def f(x):
        shallow, deep = copy.copy(options), copy.deepcopy(options)
        shallow.size = 4
        deep.names.append("c")
        deep.nested.size += 1
        own = copy.copy(Options(size=x.shape[0]))
        own.extra = 1
        return (x * shallow.size + deep.nested.size, shallow, deep, shallow.names is options.names, vars(own), copy.copy(Empty()),
                copy.copy(Made(size=1)).made, type(deep) is Options, options.size)  # fmt: skip

    compiled = compile(f)
    log = [compiled(torch.ones(2)), options]
    options.size, options.added = 7, "new"
    return [*log, compiled(torch.ones(2)), options]


@program(whole=False)
def test_copies_of_objects_with_their_own_state(compile):
    class Stateful:
        def __init__(self):
            self.size = 3

        def __getstate__(self):
            return {"size": self.size + 1}

    class Slots:
        __slots__ = ("a", "__dict__")

    stateful, slots = Stateful(), Slots()
    slots.a, slots.b = 1, 2

    def f(x):
        one, two = copy.copy(stateful), copy.copy(slots)
        return x + one.size + two.a, vars(one), vars(two)

    compiled = compile(f)
    return [compiled(torch.ones(2)) for _ in range(2)]


@program()
def test_metaclasses_that_decide_what_is_an_instance(compile):
    class Even(type):
        asked, modulus = 0, 2

        def __instancecheck__(cls, instance):
            Even.asked += 1
            return isinstance(instance, int) and instance % Even.modulus == 0

    class Number(metaclass=Even):
        pass

    @compile
    def f(x, n):
        match n:
            case Number():
                x = x * 2
        return x + 1 if isinstance(n, (str, Number)) else x

    answers = [f(x23(), n) for n in (2, 3, "a", 2, 3)]
    Even.modulus = 3
    return answers, [f(x23(), n) for n in (2, 3)], Even.asked


@program()
def test_what_class_patterns_take(compile):
    class Fields(collections.namedtuple("Fields", "x y")):
        __slots__ = ()

    class Plain:
        x = y = 1

    class Listed(Plain):
        __match_args__ = ["x"]

    class Numbered(Plain):
        __match_args__ = (1,)

    class Twice(Plain):
        __match_args__ = ("x", "x")

    class Partly(Plain):
        __match_args__ = ("x", "missing")

    @compile
    def f(x, value, kind):
        match value:
            case kind(a, b):
                return x + 1
            case kind(a, x=b):
                return x + 2
            case kind(a):
                return x + 3
        return x

    values = Fields(1, 2), Plain(), Listed(), Numbered(), Twice(), Partly(), (1, 2), 3, {}
    answers = []
    for value in values:
        answers.append(outcome(f, x23(), value, type(value)))
    return answers


class Stored:
    """A data descriptor that keeps its value in the object's dict, under its own name."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, object, owner=None):
        return self if object is None else object.__dict__[self.name] * 2

    def __set__(self, object, value):
        print("set", self.name)
        object.__dict__[self.name] = value


class WithSlots:
    __slots__ = ("a", "hidden")

    def __init__(self, a):
        self.a = a


class Hiding(WithSlots):
    __slots__ = ("b",)

    def __init__(self, a, b):
        super().__init__(a)
        self.b = b

    @property
    def hidden(self):
        return self.a + 1


class Described:
    value = Stored()

    def __init__(self, value):
        self.value = value

    @property
    def fixed(self):
        return 5


@program()
def test_attributes_behind_descriptors(compile):
    @compile
    def f(x):
        slotted, described = Hiding(x + 1, 3), Described(x)
        described.__dict__["fixed"] = 7
        WithSlots.hidden.__set__(slotted, 11)
        print("break")
        return slotted, described, slotted.hidden, described.value, described.fixed, dict(vars(described))

    slotted, described, *rest = f(torch.ones(2))
    return slotted.a, slotted.b, slotted.hidden, WithSlots.hidden.__get__(slotted), described.value, described.fixed, rest


@program()
def test_paths_that_are_made_in_the_region(compile):
    import pathlib

    f = compile(lambda x, name: (x + 1, pathlib.PurePosixPath(pathlib.PurePosixPath("a/b"), name).name))
    return f(torch.ones(2), "c.py"), f(torch.ones(2), "d/e.py")
