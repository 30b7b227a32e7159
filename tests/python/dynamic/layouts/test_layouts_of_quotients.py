"""Sizes that are quotients: what becomes known of them leaves results with eager's strides."""

import pytest
import torch
import torch.nn.functional as F
from size_checks import compiles, same

import oxyfuel

PROGRAMS = {
    "pixels to channels": lambda x: F.pixel_unshuffle(x, 2).neg(),
    "with a number": lambda x: torch.maximum(F.pixel_unshuffle(x, 2), x.mean()),
    "halves": lambda x: (x.unflatten(2, (2, -1)).select(2, 0) + 1).unflatten(3, (2, -1)).select(3, 1).sigmoid(),
    "read twice": lambda x: (F.pixel_unshuffle(x, 2) * 2).permute(0, 2, 3, 1).exp(),
}
SIZES = [(4, 7, 4, 4), (2, 3, 8, 6), (3, 5, 6, 10), (3, 5, 2, 6)]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("name", PROGRAMS)
def test_strides_are_those_of_eager(name, layout, dynamic):
    program = PROGRAMS[name]
    compiled = oxyfuel.compile(program, dynamic=dynamic, options={"recompile_limit": 16})
    for size in SIZES:
        x = torch.randn(size).to(memory_format=layout)
        same(compiled(x), program(x))


def test_a_quotient_that_is_one():
    def program(x, y):
        return torch.remainder(x.reshape(63, -1), y)

    compiled = oxyfuel.compile(program, dynamic=True)
    y = torch.ones(1, 1, 3, dtype=torch.float64).permute(2, 1, 0)
    for size in (63, 126, 63, 189):
        x = torch.randn(size)
        same(compiled(x, y), program(x, y))


@pytest.mark.parametrize("name", PROGRAMS)
def test_even_sizes_are_compiled_once(name):
    compiled = oxyfuel.compile(PROGRAMS[name], dynamic=True)

    def calls():
        for size in SIZES[:3]:
            compiled(torch.randn(size).to(memory_format=torch.channels_last))

    assert compiles(calls) == 1
