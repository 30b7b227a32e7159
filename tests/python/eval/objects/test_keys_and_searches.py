"""What containers hash, compare and sort is looked at anew by each call, whoever made it and whatever holds it."""

import bisect
import collections
import functools
import itertools
import operator

import pytest
import torch

from capture_samples import x23
from eager_comparison import outcome, program

X = torch.ones(2)
NAN = float("nan")

LOOKS = {
    "set": lambda t: t in {(2, 1)},
    "dict": lambda t: {(2, 1): "hit"}.get(t),
    "list": lambda t: t in [(2, 1)],
    "deque": lambda t: t in collections.deque([(2, 1)]),
    "method of list": lambda t: [(2, 1)].__contains__(t),
    "OrderedDict": lambda t: collections.OrderedDict([t]),
    "defaultdict": lambda t: collections.defaultdict(int, [t]),
    "dict of pairs": lambda t: dict([t]),
    "fromkeys": lambda t: dict.fromkeys([t], t),
    "display": lambda t: {((t, 1), 2): 1},
    "comprehension": lambda t: ({x for x in [t]}, {x: x for x in [t]}),
    "frozenset": lambda t: frozenset([t]),
    "sets": lambda t: ({t} == {(2, 1)}, {(2, 1)} & {t}, {(2, 1)} - {t}, {(2, 1), 3}.difference([t])),
    "set methods": lambda t: ({(2, 1)}.issubset([t]), {(2, 1)}.isdisjoint([t]), {(2, 1)}.intersection([t])),
    "dicts": lambda t: {t: 1} == {(2, 1): 1},
    "count": lambda t: ([(2, 1)].count(t), [t].count((2, 1)), collections.deque([(2, 1)]).count(t)),
    "index": lambda t: [(1, 1), (2, 1)].index(t),
    "deques": lambda t: collections.deque([t]) == collections.deque([(2, 1)]),
    "equality": lambda t: (t.__eq__((2, 1)), tuple.__eq__(t, (2, 1)), t.__ne__((2, 1)), t.__eq__([2, 1])),
    "operator": lambda t: (operator.contains({(2, 1)}, t), operator.countOf([(2, 1)], t), operator.contains([t], (2, 1))),
}


@pytest.mark.parametrize("look", LOOKS)
@program()
def test_a_tuple_that_is_another_one(compile, look):
    @compile
    def given(x, t):
        return LOOKS[look](t), x + 1

    @compile
    def made(x, n):
        print(end="")
        t = (n, 1)
        return LOOKS[look](t), x + 1

    tuples = ((1, 1), (2, 1), (1, 1), (2, 1))
    return [given(X, t) for t in tuples], [made(X, t[0]) for t in tuples + ((1, 1),)]


@program()
def test_a_tuple_becomes_unhashable(compile):
    @compile
    def f(x, t):
        return x + 1, t in {(2, 1)}

    return [outcome(f, X, t) for t in ((1, 1), ([], 1))]


@program()
def test_containers_take_pairs(compile):
    @compile
    def f(x, pair):
        a, b = {}, {(0, 0): 1}
        a.update([pair])
        b |= [pair]
        return a, b, x

    return [outcome(f, X, pair) for pair in ((1, 1), (2, 5), [2, 5], (2, 5, 6), "ab", 3)]


@program()
def test_lists_in_lists(compile):
    @compile
    def f(x, item):
        items = [[1], [3]]
        items.remove(item)
        return items, [[1], [3]].count(item), x

    return [outcome(f, X, item) for item in ([1], [3], [4])]


class Hashed:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == (other.value if isinstance(other, Hashed) else other)

    def __hash__(self):
        return 1


@program()
def test_tuples_and_lists_of_objects_with_their_own_equality(compile):
    @compile
    def f(x, a, b):
        entries = {(a, 0): 1, (b, 0): 2}
        return len(entries), (a,) in {(b,)}, [(a,)].count((b,)), [[1], [2]].index([b]), [[1], [2]].count([b]), x

    a, b = Hashed(1), Hashed(1)
    first = f(X, a, b)
    b.value = 2
    return first, f(X, a, b)


@program()
def test_a_cached_function_of_a_tuple(compile):
    @functools.lru_cache
    def total(numbers):
        return sum(numbers)

    @compile
    def f(x, numbers):
        return x * total(numbers)

    return [f(X, numbers) for numbers in ((1, 2), (2, 3), (4, 5), (1, 2))]


@program()
def test_a_cached_method_is_asked_anew_behind_cache_clear(compile):
    class Counts:
        k = 1

        @functools.lru_cache
        def count(self):
            return self.k

    @compile
    def f(x, counts):
        return x * counts.count()

    counts = Counts()
    first = f(X, counts)
    Counts.count.cache_clear()
    counts.k = 5
    return first, f(X, counts)


ORDERS = {
    "NaN": [NAN, 1.0, 0.5],
    "subsets": [{1}, {2}, {1, 2}],
    "equal but without an order": [{}, {}],
    "mixed": [3, 1, 2, "a"],
    "tuples": [(2, "b"), (1, "z"), (2, "a")],
    "numbers": [3, 1, 2, 1],
}


