"""Generators that are suspended: inside context managers, where a region ends, and handed to the outside."""

import asyncio
import collections.abc
import contextlib
import gc
import itertools
import math
import sys
import threading
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


@program(whole=True)
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


# Generators, coroutines and asynchronous generators that a compiled callable gives to its caller ---------------------


def doubling(x, n):
    for i in range(n):
        x = x * 2 + i
        got = yield x + 1
        if got is not None:
            x = x + got
    return x.sum()


def outer(x):
    total = yield from doubling(x, 2)
    total = (total.relu() + 1) * 3
    yield total
    try:
        yield total * 2
    except ValueError as error:
        yield total * 3, str(error)
    finally:
        yield total * 4


def drive(generator, *messages):
    """What a generator gives for messages: None, something to send, or an exception to throw."""
    given = []
    for message in messages:
        if isinstance(message, BaseException):
            given.append(outcome(generator.throw, message))
        else:
            given.append(outcome(generator.send, message))
    return given


@program()
def test_generator_functions(compile):
    f = compile(doubling)
    results = [list(f(torch.ones(3), 2)) for _ in range(3)]
    results.append(drive(f(torch.ones(3), 3), None, torch.ones(3), 2.0, None, None))
    results.append(drive(f(torch.ones(3), 3), None, KeyError("thrown"), None))
    results.append(drive(f(torch.ones(3), 3), 1, None, ValueError("thrown"), None))
    generator = f(torch.ones(3), 3)
    results += [next(generator), generator.close(), outcome(next, generator)]
    return results


@program()
def test_delegating_generator_functions(compile):
    f = compile(outer)
    results = [list(f(torch.ones(3))) for _ in range(3)]
    for messages in ((None,) * 7, (None, 1.0, None, None, ValueError("v"), None, None), (None, KeyError("k"), None)):
        results.append(drive(f(torch.ones(3)), *messages))
    return results


def test_code_between_yields_is_compiled():
    with torch.no_grad():
        compiled = oxyfuel.compile(outer)
        for _ in range(3):
            list(compiled(torch.ones(3)))
        metrics = oxyfuel.metrics()
    # Around the loop and its two turns, and what comes behind the `yield from`.
    assert metrics["graphs"] >= 4 and metrics["calls_eager"] == 0


def test_one_graph_between_two_yields():
    def straight(x):
        y = x.relu() * 2
        y = yield y + 1
        yield y.sin().cos()

    compiled = oxyfuel.compile(straight)
    with torch.no_grad():
        for _ in range(4):
            generator = compiled(torch.ones(3))
            torch.testing.assert_close(next(generator), torch.full((3,), 3.0))
            torch.testing.assert_close(generator.send(torch.ones(3)), torch.ones(3).sin().cos())
            assert next(generator, None) is None
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] == 2 and metrics["breaks"] == [] and metrics["recompiles"] == 0


def test_what_is_not_read_behind_a_break_is_not_guarded():
    def yielding(x, n):
        for i in range(n):
            got = yield x.relu() + 1
        return got

    def breaking(x, n):
        for i in range(n):
            x = x + 1
            got = oxyfuel.graph_break()
        return x, i, got

    with torch.no_grad():
        generator = oxyfuel.compile(yielding)(torch.ones(3), 20)
        next(generator)
        for sent in range(18):
            generator.send(sent)
        assert oxyfuel.compile(breaking)(torch.ones(3), 20)[0].tolist() == [21.0] * 3
    assert oxyfuel.metrics()["recompiles"] == 0


