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


WINDOWS = {
    "of all elements": lambda y: y.view(-1).unfold(0, 2, 1),
    "of a copy": lambda y: y.t().reshape(-1).unfold(0, 3, 2),
    "of rows in other dimensions": lambda y: y.view(2, -1).unfold(1, 2, 1),
    "of a join": lambda y: torch.cat([y, y + 1]).view(-1).unfold(0, 2, 1),
    "of a part": lambda y: y.view(-1)[2:].unfold(0, 2, 1),
    "by strides": lambda y: y.view(-1).as_strided((3, 3), (1, 1), 1),
}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("grad", [False, True])
def test_windows_that_share_elements(window, grad):
    """The windows are no copies: they have eager's strides, and a write to one is seen in others."""

    def program(x):
        return window(x.exp())

    compiled = oxyfuel.compile(program, dynamic=True)
    for sizes in ((6, 4), (4, 7), (2, 5), (10, 3)):
        x = torch.randn(*sizes, requires_grad=grad)
        result, expected = compiled(x), program(x)
        same(result, expected)
        assert result.storage_offset() == expected.storage_offset()
        for y in (result, expected):
            y.detach()[0].fill_(5)
        same(result, expected)
