"""Builtin iterators over what the evaluator iterates over itself: they take and refuse what the C classes do."""

import collections
import itertools

import pytest
import torch

from eager_comparison import outcome, program

X = torch.arange(3.0)


def numbers(n):
    for i in range(n):
        yield i


BOUNDS = (0.0, 2.0, "2", None, -1, True, 3, 1 << 70)


@pytest.mark.parametrize("source", ["generator", "list", "number"])
@program()
def test_bounds_of_a_slice(compile, source):
    @compile
    def f(x, bounds):
        items = {"generator": numbers(5), "list": [1, 2, 3], "number": 5}[source]
        return x.sum() + sum(itertools.islice(items, *bounds))

    pairs = [*((stop,) for stop in BOUNDS), *itertools.product((1, 1.0, None, -1), (3, 2.5), (1, 0, 0.5, None))]
    return [outcome(f, X, bounds) for bounds in pairs]


@pytest.mark.parametrize("source", ["generator", "list", "number"])
@program()
def test_where_counting_starts(compile, source):
    @compile
    def f(x, start):
        items = {"generator": numbers(2), "list": [1, 2, 3], "number": 5}[source]
        return x.sum(), list(enumerate(items, start)), list(enumerate(iterable=numbers(2), start=start))

    return [outcome(f, X, start) for start in BOUNDS]


@pytest.mark.parametrize("strict", [True, False, 1, []])
@program()
def test_strict_zip(compile, strict):
    @compile
    def f(x, lengths):
        return x.sum(), list(zip(*(numbers(n) for n in lengths), strict=strict))

    lengths = (), (1,), (2, 2), (1, 2), (2, 1), (3, 3, 1), (1, 1, 2), (1, 3, 1), (2, 2, 2)
    return [outcome(f, X, each) for each in lengths]


@program()
def test_a_strict_zip_outlives_the_region(compile):
    @compile
    def f(x, first, second):
        pairs = zip(numbers(first), numbers(second), strict=True)
        return x + next(pairs)[0], pairs

    return [outcome(list, f(X, *lengths)[1]) for lengths in ((2, 2), (2, 3), (3, 2))]


@pytest.mark.parametrize("limit", [None, 4, 3, 1, 0])
@program()
def test_items_give_way_in_a_full_deque(compile, limit):
    @compile
    def f(x, recent, items):
        recent.extend(items)
        last = recent.pop() if recent else None
        recent.append(7)
        recent.appendleft(8)
        first = recent.popleft() if recent else None
        return x + len(recent), last, first

    recent = collections.deque([1, 2], maxlen=limit)
    return [(f(X, recent, items), list(recent)) for items in ([], [5], [1, 2, 3], [1, 2, 3, 4, 5], [6])]


CHANGES = {
    "turned by nothing": lambda recent: recent.rotate(0),
    "an item comes and goes": lambda recent: (recent.append(9), recent.pop()),
    "another item": lambda recent: recent.__setitem__(-1, 9),
    "turned": lambda recent: recent.rotate(1),
    "nothing put behind": lambda recent: recent.extend([]),
}


@pytest.mark.parametrize("items", [[], [1], [1, 2], [1, 2, 3]])
@pytest.mark.parametrize("change", CHANGES)
@program()
def test_a_deque_that_changes_under_its_iterator(compile, change, items):
    @compile
    def f(x, recent):
        for item in recent:
            x = x + item
            print(end="")
            CHANGES[change](recent)
        return x

    recent = collections.deque(items, maxlen=3)
    return [(outcome(f, X, recent), list(recent)) for _ in range(2)]


class Counted:
    def __init__(self):
        self.taken = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.taken += 1
        if self.taken > 5:
            raise StopIteration
        return self.taken


class Indexed:
    def __init__(self):
        self.read = 0

    def __getitem__(self, i):
        self.read += 1
        return range(5)[i]


class Equal:
    __hash__ = object.__hash__

    def __init__(self, value):
        self.value, self.compared = value, 0

    def __eq__(self, other):
        self.compared += 1
        return self.value == other


KINDS = {
    "generator": lambda: numbers(5),
    "iterator": Counted,
    "items": Indexed,
    "list iterator": lambda: iter([1, 2, Equal(3), 4]),
    "map": lambda: map(abs, numbers(5)),
    "zip": lambda: zip(numbers(3), numbers(3)),
    "dict": lambda: dict.fromkeys(range(3)),
    "values": lambda: {1: Equal(3)}.values(),
}


@pytest.mark.parametrize("make_item", [lambda: 3, lambda: 9, lambda: Equal(2)])
@pytest.mark.parametrize("kind", KINDS)
@program()
def test_membership_takes_items_up_to_the_one(compile, kind, make_item):
    item = make_item()

    @compile
    def f(x):
        items = KINDS[kind]()
        found = item in items
        return x + found, found, list(items), vars(items) if isinstance(items, (Counted, Indexed)) else None

    answers = f(X), f(X)
    return answers, item.compared if isinstance(item, Equal) else None


class Failing:
    """Raises at some steps and goes on behind them."""

    def __init__(self, count):
        self.step, self.count = 0, count

    def __iter__(self):
        return self

    def __next__(self):
        self.step += 1
        if self.step > self.count:
            raise StopIteration
        if self.step % 3 == 2:
            raise ValueError(self.step)
        return self.step


def refuse_three(n, *others):
    if n == 3:
        raise ValueError("three")
    return n


GOES_ON = {
    "map": lambda: map(int, ["1", "x", "3"]), "map of a function": lambda: map(refuse_three, [1, 3, 4]), "filter": lambda: filter(refuse_three, [1, 3, 4]),
    "starmap": lambda: itertools.starmap(refuse_three, [(1, 2), (3,), (4,)]), "accumulate": lambda: itertools.accumulate([1, "a", 3]),
    "enumerate": lambda: enumerate(Failing(4)), "zip": lambda: zip(Failing(4), range(9)), "islice": lambda: itertools.islice(Failing(7), 1, 4),
    "chain": lambda: itertools.chain(Failing(4), [9]), "takewhile": lambda: itertools.takewhile(refuse_three, [1, 3, 4]),
    "strict": lambda: zip([1], [2, 3], strict=True), "generator": lambda: (refuse_three(n) for n in (1, 3, 4)),
}


@pytest.mark.parametrize("kind", GOES_ON)
@program()
def test_iterators_go_on_behind_what_raises(compile, kind):
    @compile
    def f(x):
        iterator, found = GOES_ON[kind](), []
        for _ in range(4):
            try:
                found.append(next(iterator))
            except (ValueError, TypeError) as error:
                found.append(str(error))
            except StopIteration:
                found.append("end")
        return x + 1, found, list(iterator)

    return f(X), f(X)
