"""The frame layers (cpy, bytecode, hook), without torch: they hold on every supported Python."""

import ctypes
import gc
import inspect
import operator
import os
import re
import signal
import sys
import threading
import traceback
import types
import warnings

import pytest

import frame_corpus
import frame_generators
import frame_programs
from frame_layer_module import layer



@pytest.fixture(autouse=True)
def no_runner():
    yield
    layer.use_none()
    assert not layer.is_installed()


def outcome(run, function):
    """What a run of the function shows: its value, or its error with the lines of its traceback."""
    try:
        return "returned", repr(run(function))
    except BaseException as error:
        chain = []
        while error is not None:
            frames = [(f.name, f.lineno, f.colno, f.end_colno) for f in traceback.extract_tb(error.__traceback__)]
            first = next(i for i, f in enumerate(frames + [("outcome",)]) if f[0] not in ("outcome", "<lambda>"))
            chain.append((type(error).__name__, str(error), frames[first:]))
            error = error.__cause__ or error.__context__
        return "raised", chain


@pytest.mark.parametrize("function", frame_corpus.CASES, ids=lambda f: f.__name__)
def test_every_instruction_performed_natively(function):
    plain = outcome(operator.call, function)
    layer.use_breaks(None)
    assert outcome(layer.call, function) == plain
    frames, segments = layer.counts()
    assert frames > 0 and segments > frames
    assert outcome(layer.call, function) == plain  # again, on warm caches


# What a runner may do to a frame -----------------------------------------------------------------------------------


def offsets(function, *names):
    """Where the instructions of these names start, in order."""
    return [i["offset"] for i in layer.decode(function.__code__)[0] if i["op"] in names]


def lines_from(function, text):
    """The first instruction of the first source line that contains `text`."""
    source, first = inspect.getsourcelines(function)
    line = first + next(i for i, s in enumerate(source) if text in s)
    return next(i["offset"] for i in layer.decode(function.__code__)[0] if i["line"] == line)


def script(function, run):
    """Runs frames of `function` by `run(state)`; returns the list of states that it saw."""
    states = []
    def record(state):
        states.append({k: list(v) if isinstance(v, list) else v for k, v in state.items()})
        return run(state)
    layer.use_script({function.__code__}, record)
    return states


def looping(x, n):
    out = []
    try:
        for i in range(n):
            out.append(x * i)
            if i == 3:
                raise KeyError(x)
    except ValueError as e:
        out.append(("caught", str(e), e.__traceback__.tb_lineno - looping.__code__.co_firstlineno))
    return out


def test_hand_over_in_the_middle_of_a_loop():
    (loop,) = offsets(looping, "ForIter")
    def run(state):
        state["locals"][2] = ["compiled", "part"]
        state["stack"].append(iter([7, 8, 9]))
        return "hand over", loop
    states = script(looping, run)
    assert layer.call(looping, 10, 5) == ["compiled", "part", 70, 80, 90]
    assert states[0]["locals"] == [10, 5, layer.null, layer.null, layer.null] and states[0]["stack"] == []


def test_what_a_frame_calls_that_is_left_to_cpython():
    def callee(x):
        return x + 1
    def caller(x):
        return callee(x) * callee(-x)
    for kind, expected in (("hand over", ["caller", "callee", "callee"]), ("leave all", ["caller"])):
        seen = []
        def run(state):
            seen.append(state["code"].co_name)
            return kind, state["offset"]
        layer.use_script({caller.__code__, callee.__code__}, run)
        assert layer.call(caller, 3) == 4 * -2 and seen == expected
        seen.clear()
        assert layer.call(callee, 3) == 4 and seen == ["callee"]


def test_raise_finds_the_handler_of_the_instruction():
    place = lines_from(looping, "out.append(x * i)")
    def run(state):
        state["locals"][2:4] = ["compiled"], 1
        state["locals"][2] = ["compiled"]
        state["stack"].append(iter([7]))
        return "raise", place, ValueError("from the compiled part")
    script(looping, run)
    assert layer.call(looping, 10, 5) == ["compiled", ("caught", "from the compiled part", 4)]


