"""What Python programs may rely on besides values: identity, order, types, lifetimes and texts, captured or not."""

import collections
import collections.abc
import contextlib
import copy
import functools
import io
import itertools
import operator
import random
import sys
import types
import weakref

import torch

import oxyfuel
from eager_comparison import outcome, program


def ones():
    return torch.ones(2)


@program()
def test_constants_of_the_code_are_one_object(compile):
    @compile
    def f(x):
        return (1, 2), x + 1

    return f(ones())[0] is f(ones())[0]


@program()
def test_frozensets_of_tensors_are_made_anew(compile):
    @compile
    def f(x):
        return frozenset([x + 1])

    return [next(iter(f(x))) for x in (ones(), ones() * 2)]


@program()
def test_c_objects_that_outlive_a_region(compile):
    @compile
    def f(x, items):
        first = operator.itemgetter(0)
        queue = collections.deque(items, 2)
        ordered = collections.OrderedDict(b=1, a=x)
        counted = collections.Counter("hello")
        chain = collections.ChainMap({"a": 1}, {"b": x})
        oxyfuel.graph_break()
        queue.append(x)
        ordered.move_to_end("b")
        return first([x, 2]), queue, queue.maxlen, list(ordered), counted, chain["b"]

    return [f(ones(), [1, 2, 3]) for _ in range(3)]


@program()
def test_nested_containers_keep_their_identity_in_a_deque(compile):
    @compile
    def f(items):
        kept = collections.deque(items)[0]
        kept.append(5)
        return kept is items[0], items

    return f([[1], 2]), f([[3]])


@program()
def test_iterators_over_dicts_and_sets_outlive_a_region(compile):
    @compile
    def f(x):
        d = {"a": 1, "b": x, "c": 3}
        keys, items, values, members = iter(d), iter(d.items()), reversed(d.values()), iter({1, 2, 3})
        seen = [next(keys), next(items), next(values), next(members)]
        done = iter({"only": 1})
        next(done), next(done, None)
        oxyfuel.graph_break()
        d["a"] = 5
        return seen, list(keys), list(items), list(values), list(members), list(done), type(keys).__name__

    return [f(ones()) for _ in range(2)]


@program()
def test_changing_a_dict_under_an_iterator(compile):
    @compile
    def f(x):
        d = {"a": 1, "b": x}
        keys = iter(d)
        next(keys)
        oxyfuel.graph_break()
        d["c"] = 3
        return next(keys)

    return [outcome(f, ones()) for _ in range(2)]


@program()
def test_sets_keep_their_order(compile):
    @compile
    def f(s, x):
        names = set("gallahad")
        names.discard("g")
        names.add("q")
        oxyfuel.graph_break()
        return list(s), str(s), list(names), x + 1

    one = set(range(0, 64, 8))
    other = set(list(range(56, -8, -8)))
    return f(one, ones()), f(other, ones()), f(one, ones())


@program()
def test_generators_are_advanced_one_item_at_a_time(compile):
    def numbers(log):
        number = 0
        while True:
            log.append(number)
            yield number
            number += 1

    @compile
    def f(x):
        log = []
        pairs = list(zip(numbers(log), ["a", "b"]))
        some = list(itertools.islice(numbers(log), 1, 6, 2))
        counted = next(enumerate(numbers(log), 5))
        chained = list(itertools.islice(itertools.chain([1], numbers(log)), 3))
        flat = list(itertools.islice(itertools.chain.from_iterable([[7], numbers(log)]), 3))
        longest = list(itertools.zip_longest([1, 2, 3], "ab", fillvalue=x.shape[0]))
        return log, pairs, some, counted, chained, flat, longest, x + 1

    return f(ones()), f(ones())


@program()
def test_functions_that_call_back(compile):
    @compile
    def f(x, items):
        def stops(item):
            if item > 2:
                raise StopIteration
            return item

        return (
            list(map(stops, items)),
            list(map(lambda a, b: a * b, items, items)),
            list(filter(None, items)),
            list(itertools.filterfalse(lambda e: e % 2, items)),
            functools.reduce(operator.add, items),
            functools.reduce(operator.add, items, x),
            sorted(items, key=operator.neg),
            list(itertools.compress("abcd", items)),
            list(itertools.permutations(items, 2))[-1],
            operator.attrgetter("real", "imag")(items[0]),
            [operator.iadd(items[:], [1]), operator.contains(items, 2), operator.not_(items)],
        )

    return f(ones(), [3, 0, 2]), f(ones(), [1, 2, 5]), outcome(f, ones(), [])


