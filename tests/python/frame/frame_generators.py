"""Programs with generators, coroutines and asynchronous generators for the frame layers: each shows what it did."""

import asyncio
import contextlib
import gc
import sys
import types


def steps(count, log=None):
    """Yields, and takes whatever is sent, thrown or closed."""
    for i in range(count):
        try:
            got = yield i
            if got is not None and log is not None:
                log.append(got)
        except ValueError as error:
            if log is not None:
                log.append(str(error))
            yield -1
        finally:
            if log is not None:
                log.append(i)
    return "returned"


def iterated():
    return [list(steps(3)), sum(x * y for x in steps(3) for y in steps(x)), dict(zip(steps(2), "ab"))]


def sent_and_thrown():
    log = []
    generator = steps(4, log)
    results = [next(generator), generator.send("sent"), generator.throw(ValueError("thrown")), next(generator)]
    results.append(generator.gi_frame.f_lineno - steps.__code__.co_firstlineno)
    generator.close()
    return results, log, generator.gi_frame


def thrown_out():
    generator = steps(4, [])
    next(generator)
    generator.throw(KeyError("out"))


def raised_inside():
    def bad():
        yield 1
        {}["missing"]

    return list(bad())


def stopped_inside():
    def bad():
        yield 1
        raise StopIteration("inside")

    return list(bad())


def delegated():
    log = []

    def outer():
        log.append((yield from steps(2, log)))
        yield from [10, 20]
        log.append((yield from outer_of(steps(1, log))))

    def outer_of(inner):
        return (yield from inner)

    generator = outer()
    results = [next(generator), type(generator.gi_yieldfrom).__name__, generator.throw(ValueError("v"))]
    return results, list(generator), log


def closed_at_the_end():
    log = []
    generator = steps(3, log)
    next(generator)
    del generator
    gc.collect()
    ring = [steps(3, log)]
    ring.append(ring)
    next(ring[0])
    del ring
    gc.collect()
    return log


def reentered():
    def itself():
        yield next(generator)

    generator = itself()
    next(generator)


def handled_exceptions():
    seen = []

    def handling():
        try:
            raise KeyError("inner")
        except KeyError:
            yield 1
            seen.append(repr(sys.exc_info()[1]))
        seen.append(repr(sys.exc_info()[1]))
        yield 2

    generator = handling()
    try:
        raise ValueError("outer")
    except ValueError:
        next(generator)
        seen.append(repr(sys.exc_info()[1]))
        next(generator)
    seen.append(repr(sys.exc_info()[1]))
    return seen


def context_managers():
    log = []

    @contextlib.contextmanager
    def manager(name):
        log.append(name)
        try:
            yield name * 2
        except ValueError:
            log.append("swallowed")
        finally:
            log.append("end")

    with manager("a") as a, manager("b"):
        raise ValueError(a)
    return log


@types.coroutine
def suspend(value):
    return (yield value)


def awaited():
    async def inner(n):
        got = await suspend(n)
        return got, await other(n)

    async def other(n):
        return n + 1

    async def outer():
        results = []
        for n in range(3):
            results.append(await inner(n))
        return results

    coroutine = outer()
    given = [coroutine.send(None)]
    try:
        while True:
            given.append(coroutine.send("reply"))
    except StopIteration as stop:
        return given, stop.value


def asynchronous():
    log = []

    class Manager:
        async def __aenter__(self):
            log.append("enter")
            return self

        async def __aexit__(self, *details):
            await asyncio.sleep(0)
            log.append(details[0])
            return True

    async def numbers(n):
        try:
            for i in range(n):
                await asyncio.sleep(0)
                got = yield i
                log.append(got)
        finally:
            log.append("finally")

    class Counting:
        def __init__(self):
            self.n = 0

        def __aiter__(self):
            return self

        async def __anext__(self):
            self.n += 1
            if self.n > 3:
                raise StopAsyncIteration
            return self.n

    async def work():
        results = [i async for i in numbers(3)]
        async for n in Counting():
            results.append(n)
        async with Manager() as manager:
            results.append(type(manager).__name__)
            raise KeyError("swallowed")
        generator = numbers(4)
        results.append(await generator.__anext__())
        results.append(await generator.asend("sent"))
        try:
            await generator.athrow(ValueError("thrown"))
        except ValueError as error:
            results.append(str(error))
        results += await asyncio.gather(*(add(n) for n in range(3)))
        return results

    async def add(n):
        await asyncio.sleep(0)
        return n + 1

    return asyncio.run(work()), log


def awaited_wrongly():
    async def work():
        return await 3

    asyncio.run(work())


def awaited_twice():
    async def inner():
        await asyncio.sleep(0)

    async def work():
        coroutine = inner()
        coroutine.send(None)
        await coroutine

    asyncio.run(work())


def with_closures():
    def outer(x):
        def inner(y):
            nonlocal x
            for i in range(y):
                x += i
                yield x, y

        return inner

    return list(outer(3)(4)), [f() for f in [(lambda: i) for i in steps(3)]]


CASES = [
    iterated, sent_and_thrown, thrown_out, raised_inside, stopped_inside, delegated, closed_at_the_end, reentered,
    handled_exceptions, context_managers, awaited, asynchronous, awaited_wrongly, awaited_twice, with_closures,
]
