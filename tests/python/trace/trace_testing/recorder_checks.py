"""Trace tensors and the recorder."""

import gc

import pytest
import torch
from torch import nn
from tracing import CannotTrace, Pause, Recorder, is_trace_tensor, record


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def x48():
    return torch.randn(4, 8)


READS_OF_DATA = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool(x.sum() > 0),
    "int": lambda x: int(x.sum()),
    "format": lambda x: f"{x.sum():.2f}",
    "numpy": lambda x: x.numpy(),
    "detached numpy": lambda x: x.detach().numpy(),
    "data_ptr": lambda x: x.data_ptr(),
    "tolist": lambda x: x.tolist(),
    "storage": lambda x: x.untyped_storage(),
    "dlpack": lambda x: torch.utils.dlpack.to_dlpack(x),
    "equal": lambda x: torch.equal(x, x),
    "allclose": lambda x: torch.allclose(x, x + 1),
    "contains": lambda x: 3 in x,
    # What repr() calls of a tensor with data. Releases differ in what they take a trace tensor for.
    "text": lambda x: torch._tensor_str._tensor_str(x, 0),
}
SIZES_OF_DATA = {
    "nonzero": lambda x: x.nonzero(),
    "boolean index": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.unique(),
}
STORAGE_CHANGES = {
    "resize_": lambda x: x.clone().resize_(2, 2),
    "set_": lambda x: x.clone().set_(torch.zeros(3)),
    "data": lambda x: setattr(x, "data", torch.zeros(2)),
    "metadata of an input": lambda x: x.t_(),
    "generator": lambda x: x + torch.randn(8, generator=torch.Generator()),
    "conj": lambda x: torch.complex(x, x).conj(),
}


@pytest.mark.parametrize("name", READS_OF_DATA | STORAGE_CHANGES)
def test_what_cannot_be_traced_says_so(name):
    function = (READS_OF_DATA | STORAGE_CHANGES)[name]
    with torch.no_grad(), pytest.raises(CannotTrace):
        record(function, x48())
    assert not is_trace_tensor(torch.ones(2))  # recording has ended


@pytest.mark.parametrize("name", SIZES_OF_DATA)
def test_a_size_that_data_decides_is_a_symbol(name):
    with torch.no_grad():
        text = record(SIZES_OF_DATA[name], x48()).text()
    assert "symbol u0 : id 0 in [0, 32]" in text and "-> u0 = size(0, 0)" in text


def test_except_exception_does_not_swallow_it():
    def function(x):
        try:
            return x.item()
        except Exception:
            return x

    with pytest.raises(CannotTrace, match="_local_scalar_dense"):
        record(function, torch.ones(()))


def test_a_program_error_is_eagers_own():
    with pytest.raises(RuntimeError, match="same reduction dim"):
        record(lambda x: x @ x, x48())


def literals(x, w):
    y = nn.functional.linear(x, w) * 2 + 1
    y = y + torch.arange(3) + torch.tensor([1.0, 2.0, 3.0]) + torch.tensor(2.0)
    z = y.clone()
    z[:, 1] = 0
    z.add_(1).relu_()
    return z.split(2, 0)[1], y


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_recorded_graph_computes_what_eager_does(mode):
    x, w = x48(), nn.Parameter(torch.randn(3, 8))
    with mode():
        recording = record(literals, x, w)
        recording.verify(False)
        assert recording.fallbacks == [] and recording.foreign_constants == []
        assert recording.wrong_metadata([x, w]) == []
        for got, want in zip(recording.run([x, w]), literals(x, w), strict=True):
            assert torch.equal(got, want)


def test_numbers_stay_numbers():
    text = record(lambda x: x * 2 + 1.5, x48()).text()
    assert "aten::mul.Tensor(%0, 2)" in text and "1.5" in text and "constant" not in text


