"""One kernel with symbols for all sizes: those at hand when it was compiled, whole and partial vectors, one element and none."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

SIZES = [0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 48, 64, 70]

# A function, and the sizes of its arguments for three numbers.
PROGRAMS = {
    "roll of rows": (lambda x: x.roll((1, 2), (0, 1)) * 2, lambda a, b, c: [(a, b, c)]),
    "roll of columns": (lambda x: x.roll(-3, 2) + 1, lambda a, b, c: [(a, b, c)]),
    "roll by more than the size": (lambda x: x.roll((40, -71, 5), (0, 1, 2)) + 1, lambda a, b, c: [(a, b, c)]),
    "cat of columns": (lambda x, y: torch.cat([x, y], 1) * 2, lambda a, b, c: [(a, b), (a, c)]),
    "cat of rows": (lambda x, y: torch.cat([x, y], 0) * 2, lambda a, b, c: [(a, c), (b, c)]),
    "channels last": (lambda x: x.permute(0, 2, 3, 1).contiguous() * 2, lambda a, b, c: [(2, a, b, c)]),
    "four outer loops": (lambda x: x.permute(3, 0, 2, 1).contiguous() + 1, lambda a, b, c: [(a % 7, b % 6, c, 3)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), lambda a, b, c: [(2, a % 5 + 1, b + 2, c + 2)]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 1, 1), lambda a, b, c: [(2, a % 5 + 1, b + 2, c + 2)]),
    "unfolded heads": (lambda x: x.view(x.size(0), x.size(1), 2, x.size(2) // 2).transpose(1, 2).contiguous() * 2, lambda a, b, c: [(a, b, 2 * c)]),
    "sum of rows": (lambda x: (x * 2).sum(-1), lambda a, b, c: [(a, b * c % 9)]),
    "sum of columns": (lambda x: (x * 2).sum(0), lambda a, b, c: [(a, b)]),
    "layer_norm": (lambda x: F.layer_norm(x, (x.size(-1),)), lambda a, b, c: [(a, b + c + 1)]),
    "group_norm": (lambda x: F.group_norm(x, 2), lambda a, b, c: [(a % 4 + 1, 4, b + 1, c + 1)]),
    "bfloat16 moves": (lambda x: x.bfloat16().roll(1, 1).permute(2, 0, 1).contiguous(), lambda a, b, c: [(a, b, c)]),
    "tiles": (lambda x: x.transpose(1, 2).contiguous() + 1, lambda a, b, c: [(a % 3 + 1, b, c)]),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("at_hand", [(16, 16, 17), (3, 64, 32), (70, 3, 5)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_sizes_give_eagers_elements(name, at_hand, threads):
    function, shapes = PROGRAMS[name]
    generator = torch.Generator().manual_seed(0)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        oxyfuel.reset()
        compiled = oxyfuel.compile(function, dynamic=True)
        for k in range(-1, len(SIZES)):
            sizes = at_hand if k < 0 else (SIZES[k * 7 % len(SIZES)], SIZES[k], SIZES[(k * 4 + 1) % len(SIZES)])
            inputs = [torch.randn(shape, generator=generator) for shape in shapes(*sizes)]
            torch.testing.assert_close(compiled(*inputs), function(*inputs))
    finally:
        torch.set_num_threads(before)
