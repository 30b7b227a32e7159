"""Objects whose end can be seen: it comes where the program lets go of them, also behind a break."""

import contextlib
import gc
import weakref

import pytest
import torch

from eager_comparison import program


def x23():
    return torch.arange(6.0).reshape(2, 3)


def logging(log, name):
    try:
        yield name
        yield name
    finally:
        log.append(f"{name} closed")


class Ended:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def __del__(self):
        self.log.append(f"{self.name} dropped")


@program()
def test_a_generator_that_a_loop_leaves_behind_a_break(compile):
    @compile
    def f(x):
        log = []
        for _ in logging(log, "loop"):
            print(end="")
            x = x + 1
            break
        log.append("after")
        return x * 2, log

    return f(x23()), f(x23())


def through_a_context(log, name):
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, f"{name} left")
        yield name


@pytest.mark.parametrize("make", [logging, through_a_context])
@program()
def test_a_generator_that_a_closure_holds(compile, make):
    """It ends with the frame, whose functions nobody else holds."""

    @compile
    def f(x, log, returns):
        given = make(log, "cell")

        def first():
            return next(given)

        unused = lambda: given  # noqa: E731
        text = first()
        return x + len(text), given if returns else unused.__name__

    results = []
    for returns in (False, False, True, False):
        log = []
        results.append((f(x23(), log, returns)[0], list(log)))
    return results


@program()
def test_a_local_that_is_overwritten_behind_a_break(compile):
    @compile
    def f(x, make):
        log = []
        held = make(log)
        print(end="")
        held = x + 1
        log.append("after")
        return held, log

    makers = [lambda log: Ended(log, "one"), lambda log: None, lambda log: logging(log, "unstarted")]
    return [f(x23(), make) for make in (*makers, *reversed(makers))]


@program()
def test_what_a_call_returns_is_not_used(compile):
    def native(log, kind):
        print(end="")
        if kind == "started":
            generator = logging(log, "result")
            next(generator)
            return generator
        return Ended(log, "result") if kind == "object" else None

    @compile
    def f(x, kind):
        log = []
        native(log, kind)
        log.append("after")
        return x + len(log), log

    # A region that was captured where nothing ended is not used where something does.
    return [f(x23(), kind) for kind in ("nothing", "object", "started", "nothing", "object")]


@program()
def test_weak_references_to_what_a_frame_lets_go_of(compile):
    class Thing:
        pass

    @compile
    def f(x, things):
        thing = Thing()
        thing.x = x + 1
        reference = weakref.ref(thing)
        shown = reference() is thing, reference().x * 2
        del thing
        dead = reference() is None
        thing = things.pop() if things else None
        last = weakref.ref(thing, lambda _: print("gone")) if thing else None
        thing = 3
        return shown, dead, x + (last is None or last() is None)

    return f(x23(), [Thing()]), f(x23(), []), f(x23(), [Thing(), Thing()])


@program()
def test_weak_references_to_tensors(compile):
    @compile
    def f(x, given):
        log, names = [], weakref.WeakKeyDictionary()
        y = x + 1
        references = weakref.WeakSet([y])
        names[y] = 1
        weakref.finalize(y, log.append, "y")
        total = y.sum()
        shown = len(references), len(names), list(log)
        y = None
        last = weakref.ref(given.pop()) if given else None
        return shown, len(references), len(names), log, last and last(), total

    # The references that modules keep to parameters do not count.
    model = torch.nn.LSTM(2, 2)
    return f(x23(), []), f(x23(), [x23()]), f(x23(), [model.weight_ih_l0]), f(x23(), [])


@program()
def test_tensors_that_are_referred_to_weakly_at_some_calls(compile):
    @compile
    def f(x, keep):
        y = x + 1
        reference = keep(y)
        total = y.sum()
        del y
        return total, reference and reference() is None

    return [f(x23(), keep) for keep in (lambda y: print("no"), weakref.ref, weakref.ref, lambda y: print("no"))]


@contextlib.contextmanager
def managed(log):
    log.append("before")
    try:
        yield log
    finally:
        log.append("after")


@program()
def test_what_is_dropped_holds_what_ends(compile):
    @compile
    def attributes(x):
        log = []
        for _ in range(3):
            print(end="")
            manager = managed(log)
            manager.__enter__()
        return x + len(log), list(log)

    @compile
    def items(x, make):
        log = []
        for _ in range(3):
            held = make(Ended(log, "item"))
            print(end="")
            log.append("made")
        held = None
        return x + len(log), list(log)

    makers = (lambda item: [item], lambda item: (item, 1), lambda item: {"item": item}, lambda item: 3)
    return attributes(x23()), [items(x23(), make) for make in (*makers, *reversed(makers))]


@program()
def test_an_exception_keeps_the_frames_it_left(compile):
    log = []

    def waiting(name):
        try:
            yield name
        finally:
            log.append(name)

    def raising(name):
        generator = waiting(name)
        next(generator)
        raise KeyError(name)

    @compile
    def f(x):
        try:
            raising("first")
        except KeyError as error:
            log.append(str(error))
        log.append("handled")
        return x + 1

    return f(x23()), f(x23()), log


@pytest.mark.parametrize("in_cell", [False, True])
@program()
def test_an_exception_keeps_the_frame_that_keeps_it(compile, in_cell):
    def run(x, log, fails):
        context = managed(log)
        context.__enter__()
        try:
            fails[0]
        except LookupError as error:
            stored = error
        if in_cell:
            log.append((lambda: type(stored).__name__)())
        return x + 1

    f, logs = compile(run), []
    gc.disable()
    try:
        for _ in range(3):
            log = []
            f(x23(), log, [])
            logs.append(list(log))
    finally:
        gc.enable()
    return logs


@program()
def test_a_generator_dropped_while_it_handles_an_exception(compile):
    log = []

    def handling():
        try:
            raise KeyError
        except KeyError:
            yield 1

    def waiting():
        try:
            yield 2
        finally:
            log.append("ends")

    @compile
    def f(x):
        first, second = waiting(), handling()
        next(first)
        try:
            raise ValueError
        except ValueError:
            next(second)
            return x + 1, len(log)

    gc.disable()
    try:
        results = [(*f(x23()), len(log)) for _ in range(2)]
    finally:
        gc.enable()
    gc.collect()
    return results, log
