"""Results that repeat their elements, of sizes that are computed: they are as small as eager's."""

import pytest
import torch
from size_checks import compiles, same

import oxyfuel


@pytest.mark.parametrize("parts", [2, 8, 13, 16])
@pytest.mark.parametrize("repeated", [lambda y: y.expand(2, *y.shape), lambda y: y[:, None].expand(-1, 3, -1), lambda y: y[..., None].expand(*y.shape, 4)])
def test_parts_that_are_repeated(parts, repeated):
    def program(x):
        return repeated((x * 2).reshape(parts, -1))

    compiled = oxyfuel.compile(program, dynamic=True)

    def calls():
        for sizes in ((208, 1), (104, 4), (16, 13 * 5), (208, 3)):
            x = torch.randn(*sizes)
            result = compiled(x)
            same(result, program(x))
            assert result.untyped_storage().nbytes() == 4 * x.numel()

    assert compiles(calls) <= 2
