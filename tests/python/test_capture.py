"""What user code may do inside a compiled function: the answer, the effects and the text are eager's."""

import collections
import copy
import dataclasses
import datetime
import enum
import functools
import itertools
import math
import operator
import pickle
import typing

import torch
import torch.nn as nn
import torch.nn.functional as F

from eager_comparison import outcome, program


def x23():
    return torch.arange(6.0).reshape(2, 3)


# --- functions, closures, arguments


@program(whole=True)
def test_plain_function(compile):
    f = compile(lambda a, b: (a + b).relu() * 2 - b)
    return [f(x23(), x23() - 3), f(x23() * 2, x23())]


@program(whole=True)
def test_closure_changed_between_calls(compile):
    scale = 2.0

    @compile
    def f(x):
        return x * scale

    results = [f(x23())]
    scale = 3.0
    results.append(f(x23()))
    scale = torch.tensor(5.0)
    results.append(f(x23()))
    return results


@program(whole=True)
def test_nonlocal_write(compile):
    calls, last = 0, None

    @compile
    def f(x):
        nonlocal calls, last
        calls += 1
        last = x + calls
        return x * calls

    return [(f(x23()), calls, last) for _ in range(3)]


@program(whole=True)
def test_returned_closure(compile):
    @compile
    def make(x):
        y = x + 1

        def inner(z):
            return y * z

        return inner, inner(x)

    inner, first = make(x23())
    return first, inner(x23())


@program(whole=True)
def test_defaults_and_keywords(compile):
    @compile
    def f(x, scale=2.0, *, bias=1.0, name="n"):
        return {name: x * scale + bias}

    return [f(x23()), f(x23(), 3.0), f(x23(), bias=2.0), f(x23(), name="m"), f(scale=1.0, x=x23())]


@program(whole=True)
def test_star_arguments(compile):
    @compile
    def f(*args, **kwargs):
        total = args[0]
        for a in args[1:]:
            total = total + a
        for key, value in kwargs.items():
            total = total * value if key.startswith("m") else total - value
        return total, len(args), sorted(kwargs)

    a, b = x23(), x23() + 1
    return [f(a), f(a, b), f(a, b, m=a), f(a, s=b, m=b), f(*[a, b, a], **{"m": b})]


@program(whole=True)
def test_mutable_default_is_shared(compile):
    @compile
    def f(x, seen={}):
        return x * len(seen), seen

    first = f(x23())
    first[1]["a"] = 1
    return first, f(x23())


@program()
def test_defaults_replaced(compile):
    def g(x, scale=2.0):
        return x * scale

    f = compile(g)
    results = [f(x23())]
    g.__defaults__ = (4.0,)
    results.append(f(x23()))
    g.__kwdefaults__ = None
    results.append(f(x23()))
    return results


@program()
def test_code_replaced(compile):
    def helper(x):
        return x + 1

    f = compile(lambda x: helper(x) * 2)
    results = [f(x23())]
    helper.__code__ = (lambda x: x - 1).__code__
    results.append(f(x23()))
    return results


@program(whole=True)
def test_nested_calls_and_lambda(compile):
    def twice(f, x):
        return f(f(x))

    f = compile(lambda x, k: twice(lambda y: y * k + 1, x))
    return [f(x23(), 2), f(x23(), 3)]


@program(whole=True)
def test_recursion(compile):
    def power(x, n):
        return x if n == 0 else power(x, n - 1) * 1.5

    f = compile(power)
    return [f(x23(), 5), f(x23(), 0), f(x23(), 30)]


@program()
def test_endless_recursion(compile):
    def down(x):
        return down(x + 1)

    try:
        compile(down)(x23())
    except RecursionError as error:
        return type(error)


# --- containers in and out

Pair = collections.namedtuple("Pair", ["left", "right"])


class Typed(typing.NamedTuple):
    value: torch.Tensor
    scale: float = 2.0

    def scaled(self):
        return self.value * self.scale


@dataclasses.dataclass
class Config:
    scale: float
    tensor: torch.Tensor = None
    names: list = dataclasses.field(default_factory=list)

    @property
    def doubled(self):
        return self.scale * 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object
    flag: bool = True