def test_raise_without_a_handler_names_the_line():
    def plain(x):
        y = x
        return y.z
    place = lines_from(plain, "return y.z")
    script(plain, lambda state: ("raise", place, ValueError("no handler")))
    with pytest.raises(ValueError, match="no handler") as caught:
        layer.call(plain, 1)
    assert caught.traceback[-1].lineno + 1 == plain.__code__.co_firstlineno + 2


@pytest.mark.parametrize("place", ["x = 1", "return [].missing"])
def test_raise_right_behind_a_try_block(place):
    def behind():
        try:
            len("")
        except ValueError:
            return 2
        x = 1
        return [].missing
    script(behind, lambda state: ("raise", lines_from(behind, place), ValueError("v")))
    with pytest.raises(ValueError) as caught:
        layer.call(behind)
    assert caught.traceback[-1].lineno - behind.__code__.co_firstlineno == (5 if "x" in place and "miss" not in place else 6) - 1


def test_return_hands_over_at_the_return_instruction():
    def constant_or_not(x):
        if x:
            return x + 1
        return None
    returns = offsets(constant_or_not, "ReturnValue")
    for place, pushed, expected in ((returns[0], "made up", "made up"), (returns[-1], None, None)):
        def run(state):
            state["stack"].append(pushed)
            return "return", place
        script(constant_or_not, run)
        before = sys.getrefcount(expected)
        for _ in range(100):
            assert layer.call(constant_or_not, 5) == expected
        assert abs(sys.getrefcount(expected) - before) < 10


def test_break_performs_one_instruction_puts_its_result_away_and_asks_again():
    seen = []
    def callee(a):
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_name, frame.f_lineno, dict(frame.f_locals)))
        return a * 2
    def caller(x):
        a = x + 1
        b = callee(a)
        return a, b
    call = offsets(caller, "Call")[0]
    def run(state):
        if state["offset"] < call:
            state["locals"][:2] = [100, 42]
            stack = [callee, layer.null] if sys.version_info >= (3, 13) else [layer.null, callee]
            state["stack"] += stack + [42]
            return "break", call
        if whole:
            assert state["stack"] == [84]
        else:
            assert state["stack"] == [] and state["locals"][2] == 84
        return "hand over", state["offset"]
    # An instruction that does something besides the store is not split.
    store = offsets(caller, "StoreFast")[1]
    behind = next(i["offset"] for i in layer.decode(caller.__code__)[0] if i["offset"] > store)
    whole = any(i["continues"] and i["offset"] == store for i in layer.decode(caller.__code__)[0])
    states = script(caller, run)
    assert layer.call(caller, 1) == (42, 84)
    assert seen == [("caller", caller.__code__.co_firstlineno + 2, {"x": 100, "a": 42, "callee": callee})]
    assert [s["offset"] for s in states] == [offsets(caller, "Resume")[0], store if whole else behind]


def test_break_that_raises_is_caught_by_the_frame():
    def caller(x):
        try:
            y = x.missing
        except AttributeError as e:
            return "caught", [t.lineno for t in traceback.extract_tb(e.__traceback__)], sys.exc_info()[0]
    attribute = offsets(caller, "LoadAttr")[0]
    def run(state):
        state["stack"].append(5)
        return "break", attribute
    script(caller, run)
    assert layer.call(caller, None) == ("caught", [caller.__code__.co_firstlineno + 2], AttributeError)
    assert sys.exc_info() == (None, None, None)


def test_a_failure_of_the_runner_leaves_the_frame_to_cpython(capfd):
    def work(x):
        y = x + 1
        return y * 2
    def spoil(state):
        state["locals"][0] = 1000
        state["stack"] += [1, 2]
        return "fail", 0
    for run in (spoil, lambda state: ("break", 10_000), lambda state: ("break", -1),
                lambda state: ("raise", state["offset"]), lambda state: (state["stack"].extend(range(99)) or "break", 2),
                lambda state: (state["locals"].pop() and "break", state["offset"])):
        script(work, run)
        layer.set_strict(False)
        assert layer.call(work, 4) == 10
        assert "internal error, 'test_a_failure_" in capfd.readouterr().err
        layer.set_strict(True)
        with pytest.raises(SystemError, match="internal error of oxyfuel") as caught:
            layer.call(work, 4)
        assert caught.traceback[-1].lineno + 1 == work.__code__.co_firstlineno
        layer.set_strict(False)


