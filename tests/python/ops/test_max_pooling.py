"""Max pooling with and without indices, and its gradient: windows that overlap, holes, borders, NaN, ties and infinities."""

import itertools

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

WINDOWS = [
    (kernel, stride, padding, dilation, ceil_mode)
    for kernel, stride, padding, dilation, ceil_mode in itertools.product((2, 3, (3, 2), 5), (None, 1, 2, 3), (0, 1), (1, 2), (False, True))
    if 2 * padding <= (min(kernel) if isinstance(kernel, tuple) else kernel)
][::3]
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def image(dtype, layout):
    """With ties, a NaN, and a channel of negative infinity."""
    x = torch.randint(-3, 3, (2, 3, 9, 11), generator=torch.Generator().manual_seed(0)).to(dtype)
    x[0, 0, 2, 3] = float("nan")
    x[1, 1] = -float("inf")
    return x.contiguous(memory_format=LAYOUTS[layout]).requires_grad_()


def results_and_gradient(function, x):
    x.grad = None
    results = function(x)
    results = results if isinstance(results, tuple) else (results,)
    values = results[0]
    values.backward(torch.arange(values.numel(), dtype=torch.float64).view(values.shape).to(values.dtype) % 7)
    return [*results, x.grad]


def check_same(function, x):
    expected = results_and_gradient(function, x)
    actual = results_and_gradient(oxyfuel.compile(function), x)
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)  # gradients are sums of small integers
        assert a.stride() == b.stride()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_values_indices_and_gradients(dtype, layout):
    for kernel, stride, padding, dilation, ceil_mode in WINDOWS:

        def with_indices(x, *window, ceil_mode=ceil_mode):
            return F.max_pool2d(x * 1, *window, ceil_mode=ceil_mode, return_indices=True)

        oxyfuel.reset()
        check_same(lambda x, w=(kernel, stride, padding, dilation): with_indices(x, *w), image(dtype, layout))
        check_same(lambda x, w=(kernel, stride, padding, dilation): with_indices(x, *w)[0], image(dtype, layout))


def test_kernels_of_our_own():
    oxyfuel.reset()
    check_same(lambda x: F.max_pool2d(x.relu(), 3, 2, 1), image(torch.float32, "channels_last"))
    metrics = oxyfuel.metrics()
    assert metrics["extern_calls"] == 0 and metrics["kernels"] > 0


def test_images_of_several_sizes_share_a_graph():
    oxyfuel.reset()
    compiled = oxyfuel.compile(lambda x: F.max_pool2d(x, 3, 2, 1), dynamic=True)
    for height, width in ((8, 9), (15, 7), (32, 33)):
        x = torch.randn(2, 3, height, width, requires_grad=True)
        for a, b in zip(results_and_gradient(compiled, x), results_and_gradient(lambda x: F.max_pool2d(x, 3, 2, 1), x), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
    assert oxyfuel.metrics()["graphs"] == 1


def test_indices_from_another_region():
    oxyfuel.reset()
    values, indices = F.max_pool2d(torch.randn(2, 3, 8, 10), 2, return_indices=True)
    compiled = oxyfuel.compile(lambda v, i: F.max_unpool2d(v, i, 2))
    torch.testing.assert_close(compiled(values, indices), F.max_unpool2d(values, indices, 2))


def test_an_image_without_a_batch():
    oxyfuel.reset()
    check_same(lambda x: F.max_pool2d(x[0], 3, 2, 1), image(torch.float32, "contiguous"))


def test_an_image_that_is_constant():
    oxyfuel.reset()

    def positions(x):
        return x + F.max_pool2d(torch.arange(48.0).view(1, 1, 6, 8), 2)

    x = torch.randn(2, 3, 3, 4)
    torch.testing.assert_close(oxyfuel.compile(positions)(x), positions(x))