@dataclasses.dataclass
class Derived(Config):
    extra: int = 0

    def __post_init__(self):
        self.extra += 1


@program(whole=True)
def test_containers_in(compile):
    @compile
    def f(items):
        return items["a"][0] + items["b"][1]["c"] * items["n"]

    return [
        f({"a": [x23()], "b": (0, {"c": x23()}), "n": 2}),
        f({"a": [x23(), 1], "b": (0, {"c": x23() + 1}), "n": 2}),
        f({"a": (x23(),), "b": (0, {"c": x23()}), "n": 3}),
    ]


@program(whole=True)
def test_containers_out(compile):
    @compile
    def f(x):
        y = x + 1
        shared = [y]
        return {"t": (x, y), "l": shared, "again": shared, "s": {1, "a"}, "f": frozenset([2]), "n": None, "e": [], "r": range(3),
                "sl": slice(1, 2), "size": x.shape, "d": x.dtype, "c": 1 + 2j, "by": b"x"}

    return [f(x23()), f(x23())]


@program(whole=True)
def test_named_tuples(compile):
    @compile
    def f(pair, typed):
        p = Pair(pair.left + 1, right=pair.right * 2)
        t = typed._replace(scale=3.0)
        left, right = p
        return p, t, t.scaled(), left - right, p._asdict(), Pair._fields, p == p

    return [f(Pair(x23(), x23()), Typed(x23())), f(Pair(x23(), x23() + 1), Typed(x23(), 4.0))]


@program(whole=True)
def test_dataclasses(compile):
    @compile
    def f(config, x):
        made = Config(config.scale + 1, x * config.doubled)
        made.names.append("made")
        derived = Derived(1.0, x, extra=4)
        frozen = Frozen(x - 1)
        return made, derived, frozen, made.tensor + frozen.value, dataclasses.replace(frozen, flag=False).flag

    return [f(Config(2.0), x23()), f(Config(2.0), x23()), f(Config(3.0), x23())]


@program(whole=True)
def test_frozen_dataclass_write_fails(compile):
    @compile
    def f(x):
        frozen = Frozen(x + 1)
        try:
            frozen.flag = False
        except dataclasses.FrozenInstanceError as error:
            return frozen.value, str(error)

    return f(x23())


@program(whole=True)
def test_dataclass_argument_is_written(compile):
    @compile
    def f(config, x):
        config.tensor = x * 2
        config.scale += 1
        return config.tensor.sum() + config.scale

    config = Config(1.0)
    return [(f(config, x23()), dataclasses.replace(config)) for _ in range(3)]


@program()
def test_ordered_and_default_dicts(compile):
    @compile
    def f(x):
        ordered = collections.OrderedDict(a=x, b=x + 1)
        ordered.move_to_end("a")
        groups = collections.defaultdict(list)
        for i in range(4):
            groups[i % 2].append(x * i)
        counts = collections.Counter("abca")
        queue = collections.deque([1, 2, 3], maxlen=3)
        queue.append(4)
        return ordered, groups, dict(counts), list(queue), groups[0][1] + 1

    return [f(x23()), f(x23())]


@program(whole=False)
def test_objects_of_c_types_keep_what_only_c_sees(compile):
    @compile
    def f(x):
        second = operator.itemgetter(1)
        queue = collections.deque([1, 2, 3], maxlen=3)
        queue.append(4)
        delta = datetime.timedelta(days=2)
        y = x + 1
        print("a break")
        return second, queue, delta, second((y, y * 2)), list(queue)

    second, *rest = f(x23())
    return [second("ab"), *rest]


@program(whole=True)
def test_unpacking(compile):
    @compile
    def f(items, x):
        first, *middle, last = items
        (a, b), c = (x, x + 1), x + 2
        merged = {**{"a": a}, "b": b, **dict(c=c)}
        return [first, *middle, last, *items[::-1]], merged, (*middle, a)

    return [f([1, 2, 3], x23()), f((1, 2), x23())]