def test_python_class_attributes_and_autograd_state():
    w = nn.Parameter(torch.randn(8, 8))
    w.tag = "mine"
    x, product = x48(), w * 2
    recorder = Recorder()
    p, t, inner = (recorder.add_input(tensor) for tensor in (w, x, product))
    try:
        assert type(p) is nn.Parameter and p.tag == "mine" and p.requires_grad and p.is_leaf
        assert type(t) is torch.Tensor and not t.requires_grad
        assert inner.requires_grad and not inner.is_leaf
        y = nn.functional.linear(t, p)
        assert y.requires_grad and y._version == 0
        v = y[0]
        v.mul_(2)
        assert v._base is y and y._version == 1 and "CopySlices" in str(y.grad_fn)
        with torch.no_grad():
            assert not (t @ p).requires_grad
        assert recorder.input_index(p) == 0 and recorder.input_index(p.detach()) == -1
        with pytest.raises(RuntimeError, match="leaf Variable"):
            p.add_(1)
    finally:
        recorder.close()


def test_gradients_are_recorded():
    def function(x, w):
        return torch.autograd.grad(nn.functional.conv2d(x, w).square().sum(), [w])

    x, w = torch.randn(2, 3, 8, 8), nn.Parameter(torch.randn(4, 3, 3, 3))
    recording = record(function, x, w, strict_shapes=False)
    recording.verify(False)
    torch.testing.assert_close(recording.run([x, w])[0], function(x, w)[0])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_autocast(mode):
    def function(x, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return nn.functional.linear(x, w), nn.functional.linear(x, w).softmax(-1)

    x, w = x48(), nn.Parameter(torch.randn(3, 8))
    with mode():
        got = record(function, x, w).run([x, w])
        assert [t.dtype for t in got] == [t.dtype for t in function(x, w)]
        assert all(torch.equal(a, b) for a, b in zip(got, function(x, w), strict=True))
    assert torch.is_autocast_cache_enabled()


def test_finaliser_on_real_tensors_runs_in_eager():
    seen = []

    class Finalised:
        def __init__(self):
            self.buffer = torch.zeros(3)

        def __del__(self):
            seen.append(self.buffer.add_(1).sum().item())

    victims = [Finalised()]

    def function(x):
        y = x + 1
        victims.clear()
        gc.collect()
        return y * 2

    recording = record(function, x48())
    assert seen == [3.0] and recording.operators == ["aten::add.Tensor", "aten::mul.Tensor"]


def test_pause_and_the_end_of_a_recording():
    x = x48()
    recorder = Recorder()
    t = recorder.add_input(x)
    with Pause():
        ones = torch.ones(8)
        assert not is_trace_tensor(ones)
        with pytest.raises(CannotTrace, match="outside its recording"):
            t + 1
    assert is_trace_tensor(torch.ones(8))
    recording = recorder.finish([t + ones])
    assert recording.foreign_constants == [0]
    with pytest.raises(CannotTrace, match="outside its recording"):
        t + 1
    with pytest.raises(CannotTrace, match="another recording"):
        record(lambda x: x + t, x48())


def test_writing_to_a_tensor_that_is_no_input():
    buffer = torch.zeros(4, 8)
    with pytest.raises(CannotTrace, match="no input"):
        record(lambda x: buffer.add_(x), x48())
    assert torch.equal(buffer, torch.zeros(4, 8))


def test_factories_do_not_depend_on_the_default_dtype_later():
    torch.set_default_dtype(torch.float64)
    try:
        recording = record(lambda x: x + torch.ones(8) + torch.arange(0.0, 8.0), x48())
        want = x48().double()
    finally:
        torch.set_default_dtype(torch.float32)
    assert recording.run([torch.zeros(4, 8)])[0].dtype == want.dtype


def test_outputs_that_share_a_value_are_tensors_of_their_own():
    recording = record(lambda x: (x, x.detach(), x.data), x48())
    assert recording.functionalise().outputs == [("input", 0)] * 3
    x = x48().requires_grad_()
    got = recording.run([x])
    assert got[0] is not got[1] and not got[1].requires_grad


@pytest.mark.parametrize("make", [
    lambda: torch.randn(3).to_sparse(),
    lambda: torch.randn(3, dtype=torch.cfloat).conj(),
    lambda: torch.zeros(3, dtype=torch.float8_e5m2),
])
def test_inputs_that_are_not_supported(make):
    tensor = make()
    recorder = Recorder()
    try:
        with pytest.raises(RuntimeError):
            recorder.add_input(tensor)
    finally:
        recorder.close()
