"""Profilers, tracers and sys.monitoring see the frames of compiled functions as they see those of eager ones."""

import cProfile
import pstats
import sys

import pytest
import torch

import oxyfuel

X = torch.ones(2)


def callee(x):
    return x - 1


def whole(x):
    y = x + 1
    return callee(y)


def broken(x):
    y = callee(x)
    print(end="")
    return callee(y)


CODES = {function.__code__ for function in (callee, whole, broken)}


def profiled(function):
    profile = cProfile.Profile()
    profile.runcall(function, X)
    return sorted((name, calls) for (file, _, name), (calls, *_) in pstats.Stats(profile).stats.items() if file == __file__)


def traced(function):
    events = []

    def trace(frame, event, argument):
        if frame.f_code in CODES:
            events.append((frame.f_code.co_name, event, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        function(X)
    finally:
        sys.settrace(None)
    return events


def listened(function):
    events = []

    def listen(frame, event, argument):
        if frame.f_code in CODES:
            events.append((frame.f_code.co_name, event))

    sys.setprofile(listen)
    try:
        function(X)
    finally:
        sys.setprofile(None)
    return events


def monitored(function, code=None):
    """With events everywhere, or of one code object only."""
    monitoring = sys.monitoring
    wanted = monitoring.events.LINE | monitoring.events.PY_START | monitoring.events.PY_RETURN
    events = []

    def listen(event):
        return lambda of, *_: events.append((event, of.co_name)) if of in CODES else None

    monitoring.use_tool_id(3, "test")
    try:
        for event in ("LINE", "PY_START", "PY_RETURN"):
            monitoring.register_callback(3, getattr(monitoring.events, event), listen(event))
        monitoring.set_local_events(3, code, wanted) if code else monitoring.set_events(3, wanted)
        function(X)
        monitoring.set_local_events(3, code, 0) if code else monitoring.set_events(3, 0)
    finally:
        monitoring.free_tool_id(3)
    return events


WATCHES = {
    "cProfile": profiled,
    "settrace": traced,
    "setprofile": listened,
    "monitoring": monitored,
    "monitoring of the function": lambda function: monitored(function, whole.__code__),
    "monitoring of what it calls": lambda function: monitored(function, callee.__code__),
}


@pytest.mark.parametrize("watch", WATCHES)
@pytest.mark.parametrize("function", [whole, broken])
def test_frames_are_seen(watch, function):
    if watch.startswith("monitoring") and sys.version_info < (3, 12):
        pytest.skip("sys.monitoring came with Python 3.12")
    compiled = oxyfuel.compile(function)
    for _ in range(2):
        compiled(X)
    expected = WATCHES[watch](function)
    assert len(expected) > 1 or watch == "monitoring of the function"
    for _ in range(2):
        assert WATCHES[watch](compiled) == expected
    before = oxyfuel.metrics()["calls_eager"]
    compiled(X)
    assert oxyfuel.metrics()["calls_eager"] == before
