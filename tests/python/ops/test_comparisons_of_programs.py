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


def of_one_input(*lines, dtype="f16"):
    texts = [f"v{k} = {text}" for k, text in enumerate(lines)]
    return Program(
        seed=0, sizes=[[6, 40]], mode="no_grad", outputs=[f"v{len(lines) - 1}"], backward=[],
        inputs=[Line(f"a0 = values(26 + call, (D[0], D[1]), {dtype}, special=True)" if dtype == "f32" else f"a0 = values(26 + call, (D[0], D[1]), {dtype})", "a0", frozenset())],
        lines=[Line(text, text.split(" ")[0], frozenset(["a0"])) for text in texts],
    )


def with_error(monkeypatch, error):
    compile = graphs.oxyfuel.compile
    monkeypatch.setattr(graphs.oxyfuel, "compile", lambda module, **settings: lambda *args: tuple(t + error for t in compile(module, **settings)(*args)))


@pytest.mark.parametrize(["error", "is_right"], [(0.0, True), (1e-3, True), (0.2, False)])
def test_sums_that_cancel_are_as_exact_as_what_is_added(monkeypatch, error, is_right):
    """The divergence of a distribution from itself is the sum of what its logarithms were rounded by, however exact the inputs are."""
    with_error(monkeypatch, error)
    found = graphs.check(of_one_input("F.kl_div(a0.log_softmax(-1), a0.softmax(-1), reduction='batchmean')"))
    assert (found is None) == is_right, found


def test_signs_of_nan_are_not_compared_and_others_are(monkeypatch):
    program = of_one_input("torch.maximum(a0, a0).signbit().float()", dtype="f32")
    assert graphs.check(program) is None
    with_error(monkeypatch, 1.0)
    assert "differ" in graphs.check(program)