@pytest.mark.parametrize("kind", ORDERS)
@program()
def test_sorting(compile, kind):
    @compile
    def f(x, items, reverse, by_key):
        return sorted(items, reverse=reverse, key=(lambda item: item) if by_key else None), x

    @compile
    def in_place(x, items, reverse, by_key):
        mine = list(items)
        try:
            if by_key:
                mine.sort(reverse=reverse, key=lambda item: item)
            elif reverse:
                mine.sort(reverse=True)
            else:
                mine.sort()
        except TypeError as error:
            return mine, str(error), x
        return mine, x

    options = list(itertools.product((False, True), repeat=2))
    return [(outcome(f, X, ORDERS[kind], *each), in_place(X, ORDERS[kind], *each)) for each in options]


@program()
def test_the_direction_of_sorting_is_a_number_that_varies(compile):
    @compile
    def f(x, n):
        items = [3, 1, 2]
        items.sort(reverse=n)
        return sorted([3, 1, 2], reverse=n), items, x

    return [f(X, n) for n in (1, 2, 3, 0, 4)], outcome(f, X, "yes")


FACTOR = 1


@program()
def test_functions_of_the_program_called_by_c_code(compile):
    global FACTOR
    FACTOR = 1

    @compile
    def f(x, items):
        return bisect.bisect(items, 4, key=lambda item: item * FACTOR), x

    first = f(X, [1, 2, 3])
    FACTOR = 4
    return first, f(X, [1, 2, 3])


class Sequence:
    size = 2

    def __iter__(self):
        return iter([1, 2])

    def __len__(self):
        return self.size

    def __getitem__(self, key):
        return key + 10

    def __index__(self):
        return self.size


@program()
def test_objects_that_are_counted_and_reversed(compile):
    @compile
    def f(x, n):
        return list(reversed(n)), list(itertools.product([1], repeat=n)), list(itertools.combinations_with_replacement([1, 2], n)), x

    n = Sequence()
    first = f(X, n)
    n.size = 3
    return first, f(X, n)


@program()
def test_a_container_holds_the_object_itself(compile):
    @compile
    def f(x, items):
        entries = dict.fromkeys("ab", items)
        entries["a"].append(5)
        operator.concat([items], [])[0].append(6)
        return entries["b"] is items, entries, x

    items = []
    return f(X, items), items


UNKNOWN = {
    "max": lambda: max([1, 2], kye=1),
    "min": lambda: min(1, 2, key=None),
    "sorted": lambda: sorted([2, 1], kye=1),
    "sum": lambda: sum([1], x=2),
    "sort": lambda: [2, 1].sort(kye=1),
    "update": lambda: set().update(k=1),
    "index of list": lambda: [1].index(3),
    "index from": lambda: [1, 2].index(2, 1),
    "index of deque": lambda: collections.deque([1, 2]).index(3),
    "remove": lambda: [1].remove("q"),
    "remove of deque": lambda: collections.deque([1]).remove(4),
    "count": lambda: [1].count(),
    "indexOf": lambda: operator.indexOf([1], 2),
}


@pytest.mark.parametrize("call", UNKNOWN)
@program()
def test_what_functions_refuse(compile, call):
    @compile
    def f(x):
        return UNKNOWN[call](), x + 1

    return outcome(f, X)


@program()
def test_what_a_method_refuses_behind_a_break(compile):
    @compile
    def f(x, s):
        x = x + 1
        print(end="")
        s.update(k=1)

    return outcome(f, X, set())


class OwnFrozenSet(frozenset):
    pass


@program()
def test_frozensets_of_a_subclass_are_keys(compile):
    def f(x, key):
        d, s = {key: 1}, {key}
        first = next(iter(d))
        return type(first).__name__, first is key, next(iter(s)) is key, d.get(key), {**d}[key], key in frozenset([key]), x + 1

    key = OwnFrozenSet({1})
    return [compile(f)(x23(), key) for _ in range(2)]


class Iterates:
    def __len__(self):
        return 2

    def __iter__(self):
        return iter([1, 2])


class NotReversed(list):
    __reversed__ = None


@program()
def test_what_cannot_be_reversed(compile):
    def f(x, value):
        return list(reversed(value)), x + 1

    values = [Iterates(), NotReversed([1, 2]), {1, 2}, iter([1]), 3, {1: 2, 3: 4}, [1, 2]]
    return [outcome(compile(f), x23(), value) for value in values for _ in range(2)]


@program()
def test_special_methods_that_are_none(compile):
    names = "bool len contains iter getitem eq add radd mul neg str setattr delattr call enter bytes index".split()
    operations = [
        lambda o: bool(o), lambda o: not o, lambda o: 1 if o else 2, lambda o: o or 3, lambda o: 1 in o, lambda o: list(o), lambda o: o[0],
        lambda o: o == [1], lambda o: o + o, lambda o: o * 2, lambda o: str(o), lambda o: setattr(o, "a", 1), lambda o: len(o), lambda o: [*o],
    ]  # fmt: skip
    results = []
    for base, content in ((list, [1, 2]), (tuple, (1, 2)), (dict, {1: 2}), (frozenset, {1}), (float, 2.5)):
        for name in names:
            value = type("Own", (base,), {f"__{name}__": None})(content)
            for operation in operations:

                def f(x, value):
                    return operation(value), x + 1

                results.append(outcome(compile(f), x23(), value))
    return [result[1:3] if result[0] == "raised" else type(result[1][0]).__name__ for result in results]