@program()
def test_operators_that_write(compile):
    @compile
    def f(d, x):
        operator.setitem(d, "a", x + 1)
        operator.delitem(d, "b")
        items = [3, 1, 2]
        items.sort(key=lambda e: -e)
        return items

    one = {"a": 1, "b": 2}
    return f(one, ones()), one, outcome(f, one, ones()), one


@program()
def test_a_generator_in_a_finally_block_is_closed(compile):
    log = []

    def numbers():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    @compile
    def f(x):
        for number in numbers():
            break
        log.append("after")
        return x + number

    @compile
    def g(x):
        first = next(numbers())
        return x + first

    return f(ones()), g(ones()), f(ones()), log


@program()
def test_finalizers_run_when_eager_runs_them(compile):
    log = []

    class Noisy:
        def __del__(self):
            log.append("gone")

    @compile
    def f(x):
        thing = Noisy()
        log.append("made")
        del thing
        log.append("after")
        return x + 1

    return f(ones()), f(ones()), log


@program()
def test_a_hidden_method_of_c_code(compile):
    class Seeded(random.Random):
        def seed(self, a=None):
            super().seed(a)

    class Stack(list):
        def append(self, item):
            super().append((item, "pushed"))

    @compile
    def f(x):
        made = Seeded(3)
        stack = Stack()
        stack.append(x)
        push = super(Stack, stack).append
        oxyfuel.graph_break()
        push(1)
        return made.random(), stack

    return f(ones()), f(ones())


@program()
def test_redirected_streams(compile):
    @compile
    def f(text):
        target = io.StringIO()
        redirect = contextlib.redirect_stdout(target)
        before = sys.stdout
        with redirect:
            print(text)
        between = sys.stdout is before
        with redirect:
            print(text)
        return target.getvalue(), between, sys.stdout is before

    return f("one"), f("two"), f("three")


@program()
def test_written_through_a_descriptor(compile):
    class Positive:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, instance, owner):
            return instance.__dict__[self.name]

        def __set__(self, instance, value):
            if value < 0:
                raise ValueError("negative")
            instance.__dict__[self.name] = value

    class Holder:
        size = Positive()

    @compile
    def f(holder, size, x):
        holder.size = size
        return holder.size, x + holder.size

    holder = Holder()
    return f(holder, 1, ones()), f(holder, 2, ones()), outcome(f, holder, -1, ones()), vars(holder)


@program()
def test_lists_that_change_while_they_are_compared(compile):
    class Shrinks:
        def __init__(self, items):
            self.items = items

        def __eq__(self, other):
            self.items.clear()
            return True

    @compile
    def f(x):
        left, right = [], []
        left += [Shrinks(left), 1]
        right += [Shrinks(right), 1]
        return left == right, left, right

    return outcome(f, ones())


@program()
def test_frozensets_and_tuples_that_are_themselves(compile):
    class Name(tuple):
        pass

    class Group(frozenset):
        pass

    @compile
    def f(s, t, n, g):
        return frozenset(s) is s, t[:] is t, s.copy() is s, n[:] is n, type(n[:]), g.copy() is g, type(g.copy())

    return f(frozenset([1, 2]), (1, 2), Name((1, 2)), Group([1]))


def test_what_is_made_in_a_region_dies_with_its_last_reference():
    class Thing:
        pass

    @oxyfuel.compile
    def f(x):
        thing = Thing()
        thing.value = x + 1
        oxyfuel.graph_break()
        return thing

    for _ in range(3):
        with torch.no_grad():
            thing = f(ones())
        alive = weakref.ref(thing)
        del thing
        assert alive() is None


@program()
def test_ordered_dicts_in_an_order_of_their_own(compile):
    @compile
    def f(ordered, x):
        return list(ordered), [key for key, _ in ordered.items()], dict(ordered), x + 1

    ordered = collections.OrderedDict(a=1, b=2, c=3)
    results = [f(ordered, ones())]
    ordered.move_to_end("a")
    results.append(f(ordered, ones()))
    ordered.move_to_end("b", last=False)
    return results, f(ordered, ones())


class Countdown(collections.abc.Sequence):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index >= 4:
            raise IndexError
        return 4 - index


def test_a_dropped_generator_with_harmless_handlers_is_captured():
    def f(x):
        numbers = Countdown()
        for name, number in zip("ab", numbers):  # leaves Sequence.__iter__ in its try block
            x = x + number
        return x, 3 in numbers

    explanation = oxyfuel.explain(f)(ones())
    assert explanation.graph_count == 1 and not explanation.breaks
    torch.testing.assert_close(oxyfuel.compile(f)(ones())[0], f(ones())[0])