@program(whole=True)
def test_slices_and_star_index(compile):
    @compile
    def f(x):
        index = (slice(None), 1)
        return x[index], x[..., :2], x[None, 0, [0, 2]], x[x > 2 if False else slice(0, 1)], x[-1, ::2], x[:, torch.tensor([1, 0])]

    return [f(x23()), f(x23())]


@program()
def test_list_methods(compile):
    @compile
    def f(x):
        items = [3, 1, 2]
        items.sort()
        items.reverse()
        items.insert(0, 9)
        items.extend(i for i in range(2))
        items.remove(9)
        last = items.pop()
        items[1:2] = [7, 8]
        del items[0]
        items += (5,)
        items *= 2
        return items, last, items.index(8), items.count(5), x + len(items), items == items[:], [1, 2] < [1, 3]

    return f(x23())


@program()
def test_dict_and_set_methods(compile):
    @compile
    def f(x):
        d = {"a": x, "b": x + 1}
        d.setdefault("c", x + 2)
        popped = d.pop("a")
        d.update(e=1, b=2)
        d |= {"z": 3}
        missing = d.pop("nothing", None)
        s = {1, 2} | {3}
        s.discard(1)
        s ^= {2, 9}
        return d, popped, missing, s, s & {9}, s <= {3, 9}, list(d.items())[0], "e" in d, d.get("q", 4), list(reversed(d))

    return f(x23())


# --- modules


class Net(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.linear = nn.Linear(3, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.table = nn.ModuleDict({"norm": nn.LayerNorm(width), "act": nn.GELU()})
        self.drop = nn.Dropout(0.5)
        self.register_buffer("offset", torch.ones(width))
        self.scale = 2.0
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = self.linear(x)
        for i, layer in enumerate(self.layers):
            x = x + layer(x) * i
        for name, module in self.table.items():
            x = module(x)
        return self.drop(x) * self.scale + self.offset


def made(cls=Net, *args):
    torch.manual_seed(1)
    return cls(*args).eval()


@program(whole=True)
def test_module(compile):
    net = made()
    f = compile(net)
    return [f(x23()), net.calls, f(x23() + 1), net.calls, f.calls, net(x23()), f.calls]


@program(whole=True)
def test_modules_in_a_dict(compile):
    nets = {"a": made(nn.Linear, 3, 3), "b": made(nn.Sequential, nn.Linear(3, 3), nn.ReLU())}
    f = compile(lambda name, x: nets[name](x) + nets["a"](x))
    results = [f("a", x23()), f("b", x23())]
    nets["b"] = nn.Identity()
    return results + [f("b", x23())]


@program(whole=True)
def test_module_method(compile):
    net = made()
    net.head = lambda x: net.linear(x) + 1
    f = compile(net.head)
    g = compile(net.forward)
    return f(x23()), g(x23()), g(x23())


@program(whole=True)
def test_sequential_and_containers(compile):
    net = made(nn.Sequential, nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2), nn.Softmax(-1)))
    f = compile(net)

    @compile
    def g(x):
        return [m(x) for m in net[:1]], len(net), net[2][0].weight.shape, [n for n, _ in net.named_children()]

    return f(x23()), g(x23())


@program()
def test_named_parameters_inside(compile):
    net = made()

    @compile
    def f(x):
        total = x.sum()
        names = []
        for name, parameter in net.named_parameters():
            names.append(name)
            total = total + parameter.sum()
        for buffer in net.buffers():
            total = total + buffer.sum()
        return total, names, sum(p.numel() for p in net.parameters()), [type(m).__name__ for m in net.modules()]

    return f(x23()), f(x23())


@program(whole=True)
def test_super_and_inheritance(compile):
    class Base(nn.Module):
        kind = "base"

        def forward(self, x, k=1):
            return x * k + self.extra(x)

        def extra(self, x):
            return x

        @classmethod
        def describe(cls, x):
            return cls.kind, x + 1

        @staticmethod
        def shift(x):
            return x - 1

    class Child(Base):
        kind = "child"

        def forward(self, x):
            return super().forward(self.shift(x), k=3) + super(Child, self).extra(x)

        def extra(self, x):
            return self.describe(x)[1] * 2 + len(super().describe(x)[0])

    f = compile(Child())
    return f(x23()), f(x23())


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


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    def factor(self):
        return self.value * 10


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


