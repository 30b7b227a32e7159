"""What eager's backward formulas reduce is read when they run: writes through `.data` before the backward pass show in gradients."""

import pytest
import torch

import oxyfuel

OF_A_ROW = {
    "aminmax": lambda x: torch.aminmax(x, dim=-1, keepdim=True)[0],
    "aminmax of all": lambda x: torch.aminmax(x)[1],
    "amax": lambda x: x.amax(-1),
    "amin of all": lambda x: x.amin(),
    "max": lambda x: x.max(),
    "min": lambda x: x.min() * 1,
    "norm": lambda x: x.norm(dim=-1),
    "largest norm": lambda x: torch.linalg.vector_norm(x, float("inf"), dim=-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "softmax": lambda x: x.softmax(-1),
    "prod": lambda x: x.prod(-1),
    "std": lambda x: x.std(-1),
    "var": lambda x: x.var(-1),
    "median": lambda x: x.median(-1)[0],
}
BEFORE = {"a leaf": lambda x: x, "made": lambda x: (x.abs() + 0.5).reciprocal(), "a view": lambda x: (x + 1).view(-1, 2)}


def outcome(function, write):
    x = (torch.arange(24.0).reshape(4, 6) * 7 % 11 - 5).requires_grad_()
    result = function(x)
    write(x, result)
    result.backward(torch.ones_like(result), retain_graph=True)
    first = x.grad.clone()
    result.backward(torch.ones_like(result) * 2)
    return first, x.grad


WRITES = {
    "the result": lambda x, result: result.data.mul_(2),
    "the result twice": lambda x, result: (result.data.add_(1), result.data.sub_(0.5)),
    "nothing": lambda x, result: None,
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", OF_A_ROW)
def test_results_written_to(name, before, write):
    f = lambda x: OF_A_ROW[name](BEFORE[before](x))  # noqa: E731
    for dynamic in (None, True):
        oxyfuel.reset()
        torch.testing.assert_close(outcome(oxyfuel.compile(f, dynamic=dynamic), WRITES[write]), outcome(f, WRITES[write]), equal_nan=True)


@pytest.mark.parametrize("name", OF_A_ROW)
def test_arguments_written_to(name):
    write = lambda x, result: x.data.mul_(-1)  # noqa: E731
    f = OF_A_ROW[name]
    torch.testing.assert_close(outcome(oxyfuel.compile(f), write), outcome(f, write), equal_nan=True)