def test_cells_are_cells_and_dead_locals_stay():
    def outer(x, unused):
        y = x
        def inner():
            nonlocal y
            y += 1
            return x, y
        first = inner()
        del unused
        return first, sys._getframe().f_locals["x"], y
    def run(state):
        names = state["code"].co_varnames + tuple(n for n in state["code"].co_cellvars if n not in state["code"].co_varnames)
        by_name = dict(zip(names, state["locals"]))
        assert type(by_name["x"]) is type(by_name["y"]) is types.CellType
        assert by_name["x"].cell_contents == 3 and by_name["unused"] == "kept"
        assert state["offset"] == offsets(outer, "Resume")[0]
        return "break", state["offset"]
    layer.use_script({outer.__code__}, lambda state: run(state) if state["offset"] == offsets(outer, "Resume")[0]
                     else ("break", state["offset"]))
    assert layer.call(outer, 3, "kept") == ((3, 4), 3, 4)


def test_a_segment_drops_what_it_replaces_after_the_frame_is_whole():
    log = []
    class Watch:
        def __del__(self):
            frame = sys._getframe(1)
            log.append({k: v for k, v in frame.f_locals.items() if k != "x"})
    def work(x, y):
        z = 1
        return x, y, z
    place = lines_from(work, "return x")
    def run(state):
        if state["offset"] >= place:
            return "hand over", state["offset"]
        state["locals"][:] = ["new x", "new y", "new z"]
        return "break", place
    script(work, run)
    assert layer.call(work, Watch(), "old y")[:2] == ("new x", "new y")


# Recursion, requests, threads --------------------------------------------------------------------------------------


def depth_of_endless_recursion(call):
    deepest = 0
    def down(n):
        nonlocal deepest
        deepest = n
        return down(n + 1)
    try:
        call(down, 1)
    except RecursionError as error:
        return deepest, str(error)


def test_endless_recursion_ends_where_it_does_in_cpython():
    plain = depth_of_endless_recursion(operator.call)
    layer.use_breaks(None)
    depth, message = depth_of_endless_recursion(layer.call)
    assert message == plain[1]
    assert abs(depth - plain[0]) <= 3


def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)


@pytest.mark.parametrize("wanted", [{deep.__code__}, set(), None], ids=["segments", "others", "all"])
@pytest.mark.parametrize("stack_size", [0, 512 * 1024])
def test_deep_recursion_does_not_need_c_stack(wanted, stack_size):
    layer.use_breaks(wanted)
    results = []
    def run():
        results.append(layer.call(deep, 30_000))
        results.append(layer.call(deep, 30_000))
        assert not layer.is_installed()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    threading.stack_size(stack_size)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
        sys.setrecursionlimit(limit)
    assert results == [30_000, 30_000]


def test_deep_recursion_of_another_thread_while_the_hook_is_installed():
    layer.use_breaks(set())
    results = []
    limit = sys.getrecursionlimit()
    def other():
        results.append(deep(30_000))
    def work():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    sys.setrecursionlimit(100_000)
    try:
        layer.call(work)
    finally:
        sys.setrecursionlimit(limit)
    assert results == [30_000]


def spin(state):
    while not state:
        pass
    return state


def test_signals_are_served_between_breaks():
    frames = []
    state = []
    def handler(number, frame):
        frames.append(frame.f_code.co_name)
        state.append("signalled")
    def work():
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        return spin(state)
    layer.use_breaks({spin.__code__})
    old = signal.signal(signal.SIGALRM, handler)
    try:
        assert layer.call(work) == ["signalled"]
    finally:
        signal.signal(signal.SIGALRM, old)
    assert frames == ["spin"]


def test_an_exception_of_a_signal_handler_is_raised_in_the_frame():
    def handler(number, frame):
        raise TimeoutError("too long")
    def work():
        try:
            while True:
                pass
        except TimeoutError as error:
            return [t.name for t in traceback.extract_tb(error.__traceback__)]
    layer.use_breaks({work.__code__})
    old = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert layer.call(work) == ["work", "handler"]
    finally:
        signal.signal(signal.SIGALRM, old)