# --- isinstance, pickling, copies


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


# --- tensors as arguments: identity, aliases, in-place


@program(whole=True)
def test_same_tensor_twice(compile):
    f = compile(lambda a, b: (a.add_(1), a + b, a is b))
    x, y, z = x23(), x23(), x23()
    return f(x, x), x, f(y, z), y, z, f(z, z), z


@program()
def test_overlapping_arguments(compile):
    f = compile(lambda a, b: (a.mul_(2), b + 1))
    base = torch.arange(8.0)
    return f(base[:4], base[2:6]), base, f(base[4:], base[:4]), base, f(base[:4], base[:4]), base


@program(whole=True)
def test_outputs_that_are_inputs(compile):
    f = compile(lambda a, b: (a, b, a + b, [a]))
    x, y = x23(), x23()
    result = f(x, y)
    again = f(x, x)
    return x, y, result, result[0] is x, result[3][0] is x, again, again[1] is x


@program(whole=True)
def test_outputs_that_are_views_of_inputs(compile):
    @compile
    def f(x):
        v = x[0]
        return v, x.t(), x.view(-1)[1:3], v.unsqueeze(0), x.expand(2, 2, 3), x.detach(), x.reshape(3, 2), x.contiguous() is x

    x, y = x23(), x23()
    results = f(x)
    results[0].add_(10)
    return x, results, y, f(y)


@program(whole=True)
def test_outputs_that_alias_each_other(compile):
    @compile
    def f(x):
        y = x + 1
        return y, y[0], y.view(-1), y.t(), (y,), y[1:].squeeze(0)

    results = f(x23())
    results[1].zero_()
    return results, f(x23())


@program(whole=True)
def test_in_place_on_inputs_and_views(compile):
    @compile
    def f(x, y):
        x.add_(1)
        x[0] = 7
        v = y.view(-1)
        v[2:4] *= 3
        y.t()[1].copy_(torch.full((2,), 9.0))
        y += x
        return x * 2, v

    x, y = x23(), x23()
    first = f(x, y)
    second = f(x, y)
    return x, y, first, second


@program(whole=True)
def test_in_place_on_temporaries(compile):
    @compile
    def f(x):
        y = x.clone()
        z = y[0]
        y.mul_(2)
        z.add_(1)
        w = torch.zeros(2, 3)
        w[:, 1] = x[:, 0]
        w.masked_fill_(x > 3, -1)
        torch.add(x, 1, out=y)
        return y, z, w

    return f(x23()), f(x23())


@program()
def test_out_argument(compile):
    @compile
    def f(x, out):
        r = torch.add(x, 2, out=out)
        return r, r is out

    out = torch.empty(2, 3)
    return f(x23(), out), out, f(x23() + 1, out), out


@program(whole=True)
def test_buffers_written(compile):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.register_buffer("mean", torch.zeros(3))

        def forward(self, x):
            self.count += 1
            self.mean.mul_(0.5).add_(x.mean(0))
            self.last = x + self.count
            return x - self.mean

    net = Counter()
    f = compile(net)
    return [(f(x23()), net.count.clone(), net.mean.clone(), net.last) for _ in range(3)], list(net.state_dict())


@program()
def test_buffer_replaced_inside(compile):
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(2, 3))

        def forward(self, x):
            self.state = self.state + x
            return self.state * 2

    net = Cache()
    f = compile(net)
    return [(f(x23()), net.state.clone(), list(net._buffers), "state" in net.__dict__) for _ in range(3)]


@program()
def test_batch_norm_in_training(compile):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    torch.manual_seed(2)
    for p in net.parameters():
        nn.init.normal_(p)
    f = compile(net)
    return [(f(x23() + i), {k: v.clone() for k, v in net.state_dict().items()}) for i in range(3)]


# --- side effects


COUNTER = 0


