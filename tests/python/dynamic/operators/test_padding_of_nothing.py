"""Places that are computed although a mask hides them: what is padded has no elements for one of the sizes."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

SIZES = (6, 6, 5, 3, 2, 1, 0)

PROGRAMS = {
    "repeated": lambda x: F.pad(x.repeat(2, 1), (1, 1, 1, 2), value=1.5),
    "repeated in rows": lambda x: F.pad(x.repeat(1, 3), (1, 1, 1, 2), value=1.5),
    "rolled": lambda x: F.pad(x.roll(1, 0), (1, 2, 3, 1)),
    "rolled in rows": lambda x: F.pad(x.roll((2, 1), (0, 1)), (1, 2, 3, 1)),
    "flattened": lambda x: F.pad(x.reshape(-1), (2, 1)),
    "flattened and divided": lambda x: F.pad((x + 1).reshape(-1).reshape(x.shape[1], x.shape[0]).t(), (2, 1, 1, 1)),
    "interleaved": lambda x: F.pad(torch.stack((x, x * 3), -1).reshape(x.shape[0], 2 * x.shape[1]), (1, 1, 1, 1)),
    "joined": lambda x: torch.cat((x.repeat(2, 1), torch.ones(3, x.shape[1])), 0).sum(0) + F.pad(x, (0, 0, 1, 0)).sum(0),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sizes(name, dtype):
    program = PROGRAMS[name]
    compiled = oxyfuel.compile(program, dynamic=True)
    for rows in SIZES:
        for columns in (rows, 4):
            x = (torch.arange(rows * columns).view(rows, columns) % 5).to(dtype)
            torch.testing.assert_close(compiled(x), program(x))