def test_other_threads_get_the_gil():
    layer.use_breaks({spin.__code__})
    state = []
    timer = threading.Timer(0.05, lambda: state.append("set"))
    timer.start()
    assert layer.call(spin, state) == ["set"]
    timer.join()


def test_asynchronous_exceptions_arrive():
    layer.use_breaks({spin.__code__})
    me = ctypes.c_ulong(threading.get_ident())
    timer = threading.Timer(0.05, lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(me, ctypes.py_object(InterruptedError)))
    timer.start()
    with pytest.raises(InterruptedError):
        layer.call(spin, [])
    timer.join()


def test_collections_happen_between_breaks():
    def make_garbage(collected):
        while not collected:
            cycle = []
            cycle.append(cycle)
        return "collected"
    collected = []
    callback = lambda phase, info: collected.append(1)
    layer.use_breaks({make_garbage.__code__})
    gc.callbacks.append(callback)
    try:
        assert layer.call(make_garbage, collected) == "collected"
    finally:
        gc.callbacks.remove(callback)


def test_exc_info_of_a_caller_is_seen_in_a_break():
    def callee():
        seen = sys.exc_info()[1]
        try:
            raise KeyError("inner")
        except KeyError as error:
            context = error.__context__
        try:
            raise
        except ValueError as again:
            return seen, context, again
    layer.use_breaks(None)
    def caller():
        try:
            raise ValueError("outer")
        except ValueError as error:
            return all(e is error for e in callee()), sys.exc_info()[1] is error
    assert layer.call(caller) == (True, True)


# When the hook acts ------------------------------------------------------------------------------------------------


def test_the_hook_is_installed_only_during_the_call():
    layer.use_breaks(None)
    seen = []
    def inner():
        seen.append(layer.is_installed())
    def outer():
        layer.call(inner)
        seen.append(layer.is_installed())
    assert not layer.is_installed()
    layer.call(outer)
    assert seen == [True, True] and not layer.is_installed()
    with pytest.raises(ZeroDivisionError):
        layer.call(lambda: 1 / 0)
    assert not layer.is_installed()
    frames = layer.counts()[0]
    inner()
    assert layer.counts()[0] == frames


def test_frames_of_other_threads_are_left_alone():
    def elsewhere():
        return 1
    states = script(elsewhere, lambda state: ("hand over", state["offset"]))
    def work():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    layer.call(work)
    assert states == []
    layer.call(elsewhere)
    assert len(states) == 1


def test_two_threads_at_once():
    layer.use_breaks(None)
    results = []
    barrier = threading.Barrier(2)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)
    def run():
        barrier.wait()
        results.append(layer.call(fib, 16))
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [987, 987] and not layer.is_installed()


def test_frames_made_by_a_segment_are_left_alone():
    def helper():
        return 1
    def work():
        return 2
    helped = []
    def run(state):
        helped.append((state["code"].co_name, helper()))
        return "hand over", state["offset"]
    layer.use_script({work.__code__, helper.__code__}, run)
    assert layer.call(work) == 2
    assert helped == [("work", 1)]


def test_generators_run_in_segments_between_their_yields():
    def generator():
        yield 1
        yield 2
    async def coroutine():
        return 2
    async def both():
        yield 3
    seen = []
    layer.use_script({generator.__code__, coroutine.__code__, both.__code__},
                     lambda state: seen.append(state["code"].co_name) or ("hand over", state["offset"]))
    def work():
        c = coroutine()
        try:
            c.send(None)
        except StopIteration as stop:
            return list(generator()), stop.value
    assert layer.call(work) == ([1, 2], 2) and seen == ["coroutine"] + ["generator"] * 3


def test_an_adopted_generator_is_resumed_under_the_hook():
    def helper(n):
        return n + 1
    def generator(n):
        got = yield helper(n)
        yield helper(got)
    layer.use_breaks({generator.__code__, helper.__code__})
    adopted, other = layer.adopt(generator(1)), generator(1)
    assert layer.is_installed()
    assert next(adopted) == 2 and next(other) == 2
    frames, segments = layer.counts()
    assert frames == 1 and segments > 2  # the helper's frame, and segments of the generator
    assert helper(1) == 2 and other.send(5) == 6
    assert layer.counts() == (frames, segments)
    assert adopted.send(5) == 6 and layer.counts()[0] == 2
    assert next(adopted, None) is None and not layer.is_installed()  # it has ended
    dropped = layer.adopt(generator(1))
    next(dropped)
    assert layer.is_installed()
    del dropped
    assert not layer.is_installed()
    layer.adopt(layer.adopt(generator(1)))
    layer.adopt(3)
    assert not layer.is_installed()


