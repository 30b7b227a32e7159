"""Recordings with symbolic sizes, beside the same programs on numbers."""

import itertools
import random

import pytest
import torch
import torch.nn.functional as F
from tracing import CannotTrace, Recorder


def record(function, named_tensors):
    """named_tensors: name -> (tensor, the dimensions whose sizes are symbols)."""
    recorder = Recorder(True)
    try:
        result = function(*[recorder.add_symbolic_input(t, name, dims) for name, (t, dims) in named_tensors.items()])
        recording = recorder.finish(list(result) if isinstance(result, (list, tuple)) else [result])
        return recorder, recording
    except BaseException:
        recorder.close()
        raise


def compare_at(recorder, recording, function, tensors, values):
    numbers = recording.with_numbers(values)
    assert numbers.wrong_metadata(tensors, for_all_sizes=True) == [], (values, recorder.guards(), recording.text())
    expected = function(*tensors)
    expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    for ours, theirs in zip(numbers.run(tensors), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


W, B = torch.randn(5, 4), torch.randn(5)
PROGRAMS = {
    "pointwise": lambda x: (x * 2 + 1).relu(),
    "mlp": lambda x: F.linear(F.linear(x, W, B).relu(), W.t()),
    "softmax": lambda x: x.softmax(-1),
    "layer norm": lambda x: F.layer_norm(x, (4,)),
    "views": lambda x: x.transpose(0, 1).unsqueeze(0).permute(0, 2, 1),
    "flat": lambda x: x.reshape(-1),
    "flat of a transposed one": lambda x: x.transpose(0, 1).reshape(-1),
    "heads": lambda x: x.view(-1, 2, 2).transpose(0, 1).contiguous(),
    "mean": lambda x: x.mean(0) + x.sum(-1).max(),
    "cat": lambda x: torch.cat([x, x * 2], 0),
    "stack": lambda x: torch.stack([x, x], 1),
    "slice": lambda x: x[1:],
    "slice to": lambda x: x[:2],
    "last": lambda x: x[-1] + x[0],
    "chunk": lambda x: x.chunk(2, 1)[1],
    "expand": lambda x: x.unsqueeze(0).expand(3, -1, -1).sum(0),
    "broadcast": lambda x: x + x[:1],
    "outer": lambda x: x.unsqueeze(1) - x.unsqueeze(0),
    "gram": lambda x: x @ x.t(),
    "attention": lambda x: (x @ x.t() / 2).softmax(-1) @ x,
    "zeros like": lambda x: torch.zeros_like(x) + torch.ones_like(x),
    "where": lambda x: torch.where(x > 0, x, x.mean()),
    "cumsum": lambda x: x.cumsum(0),
    "pad": lambda x: F.pad(x, (1, 2)),
    "flip": lambda x: x.flip(0),
    "gelu": lambda x: F.gelu(x) * torch.sigmoid(x),
}


@pytest.mark.parametrize("size", [8, 3, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_right_for_all_sizes_that_satisfy_the_guards(name, size):
    function = PROGRAMS[name]
    with torch.no_grad():
        recorder, recording = record(function, {"x": (torch.randn(size, 4), [0])})
        print(name, recorder.guards())
        assert recorder.holds([size])
        served = [n for n in (0, 1, 2, 3, 5, 8, 17) if recorder.holds([n])]
        for n in served:
            compare_at(recorder, recording, function, [torch.randn(n, 4)], [n])
    assert size in served


def test_what_returns_its_argument_for_a_batch_of_one_is_guarded():
    """Eager's contiguous() gives the tensor itself or a copy, which writes would tell apart."""
    with torch.no_grad():
        recorder, _ = record(PROGRAMS["heads"], {"x": (torch.randn(1, 4), [0])})
        assert recorder.guards() == ["x.size(0) == 1 or x.size(0) == 0"]
        recorder, _ = record(PROGRAMS["heads"], {"x": (torch.randn(8, 4), [0])})
        assert recorder.guards() == ["2 <= x.size(0)"]
        # A sum of it shares memory with nothing.
        recorder, _ = record(lambda x: PROGRAMS["heads"](x) + 1, {"x": (torch.randn(8, 4), [0])})
        assert recorder.guards() == []


@pytest.mark.parametrize("program, other, guards", [
    (lambda x, y: x + y, 8, ["x.size(0) == y.size(0)"]),
    (lambda x, y: x + y, 1, ["y.size(0) == 1"]),
    (lambda x, y: torch.cat([x, y]), 3, []),
    (lambda x, y: x @ y.t(), 3, []),
    (lambda x, y: x.t() @ y, 8, ["x.size(0) == y.size(0)"]),
    (lambda x, y: x.unsqueeze(1) + y, 3, []),
    (lambda x, y: x[:3] * y[:3], 8, None),
])
def test_two_sizes(program, other, guards):
    with torch.no_grad():
        recorder, recording = record(program, {"x": (torch.randn(8, 4), [0]), "y": (torch.randn(other, 4), [0])})
        assert guards is None or recorder.guards() == guards, recorder.guards()
        served = [v for v in itertools.product((0, 1, 2, 3, 5, 8), repeat=2) if recorder.holds(list(v))]
        assert (8, other) in served
        for values in served:
            compare_at(recorder, recording, program, [torch.randn(n, 4) for n in values], list(values))


def test_sizes_that_do_not_fit_raise_as_in_eager():
    with torch.no_grad(), pytest.raises((RuntimeError, CannotTrace)):
        record(lambda x, y: x + y, {"x": (torch.randn(8, 4), [0]), "y": (torch.randn(3, 4), [0])})


STEPS = [
    lambda t: t.transpose(0, -1), lambda t: t.unsqueeze(0), lambda t: t.unsqueeze(-1), lambda t: t.reshape(-1),
    lambda t: t.flatten(0, 1) if t.dim() > 1 else t, lambda t: t * 2 + 1, lambda t: t.sum(0), lambda t: t.sum(-1, keepdim=True),
    lambda t: t + t[:1], lambda t: t[1:], lambda t: t[:2], lambda t: t[..., -1], lambda t: t.contiguous(),
    lambda t: torch.cat([t, t], -1), lambda t: t.softmax(-1), lambda t: t.expand(2, *(-1,) * t.dim()), lambda t: t.squeeze(0),
    lambda t: t.unflatten(0, (2, -1)), lambda t: t.flip(0), lambda t: t.cumsum(0), lambda t: t.narrow(0, 0, 1),
    lambda t: t.relu().t() if t.dim() == 2 else t, lambda t: torch.zeros_like(t) + t, lambda t: t.clone(),
]


@pytest.mark.parametrize("seed", range(10))
def test_random_programs_are_right_for_all_sizes_that_satisfy_the_guards(seed):
    print("seed", seed)
    choice = random.Random(seed)
    compared = refused = 0
    for _ in range(40):
        sizes = [choice.choice([1, 2, 3, 4, 6]) for _ in range(choice.randint(1, 3))]
        symbols = [d for d in range(len(sizes)) if choice.random() < 0.7]
        done, real = [], torch.randn(sizes)
        for step in (choice.choice(STEPS) for _ in range(choice.randint(1, 5))):
            try:
                real = step(real)
            except (RuntimeError, IndexError):
                continue
            done.append(step)

        def program(t, done=done):
            for step in done:
                t = step(t)
            return t

        with torch.no_grad():
            try:
                recorder, recording = record(program, {"x": (torch.randn(sizes), symbols)})
            except CannotTrace:
                refused += 1
                continue
            assert recorder.holds([sizes[d] for d in symbols])
            for values in itertools.product((0, 1, 2, 3, 4, 6, 7), repeat=len(symbols)):
                if recorder.holds(list(values)):
                    other = [dict(zip(symbols, values)).get(d, size) for d, size in enumerate(sizes)]
                    compare_at(recorder, recording, program, [torch.randn(other)], list(values))
                    compared += 1
    print("compared", compared, "refused", refused)
    assert compared > 100 and refused < 20


@pytest.mark.parametrize("name", ["pointwise", "mlp", "softmax", "layer norm", "views", "flat", "gelu", "where"])
def test_one_recording_serves_every_batch(name):
    with torch.no_grad():
        for size in (1, 8):
            recorder, _ = record(PROGRAMS[name], {"x": (torch.randn(size, 4), [0])})
            assert recorder.guards() == [], size