@program()
def test_handlers_of_dropped_generators(compile):
    @compile
    def f(x, log):
        log = list(log)

        def numbers(name):
            try:
                yield 1
                log.append("not reached")
            except GeneratorExit:
                log.append(name)
                raise
            finally:
                log.append("finally")

        def stubborn():
            try:
                yield 1
            except GeneratorExit:
                return

        def waiting():
            try:
                yield from numbers("inner")
            finally:
                log.append("outer")

        first = next(numbers("one"))
        log.append("between")
        kept = numbers("two")
        next(kept)
        log.append("kept")
        del kept
        log.append("gone")
        next(stubborn())
        next(waiting())
        return x + first, log

    return f(ones(), []), f(ones(), ["begin"])


@program()
def test_globals_and_attributes_that_are_deleted_again(compile):
    scope = {}
    exec(
        "def f(x):\n"
        "    global shadow\n"
        "    shadow = x\n"
        "    del shadow\n"
        "    return 'gone'\n"
        "def g(thing, x):\n"
        "    del thing.a\n"
        "    thing.a = x\n"
        "    thing.extra = 1\n"
        "    del thing.extra\n"
        "    return list(vars(thing))\n",
        scope,
    )
    f, g = compile(scope["f"]), compile(scope["g"])

    class Thing:
        pass

    thing = Thing()
    thing.a, thing.b = 1, 2
    first = [f(1), "shadow" in scope, f(1)]
    return first, g(thing, 5), list(vars(thing)), g(thing, 6), vars(thing)


@program()
def test_mappings_and_factories(compile):
    @compile
    def f(x):
        mapping = collections.ChainMap({"a": 1}, {"b": 2})
        merged = {"c": 3}
        merged.update(mapping)
        counted = collections.defaultdict(list, {"k": [1]})
        counted["new"].append(x)

        class Kept(collections.defaultdict):
            pass

        kept = Kept(int, a=1)
        kept["b"] += 2
        return merged, counted, dict(kept), x + 1

    return f(ones()), f(ones())


@program()
def test_a_deep_copy_of_what_cannot_change(compile):
    @compile
    def f(t, u):
        return copy.deepcopy(t) is t, copy.deepcopy(u) is u, copy.deepcopy(u)

    return f(((1, 2), 3), ([1], 2))


@program()
def test_an_iterator_that_asks_itself(compile):
    @compile
    def f(x):
        def step(value):
            if value == 1:
                return value, next(pairs)
            return value

        pairs = map(step, [1, 2, 3])
        return list(pairs), x + 1

    return f(ones())


@program()
def test_hashes_are_asked_for_as_often(compile):
    class Counted(int):
        count = 0

        def __hash__(self):
            Counted.count += 1
            return int.__hash__(self)

    class Group(frozenset):
        pass

    @compile
    def f(numbers):
        first = Group(numbers)
        second = set()
        second.update(numbers)
        third = {0, *numbers}
        return len(first), len(second), len(third), Counted.count

    return f([Counted(1), Counted(2)]), f(dict.fromkeys([Counted(1), Counted(2)]))


@program()
def test_a_long_chain_of_iterators_dies(compile):
    @compile
    def f(count):
        chain = filter(bool, range(count))
        for _ in range(count):
            chain = filter(bool, chain)
        del chain
        return count

    return f(60000)


@program()
def test_a_list_is_empty_while_it_is_sorted(compile):
    @compile
    def f(change):
        items = [3, 1, 2]
        seen = []

        def key(item):
            seen.append(len(items))
            if change:
                items.append(item)
            return item

        try:
            items.sort(key=key)
        except ValueError as error:
            return str(error), items, seen
        return items, seen

    return f(False), f(True)


@program()
def test_a_deep_copy_of_a_slice(compile):
    @compile
    def f(x):
        bounds = slice([1], 2, None)
        other = copy.deepcopy(bounds)
        return other is bounds, other.start is bounds.start, other == bounds

    return f(ones())


@program()
def test_attributes_of_modules_are_read_as_written(compile):
    module = types.ModuleType("made_up")
    module.level = 1

    @compile
    def f(value, x):
        module.level = value
        module.new = value + 1
        found = module.level, module.new
        del module.new
        return found, hasattr(module, "new"), x + 1

    return f(2, ones()), module.level, f(3, ones()), module.level