@pytest.mark.parametrize("function", frame_generators.CASES, ids=lambda f: f.__name__)
def test_generators(function):
    plain = outcome(operator.call, function)
    layer.use_breaks(None)
    for _ in range(3):
        assert outcome(layer.call, function) == plain
    frames, segments = layer.counts()
    assert segments > frames
    for seed in range(1, 12):
        layer.use_random(None, seed, 2 ** (seed % 6 + 1))
        assert outcome(layer.call, function) == plain


def test_generators_made_in_the_middle_of_their_lives():
    def inner(log, *rest, key=3, **more):
        shared = [key]
        try:
            got = yield rest, more
            log.append((lambda: (got, shared))())
            yield sys.exc_info()[1]
        except ValueError as error:
            log.append(str(error))
            yield "handling"
            log.append(repr(sys.exc_info()[1]))
            raise
        finally:
            log.append("finally")
    def outer(log, n, /):
        log.append((yield from inner(log, n, other=n)))
        yield from range(n)
    def rest_of(generator, log):
        shown = [generator.__name__ == "outer", type(generator.gi_yieldfrom).__name__, sorted(generator.gi_frame.f_locals)]
        shown += [generator.gi_frame.f_lineno, generator.gi_frame.f_lasti, sys.getrefcount(generator.gi_frame.f_builtins) > 0]
        try:
            shown.append(generator.send(None))
            shown.append(generator.throw(ValueError("thrown")))
            shown += list(generator)
        except ValueError as error:
            shown.append([t.lineno for t in traceback.extract_tb(error.__traceback__)][1:])
        return shown, list(log), generator.gi_frame
    for taken in range(3):
        for throws in (False, True) if taken else (False,):
            shown = []
            for remake in (lambda generator: generator, layer.copy_generator):
                log = []
                generator = outer(log, 2)
                for _ in range(taken):
                    next(generator)
                if throws:
                    generator.throw(ValueError("before"))
                made = remake(generator)
                shown.append(rest_of(made, log))
                del made
                gc.collect()
            assert shown[0] == shown[1]


def test_an_earlier_hook_is_chained_to_and_put_back():
    def plain():
        return 1
    layer.use_breaks(set())
    layer.set_foreign_hook(True)
    try:
        plain()
        before = layer.foreign_frames()
        assert before > 0
        layer.call(plain)
        inside = layer.foreign_frames()
        assert inside > before
        plain()
        assert layer.foreign_frames() > inside
    finally:
        layer.set_foreign_hook(False)


def test_a_hook_installed_above_ours_is_not_removed():
    def install():
        layer.set_foreign_hook(True)
        return 1
    layer.use_breaks({install.__code__})
    assert layer.call(install) == 1
    def plain():
        return layer.foreign_frames()
    try:
        assert plain() < plain()
    finally:
        layer.set_foreign_hook(False)
    layer.call(plain)  # ours finds itself out of the chain, and comes back
    assert layer.call(plain) == 0


def traced_program(log, install):
    def work(x):
        y = x + 1
        z = [i for i in range(2)]
        try:
            raise ValueError
        except ValueError:
            pass
        return y
    install()
    try:
        work(1)
        return work(2)
    finally:
        sys.settrace(None)
        sys.setprofile(None)


@pytest.mark.parametrize("setter", [sys.settrace, sys.setprofile], ids=["trace", "profile"])
def test_traced_frames_belong_to_cpython(setter):
    def record():
        log = []
        def trace(frame, event, argument):
            if frame.f_code.co_filename == __file__ and frame.f_code.co_name != "<lambda>":
                log.append((frame.f_code.co_name, event, frame.f_lineno))
            return trace
        return log, lambda: setter(trace)
    plain, install = record()
    traced_program(plain, install)
    layer.use_breaks(None)
    hooked, install = record()
    layer.call(traced_program, hooked, install)
    started = next(i for i, entry in enumerate(hooked) if entry[0] == "work")
    assert hooked[started:] == plain[next(i for i, entry in enumerate(plain) if entry[0] == "work"):]
    assert layer.call(deep, 5) == 5


