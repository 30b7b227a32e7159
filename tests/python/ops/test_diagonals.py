"""What is put on a diagonal, in a tensor of its own: eager's kernels copy the storage behind the tensor."""

import pytest
import torch

import oxyfuel

PLACES = [((4, 5), 0, 1), ((3, 4, 5), 0, 2), ((3, 4, 5), 2, 1), ((2, 3, 4, 4), -1, 1), ((0, 3), 0, 1)]


def numbers(sizes, dtype):
    return (torch.randn(sizes) * 3).to(dtype)


def same(actual, expected):
    assert actual.dtype == expected.dtype and actual.stride() == expected.stride()
    assert actual.untyped_storage().nbytes() == expected.untyped_storage().nbytes()
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("offset", [-2, 0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.complex64], ids=str)
def test_diagonals_are_written(dtype, offset, dynamic):
    def scattered(x, part):
        return torch.diagonal_scatter(x + x, part, offset, *dims)

    def written(x, part):
        x = x + x
        x.diagonal(offset, *dims).copy_(part)
        return x

    def embedded(x, part):
        return torch.diag_embed(part, offset, -1, 0)

    for sizes, *dims in PLACES:
        x = numbers(sizes, dtype)
        part = numbers(x.diagonal(offset, *dims).shape, dtype)
        for program in (scattered, written, embedded):
            oxyfuel.reset()
            same(oxyfuel.compile(program, dynamic=dynamic)(x, part), program(x, part))


@pytest.mark.parametrize("offset", [-1, 0, 2])
def test_gradients_of_diagonals(offset):
    def program(x):
        return x.diagonal(offset, 2, 0).square().sum() + torch.diag_embed(x, offset).sin().sum()

    x = torch.randn(3, 4, 5, requires_grad=True)
    torch.testing.assert_close(torch.autograd.grad(oxyfuel.compile(program)(x), x), torch.autograd.grad(program(x), x))


def test_an_empty_result_has_no_memory():
    def program(x):
        made = x.sin()
        made.diagonal().fill_(1)
        return made, made.unbind(-1)[0], torch.cat([x.t(), x.t()], 0).half()

    for result in oxyfuel.compile(program)(torch.ones(0, 1)):
        assert result.untyped_storage().nbytes() == 0
