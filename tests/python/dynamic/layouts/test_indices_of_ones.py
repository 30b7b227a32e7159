"""An index may pick more of a dimension of size 1, and the strides of the other dimensions order those of what it picks."""

import itertools

import pytest
import torch
from size_checks import same

import oxyfuel

ORDERS = list(itertools.permutations(range(4)))
PICKS = {
    "rows": lambda x, i: x[:, i],
    "the first": lambda x, i: x[i],
    "columns": lambda x, i: x[:, :, i],
    "apart": lambda x, i: x[i, :, i],
    "beside each other": lambda x, i: x[:, i, i],
    "a table": lambda x, i: x[:, i[None].expand(2, -1)],
}
SIZES = [(3, 2, 4, 5), (3, 1, 4, 5), (5, 2, 1, 16), (5, 1, 1, 16), (1, 1, 3, 2), (4, 3, 2, 1), (1, 4, 1, 3)]


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("name", PICKS)
def test_strides_are_those_of_eager(name, made):
    pick = PICKS[name]

    def program(x, i):
        return pick((x.clamp(-3, 3) if made else x), i)

    for order in ORDERS[1::3]:
        for first in (0, 3):
            oxyfuel.reset()
            compiled = oxyfuel.compile(program, dynamic=True)
            for sizes in SIZES[first:] + SIZES[:first]:
                x = torch.randn([sizes[d] for d in order]).permute([order.index(d) for d in range(4)])
                i = torch.zeros(8, dtype=torch.int64)
                same(compiled(x, i), program(x, i))
