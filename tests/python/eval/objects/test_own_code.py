"""Special methods of the program's classes run when eager runs them, also where C code calls them."""

import bisect
import itertools
import operator
import re
import subprocess
import sys
import threading
import weakref

import pytest
import torch

from eager_comparison import outcome, program

X = torch.ones(2)


class Noting:
    """Notes each call of a special method."""

    def __init__(self, log, value):
        self.log, self.value = log, value

    def __note(self, name, result):
        self.log.append(name)
        return result

    def __str__(self):
        return self.__note("str", f"<{self.value}>")

    def __int__(self):
        return self.__note("int", self.value)

    def __float__(self):
        return self.__note("float", float(self.value))

    def __index__(self):
        return self.__note("index", self.value)

    def __lt__(self, other):
        return self.__note("lt", self.value < getattr(other, "value", other))

    def __eq__(self, other):
        return self.__note("eq", self.value == getattr(other, "value", other))

    __hash__ = object.__hash__


USES = {
    "percent": lambda a, b: "%s" % a,
    "percent of a tuple": lambda a, b: "%s %d %f" % (a, b, a),
    "percent of a list": lambda a, b: "%s" % [1, 2],
    "sort": lambda a, b: [b, a].sort(),
    "sorted": lambda a, b: sorted([b, a])[0].value,
    "index": lambda a, b: [3, 1, a].index(2),
    "count": lambda a, b: (a, b, 1).count(1),
    "remove": lambda a, b: [a, b].remove(b),
    "item": lambda a, b: [1, 2, 3][a],
    "item of a tuple": lambda a, b: (1, 2, 3)[a],
    "character": lambda a, b: "abc"[a],
    "slice": lambda a, b: [1, 2, 3, 4][a:b],
    "insert": lambda a, b: [1, 2].insert(a, 5),
    "pop": lambda a, b: [1, 2].pop(a),
    "rows of a tensor": lambda a, b: torch.arange(4)[a:],
    "indices": lambda a, b: slice(a, b).indices(5),
    "repeat": lambda a, b: list(itertools.repeat(1, b)),
    "range": lambda a, b: list(range(a, b)),
    "membership of values": lambda a, b: 2 in {1: a, 2: b}.values(),
    "operator": lambda a, b: operator.index(a),
}


@pytest.mark.parametrize("use", USES)
@program()
def test_special_methods_are_called_at_every_call(compile, use):
    @compile
    def f(x, log, a, b):
        return x + 1, USES[use](Noting(log, a), Noting(log, b))

    log = []
    return [outcome(f, X, log, a, b) for a, b in ((1, 2), (1, 2), (0, 1), (1, 2))], log


@program()
def test_an_object_that_takes_its_turn_in_an_addition(compile):
    class Items:
        def __init__(self, log):
            self.log = log

        def __iter__(self):
            self.log.append("iter")
            return iter([1, 2])

    @compile
    def f(x, log):
        items = [0]
        items += Items(log)
        return x + len(items), items

    log = []
    return [f(X, log) for _ in range(3)], log


@program()
def test_the_derived_class_compares_first(compile):
    class Base:
        def __lt__(self, other):
            return "lt"

        def __eq__(self, other):
            return "eq"

    class Derived(Base):
        def __gt__(self, other):
            return "derived gt"

        def __eq__(self, other):
            return "derived eq"

    f = compile(lambda x: (Base() < Derived(), Base() == Derived(), Derived() == Base(), Derived() < Base(), x + 1))
    return f(X), f(X)


class Restarting:
    def __iter__(self):
        self.taken = 0
        return self

    def __next__(self):
        self.taken += 1
        if self.taken > 3:
            raise StopIteration
        return self.taken


ITERATIONS = {
    "zip": lambda: zip(Restarting(), "abcd"),
    "map": lambda: map(lambda a: a + 1, Restarting()),
    "filter": lambda: filter(None, Restarting()),
    "enumerate": lambda: enumerate(Restarting()),
    "islice": lambda: itertools.islice(Restarting(), 2),
    "zip_longest": lambda: itertools.zip_longest(Restarting(), "ab"),
    "accumulate": lambda: itertools.accumulate(Restarting()),
    "pairwise": lambda: itertools.pairwise(Restarting()),
    "compress": lambda: itertools.compress("abcd", Restarting()),
    "starmap": lambda: itertools.starmap(pow, zip(Restarting(), Restarting())),
    "chain": lambda: itertools.chain(Restarting(), Restarting()),
    "takewhile": lambda: itertools.takewhile(lambda a: a < 3, Restarting()),
}


