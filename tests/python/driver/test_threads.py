"""Many threads and tracers around compiled functions."""

import sys
import threading

import pytest
import torch
import torch.nn as nn

import oxyfuel


def run_threads(count, work):
    failures = []
    barrier = threading.Barrier(count)

    def body(which):
        try:
            barrier.wait(30)
            with torch.no_grad():
                work(which)
        except BaseException as error:  # noqa: BLE001: a thread's failure must reach the test
            failures.append(error)

    threads = [threading.Thread(target=body, args=(which,)) for which in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if failures:
        raise failures[0]


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)).eval()


@pytest.mark.parametrize("count", [2, 8])
def test_one_model_in_many_threads(count):
    net = model()
    compiled = oxyfuel.compile(net)
    inputs = [torch.randn(2 + which % 3, 16) for which in range(count)]
    with torch.no_grad():
        expected = [net(x) for x in inputs]

    def work(which):
        for _ in range(40):
            torch.testing.assert_close(compiled(inputs[which]), expected[which], rtol=1e-3, atol=1e-4)

    run_threads(count, work)


def test_different_functions_compile_at_once():
    def work(which):
        f = oxyfuel.compile(lambda x: (x * (which + 1)).relu() + which)
        for size in (3, 4):
            x = torch.randn(size, 5)
            torch.testing.assert_close(f(x), (x * (which + 1)).relu() + which)

    run_threads(8, work)


def test_breaks_in_many_threads():
    seen = [[] for _ in range(8)]

    def body(x, which):
        y = x + which
        seen[which].append(1)
        z = y * 2
        if z.sum() > 0:
            z = z + 1
        return z

    compiled = oxyfuel.compile(body)

    def work(which):
        for i in range(20):
            x = torch.full((3,), float(i - 10))
            expected = (x + which) * 2
            expected = expected + 1 if expected.sum() > 0 else expected
            torch.testing.assert_close(compiled(x, which), expected)

    run_threads(8, work)
    assert [len(s) for s in seen] == [20] * 8


def test_grad_mode_belongs_to_the_thread():
    compiled = oxyfuel.compile(lambda x: (x * 2, torch.is_grad_enabled()))

    def work(which):
        for _ in range(20):
            with torch.set_grad_enabled(which % 2 == 0):
                y, enabled = compiled(torch.ones(3))
                assert enabled == (which % 2 == 0)
                assert y.sum() == 6

    run_threads(4, work)


def test_weights_change_while_others_call():
    net = model()
    compiled = oxyfuel.compile(net)
    x = torch.randn(2, 16)
    stop = threading.Event()

    def work(which):
        if which == 0:
            for i in range(10):
                net[3].bias.fill_(float(i))
                torch.testing.assert_close(compiled(x), net(x), rtol=1e-3, atol=1e-4)
            stop.set()
        else:
            while not stop.is_set():
                assert torch.isfinite(compiled(x)).all()

    run_threads(3, work)


def test_reset_while_others_call():
    def body(x):
        y = x + 1
        print(end="")
        return y * 2

    plain, broken = oxyfuel.compile(lambda x: (x + 1) * 2), oxyfuel.compile(body)
    x = torch.ones(3)

    def work(which):
        for i in range(15):
            if which == 0:
                oxyfuel.reset()
            assert plain(x).sum() == 12
            assert broken(x).sum() == 12

    run_threads(4, work)


def test_exceptions_stay_in_their_thread():
    def body(x, which):
        if which % 2:
            raise ValueError(str(which))
        return x + which

    compiled = oxyfuel.compile(body)

    def work(which):
        for _ in range(10):
            if which % 2:
                with pytest.raises(ValueError, match=str(which)):
                    compiled(torch.ones(2), which)
            else:
                assert compiled(torch.ones(2), which)[0] == 1 + which

    run_threads(4, work)


def test_thread_local_data():
    local = threading.local()

    def body(x):
        return x * local.k

    compiled = oxyfuel.compile(body)

    def work(which):
        local.k = which + 1
        for _ in range(5):
            assert compiled(torch.ones(2))[0] == which + 1

    run_threads(4, work)


def lines_of(function, *args):
    seen = []

    def tracer(frame, event, argument):
        if frame.f_code.co_name == "traced":
            seen.append((event, frame.f_lineno - frame.f_code.co_firstlineno))
        return tracer

    sys.settrace(tracer)
    try:
        result = function(*args)
    finally:
        sys.settrace(None)
    return result, seen


@pytest.mark.parametrize("breaks", [False, True])
def test_settrace_sees_the_users_lines(breaks):
    def traced(x):
        y = x + 1
        if breaks:
            print(end="")
        return y * 2

    compiled = oxyfuel.compile(traced)
    with torch.no_grad():
        expected = lines_of(traced, torch.ones(2))
        first = compiled(torch.ones(2))
        actual = lines_of(compiled, torch.ones(2))
        again = compiled(torch.ones(2))
    assert actual[1] == expected[1] and actual[1]
    for value in (actual[0], first, again):
        torch.testing.assert_close(value, expected[0])


def test_setprofile_sees_the_call():
    calls = []

    def profiled(x):
        return x + 1

    compiled = oxyfuel.compile(profiled)
    with torch.no_grad():
        compiled(torch.ones(2))
        sys.setprofile(lambda frame, event, argument: calls.append(frame.f_code.co_name) if event == "call" else None)
        try:
            compiled(torch.ones(2))
        finally:
            sys.setprofile(None)
    assert "profiled" in calls


def test_compiled_in_a_child_of_fork():
    import os

    f = oxyfuel.compile(lambda x: x * 2)
    with torch.no_grad():
        f(torch.ones(3))
    pid = os.fork()
    if pid == 0:
        with torch.no_grad():
            ok = f(torch.ones(3)).sum().item() == 6
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0
