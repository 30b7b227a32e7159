"""The frame layers (cpy, bytecode, hook), without torch: they hold on every supported Python."""

import operator
import os
import sys
import traceback

import pytest

sys.path[:0] = [path for path in (os.environ.get("OXYFUEL_FRAME_TESTING"), os.path.dirname(__file__)) if path]
layer = pytest.importorskip("oxyfuel_frame_testing", reason="OXYFUEL_FRAME_TESTING names the folder of the module")

import frame_corpus  # noqa: E402


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
