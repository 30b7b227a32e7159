"""What the comparison of random programs takes for right although eager has another answer, and what not."""

import pytest
import torch
from observation import Observation, difference, value_difference

import graphs
from program import Line, Program


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("lost", [float("inf"), float("-inf"), float("nan")])
def test_a_value_that_only_eager_lost_to_rounding(dtype, lost):
    exact = torch.tensor([0.18657904749, -6.75, 3e4], dtype=torch.complex128 if dtype.is_complex else torch.float64)
    eager = exact.to(dtype)
    eager[0] = lost
    assert value_difference(eager, exact.to(dtype), exact) is None
    assert value_difference(eager, exact.to(dtype)) is not None  # nothing says who is right
    assert value_difference(eager, (exact * 1.2).to(dtype), exact) is not None
    assert value_difference(exact.to(dtype), eager, exact) is not None
    away = exact.clone()
    away[0] = float("nan")
    assert value_difference(exact.to(dtype), exact.to(dtype), away) is None


def clipped(text, rows):
    return Program(
        seed=0, sizes=[[rows, 8], [rows, 8]], mode="grad", outputs=["v0"], backward=["torch.autograd.backward(*carry(outputs, [('v0', 7, 'transposed')]))"],
        inputs=[Line("a0 = leaf(values(684 + call, (D[0], D[1]), f32))", "a0", frozenset()), Line("a1 = values(1 + call, (D[1],), f32, special=True)", "a1", frozenset())],
        lines=[Line(f"v0 = {text}", "v0", frozenset(["a0", "a1"]))],
    )


@pytest.mark.parametrize("rows", [1, 2, 5, 31])
@pytest.mark.parametrize("text", ["F.hardswish((a0 + a1).t())", "F.hardtanh(a0 * a1, -2, 2.5)", "F.relu6(a0[:, ::2] + a1[::2])", "F.hardtanh((a0 + a1).view(1, -1, 2, 2).to(memory_format=torch.channels_last))"])
def test_gradients_at_nan_are_those_of_vectorised_kernels(text, rows):
    assert graphs.check(clipped(text, rows)) is None


def test_other_gradients_of_these_are_compared(monkeypatch):
    compile = graphs.oxyfuel.compile
    monkeypatch.setattr(graphs.oxyfuel, "compile", lambda module, **settings: lambda *args: tuple(1.25 * t for t in compile(module, **settings)(*args)))
    assert "differ" in graphs.check(clipped("F.hardswish((a0 + a1).t())", 5))


def raised(text):
    return Observation(("RuntimeError", text), None, [], [], [])


def test_texts_of_errors_that_strides_decide():
    folded = "mat1 and mat2 shapes cannot be multiplied (7x2 and 1x65)"
    batched = "Expected size for first two dimensions of batch2 tensor to be: [7, 2] but got: [7, 1]."
    assert difference(raised(folded), raised(batched), all_strides=False) is None
    assert difference(raised(folded), raised(batched)) is not None
    place = "is out of bounds for dimension {} with size 2"
    assert difference(raised("index 8 " + place.format(1)), raised("index 29 " + place.format(1))) is None
    assert difference(raised("index 8 " + place.format(1)), raised("index 8 " + place.format(0))) is not None
    assert difference(raised(folded), raised("index 8 " + place.format(1)), all_strides=False) is not None
