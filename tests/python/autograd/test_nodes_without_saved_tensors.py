"""A second backward pass is an error where eager's node has saved a tensor, which its class alone does not say."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

A, B = torch.randn(17, 3), torch.rand(17, 3) + 0.5
PROGRAMS = {
    "addcmul": lambda x: torch.addcmul(x, A, B, value=0.5),
    "addcdiv": lambda x: torch.addcdiv(x, A, B, value=2),
    "addmm": lambda x: torch.addmm(x, A, B.t()),
    "baddbmm": lambda x: torch.baddbmm(x, A[None], B.t()[None]),
    "addmv": lambda x: torch.addmv(x, A, B[0]),
    "lerp": lambda x: torch.lerp(x, A, 0.3),
    "factor": lambda x: x * A,
    "divisor": lambda x: A / x,
    "dividend": lambda x: x / B,
    "where": lambda x: torch.where(A > 0, x, B),
    "masked": lambda x: (x + A).masked_fill(B > 1, 2.0),
    "index": lambda x: (x + A)[:, [0, 2]],
    "copied": lambda x: (x + A).clone().index_copy(0, torch.tensor([1]), B[:1]),
    "bias": lambda x: F.linear(A, B, x.expand(17)),
    "convolution's bias": lambda x: F.conv1d(A[None], B[:, :, None].expand(17, 3, 1).transpose(0, 1).reshape(3, 17, 1), x.expand(3)),
    "atan2": lambda x: torch.atan2(x, A),
    "hypot": lambda x: torch.hypot(x, A),
    "maximum": lambda x: torch.maximum(x, A),
    "power": lambda x: x**2,
    "power of a constant": lambda x: 2**x,
    "fmod": lambda x: torch.fmod(x, B),
    "sum of both": lambda x: torch.addcmul(x, A, B) + x.exp(),
    "two results": lambda x: (torch.addcmul(x, A, B), x.sin()),
    "stacked": lambda x: torch.stack([x + 1, x * 2]),
    "repeated": lambda x: x.repeat(3),
}


def outcomes(f):
    x = torch.tensor(0.7).requires_grad_()
    results = f(x)
    results = results if isinstance(results, tuple) else (results,)
    seen = []
    for result in (*results, *results[::-1]):
        try:
            result.backward(torch.ones_like(result))
        except RuntimeError as error:
            seen.append(str(error)[:60])
        seen.append(x.grad.clone())
    return seen


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_second_pass(name, dynamic):
    expected, actual = outcomes(PROGRAMS[name]), outcomes(oxyfuel.compile(PROGRAMS[name], dynamic=dynamic))
    assert [type(seen) for seen in actual] == [type(seen) for seen in expected], actual
    for a, b in zip(actual, expected):
        assert a == b if isinstance(a, str) else torch.allclose(a, b, rtol=1e-5, atol=1e-4)  # sums of 51 numbers of both signs
