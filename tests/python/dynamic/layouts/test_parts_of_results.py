"""Views of what a region computes, returned: their memory is theirs alone, also where PyTorch makes the view when the region runs."""

import pytest
import torch
import torch.nn.functional as F
from size_checks import same

import oxyfuel


def diagonal_beside_the_copied(x, index):
    made = x.clamp(-4, 4).expm1()
    copy = made.to(torch.float32, copy=True)
    part = copy.diagonal(0)
    chosen = F.prelu(copy, copy.mean().reshape(1))
    chosen.index_add_(-1, index, chosen.index_select(-1, index))
    return made, part


PROGRAMS = {
    "a diagonal beside what it was copied from": diagonal_beside_the_copied,
    "complex numbers": lambda x, index: torch.view_as_complex((x * 2).unflatten(1, (-1, 2))),
    "their diagonal": lambda x, index: torch.view_as_complex((x * 2).unflatten(1, (-1, 2))).diagonal(),
    "bits": lambda x, index: (x * 2).view(torch.int64),
    "a diagonal, and what needs memory behind it": lambda x, index: (lambda y: (y, (x.sin() @ x.t()).sort()[0] + y.abs().sum()))(torch.view_as_complex((x * 2).unflatten(1, (-1, 2))).diagonal()),
}


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("dynamic", [False, None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_else_is_written_there(name, dynamic, mode):
    program = PROGRAMS[name]
    compiled = oxyfuel.compile(program, dynamic=dynamic)
    with mode():
        for rows in (4, 7, 300):
            x, index = torch.randn(rows, 64), torch.randint(0, 64, (3,))
            expected = program(x, index)
            actual = compiled(x, index)
            others = [torch.randn(rows, 64) for _ in range(8)]  # memory of the same sizes, if any was given back
            compiled(torch.randn(rows, 64), index)
            same(actual, expected)
            assert len(others) == 8


HALVES = {
    "of a convolution": lambda x, w: (F.conv1d(x, w, padding=1) * 2).tensor_split(2, 2)[1],
    "of a convolution, across": lambda x, w: (F.conv1d(x, w, padding=1) * 2).chunk(2, 2)[0].transpose(0, 2),
    "of what is padded": lambda x, w: F.pad(x.sin(), (1, 2))[:, x.size(1) // 2 :, : (x.size(2) + 3) // 2],
}


@pytest.mark.parametrize("dynamic", [False, None, True])
@pytest.mark.parametrize("name", HALVES)
def test_a_part_alone_has_the_strides_of_the_whole(name, dynamic):
    compiled = oxyfuel.compile(HALVES[name], dynamic=dynamic)
    for length, channels in ((17, 63), (5, 8), (30, 9)):
        x, w = torch.randn(4, channels, length), torch.randn(2, channels, 3)
        same(compiled(x, w), HALVES[name](x, w))
