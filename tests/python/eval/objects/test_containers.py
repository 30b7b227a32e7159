"""Containers and values that come in, are made and go out: the answer and the text are eager's."""

import collections
import copy
import dataclasses
import datetime
import operator
import typing

import pytest
import torch

from capture_samples import Config, Derived, x23
from eager_comparison import program


Pair = collections.namedtuple("Pair", ["left", "right"])


class Typed(typing.NamedTuple):
    value: torch.Tensor
    scale: float = 2.0

    def scaled(self):
        return self.value * self.scale


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object
    flag: bool = True


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


class SlotDict(dict):
    __slots__ = ("a",)


class SlotList(list):
    __slots__ = ("a",)


class SlotSet(set):
    __slots__ = ("a",)


SLOT_ACTIONS = {
    "write": lambda c: setattr(c, "a", "new"), "write an entry": lambda c: c.__setitem__("a", "item"), "clear": lambda c: c.clear(),
    "all": list, "delete": lambda c: delattr(c, "a"), "add": lambda c: c.add("a"), "append": lambda c: c.append("a"), "pop": lambda c: c.pop(),
}


@pytest.mark.parametrize("second", SLOT_ACTIONS)
@pytest.mark.parametrize("first", SLOT_ACTIONS)
@program()
def test_slots_of_containers_are_no_entries(compile, first, second):
    def made():
        containers = SlotDict(k=1, a=2), SlotList([1, 2]), SlotSet([1])
        for container in containers:
            container.a = "slot"
        return containers

    def act(x, container):
        found = []
        for action in (first, second):
            try:
                SLOT_ACTIONS[action](container)
            except (AttributeError, TypeError, LookupError) as error:
                found.append(str(error))
            found += [hasattr(container, "a"), len(container), getattr(container, "a", "none")]
        return x + 1, found

    f = compile(act)
    results = []
    for _ in range(2):
        for container in made():
            results.append((f(x23(), container), sorted(map(str, container)), getattr(container, "a", "none")))
    return results


@program()
def test_the_factory_of_a_default_dict_behind_writes(compile):
    @compile
    def f(x, d):
        d.clear()
        try:
            d["n"].append(1)
        except AttributeError as error:
            return str(error)
        d["default_factory"] = 9
        return x + 1, d.default_factory, len(d)

    given = [collections.defaultdict(list, {"q": 1}) for _ in range(2)]
    return [f(x23(), d) for d in given], given


@program()
def test_own_item_reads_of_containers(compile):
    class Shown(list):
        def __getitem__(self, i):
            return "L", i

    class Asked(dict):
        log = []

        def get(self, key, default=None):
            self.log.append(key)
            return super().get(key, default)

    @compile
    def f(x, items, mapping):
        n = x.sum().item()
        match mapping:
            case {"k": value, "z": other}:
                found = value, other
            case {"k": value}:
                found = value
        return n, items[0], list(items), len(items), found

    return [f(x23(), Shown([1, 2]), Asked(k=n)) for n in (3, 3, 4)], Asked.log


class OwnList(list):
    pass


class OwnDict(dict):
    pass


@program()
def test_copies_are_of_the_same_class(compile):
    f = compile(lambda x, c: (x + 1, copy.copy(c), type(copy.copy(c)), type(copy.deepcopy(c)), type(c.copy())))
    given = (OwnList([1]), OwnDict(a=1), collections.Counter("a"), collections.OrderedDict(a=1), collections.defaultdict(list, {1: [2]}),
             collections.deque([1]), SlotSet([3]))
    return [f(x23(), c) for c in given]


MERGES = {
    "update": lambda s, n: s.update({n}),
    "update by a dict": lambda s, n: s.update({n: 1}),
    "update by a list": lambda s, n: s.update([n, n + 1]),
    "or": lambda s, n: s.__ior__({n, 5}),
    "minus": lambda s, n: s.difference_update([n - 1]) or s.add(n),
    "xor": lambda s, n: s.__ixor__({n, 5}),
    "and": lambda s, n: s.add(n) or s.__iand__({1, 2, 3, n}),
}


@pytest.mark.parametrize("merge", MERGES)
@program()
def test_the_order_of_a_set_behind_what_merges_others_into_it(compile, merge):
    @compile
    def f(x, s, n):
        MERGES[merge](s, n)
        return x + 1

    seen = set()
    return [(f(torch.ones(2), seen, n), list(seen)) for n in (1, 2, 3, 1000, 17, 4, 33, 1, 64, 72, 8, 1000, 16)]
