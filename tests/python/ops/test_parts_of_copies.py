"""Results that are parts of what arithmetic leaves as it is: the part is that of eager's copy, wherever the copied part lies."""

import pytest
import torch

import oxyfuel

PROGRAMS = {
    "one element, in another shape": lambda x: (x[-1, -1] * 1).view(-1),
    "rows of rows": lambda x: (x[2:] + 0)[1:3],
    "columns of a part": lambda x: (x[1:, 2:] * 1)[:, 1:],
    "a part that is turned": lambda x: (x[1:, 2:] / 1).t()[1:],
    "both": lambda x: ((x[2:] * 1)[1:], (x[:, 1:] - 0)[:, 1:]),
    "twice": lambda x: (x.relu()[1:].relu())[1:, 1:],
    "of a sum over one": lambda x: x[1:, 1:2].sum(1)[1:],
    "of a type that it has": lambda x: (x[1:].float() * 1)[1:],
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dynamic", [False, None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_part(name, dynamic, grad):
    oxyfuel.reset()

    def program(x):
        results = PROGRAMS[name](x)
        return [result.detach() for result in (results if isinstance(results, tuple) else (results,))]

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for rows in (6, 9, 4):
        x = torch.arange(5.0 * rows).view(rows, 5).requires_grad_(grad)
        for ours, eagers in zip(compiled(x), program(x)):
            assert torch.equal(ours, eagers) and ours.stride() == eagers.stride()
            assert ours.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
