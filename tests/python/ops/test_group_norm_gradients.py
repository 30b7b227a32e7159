"""Gradients of group norms: made of sums over pixels, or by the host's own kernel where that is as fast."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

SIZES = {"images": (3, 12, 5, 7), "rows": (4, 6, 33), "no pixels": (5, 8), "volumes": (2, 4, 3, 2, 5), "one element": (2, 4, 1, 1)}
TOLERANCES = {torch.float32: 1e-4, torch.float64: 1e-10, torch.bfloat16: 5e-2}


def operands(sizes, dtype, layout):
    generator = torch.Generator().manual_seed(len(sizes))
    x, gradient = (torch.randn(sizes, generator=generator).to(dtype) for _ in range(2))
    if layout == "channels last" and len(sizes) in (4, 5):
        last = torch.channels_last if len(sizes) == 4 else torch.channels_last_3d
        x, gradient = x.to(memory_format=last), gradient.to(memory_format=last)
    if layout == "gradient in another":
        gradient = gradient.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "gradient expanded":
        gradient = gradient[:1, :1].expand(sizes)
    parameters = [torch.randn(sizes[1], generator=generator).to(dtype) for _ in range(2)]
    return [x, *parameters], gradient


def gradients(function, inputs, gradient, wanted):
    leaves = [t.detach().clone(memory_format=torch.preserve_format).requires_grad_(k in wanted) for k, t in enumerate(inputs)]
    return torch.autograd.grad(function(*leaves), [leaves[k] for k in wanted], gradient)


@pytest.mark.parametrize("layout", ["contiguous", "channels last", "gradient in another", "gradient expanded"])
@pytest.mark.parametrize("name", SIZES)
def test_gradients_are_eagers(name, layout):
    for dtype, tolerance in TOLERANCES.items():
        inputs, gradient = operands(SIZES[name], dtype, layout)
        function = lambda x, w, b: F.group_norm(x, 2, w, b)  # noqa: E731
        oxyfuel.reset()
        compiled = oxyfuel.compile(function)
        for wanted in ([0, 1, 2], [0], [1], [2], [0, 2]):
            if 0 not in wanted and layout == "channels last":
                continue  # eager ends with a fault: it writes to the gradient that is left out
            expected, actual = (gradients(f, inputs, gradient, wanted) for f in (function, compiled))
            for a, b in zip(actual, expected, strict=True):
                torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * max(1, b.abs().max().item()))
                assert a.stride() == b.stride()


def test_without_parameters():
    (x, *_), gradient = operands((3, 12, 5, 7), torch.float32, "contiguous")
    function = lambda x: F.group_norm(x, 3).relu()  # noqa: E731
    torch.testing.assert_close(gradients(oxyfuel.compile(function), [x], gradient, [0]), gradients(function, [x], gradient, [0]))


def test_sizes_that_change():
    function = lambda x, w, b: F.group_norm(x, 2, w, b)  # noqa: E731
    compiled = oxyfuel.compile(function)
    for batch, height, width in ((2, 8, 8), (3, 9, 5), (5, 4, 7)):
        inputs, gradient = operands((batch, 12, height, width), torch.float32, "contiguous")
        expected, actual = (gradients(f, inputs, gradient, [0, 1, 2]) for f in (function, compiled))
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    assert oxyfuel.metrics()["extern_calls"] == 0


def test_kernels_of_our_own():
    inputs, gradient = operands((3, 12, 5, 7), torch.bfloat16, "channels last")
    gradients(oxyfuel.compile(lambda x, w, b: F.group_norm(x, 2, w, b)), inputs, gradient, [0, 1, 2])
    assert oxyfuel.metrics()["extern_calls"] == 0
