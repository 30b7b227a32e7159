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
    assert numbers.wrong_metadata(tensors) == [], (values, recorder.guards(), recording.text())
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
    assert size in served or size not in (0, 1, 2, 3, 5, 8, 17)


@pytest.mark.parametrize("name", ["pointwise", "mlp", "softmax", "layer norm", "views", "flat", "heads", "gelu", "where"])
def test_one_recording_serves_every_batch(name):
    with torch.no_grad():
        for size in (1, 8):
            recorder, _ = record(PROGRAMS[name], {"x": (torch.randn(size, 4), [0])})
            assert recorder.guards() == [], size
