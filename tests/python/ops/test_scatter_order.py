"""scatter: of several elements that go to one place, the last one along the dimension stays, on several threads too."""

import pytest
import torch

import oxyfuel

CASES = {  # sizes of the target and of what is written, the dimension
    "rows": ((2, 64), (4000, 64), 0),
    "few columns": ((2, 3), (40000, 3), 0),
    "one dimension": ((5,), (100000,), 0),
    "columns": ((4000, 7), (4000, 50), 1),
    "a plane": ((8, 4, 64), (8, 900, 64), 1),
    "planes": ((3, 8, 5), (2000, 8, 5), 0),
    "channels": ((2, 70, 3, 30), (2, 70, 90, 30), 2),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_the_last_element_stays(case, dynamic):
    target, written, dim = CASES[case]
    generator = torch.Generator().manual_seed(1)
    x, source = torch.randn(target, generator=generator), torch.randn(written, generator=generator)
    where = torch.randint(0, target[dim], written, generator=generator)
    flipped = lambda t: t.permute(*reversed(range(t.dim())))  # noqa: E731
    functions = [
        lambda x, i, s: x.scatter(dim, i, s),
        lambda x, i, s: x.scatter(dim, i, s * 2 + 1).cos(),
        lambda x, i, s: flipped(x.clone()).scatter_(len(target) - 1 - dim, flipped(i), flipped(s)),
    ]
    for function in functions:
        oxyfuel.reset()
        compiled, expected = oxyfuel.compile(function, dynamic=dynamic), function(x, where, source)
        for _ in range(10):
            torch.testing.assert_close(compiled(x, where, source), expected)
