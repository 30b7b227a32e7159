"""The mean of equal numbers is exact, so that a normalisation gives 0: what rounding left would be divided by the root of eps."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

PROGRAMS = {
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "of a sum": lambda x: F.layer_norm(x + x.flip(-1), x.shape[-1:]),
    "of a function": lambda x: F.layer_norm(x.exp(), x.shape[-1:]),
    "of a normalised sum": lambda x: F.layer_norm(F.layer_norm(x, x.shape[-1:]) + x, x.shape[-1:]),
    "of picked rows": lambda x: F.layer_norm(x[torch.arange(len(x)).flip(0)], x.shape[-1:]),
    "of chosen numbers": lambda x: F.layer_norm(torch.where(x > 0, x, x * 2), x.shape[-1:]),
    "group norm": lambda x: F.group_norm(x[:, :, None].expand(-1, -1, 4), 1),
    "variance": lambda x: (x * 3).var(-1),
    "mean beside the variance": lambda x: torch.var_mean(x * 3, -1)[1] - x[:, 0] * 3,
    "statistics that are used": lambda x: torch.native_layer_norm(x, x.shape[-1:], None, None, 1e-5)[1] - x[:, 0],
}
ROUNDING = {"of a normalised sum": 1e-6, "variance": 1e-11}  # of what is no mean, or the square of a distance


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_left(name, dynamic):
    program = PROGRAMS[name]
    compiled = oxyfuel.compile(program, dynamic=dynamic, options={"recompile_limit": 100})
    for n in (1, 3, 7, 24, 40, 100, 129, 768, 5000):
        for rows in (1, 16):
            x = (torch.randn(rows, 1) * 3).expand(rows, n)
            torch.testing.assert_close(compiled(x), program(x), rtol=0, atol=ROUNDING.get(name, 0), equal_nan=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_rows_are_right(name):
    program = PROGRAMS[name]
    compiled = oxyfuel.compile(program, options={"recompile_limit": 100})
    for n in (2, 24, 40, 768):
        for offset in (0.0, 100.0, 1e5):
            x = torch.randn(16, n) + (offset if name != "of a function" else 0)
            exact = program(x.double())
            error, eagers = ((result - exact).abs().max() for result in (compiled(x), program(x)))
            assert error <= 2 * max(eagers, 1e-5), (n, offset)


@pytest.mark.parametrize("name", ["layer norm", "of a sum", "of picked rows", "variance"])
def test_rows_that_may_be_empty(name):
    program = PROGRAMS[name]
    compiled = oxyfuel.compile(program, dynamic=True)
    for n in (3, 0, 5, 1):
        x = torch.ones(4, n)
        torch.testing.assert_close(compiled(x), program(x), equal_nan=True)
