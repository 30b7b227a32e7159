"""Streams and events in compiled programs: answers are eager's, and what changes the stream is a break."""

import pytest
import torch

import oxyfuel

if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

CUDA = torch.device("cuda")
CALLS = 6  # the third one records its work, and those behind it replay it


def numbers(size=1 << 16):
    return torch.linspace(-2, 2, size, device=CUDA)


def slowly(x):
    """The same numbers, a while later: work on another stream that does not wait sees others."""
    torch.cuda._sleep(2_000_000)
    return x.clone()


def agree(function, *arguments, breaks):
    """Compiled and in eager the same at each of several calls; whether there are breaks."""
    compiled = oxyfuel.compile(function)
    for call in range(CALLS):
        given = [a + call if isinstance(a, torch.Tensor) else a for a in arguments]
        expected, actual = function(*given), compiled(*given)
        torch.cuda.synchronize()
        torch.testing.assert_close(actual, expected)
    assert bool(oxyfuel.metrics()["breaks"]) == breaks, oxyfuel.metrics()["breaks"]


def test_no_stream():
    def function(x):
        with torch.cuda.stream(None):
            y = x * 2
        return y + 1

    agree(function, numbers(), breaks=False)
    assert oxyfuel.metrics()["graphs"] == 1


def test_the_current_stream():
    stream = torch.cuda.current_stream()

    def function(x):
        y = x.sin()
        with torch.cuda.stream(stream):
            y = y * 2
            with torch.cuda.stream(stream):
                y = y + 1
        return y.cos()

    agree(function, numbers(), breaks=False)
    assert oxyfuel.metrics()["graphs"] == 1


def test_the_current_stream_as_an_argument():
    def function(x, stream):
        with torch.cuda.stream(stream):
            return x * 2 + 1

    compiled = oxyfuel.compile(function, fullgraph=True)
    side = torch.cuda.Stream()
    x = numbers()
    for _ in range(CALLS):
        torch.testing.assert_close(compiled(x, torch.cuda.current_stream()), x * 2 + 1)
        with torch.cuda.stream(side):
            side.wait_stream(torch.cuda.default_stream())
            y = compiled(x, torch.cuda.current_stream())
        torch.cuda.default_stream().wait_stream(side)
        torch.testing.assert_close(y, x * 2 + 1)
    assert oxyfuel.metrics()["graphs"] == 1


def test_a_stream_that_is_current_at_some_calls():
    side = torch.cuda.Stream()
    seen = []

    def function(x):
        with torch.cuda.stream(side):
            seen.append(torch.cuda.current_stream().stream_id)
            y = x * 2
        seen.append(torch.cuda.current_stream().stream_id)
        return y

    compiled = oxyfuel.compile(function)
    for call in range(2 * CALLS):
        x = numbers() + call
        context = torch.cuda.stream(side) if call % 3 else torch.cuda.stream(None)
        torch.cuda.synchronize()
        with context:
            here = torch.cuda.current_stream().stream_id
            y = compiled(x)
            assert torch.cuda.current_stream().stream_id == here
        torch.cuda.synchronize()
        assert seen[-2:] == [side.stream_id, here]
        torch.testing.assert_close(y, x * 2)


def test_the_guard_of_the_current_stream():
    side = torch.cuda.Stream()

    def function(x):
        with torch.cuda.stream(side):
            return x * 2

    compiled = oxyfuel.compile(function)
    x = numbers()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for _ in range(CALLS):
            compiled(x)
    assert not oxyfuel.metrics()["breaks"] and oxyfuel.metrics()["graphs"] == 1
    torch.cuda.synchronize()
    y = compiled(x)  # enters it now
    assert oxyfuel.metrics()["breaks"]
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.synchronize()
    torch.testing.assert_close(y, x * 2)


def test_a_break_inside_of_the_context_of_the_current_stream():
    stream = torch.cuda.current_stream()

    def function(x):
        with torch.cuda.stream(stream):
            y = x * 2
            oxyfuel.graph_break()
            y = y + 1
        return y.sin()

    agree(function, numbers(), breaks=True)
    assert torch.cuda.current_stream() == stream


def test_an_exception_inside_of_the_context_of_the_current_stream():
    stream = torch.cuda.current_stream()

    def function(x):
        try:
            with torch.cuda.stream(stream):
                y = x * 2
                raise ValueError("no")
        except ValueError as error:
            return y + len(str(error))

    agree(function, numbers(), breaks=False)


def test_work_on_another_stream():
    side = torch.cuda.Stream()

    def function(x):
        y = slowly(x) * 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            z = slowly(y) + 1
            w = z.sin()
        torch.cuda.current_stream().wait_stream(side)
        w.record_stream(torch.cuda.current_stream())
        return w * 3

    agree(function, numbers(), breaks=True)


def test_streams_that_a_call_makes():
    def function(x):
        first, second = torch.cuda.Stream(), torch.cuda.Stream()
        parts = []
        for stream, factor in ((first, 2), (second, 3)):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                parts.append(slowly(x) * factor)
        for stream in (first, second):
            torch.cuda.current_stream().wait_stream(stream)
        return parts[0] + parts[1]

    agree(function, numbers(), breaks=True)


def test_a_stream_that_is_set():
    side = torch.cuda.Stream()

    def function(x):
        before = torch.cuda.current_stream()
        side.wait_stream(before)
        torch.cuda.set_stream(side)
        y = slowly(x) * 2
        torch.cuda.set_stream(before)
        before.wait_stream(side)
        return y + 1

    agree(function, numbers(), breaks=True)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_events():
    side = torch.cuda.Stream()

    def function(x):
        start, done = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        y = slowly(x) * 2
        ready = torch.cuda.current_stream().record_event()
        side.wait_event(ready)
        with torch.cuda.stream(side):
            z = slowly(y) + 1
            done.record()
        done.wait()
        done.synchronize()
        return z.cos(), start.elapsed_time(done) > 0, start.query()

    agree(function, numbers(), breaks=True)


def test_an_event_around_a_compiled_function():
    """What a region has launched comes before an event that is recorded behind it."""
    x, side = numbers(), torch.cuda.Stream()
    compiled = oxyfuel.compile(lambda x: (x * 2).sin().cumsum(0))
    for call in range(CALLS):
        torch.cuda._sleep(2_000_000)
        y = compiled(x + call)
        event = torch.cuda.Event()
        event.record()
        with torch.cuda.stream(side):
            side.wait_event(event)
            z = y + 1
        torch.cuda.current_stream().wait_stream(side)
        # Eager adds in another order, and errors grow with the length of the sums.
        torch.testing.assert_close(z, ((x + call) * 2).sin().cumsum(0) + 1, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("inside", [False, True])
def test_training_on_another_stream(inside):
    """Forward and backward pass run on the stream that is current, or on one that the function enters."""
    side, results = torch.cuda.Stream(), []
    for compile in (lambda f: f, oxyfuel.compile):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8)).to(CUDA)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def forward(x):
            if not inside:
                return model(x)
            with torch.cuda.stream(side):
                return model(x)

        forward = compile(forward)
        losses = []
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(CALLS):
                x = torch.linspace(-1, 1, 32 * 64, device=CUDA).view(32, 64)
                optimizer.zero_grad()
                loss = forward(x).square().mean()
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        torch.cuda.current_stream().wait_stream(side)
        results.append((losses, [p.detach() for p in model.parameters()]))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
    assert oxyfuel.metrics()["calls_eager"] == 0
