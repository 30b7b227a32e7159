"""Generators that are suspended: inside context managers, where a region ends, and handed to the outside."""

import collections.abc
import contextlib
import gc
import itertools
import math
import sys
import types

import torch

import oxyfuel
from eager_comparison import outcome, program


def x23():
    return torch.arange(6.0).reshape(2, 3)


class Box:
    def __init__(self):
        self.value, self.log = 1, ""

    def taken(self):
        """What was noted since the last time."""
        taken, self.log = self.log, ""
        return taken

    def note(self, entry):
        self.log += f"{entry};"


def managers(box):
    """Context managers of ordinary Python that write to a box."""

    @contextlib.contextmanager
    def setting(value):
        old = box.value
        box.value = value
        try:
            yield value * 2
        finally:
            box.value = old
            box.note(value)

    @contextlib.contextmanager
    def swallowing(*kinds):
        try:
            yield kinds
        except kinds as error:
            box.note(str(error))

    @contextlib.contextmanager
    def translating():
        try:
            yield
        except KeyError as error:
            raise ValueError("translated") from error

    @contextlib.contextmanager
    def without_gradients():
        with torch.no_grad():
            yield torch.is_grad_enabled()

    return setting, swallowing, translating, without_gradients


@program(whole=True, grad=True)
def test_with_of_a_generator(compile):
    box = Box()
    setting, swallowing, translating, without_gradients = managers(box)

    @compile
    def f(x):
        with setting(3) as three, setting(4) as four:
            x = x * three + four + box.value
        with swallowing(ValueError, KeyError):
            x = x + 1
            with setting(5):
                raise ValueError("inside")
        with swallowing(ValueError):
            with translating():
                raise KeyError("key")
        with without_gradients() as enabled:
            y = x * 2
        return x, y, enabled, box.value

    return [(f(torch.ones(3)), box.taken(), box.value) for _ in range(2)]