@program()
def test_effects_happen_once(compile):
    global COUNTER
    COUNTER = 0
    log, table, seen = [], {"n": 0}, set()

    class Holder:
        total = None

    holder = Holder()

    @compile
    def f(x):
        global COUNTER
        COUNTER += 1
        log.append(COUNTER)
        log.append(x + 1)
        table["n"] += 1
        table[f"k{COUNTER}"] = x
        seen.add(COUNTER)
        holder.total = x if holder.total is None else holder.total + x
        return x * COUNTER

    return [(f(x23()), COUNTER, list(log), dict(table), set(seen), holder.total) for _ in range(3)]


@program()
def test_external_list_append_in_a_loop(compile):
    hidden = []

    @compile
    def f(x):
        for i in range(3):
            x = x + 1
            hidden.append(x)
        return x

    return f(x23()), hidden, f(x23()), len(hidden)


@program()
def test_bound_methods_of_c_made_outside(compile):
    log, table, base = [], {"k": 2}, x23()
    append, get, put, plus = log.append, table.get, table.__setitem__, base.add
    steps = iter(range(100)).__next__

    @compile
    def f(x, also):
        append(1)
        also(x + 1)
        put("n", len(log))
        return plus(x) * get("k") + steps()

    other = []
    results = [f(x23(), other.append), list(log), list(other), dict(table)]
    table["k"] = 5
    base.add_(1)
    return results + [f(x23(), other.append), log, other, table]


@program()
def test_containers_given_are_written(compile):
    @compile
    def f(items, table, x):
        items.append(x + 1)
        items[0] = x
        table["out"] = x * 2
        table.pop("in")
        return items, table

    items, table = [1], {"in": 3}
    result = f(items, table, x23())
    return result, items is result[0], table is result[1], f([2], {"in": 1, "z": 0}, x23())


@program()
def test_module_attribute_lists(compile):
    class Recorder(nn.Module):
        def __init__(self):
            super().__init__()
            self.outputs = []
            self.cache = {}

        def forward(self, x):
            y = x * 2
            self.outputs.append(y)
            self.cache["last"] = y
            return y + len(self.outputs)

    net = Recorder()
    f = compile(net)
    return [(f(x23()), len(net.outputs), net.cache["last"]) for _ in range(3)], net.outputs


@program()
def test_effects_before_an_exception(compile):
    log = []

    class Holder:
        n = 0

    holder = Holder()

    @compile
    def f(x, fail):
        log.append("before")
        holder.n += 1
        x.add_(1)
        if fail:
            raise ValueError("no")
        log.append("after")
        return x

    a = x23()
    return [outcome(f, a, flag) for flag in (False, True, False, True)], log, holder.n, a


# --- random numbers


@program()
def test_random_numbers_follow_the_seed(compile):
    drop = nn.Dropout(0.5)
    f = compile(lambda x: drop(x) + torch.rand(2, 3) + torch.randn_like(x))
    return [f(x23()) for _ in range(3)], torch.rand(2)


# --- torch API


@program(whole=True)
def test_functional_mix(compile):
    w, b = torch.randn(4, 3), torch.randn(4)

    @compile
    def f(x):
        h = F.gelu(F.linear(x, w, b))
        h = F.layer_norm(h, (4,))
        a = torch.softmax(h @ h.t() / math.sqrt(4), dim=-1)
        parts = torch.chunk(h, 2, dim=-1)
        return a, torch.cat(parts[::-1], -1), h.split([1, 3], 1)[1], torch.where(h > 0, h, 0.0), h.max(-1), torch.topk(h, 2), h.std(), F.pad(h, (1, 1)), torch.einsum("ij,kj->ik", h, h)

    return f(x23()), f(x23() * 0.1)


@program()
def test_integer_and_bool_tensors(compile):
    @compile
    def f(i, m):
        return i // 2, i % 3, ~m, i[m], i.sum(), i.float().mean(), m.any(), i == 3, (i > 1) & m, i.to(torch.float64) / 3, i.cumsum(0), torch.arange(3) * i[0]

    i = torch.tensor([1, 2, 3, 4])
    return f(i, i > 2), f(i, i > 0)