def test_functions_made_after_a_trace_run_in_segments_at_once():
    sys.settrace(lambda *_: None)
    deep(2)
    sys.settrace(None)
    def fresh(x):
        y = x + 1
        return y
    states = script(fresh, lambda state: ("hand over", state["offset"]))
    assert layer.call(fresh, 1) == 2
    assert len(states) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring")
def test_monitored_frames_belong_to_cpython():
    events = []
    monitoring = sys.monitoring
    def work(x):
        return x + 1
    def local(x):
        return x + 2
    layer.use_breaks(None)
    monitoring.use_tool_id(3, "test")
    try:
        monitoring.register_callback(3, monitoring.events.PY_RETURN, lambda code, *_: events.append(code.co_name))
        monitoring.set_events(3, monitoring.events.PY_RETURN)
        layer.call(work, 1)
        monitoring.set_events(3, 0)
        layer.call(work, 1)
        assert events.count("work") == 1
        monitoring.set_local_events(3, local.__code__, monitoring.events.PY_RETURN)
        layer.call(local, 1)
        layer.call(local, 1)
        assert events.count("local") == 2
        monitoring.set_local_events(3, local.__code__, 0)
    finally:
        monitoring.free_tool_id(3)
    # Once the interpreter has brought the code up to date, it is run in segments again.
    layer.call(work, 1)
    before = layer.counts()[1]
    layer.call(work, 1)
    assert layer.counts()[1] > before


def test_tracing_that_starts_in_a_break():
    lines = []
    def trace(frame, event, argument):
        lines.append(frame.f_lineno)
        return trace
    def start():
        sys._getframe(1).f_trace = trace
        sys.settrace(trace)
    def work():
        start()
        x = 1
        sys.settrace(None)
        return x
    layer.use_breaks(None)
    layer.call(work)
    first = work.__code__.co_firstlineno
    assert [n - first for n in lines if first < n < first + 5] == [2, 3]


# Random programs, and random places to hand over ---------------------------------------------------------------------


def run_program(code, call):
    """Everything that a run of a generated program shows."""
    log = []
    def lines(error):
        return [t.lineno for t in traceback.extract_tb(error.__traceback__)]
    space = {"log": log, "lines": lines, "frame_line": lambda: sys._getframe(1).f_lineno}
    exec(code, space)
    try:
        result = "returned", call(space["f"], 1, [2])
    except Exception as error:
        result = type(error).__name__, str(error), lines(error)[1:]
    shown = re.sub(r" at 0x\w+", "", repr((result, log)))
    space.clear()
    return shown


def shown_by_python_alone(code):
    """What Python 3.11 shows besides a cold run: warm code may name the line before that of an unbound local, and under
    a PEP 523 hook that does nothing the arguments of a call live until it returns."""
    layer.use_none()
    shown = [run_program(code, operator.call) for _ in range(20)]
    layer.use_script(set(), None)
    return shown + [run_program(code, layer.call) for _ in range(20)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of finalizers behind the program
@pytest.mark.parametrize("seed", range(int(os.environ.get("OXYFUEL_FRAME_PROGRAMS", "60"))))
def test_random_programs(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(frame_programs.Program(seed).source(), "<program>", "exec")
    plain = run_program(code, operator.call)

    def check():
        shown = run_program(code, layer.call)
        assert shown == plain or shown in shown_by_python_alone(code)

    layer.use_breaks(None)
    check()
    for period in (3, 10, 40, 100):
        layer.use_random(None, seed + 1, period)
        check()


# Under any PEP 523 hook the eval loop itself keeps a call's arguments until the call returns.
@pytest.mark.parametrize("function", [f for f in frame_corpus.CASES if f is not frame_corpus.arguments_die_in_the_callee],
                         ids=lambda f: f.__name__)
def test_handed_over_anywhere(function):
    plain = outcome(operator.call, function)
    for seed in range(1, 12):
        layer.use_random(None, seed, 2 ** (seed % 6 + 1))
        assert outcome(layer.call, function) == plain