@program(whole=True)
def test_stacks_of_context_managers(compile):
    box = Box()
    setting, swallowing, _, _ = managers(box)

    class Closing:
        def close(self):
            box.note("closed")

    @compile
    def f(x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(swallowing(KeyError))
            x = x + stack.enter_context(setting(5))
            stack.callback(box.note, "called")
            stack.push(lambda *details: box.note(details[0] is KeyError))
            stack.enter_context(contextlib.closing(Closing()))
            raise KeyError("key")
        with contextlib.suppress(ValueError), contextlib.nullcontext(2) as two:
            x = x * two
            raise ValueError
        with contextlib.ExitStack() as stack:
            stack.enter_context(setting(6))
            kept = stack.pop_all()
            x = x + box.value
        with kept:
            return x + box.value

    return [(f(torch.ones(3)), box.taken(), box.value) for _ in range(2)]


@program(whole=True)
def test_a_generator_as_decorator(compile):
    box = Box()
    setting, *_ = managers(box)

    @compile
    @setting(7)
    def f(x):
        return x + box.value

    return [(f(torch.ones(3)), box.taken(), box.value) for _ in range(2)]


@program(whole=False)
def test_a_break_inside_a_with(compile):
    box = Box()
    setting, swallowing, translating, _ = managers(box)

    @compile
    def f(x, error):
        with swallowing(KeyError) as kinds:
            with setting(3) as three:
                x = x * three
                oxyfuel.graph_break()
                x = x + box.value
                if error is not None:
                    raise error
        return x * 2, kinds

    errors = (None, None, KeyError("a"), ValueError("b"), None)
    return [(outcome(f, torch.ones(3), error), box.taken()) for error in errors]


@program()
def test_exceptions_through_a_with(compile):
    box = Box()
    setting, swallowing, translating, _ = managers(box)

    @contextlib.contextmanager
    def twice():
        yield
        yield

    @contextlib.contextmanager
    def never():
        if box.value == 2:
            yield

    @contextlib.contextmanager
    def stopping():
        try:
            yield
        except ValueError:
            raise StopIteration

    @compile
    def f(x, which):
        if which == 0:
            with setting(3):
                raise ValueError("out")
        if which == 1:
            with translating():
                raise KeyError("key")
        if which == 2:
            with twice():
                x = x + 1
        if which == 3:
            with never():
                x = x + 1
        if which == 4:
            with stopping():
                raise ValueError("v")
        if which == 5:
            with setting(1):
                raise StopIteration("stop")
        return x

    return [(outcome(f, torch.ones(3), which), box.taken()) for which in range(7)]


def counting(box, x):
    try:
        for i in range(5):
            got = yield x + i
            box.note(got)
        return "end"
    except ValueError as error:
        box.note(str(error))
        yield x * 100
    finally:
        box.note("finally")


@program(whole=True)
def test_the_methods_of_a_generator(compile):
    box = Box()

    @compile
    def f(x):
        first = counting(box, x)
        results = [next(first), first.send("a"), first.__next__(), first.throw(ValueError("v")), iter(first) is first]
        results.append(first.close())
        second = counting(box, x)
        second.close()
        third = counting(box, x)
        try:
            third.send(1)
        except TypeError as error:
            results.append(str(error))
        next(third)
        try:
            third.throw(KeyError)
        except KeyError as error:
            results.append(repr(error))
        results.append(next(third, "exhausted"))
        fourth = counting(box, x)
        try:
            while True:
                fourth.send(None if not results else None)
        except StopIteration as stop:
            results.append(stop.value)
        results.append(isinstance(first, (types.GeneratorType, int)) and isinstance(first, collections.abc.Iterator))
        results.append((type(first).__name__, hasattr(first, "send"), hasattr(first, "other")))
        return results, x + 1

    return [(f(torch.ones(2)), box.taken()) for _ in range(2)]


def delegating(box, x):
    box.note((yield from counting(box, x)))
    try:
        yield from [x, x * 2]
    except KeyError:
        box.note("key")
    yield from counting(box, x)


@program(whole=True)
def test_throwing_into_a_generator_that_waits(compile):
    box = Box()

    @compile
    def f(x):
        generator = delegating(box, x)
        results = [next(generator), generator.send(1), generator.throw(ValueError("v"))]
        results += [next(generator), generator.throw(KeyError("k"))]
        generator.close()
        return results

    return [(f(torch.ones(2)), box.taken()) for _ in range(2)]


@program(whole=True)
def test_a_suspended_generator_is_returned(compile):
    box = Box()

    @compile
    def f(x, steps):
        generator = delegating(box, x)
        given = ()
        for _ in range(steps):
            given += (next(generator),)
        return generator, given

    results = []
    for steps in (0, 1, 3, 7, 0, 1, 3, 7):
        generator, given = f(torch.ones(2), steps)
        delegate = generator.gi_yieldfrom
        names = generator.__name__, generator.__qualname__, generator.gi_code.co_name, generator.gi_frame.f_lineno
        results.append((given, type(delegate).__name__, names, sorted(generator.gi_frame.f_locals)))
        results.append(outcome(next, generator))
        results.append(outcome(generator.throw, ValueError("v")))
        results.append(list(generator))
        results.append((generator.gi_frame is None, box.taken()))
    return results


@program(whole=True)
def test_generators_of_every_kind_are_made_again(compile):
    scale = torch.full((2,), 3.0)

    def outer(x):
        own = []

        def inner(a, /, b, *rest, key, other=2, **more):
            own.append(a)
            nonlocal x
            x = yield a + b, rest, key, other, more
            while True:
                x = yield x, own, me

        me = inner(x, 2, 3, 4, key="k", name=x)
        return me

    @compile
    def f(x):
        started, ended = outer(x), outer(x)
        next(started)
        ended.close()
        return started, outer(x * 2), ended, (i * scale + x for i in range(3)), [started, started]

    results = []
    for _ in range(2):
        started, fresh, ended, expression, twice = f(torch.ones(2))
        assert twice[0] is started and twice[1] is started
        results += [next(fresh), next(ended, "ended"), list(expression)]
        value, own, me = started.send(5)
        results += [value, own, me is started]
    return results


def handling(log):
    try:
        raise KeyError("its own")
    except KeyError:
        log.append(repr(sys.exc_info()[1]))
        yield 1
        log.append(repr(sys.exc_info()[1]))
        yield 2
    log.append(repr(sys.exc_info()[1]))
    yield 3
    log.append(repr(sys.exc_info()[1]))
    try:
        yield 4
    except TypeError as error:
        log.append(repr(error.__context__))
        yield 5


@program()
def test_handled_exceptions_are_apart(compile):
    """What a suspended generator handles is not what its caller does, and the other way round."""

    @compile
    def f(x):
        log = []
        generator = handling(log)
        next(generator)
        log.append(repr(sys.exc_info()[1]))
        try:
            raise ValueError("the caller's")
        except ValueError:
            next(generator)
            log.append(repr(sys.exc_info()[1]))
            try:
                raise
            except ValueError as error:
                log.append(repr(error))
            next(generator)
            log.append(repr(sys.exc_info()[1]))
        next(generator)
        log.append(repr(sys.exc_info()[1]))
        generator.throw(TypeError("thrown"))
        log.append(repr(sys.exc_info()[1]))
        try:
            raise
        except RuntimeError as error:
            log.append(repr(error))
        return x + 1, log

    return [f(torch.ones(2)) for _ in range(2)]


@program()
def test_what_is_handled_outside_is_seen(compile):
    @compile
    def f(x):
        try:
            raise ValueError("inside")
        except ValueError as error:
            context = error.__context__
        return x + 1, repr(sys.exc_info()[1]), repr(context)

    def both():
        results = [f(torch.ones(2))]
        try:
            raise KeyError("outside")
        except KeyError:
            results.append(f(torch.ones(2)))
        return results

    return both(), both()


@program(whole=False)
def test_what_a_suspended_generator_holds_dies_with_it(compile):
    box = Box()
    setting, *_ = managers(box)

    @compile
    def f(x, drop):
        generator = counting(box, x)
        y = next(generator)
        oxyfuel.graph_break()
        if drop:
            del generator
            box.note("dropped")
        return y

    return [(f(torch.ones(2), drop), gc.collect() * 0, box.taken()) for drop in (True, False, True)]


@program(whole=True)
def test_iterators_are_returned(compile):
    @compile
    def f(x, numbers):
        def double(n):
            return n * 2

        begun = [
            map(double, numbers),
            map(lambda a, b: (a, b), numbers, iter("abcde")),
            filter(lambda n: n % 2, numbers),
            itertools.filterfalse(None, (0, 1, 0, 2, 0)),
            zip(numbers, map(double, numbers)),
            enumerate((n for n in numbers), 3),
            itertools.islice((n for n in numbers), 1, None, 2),
            itertools.islice((n for n in numbers), 0, 3, 3),
            itertools.chain((n for n in numbers), numbers, "ab"),
            itertools.starmap(lambda a, b: a + b, [(n, n) for n in numbers]),
            itertools.takewhile(lambda n: n < 4, numbers),
            itertools.dropwhile(lambda n: n < 2, numbers),
            itertools.compress(numbers, [1, 0, 1, 1, 1]),
            itertools.accumulate(numbers, lambda a, b: a * b),
        ]
        created = [
            map(double, numbers),
            enumerate((n for n in numbers), 3),
            itertools.islice((n for n in numbers), 1, 4, 2),
            itertools.chain.from_iterable([(n for n in numbers), "ab"]),
            itertools.accumulate(numbers, lambda a, b: a * b),
            itertools.pairwise((n for n in numbers)),
            itertools.cycle((n for n in "a")),
            itertools.compress(numbers, [0, 1, 1, 1, 1]),
        ]
        first = [next(each) for each in begun]
        return x + 1, first, begun, created

    def taken(result):
        x, first, begun, created = result
        kinds = [type(each).__name__ for each in begun + created]
        return x, first, kinds, [list(itertools.islice(each, 9)) for each in begun + created]

    return taken(f(x23(), [1, 2, 3, 4, 5])), taken(f(x23(), [1, 4, 2, 7, 3]))


@program(whole=False)
def test_iterators_over_a_break(compile):
    @compile
    def f(x, log):
        pairs = zip(map(lambda n: n * x, (1, 2, 3)), enumerate("abc"))
        for y, (i, letter) in pairs:
            log.append((i, letter))
            print(letter)
            x = x + y
        return x, next(pairs, None)

    log = []
    return f(x23(), log), log


@program(whole=True)
def test_functions_end_iterators_by_stop_iteration(compile):
    @compile
    def f(x):
        def until(n):
            if n > 2:
                raise StopIteration
            return n

        numbers = [1, 2, 3, 4]
        return (
            x + len(list(filter(until, numbers))),
            list(map(until, numbers)),
            list(itertools.takewhile(until, numbers)),
            list(itertools.starmap(until, zip(numbers))),
        )

    return f(x23())


@program(whole=True)
def test_products_and_sums_of_generators(compile):
    @compile
    def f(x):
        return (
            math.prod(x + n for n in range(3)),
            math.prod((n for n in (2, 3)), start=0.5),
            x * math.fsum(n / 10 for n in range(10)),
            x.reshape(math.prod(n for n in x.shape)),
        )

    return f(x23())


@program(whole=True)
def test_throwing_through_awaits_and_delegation(compile):
    @compile
    def f(x):
        log = []

        def inner(name):
            while True:
                try:
                    got = yield name
                    log.append((name, got))
                except KeyError as error:
                    log.append((name, str(error)))
                    if name == "second":
                        return "ended"
                finally:
                    log.append(("left", name))

        def outer():
            try:
                log.append((yield from inner("first")))
            except ValueError as error:
                log.append(repr(error))
            result = yield from inner("second")
            yield result
            raise StopIteration("from inside")

        generator = outer()
        steps = [next(generator), generator.throw(KeyError("one")), generator.send(3), generator.throw(ValueError("two"))]
        steps.append(generator.throw(KeyError("three")))
        try:
            next(generator)
        except RuntimeError as error:
            steps.append((str(error), type(error.__cause__), error.__cause__ is error.__context__))
        other = outer()
        next(other)
        other.close()
        third = outer()
        next(third)
        del third
        return x + len(log), log, steps

    return f(x23())