@program()
def test_tensors_without_elements_and_scalars(compile):
    f = compile(lambda x: (x + 1, x.sum(), x * torch.tensor(2.0), torch.tensor([1.0, 2.0]).mean()))
    return [f(torch.empty(0)), f(torch.tensor(3.0)), f(torch.empty(0, 3)), f(torch.ones(1))]


@program()
def test_tensor_attributes(compile):
    @compile
    def f(x):
        return (x.shape, x.size(0), x.dim(), x.ndim, x.numel(), len(x), x.dtype, x.device, x.stride(), x.is_contiguous(), x.requires_grad,
                x.T, x.mT, x.data, x.is_floating_point(), x.element_size(), x.storage_offset(), x.is_leaf, x.layout, x.itemsize, x.nbytes)

    return f(x23()), f(x23().t())


@program()
def test_attributes_put_on_tensors(compile):
    @compile
    def f(x):
        y = x + 1
        y.tag = "made"
        return y, y.tag, getattr(x, "tag", "none")

    x = x23()
    first = f(x)
    x.tag = "given"
    return first, f(x)


@program()
def test_parameters_and_nested_grad_modes(compile):
    net = made(nn.Linear, 3, 3)

    @compile
    def f(x):
        with torch.no_grad():
            a = net(x)
        with torch.enable_grad():
            b = a + 1
            inside = torch.is_grad_enabled()
        with torch.inference_mode():
            c = a * 2
        return a, b, c.sum().item(), inside, torch.is_grad_enabled()

    return f(x23()), f(x23())


@program()
def test_autocast_inside(compile):
    net = made(nn.Linear, 3, 3)

    @compile
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
            with torch.autocast("cpu", enabled=False):
                z = net(x)
        return y, z, net(x)

    return f(x23()), f(x23())


@program()
def test_decorated_by_no_grad(compile):
    @compile
    @torch.no_grad()
    def f(x):
        return x * 2, torch.is_grad_enabled()

    @torch.no_grad()
    @compile
    def g(x):
        return x * 3

    return f(x23()), g(x23())


@program()
def test_pickled_inside(compile):
    @compile
    def f(x):
        return x + pickle.loads(pickle.dumps({"a": 2}))["a"]

    return f(x23()), f(x23())


@program()
def test_sort_and_keys_of_containers(compile):
    @compile
    def f(x):
        items = [("b", 2), ("a", 1)]
        items.sort(key=lambda p: p[1])
        table = {(1, 2): x, None: 1, 1.5: 2, True: 3, Color.RED: 4, int: 5, torch.float32: 6}
        return items, table[(1, 2)] + table[1], table[Color.RED], table[int], table[torch.float32], len(table)

    return f(x23())


@program()
def test_class_made_inside(compile):
    @compile
    def f(x):
        class Local:
            k = 3

            def run(self, y):
                return y * self.k

        return Local().run(x), Local.__name__

    return f(x23()), f(x23())


@program()
def test_globals_locals_vars(compile):
    class Holder:
        def __init__(self):
            self.a, self.b = 1, 2

    @compile
    def f(x):
        h = Holder()
        return x + sum(vars(h).values()), sorted(h.__dict__), "COUNTER" in globals(), sorted(locals())

    return f(x23())


@program()
def test_two_functions_share_a_helper(compile):
    def helper(x, n):
        return x + n

    f, g = compile(lambda x: helper(x, 1)), compile(lambda x: helper(x, 2) * 2)
    return f(x23()), g(x23()), f(x23()), g(f(x23()))


@program()
def test_compiled_inside_compiled(compile):
    inner = compile(lambda x: x * 2)
    net = compile(made(nn.Linear, 3, 3))
    outer = compile(lambda x: inner(x) + net(x) + 1)
    return outer(x23()), outer(x23()), inner(x23())


@program()
def test_callable_object(compile):
    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x * self.k

    s = Scale(2)
    f = compile(s)
    results = [f(x23())]
    s.k = 3
    return results + [f(x23()), compile(s.__call__)(x23())]