@pytest.mark.parametrize("name", ITERATIONS)
@program()
def test_iterators_are_asked_for_once(compile, name):
    f = compile(lambda x: (x + 1, list(ITERATIONS[name]())))
    return f(X), f(X)


@program()
def test_what_an_iterator_returns_at_its_end(compile):
    def numbers():
        yield 1
        return 5

    class Ending:
        def __next__(self):
            raise StopIteration(7)

    @compile
    def f(x):
        values = []
        generator = numbers()
        for iterator in (generator, generator, generator, Ending(), iter([])):
            try:
                values.append(next(iterator))
            except StopIteration as end:
                values.append((end.value, end.args))
        return x + 1, values, next(Ending(), "none"), next(generator, "none")

    return f(X), f(X)


@program()
def test_functions_of_c_that_write(compile):
    kept = []

    @compile
    def f(x):
        fresh = [5]
        print(end="")
        bisect.insort(fresh, 2)
        bisect.insort(kept, 2)
        operator.iconcat(kept, [1])
        operator.call(kept.append, 3)
        return x + bisect.bisect(fresh, 3), fresh, list(kept)

    return f(X), f(X), kept


@program()
def test_a_bound_method_of_c_waits_under_a_break(compile):
    pattern = re.compile("1")

    @compile
    def f(x):
        replace = pattern.sub
        print(end="")
        return x + 1, pattern.sub("z", str(x)), replace("y", "a1"), "-".join(map(str, pattern.split("a1b")))

    return f(X), f(X)


THREADS = """
import sys, threading, torch, oxyfuel
sys.setswitchinterval(1e-6)

def part():
    print(end="")

def f(x):
    part()
    y = x + 1
    part()
    return y

compiled = oxyfuel.compile(f, backend="eager")
threads = [threading.Thread(target=lambda: compiled(torch.ones(1))) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_first_calls_of_many_threads():
    for _ in range(3):
        subprocess.run([sys.executable, "-c", THREADS], check=True, timeout=120)


class Reordered(dict):
    def keys(self):
        return ["k"]

    def __getitem__(self, key):
        return 7

    def __iter__(self):
        return iter("z")


class Other(set):
    def __iter__(self):
        return iter([9])


@program()
def test_containers_that_iterate_in_their_own_way(compile):
    @compile
    def f(x):
        d, s = Reordered(q=1), Other([1])
        return x + 1, {**d}, dict(d), (lambda **k: k)(**d), {1, 2}.union(s), frozenset(s), set(s), {5: 1} | d, list(s), list(d)

    return f(X), f(X)


@program()
def test_fields_of_texts(compile):
    f = compile(lambda x, a: (x + 1, "{!r}".format(a), "{0[0]}".format(a), "{}|{{}}|{0}".replace("{}|", "{0}|").format(a)))
    return [outcome(f, X, a) for a in ([5], (7, 8), Exception("a"), "text", {0: 1})]


@program()
def test_keys_are_asked_for_in_turn(compile):
    log = []

    def numbers():
        for i in (3, 1, 2):
            log.append(("item", i))
            yield i

    def key(i):
        log.append(("key", i))
        return -i

    @compile
    def f(x):
        return x + max(numbers(), key=key), min(numbers(), key=key), max([], default=4), min(4, 2, 3, key=key)

    return f(X), f(X), log


@program()
def test_lengths_that_are_no_numbers(compile):
    class Sized:
        def __init__(self, size):
            self.size = size

        def __len__(self):
            return self.size

    f = compile(lambda x, sized: x + len(sized))
    return [outcome(f, X, Sized(size)) for size in (2, 2.0, "a", None, NotImplemented, True, -1)]


class Answers:
    """Each special method gives what it was made with, and says that it was asked."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def __repr__(self):
        return "answers"

    def answer(self, name):
        self.asked.append(name)
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer


def answering(*names):
    methods = {f"__{name}__": lambda self, *_, name=name: self.answer(name) for name in names}
    return type("Answering", (Answers,), methods)


ASKING = {
    "int": int, "float": float, "str": str, "repr": repr, "bool": bool, "len": len, "not": lambda a: not a,
    "f-string": lambda a: f"{a}", "format": lambda a: f"{a:>3}", "list": list, "tuple": tuple, "sorted": sorted, "star": lambda a: [0, *a],
    "extend": lambda a: [1].extend(a), "arguments": lambda a: max(*a), "slice": lambda a: operator.setitem([1, 2], slice(0, 1), a),
    "set": set, "sum": sum, "join": "".join, "unpacked": lambda a: (lambda b, *c: (b, c))(*a),
}
GIVEN = {
    "int": (1, True, 1.5, "a", None), "float": (1.5, 1, "a"), "str": ("a", 1, None), "repr": ("a", b"a"), "bool": (True, 1, None, "a"),
    "len": (2, 0, -1, 1 << 70, "a", 2.0, TypeError("no"), ValueError("no")), "format": ("a", 3),
    "length_hint": (2, -1, "a", NotImplemented, TypeError("no"), ValueError("no")),
}


