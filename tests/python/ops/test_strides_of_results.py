"""Results have eager's strides, those of dimensions of size 1 and of elements that share memory included."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel


def pixel(rank):
    """One image position, in channels-last order as far as strides say."""
    return torch.empty_strided((2, 16) + (1,) * rank, (16, 1) + (16,) * rank).normal_()


def one_channel():
    return torch.randn(32, 32, 1).permute(0, 2, 1)


def image():
    return torch.randn(4, 3, 2, 5).to(memory_format=torch.channels_last)


PROGRAMS = {
    "ldexp of halves": (torch.ldexp, [torch.randn(5).half(), image().half()]),
    "ldexp of halves by numbers": (torch.ldexp, [torch.randn(5).bfloat16(), image()]),
    "ldexp by integers": (torch.ldexp, [torch.randn(5), image().int()]),
    "ldexp of halves by integers": (torch.ldexp, [torch.randn(()).half(), image().int()]),
    "ldexp": (torch.ldexp, [torch.randn(5), image()]),
    "windows of a result": (lambda x: (x * 2).unfold(0, 3, 1), [torch.randn(7)]),
    "an expanded constant": (lambda: torch.ones(3).expand(2, 3), []),
    "a convolution of one pixel": (lambda x, w: F.conv2d(x, w), [pixel(2), torch.randn(16, 16, 1, 1)]),
    "a convolution of one pixel, behind others": (lambda x, w: F.conv2d(torch.sin(x), w, torch.ones(16)), [pixel(2), torch.randn(16, 16, 1, 1)]),
    "a convolution of one voxel": (lambda x, w: F.conv3d(x, w), [pixel(3), torch.randn(16, 16, 1, 1, 1)]),
    "a convolution of lines with one channel": (lambda x, w: F.conv1d(x, w, padding=1), [one_channel(), torch.randn(1, 1, 2)]),
    "a convolution of computed lines": (lambda x, w: F.conv1d(x * 1.5, w, padding=1), [one_channel(), torch.randn(4, 1, 2)]),
}


@pytest.mark.parametrize("with_gradients", [False, True])
@pytest.mark.parametrize("freezing", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_strides(name, freezing, with_gradients):
    function, arguments = PROGRAMS[name]
    oxyfuel.reset()
    with torch.set_grad_enabled(with_gradients):
        expected = function(*arguments)
        actual = oxyfuel.compile(function, options={"freezing": freezing})(*arguments)
    torch.testing.assert_close(actual, expected)
    assert actual.stride() == expected.stride()