class Streaming(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.count = 0

    def forward(self, x):
        for _ in range(2):
            x = self.layer(x)
            self.count += 1
            yield x


@program()
def test_a_module_that_yields(compile):
    torch.manual_seed(0)
    model = Streaming()
    compiled = compile(model)
    return [list(compiled(torch.ones(2, 3))) for _ in range(3)], model.count


@types.coroutine
def suspend(value):
    return (yield value)


async def added(x, n):
    return x + n


async def working(x):
    x = (await added(x, 1)) * 2
    got = await suspend(x)
    try:
        x = await added(x * got, 2) + await suspend(x.sum())
    except ValueError as error:
        return x.relu(), str(error)
    return x.sum() * 2


@program()
def test_coroutine_functions(compile):
    f = compile(working)
    results = []
    for messages in ((None, 2.0, 3.0), (None, 2.0, ValueError("v")), (None, KeyError("k")), (1,), (None, 2.0, 3.0)):
        coroutine = f(torch.ones(3))
        results.append((type(coroutine).__name__, drive(coroutine, *messages), coroutine.cr_frame is None))
        coroutine.close()
    return results


@program()
def test_asynchronous_generator_functions(compile):
    @contextlib.asynccontextmanager
    async def manager(log):
        log.append("enter")
        try:
            yield len(log)
        except ValueError as error:
            log.append(str(error))
        finally:
            await asyncio.sleep(0)
            log.append("exit")

    async def scaled(x, n):
        for i in range(n):
            await asyncio.sleep(0)
            got = yield x * i
            x = x + 1 if got is None else x * got

    scaled = compile(scaled)

    async def work(x, log):
        results = [y async for y in scaled(x, 3)]
        async with manager(log) as size:
            results.append(x * size)
            raise ValueError("inside")
        async for y in scaled(x, 2):
            results.append(y + 1)
        generator = scaled(x, 4)
        results.append(await generator.__anext__())
        results.append(await generator.asend(torch.full((3,), 2.0)))
        await generator.aclose()
        results += await asyncio.gather(*(added(x, n) for n in range(2)))
        return results

    work = compile(work)
    results = []
    for _ in range(3):
        log = []
        results.append((asyncio.run(work(torch.ones(3), log)), log))
    return results


@program()
def test_what_is_handled_between_two_resumptions(compile):
    seen = []

    def handling(x):
        try:
            raise KeyError("its own")
        except KeyError:
            yield x + 1
            seen.append(repr(sys.exc_info()[1]))
            yield x + 2
            try:
                raise
            except KeyError as error:
                seen.append(repr(error))
        seen.append(repr(sys.exc_info()[1]))
        yield x + 3

    f = compile(handling)
    for _ in range(3):
        generator = f(torch.ones(2))
        try:
            raise ValueError("the caller's")
        except ValueError:
            next(generator)
            seen.append(repr(sys.exc_info()[1]))
            next(generator)
        seen.append(repr(sys.exc_info()[1]))
        next(generator)
        seen.append(repr(sys.exc_info()[1]))
    return seen


def test_generators_keep_the_hook_for_as_long_as_they_live():
    from oxyfuel import _core

    f = oxyfuel.compile(doubling)
    with torch.no_grad():
        generator = f(torch.ones(3), 3)
        next(generator)
        assert _core.is_hook_installed()
        del generator
        gc.collect()
        assert not _core.is_hook_installed()
        list(f(torch.ones(3), 2))
        assert not _core.is_hook_installed()


def test_a_generator_is_resumed_on_another_thread():
    f = oxyfuel.compile(doubling)
    given = []
    with torch.no_grad():
        expected = list(doubling(torch.ones(3), 4))
        generator = f(torch.ones(3), 4)

        def take():
            with torch.no_grad():
                given.append(next(generator))

        for _ in range(4):
            thread = threading.Thread(target=take)
            thread.start()
            thread.join()
    torch.testing.assert_close(given, expected)


@program(grad=True)
def test_grad_modes_of_a_suspended_generator(compile):
    def switching(x):
        with torch.no_grad():
            yield x * 2, torch.is_grad_enabled()
            yield x * 3, torch.is_grad_enabled()
        yield x * 4, torch.is_grad_enabled()

    f = compile(switching)
    results = []
    for _ in range(3):
        x = torch.ones(3, requires_grad=True)
        for value, enabled in f(x):
            results.append((value, enabled, torch.is_grad_enabled()))
    return results


# --- iterators of C's over what is evaluated, alive where a region ends


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


@types.coroutine
def _pause(value):
    return (yield value)


class _Awaitable:
    def __init__(self, value):
        self.value = value

    def __await__(self):
        got = yield self.value
        return got * 2


@program(whole=True)
def test_coroutines_that_are_driven_inside(compile):
    @compile
    def f(x):
        log = []

        async def child(n):
            try:
                return await _pause(n) + await _Awaitable(n)
            except LookupError as error:
                log.append(repr(error))
                return -1
            finally:
                log.append(n)

        async def parent():
            return [await child(1), await child(2)]

        coroutine = parent()
        values = [coroutine.send(None)]
        values.append(coroutine.throw(KeyError("k")))
        values.append(coroutine.send(5))
        try:
            coroutine.send(7)
        except StopIteration as stop:
            values.append(stop.value)
        closed = parent()
        closed.send(None)
        closed.close()
        return x * 2, values, log

    return f(x23())


class _Gate:
    def __init__(self, log):
        self.log = log

    async def __aenter__(self):
        self.log.append("in")
        return await _pause("entering")

    async def __aexit__(self, kind, value, traceback):
        self.log.append(kind)
        await _pause("leaving")
        return kind is KeyError


class _Steps:
    def __init__(self, count):
        self.left = count

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.left:
            raise StopAsyncIteration
        self.left -= 1
        return await _pause(self.left)


def _driven(coroutine, values):
    """What it yields and returns, with each of the values sent into it."""
    steps = [coroutine.send(None)]
    try:
        for value in values:
            steps.append(coroutine.send(value))
    except StopIteration as stop:
        steps.append(stop.value)
    return steps


@program()
def test_asynchronous_with_and_for(compile):
    @compile
    async def f(x, log):
        async with _Gate(log) as scale:
            x = x * scale
            async for n in _Steps(2):
                x = x + n
            log.append("inside")
            raise KeyError("swallowed")
        return x + 1

    log = []
    return _driven(f(x23(), log), [3, 4, 5, None, None]), log


def test_code_behind_an_asynchronous_with_is_compiled():
    @oxyfuel.compile
    async def f(x, log):
        async with _Gate(log) as scale:
            x = x * scale + 1
        return (x * 2 + scale).relu()

    for _ in range(3):
        _driven(f(x23(), []), [3, None])
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] == 2 and metrics["operators"] == 5, metrics["breaks"]