@pytest.mark.parametrize("special", GIVEN)
@pytest.mark.parametrize("asking", ASKING)
@program()
def test_what_special_methods_give(compile, asking, special):
    kind = answering(special, "iter")
    f = compile(lambda x, a: (x + 1, ASKING[asking](a)))
    answers = []
    for given in GIVEN[special]:
        a = kind(**{special: given, "iter": iter([])})
        answers += [outcome(f, X, a)[:3], a.asked]
    return answers


class Claims:
    """Says that it is a tensor; notes what it is asked for."""

    def __init__(self):
        self.asked = []

    def __getattribute__(self, name):
        if name == "asked":
            return object.__getattribute__(self, name)
        self.asked.append(name)
        return torch.Tensor if name == "__class__" else 2


@program()
def test_objects_that_say_they_are_tensors(compile):
    claims, holder, proxy = Claims(), [Claims()], weakref.proxy(X)
    f = compile(lambda x, a, b: (x + a.value, b[0].value, x * 2))
    g = compile(lambda x, a: (x + 1, isinstance(a, torch.Tensor), a.shape))
    return [f(X, claims, holder) for _ in range(2)], claims.asked, holder[0].asked, g(X, proxy), g(X, proxy)


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


@program()
def test_indices_of_the_program(compile):
    @compile
    def f(x, index):
        print(end="")
        made = [0, 0, 0]
        made[index] = 1
        made[index:] = [2]
        deleted = [1, 2, 3]
        del deleted[index]
        x = x.clone()
        x[index] = 5
        return made, deleted, x

    @compile
    def given(x, numbers, indices):
        for index in indices:
            print(end="")
            numbers[index] = 7
        return numbers

    results = [f(X, Index(value)) for value in (0, 1, 0)]
    return results, given(X, [0, 0, 0], [Index(2), Index(0), Index(1)])


def compared_in_its_own_way(base):
    class Own(base):
        def __eq__(self, other):
            print(end="")
            return isinstance(other, int) or base.__eq__(self, other)

        def __lt__(self, other):
            return True

        def __hash__(self):
            return 3

    return Own


@pytest.mark.parametrize("base", [dict, list, set, tuple, object])
@program()
def test_items_that_compare_in_their_own_way(compile, base):
    own = compared_in_its_own_way(base)

    @compile
    def f(x, item, other):
        made = own()
        return (
            [{"a": one} == {"a": 1} for one in (item, made)],
            [{"a": 1} == {"a": one} for one in (item, made)],
            [{"a": [one]} != {"a": [1]} for one in (item, made)],
            [[one] == [1] for one in (item, made)],
            {"a": item} == other,
            other == {"a": made},
            x + 1,
        )

    @compile
    def ordered(x, item):
        return [item] < [1], (1, item) < (1, 2), x + 1

    item = own()
    others = ({"a": 1}, {"a": item}, {"a": "text"}, {"b": 1}, {})
    return [f(X, item, other) for other in others], outcome(ordered, X, item)


@program()
def test_dicts_are_compared_value_by_value(compile):
    class Noted:
        def __init__(self, log, name):
            self.log, self.name = log, name

        def __eq__(self, other):
            self.log.append((self.name, other.name))
            return True

    @compile
    def f(x):
        log = []
        left = {name: Noted(log, f"left {name}") for name in "ab"}
        right = {name: Noted(log, f"right {name}") for name in "ba"}
        return left == right, left != right, right == {**left, "c": 1}, log, x + 1

    return f(X), f(X)

class Settings(threading.local):
    def __init__(self):
        self.value = 1

    def __setattr__(self, name, value):
        return super().__setattr__(name, value)

    def __getattribute__(self, name):
        return super().__getattribute__(name)


SETTINGS = Settings()


@program()
def test_attributes_that_c_code_keeps(compile):
    @compile
    def f(x, value):
        before = SETTINGS.value
        SETTINGS.value = value
        return before, SETTINGS.value, x + 1

    SETTINGS.value = 1
    return [f(X, value) for value in (2, 3, 3)], SETTINGS.value
