"""What the comparison of random programs takes for right although eager has another answer, and what not."""

import dataclasses
import re

import pytest
import torch
from observation import Observation, difference, errors_of_eager, gradients_overlap, observe, saves_more, value_difference

import eager_kernels
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


def test_texts_of_errors_that_memory_decides():
    """PyTorch reads the size of a dimension that a number does not have."""
    number, empty = "select() cannot be applied to a 0-dim tensor.", "index -1 is out of bounds for dimension 0 with size 0"
    assert difference(raised(number), raised(empty)) is None
    assert difference(raised(empty), raised(number)) is None
    assert difference(raised(number), raised("index -1 is out of bounds for dimension 1 with size 0")) is not None
    assert difference(raised(number), raised("Dimension out of range")) is not None
    assert difference(raised(empty), raised("index -1 is out of bounds for dimension 0 with size 3")) is not None

    shape, shared = "output with shape [1, 4] doesn't match the broadcast shape [4, 4]", "unsupported operation: some elements of the input"
    assert difference(raised(shape), raised(shared), all_strides=False) is None
    assert difference(raised(shape), raised(shared)) is not None
    assert difference(raised(shape), raised("output with shape [1] is wrong"), all_strides=False) is not None


# --- sums that cancel


def program_of(inputs, lines, sizes=([1],), mode="no_grad", backward=(), dynamic=None):
    def line(text):
        return Line(text, text.split(" = ")[0], frozenset(re.findall(r"\b[av]\d+\b", text.split(" = ")[1])))

    return Program(seed=0, sizes=list(sizes), inputs=[line(i) for i in inputs], lines=[line(i) for i in lines], outputs=[lines[-1].split(" = ")[0]], mode=mode, backward=list(backward), dynamic=dynamic)


CANCELLING = {
    "what a norm centres": (["a0 = values(3, (40, 9, 31), f32)"], ["v0 = F.batch_norm(a0, None, None, training=True)", "v1 = (v0 + v0).sum().item() + v0"], 2e-3),
    "a divergence of equals": (["a0 = values(3, (100, 100), bf16)"], ["v0 = F.kl_div(a0.log_softmax(-1), a0.softmax(-1), reduction='batchmean')"], 0.1),
    "a norm of nearly equal numbers": (["a0 = values(3, (129, 65, 65), f32)"], ["v0 = F.cosine_similarity(a0, a0 + 1, 0)", "v1 = F.batch_norm(v0, None, None, training=True)"], 2e-3),
}


def compiled_as(monkeypatch, function):
    """The compiled program gives what `function` makes of eager's results."""
    monkeypatch.setattr(graphs.oxyfuel, "compile", lambda module, **settings: lambda *args: tuple(function(t) for t in module(*args)))


def on_other_path(monkeypatch, error):
    """The compiled program gives the exact result, and `error` of the largest element on top: no better luck, and no worse, than a sum has."""
    monkeypatch.setattr(graphs.oxyfuel, "compile", lambda module, **settings: lambda *args: in_double(module, args, error))


def in_double(module, args, error):
    own = module(*args)
    with graphs._default_float64():
        return tuple((exact + error).to(t.dtype) for t, exact in zip(own, module(*(a.double() for a in args))))


@pytest.mark.parametrize("name", CANCELLING)
def test_the_condition_of_a_sum_counts(name, monkeypatch):
    inputs, lines, wrong = CANCELLING[name]
    program = program_of(inputs, lines)
    assert graphs.check(program) is None
    runs = [graphs._with_moved_inputs(program, 0, trial) for trial in range(graphs.MOVED_RUNS)]
    noise = errors_of_eager(runs)[1][0]
    assert 0 < noise < wrong / 5
    on_other_path(monkeypatch, 1.9 * noise)
    assert graphs.check(program) is None
    for error in (wrong, -wrong, 1.0):
        on_other_path(monkeypatch, error)
        assert "differ" in graphs.check(program)


def test_a_well_conditioned_sum_has_no_excuse(monkeypatch):
    program = program_of(["a0 = values(3, (40, 300), f32)"], ["v0 = a0.square().sum(1)"])
    assert graphs.check(program) is None
    compiled_as(monkeypatch, lambda t: t * (1 + 1e-4))
    assert "differ" in graphs.check(program)
    compiled_as(monkeypatch, lambda t: torch.cat([t[:-1], t[-1:] + 0.25]))  # the last element alone
    assert "differ" in graphs.check(program)


def test_what_the_program_rounds_to_float32_has_its_errors(monkeypatch):
    program = program_of(["a0 = values(3, (8, 5), i64)", "a1 = values(4, (7, 5), f32)", "a2 = values(5, (8, 7), f64)"], ["v0 = F.linear(a0.float(), a1).tanh()", "v1 = torch.hypot(v0, a2)"])
    assert not graphs._in_float64(program, 0).raised
    for error, found in ((1e-6, False), (1e-3, True)):
        compiled_as(monkeypatch, lambda t, error=error: t * (1 + error))
        assert bool(graphs.check(program)) == found


def test_what_is_seen_as_bits_has_no_history_in_float64():
    """heaviside has no derivative, and nothing asks for one behind integers."""
    lines = ["v0 = (a0 * 2).view(i32).view(f32)", "v1 = torch.heaviside(v0, v0)"]
    passes = ["torch.autograd.backward(*carry(outputs, [('v1', 596, 'plain')]))"]
    program = program_of(["a0 = leaf(values(3, (5, 5), f32))"], lines, mode="grad", backward=passes)
    assert not graphs._in_float64(program, 0).raised


