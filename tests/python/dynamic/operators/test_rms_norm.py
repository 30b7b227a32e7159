"""rms_norm of tensors whose sizes are symbols."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

PROGRAMS = {
    "plain": lambda x, w: F.rms_norm(x, (4,)),
    "with an epsilon": lambda x, w: F.rms_norm(x * 3, (4,), None, 0.1),
    "with a weight": lambda x, w: F.rms_norm(x, (4,), w, 1e-6),
    "of the last sizes": lambda x, w: F.rms_norm(x, x.shape[-1:], w),
    "of two dimensions": lambda x, w: F.rms_norm(x, x.shape[-2:]),
    "turned": lambda x, w: F.rms_norm(x.transpose(0, 1), (4,), w),
    "of a part": lambda x, w: F.rms_norm(x[..., :2], (2,), w[:2]),
    "images": lambda x, w: F.rms_norm(x[None].transpose(1, 3), (2,)),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_serves_all_sizes(name, dtype, dynamic):
    oxyfuel.reset()
    program = PROGRAMS[name]
    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for length in (5, 7, 3, 6, 9):
        torch.manual_seed(length)
        values = torch.randn(2, length, 4, dtype=dtype), torch.randn(4, dtype=dtype)
        outcomes = []
        for function in (program, compiled):
            x, w = (value.clone().requires_grad_() for value in values)
            result = function(x, w)
            result.backward(torch.ones_like(result))
            outcomes.append((result, x.grad, w.grad))
        tolerance = {"rtol": 0.02, "atol": 0.01} if dtype == torch.bfloat16 else {}  # gradients near zero are sums
        torch.testing.assert_close(*outcomes, check_stride=True, **tolerance)
        with torch.no_grad():
            torch.testing.assert_close(compiled(*values), outcomes[0][0].detach(), check_stride=True, **tolerance)
    assert oxyfuel.metrics()["graphs"] <= 4, oxyfuel.metrics()["recompile_reasons"]


@pytest.mark.parametrize("shape", [(3,), (4, 4), (5, 3, 4, 4)], ids=str)
def test_other_shapes_are_eagers_error(shape):
    def program(x):
        return F.rms_norm(x, shape)

    compiled = oxyfuel.compile(program, dynamic=True)
    for length in (5, 6):
        x = torch.randn(2, length, 4)
        with pytest.raises((RuntimeError, ValueError)) as expected:
            program(x)
        with pytest.raises(expected.type) as raised:
            compiled(x)
        assert str(raised.value) == str(expected.value)


def test_a_module_whose_batch_and_length_are_marked():
    module = torch.nn.RMSNorm(8)
    x = torch.randn(2, 5, 8)
    oxyfuel.mark_dynamic(x, 0)
    oxyfuel.mark_dynamic(x, 1)
    compiled = oxyfuel.compile(module)
    torch.testing.assert_close(compiled(x), module(x))
    other = torch.randn(3, 6, 8)
    torch.testing.assert_close(compiled(other), module(other))
    assert oxyfuel.metrics()["graphs"] == 1
