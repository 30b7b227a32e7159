"""What iterators and generators end with: the value of `yield from` and `await`, and of close()."""

import itertools

import pytest
import torch

from eager_comparison import outcome, program

X = torch.arange(3.0)


class Stop(StopIteration):
    pass


def plain(value):
    raise StopIteration(value)


def of_subclass(value):
    raise Stop(value, "more")


def set_later(value):
    stop = StopIteration()
    stop.value = value
    raise stop


def empty(value):
    raise StopIteration


class Iterator:
    def __init__(self, count, end, value):
        self.count, self.end, self.value = count, end, value

    def __iter__(self):
        return self

    __await__ = __iter__

    def __next__(self):
        self.count -= 1
        if self.count < 0:
            self.end(self.value)
        return self.count


def drive(coroutine):
    got = []
    try:
        while True:
            got.append(coroutine.send(None))
    except StopIteration as stop:
        return got, stop.value


ENDS = {"plain": plain, "of a subclass": of_subclass, "set later": set_later, "empty": empty}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("breaks", [False, True])
@program()
def test_yield_from_an_iterator_of_a_python_class(compile, end, breaks):
    def generator(x):
        got = yield from Iterator(2, ENDS[end], x * 10)
        if breaks:
            print("got")
        yield got
        yield (yield from Iterator(0, ENDS[end], (x, got)))

    inlined = compile(lambda x: list(generator(x)))
    return [inlined(X + i) for i in range(3)], list(compile(generator)(X)), list(generator(X))


@pytest.mark.parametrize("end", ENDS)
@program()
def test_await_of_an_object_of_a_python_class(compile, end):
    async def inner(x):
        return await Iterator(1, ENDS[end], x + 1)

    @compile
    async def outer(x):
        first = await inner(x)
        second = await Iterator(2, ENDS[end], (first, x))
        return first, second

    return [drive(outer(X)) for _ in range(3)], drive(compile(inner)(X))


@program()
def test_iterators_of_c_that_end_with_a_stop_of_python_code(compile):
    def ends(value):
        if value == 2:
            raise StopIteration("from the function")
        return value

    def delegate(kind, x):
        return (yield from kind(ends, range(4))), x + 1

    def f(x):
        found = []
        for kind in (map, filter, itertools.takewhile, itertools.starmap):
            def values(kind=kind):
                arguments = [(n,) for n in range(4)] if kind is itertools.starmap else range(4)
                found.append((yield from kind(ends, arguments)))

            found.append(list(values()))
        return found, x * 2

    g = compile(f)
    return [g(X) for _ in range(2)]


@program()
def test_close_gives_what_the_generator_returns(compile):
    def mean():
        total, count = 0, 0
        try:
            while True:
                total = total + (yield)
                count += 1
        except GeneratorExit:
            return total / max(count, 1)

    def stubborn(x):
        try:
            yield x
        except GeneratorExit:
            yield x + 1

    def unhandled(x):
        yield x

    def wrapping(x):
        try:
            yield from mean()
        except GeneratorExit:
            return x

    @compile
    def f(tensors, started):
        generator = mean()
        if started:
            next(generator)
            for tensor in tensors:
                generator.send(tensor)
        first = generator.close()
        return first, generator.close(), outcome(lambda: next(generator))[:2]

    @compile
    def g(x):
        made = [kind(x) for kind in (stubborn, unhandled, wrapping)]
        for generator in made:
            next(generator)
        return [outcome(generator.close)[:3] for generator in made]

    tensors = [X, X * 2]
    return [f(tensors, started) for started in (True, False, True)], [g(X) for _ in range(2)]
