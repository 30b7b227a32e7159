"""`with torch.cuda.stream(s)` inside of a program. Without GPUs it does nothing; tests/gpu has the others."""

import pytest
import torch

import oxyfuel
from eager_comparison import program

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="tests/gpu/test_streams_in_programs.py has these")


@program(whole=True)
def test_no_stream(compile):
    def f(x):
        with torch.cuda.stream(None) as entered:
            y = x * 2
        try:
            with torch.cuda.stream(None):
                raise ValueError
        except ValueError:
            return y + 1, entered

    compiled = compile(f)
    return [compiled(torch.ones(3)) for _ in range(2)]


@program(whole=True)
def test_a_stream_where_there_are_no_devices(compile):
    context = torch.cuda.stream(torch.Stream(device="cpu"))

    def f(x, stream):
        with torch.cuda.stream(stream):
            y = x * 2
        with context:
            return y + 1

    return compile(f)(torch.ones(3), torch.Stream(device="cpu")), vars(context)["src_prev_stream"]


def context_of(stream):
    """A context that takes the host for the current GPU, which has one stream."""
    context = torch.cuda.stream(stream)
    context.idx = 0
    return context


def test_the_current_stream_is_no_break():
    stream = torch.Stream(device="cpu")
    context = context_of(stream)

    @oxyfuel.compile(fullgraph=True)
    def f(x):
        with context:
            return x * 2

    for _ in range(3):
        assert f(torch.ones(3)).tolist() == [2, 2, 2]
    assert oxyfuel.metrics()["graphs"] == 1 and context.src_prev_stream is stream


def test_that_it_is_current_is_asked_at_each_call():
    current = torch.Stream(device="cpu")
    other = torch.Stream(stream_id=5, device_index=-1, device_type=0)

    def f(x, context):
        with context:
            return x * 2

    compiled = oxyfuel.compile(f)
    for _ in range(3):
        assert compiled(torch.ones(3), context_of(current)).tolist() == [2, 2, 2]
    assert oxyfuel.metrics()["graphs"] == 1 and not oxyfuel.metrics()["breaks"]
    with pytest.raises((AssertionError, RuntimeError)):  # of eager's own __enter__
        compiled(torch.ones(3), context_of(other))
    assert oxyfuel.metrics()["breaks"]
    assert "is_current_stream" in str(oxyfuel.metrics()["recompile_reasons"])


def test_a_class_of_the_programs():
    class Stream(torch.Stream):
        pass

    context = context_of(Stream(device="cpu"))

    def f(x):
        with context:
            return x * 2

    with pytest.raises((AssertionError, RuntimeError)):
        oxyfuel.compile(f)(torch.ones(3))
    assert oxyfuel.metrics()["breaks"]
