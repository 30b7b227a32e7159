"""Generators, coroutines and asynchronous generators that a compiled callable gives to its caller."""

import asyncio
import contextlib
import gc
import sys
import threading
import types

import torch

import oxyfuel
from eager_comparison import outcome, program


def x23():
    return torch.arange(6.0).reshape(2, 3)


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