def test_gradients_that_eager_lets_share_elements():
    """Eager adds the second pass to both gradients at once, since the first one was one element seen twice."""

    def gradients(tangent):
        a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        result = torch.vstack([a, b])
        result.backward(tangent, retain_graph=True)
        result.backward(torch.tensor([[5.0], [7.0]]))
        return result, a.grad, b.grad

    assert gradients_overlap(observe(lambda: gradients(torch.ones(1, 1).expand(2, 1)), []), 1)
    assert not gradients_overlap(observe(lambda: gradients(torch.ones(2, 1)), []), 1)


def test_a_copy_in_another_type_is_one_in_float64():
    """Written to, it is no leaf."""
    program = dataclasses.replace(program_of(["a0 = leaf(values(3, (5, 5), f32))"], ["v0 = a0.to(f16)", "v1 = v0.exp_()"]), mode="grad")
    assert not graphs._in_float64(program, 0).raised


def test_random_numbers_of_float64_may_be_those_of_float32(monkeypatch):
    program = program_of(["a0 = values(3, (8, 5), f32)", "a1 = values(4, (7, 5), f32, special=True)"], ["v0 = torch.zeros_like(a0)", "v1 = F.gelu(F.linear(v0.normal_(), a1))"])
    assert graphs.check(program) is None
    compiled_as(monkeypatch, lambda t: t.nan_to_num(0, 0, 0))
    assert "differ" in graphs.check(program)
    for draw in (lambda t: torch.empty_like(t).normal_(), lambda t: torch.empty_like(t).uniform_(), torch.rand_like, torch.randn_like, lambda t: torch.randn(3, 4, dtype=t.dtype)):
        torch.manual_seed(0)
        narrow = draw(torch.zeros(20))
        with eager_kernels.NarrowDraws():
            torch.manual_seed(0)
            wide = draw(torch.zeros(20, dtype=torch.float64))
        assert wide.dtype == torch.float64 and torch.equal(wide, narrow.double())


# --- the sign of what is no number


SIGNS = (["v0 = torch.maximum(a0, a0)", "v1 = v0.signbit()"], ["v0 = torch.copysign(a1, a0[:1].abs())"], ["v0 = a1 % a0", "v1 = (torch.copysign(a1, v0.abs())).clamp(-60, 60)"], ["v0 = torch.fmod(a1, a0)", "v1 = v0.signbit()"])


@pytest.mark.parametrize("lines", SIGNS)
def test_the_sign_of_nan_is_not_compared(lines, monkeypatch):
    program = program_of(["a0 = values(3, (40, 8), f32, special=True)", "a1 = values(4, (40, 8), f32)"], lines)
    assert graphs.check(program) is None
    defined = graphs.load(graphs._without_signs_of_nan(program))["Program"]()

    def turning(module, **settings):
        """What the sign of no number decides comes out the other way."""
        return lambda *args: tuple(torch.where(told == right, right, ~right if right.dtype == torch.bool else -right) for told, right in zip(defined(*args), module(*args)))

    monkeypatch.setattr(graphs.oxyfuel, "compile", turning)
    assert graphs.check(program) is None


@pytest.mark.parametrize("lines", SIGNS)
def test_other_signs_are_compared(lines, monkeypatch):
    program = program_of(["a0 = values(3, (40, 8), f32, special=True)", "a1 = values(4, (40, 8), f32)"], lines)
    compiled_as(monkeypatch, lambda t: ~t if t.dtype == torch.bool else -t)
    assert "differ" in graphs.check(program)


# --- what eager itself cannot do


def test_a_program_that_asks_for_too_much_memory_is_not_compared(monkeypatch):
    program = program_of(["a0 = values(3, (D[0], D[0], 1, D[0]), f32)"], ["v0 = torch.fmax(a0, a0[..., None])"], sizes=([2], [2], [129]))
    calls = []
    compile = graphs.oxyfuel.compile

    def counted(module, **settings):
        compiled = compile(module, **settings)
        return lambda *args: calls.append(args[0].shape[0]) or compiled(*args)

    monkeypatch.setattr(graphs.oxyfuel, "compile", counted)
    assert graphs.check(program) is None
    assert calls == [2, 2]


def test_a_checkpoint_that_eager_cannot_run_again():
    again = ["[leaf.requires_grad_(False) for leaf in leaves]", "torch.autograd.backward(*carry(outputs, [('v0', 596, 'plain')]))"]
    program = program_of(["a0 = leaf(values(3, (8, 33), f32))"], ["v0 = torch.utils.checkpoint.checkpoint(torch.sin, a0, use_reentrant=False)"], mode="grad", backward=again)
    assert graphs.check(program) is None
    plain = dataclasses.replace(program, backward=again[1:])
    assert graphs.check(plain) is None
    error = raised("A different number of tensors was saved")
    error.raised = ("CheckpointError", error.raised[1])
    assert saves_more(error, Observation(None, None, [], [], []))
    assert not saves_more(error, raised("another one"))


def test_a_gradient_of_zeros_that_eager_cannot_add_to():
    zeros = raised("ZeroTensors are immutable. Please use the materialized zero tensor obtained using .clone()")
    assert saves_more(zeros, Observation(None, None, [], [], []))
    assert not saves_more(zeros, raised("another one")) and not saves_more(raised("another one"), zeros)


def test_a_part_of_a_split_that_eager_saved_was_written_to():
    part = raised("Output 1 of Split is a view and its base or another view of its base has been modified inplace.")
    written = raised("one of the variables needed for gradient computation has been modified by an inplace operation")
    assert saves_more(part, written) and saves_more(part, Observation(None, None, [], [], []))
    assert not saves_more(part, raised("another one")) and not saves_more(written, part)
