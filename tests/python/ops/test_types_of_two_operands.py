"""Binary operators on all pairs of types, with and without dimensions: results have eager's type and elements."""

import itertools

import pytest
import torch

import oxyfuel

TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.bool)
SIZES = ((), (3,))
OPERATORS = (torch.add, torch.mul, torch.div, torch.pow, torch.atan2, torch.ldexp, torch.remainder, torch.fmod, torch.maximum,
             torch.floor_divide, torch.copysign, torch.hypot, torch.xlogy)  # fmt: skip


def cases_of(operator):
    """Operands for which eager has a result, and the result."""
    for first, second in itertools.product(itertools.product(TYPES, SIZES), repeat=2):
        operands = [torch.full(sizes, value).to(dtype) for (dtype, sizes), value in zip((first, second), (3.0, 2.0))]
        try:
            yield operands, operator(*operands)
        except RuntimeError:
            continue


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
def test_types(operator, dynamic):
    cases = list(cases_of(operator))
    assert len(cases) > 20
    oxyfuel.reset()

    def all_results(*operands):
        return [operator(a, b) for a, b in zip(operands[::2], operands[1::2])]

    operands = [operand for pair, _ in cases for operand in pair]
    results = oxyfuel.compile(all_results, dynamic=dynamic)(*operands)
    for (pair, expected), result in zip(cases, results, strict=True):
        what = [(operand.dtype, operand.shape) for operand in pair]
        assert result.dtype == expected.dtype, what
        torch.testing.assert_close(result, expected, msg=lambda text, what=what: f"{what}: {text}")


TESTS = (torch.logical_and, torch.logical_or, torch.logical_xor, torch.eq, torch.ne, torch.lt, torch.ge)
VANISHING = {torch.int64: 256, torch.int32: 256, torch.int16: 256, torch.float64: 1e-300, torch.float32: 1e-30}


@pytest.mark.parametrize("dynamic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("operator", TESTS, ids=lambda operator: operator.__name__)
def test_numbers_that_vanish_in_the_common_type(operator, dynamic):
    types = (*TYPES, torch.uint8, torch.int16)
    pairs = []
    for first, second in itertools.product(itertools.product(types, SIZES), repeat=2):
        for other in (0, 3):
            pairs.append([torch.full(first[1], VANISHING.get(first[0], 3)).to(first[0]), torch.full(second[1], other).to(second[0])])
    oxyfuel.reset()

    def all_results(*operands):
        return [operator(a, b) for a, b in zip(operands[::2], operands[1::2])] + [operator(b, a) for a, b in zip(operands[::2], operands[1::2])]

    operands = [operand for pair in pairs for operand in pair]
    results = oxyfuel.compile(all_results, dynamic=dynamic)(*operands)
    for result, expected, pair in zip(results, all_results(*operands), [*pairs, *pairs], strict=True):
        assert torch.equal(result, expected), [(operand.dtype, operand) for operand in pair]
