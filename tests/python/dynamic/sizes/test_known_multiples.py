"""Sizes that guards hold to be multiples of a number are calculated with as such."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from size_checks import check, same

# A function of a tensor of two sizes, of which it takes the second for a multiple of 4.
PROGRAMS = {
    "group_norm": lambda x: F.group_norm(x[:, :, None] * torch.arange(3.0), 4),
    "a group of each four": lambda x: x.view(x.size(0), -1, 4).softmax(-1) + 1,
    "four groups": lambda x: x.unflatten(1, (4, -1)).mean(-1, keepdim=True) - x.unflatten(1, (4, -1)),
    "four chunks joined": lambda x: torch.cat([part.softmax(-1) for part in x.view(x.size(0), 4, -1).unbind(1)], 1),
    "shuffled pixels": lambda x: F.pixel_shuffle(x[:, :, None, None].expand(-1, -1, 2, 3) * 2, 2),
    "heads": lambda x: x.view(x.size(0), 4, -1).transpose(0, 1).contiguous() * 2,
    "a sum over groups": lambda x: x.view(-1, 4).sum(0),
    "counted": lambda x: (x.view(-1, 4) * (x.size(1) // 4), x.numel() // 4),
}


@pytest.mark.parametrize("columns", [(8, 4, 12, 20, 64), (64, 32, 4, 8, 100), (12, 28, 1024, 4)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_multiples(name, columns):
    torch.manual_seed(0)
    rows = (3, 5, 2, 7, 1)
    check(PROGRAMS[name], [(torch.randn(n, c),) for n, c in zip(rows, columns)], 2, dynamic=True)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "counted"])
def test_gradients(name):
    compiled = oxyfuel.compile(PROGRAMS[name], dynamic=True)
    for n, c in [(3, 8), (5, 4), (2, 64), (4, 20)]:
        grads = []
        for function in (PROGRAMS[name], compiled):
            x = torch.randn(n, c, generator=torch.Generator().manual_seed(n)).requires_grad_()
            (function(x) ** 2).sum().backward()
            grads.append(x.grad)
        torch.testing.assert_close(grads[1], grads[0])


def test_no_rows_and_no_columns():
    groups = lambda x: x.view(x.size(0), x.size(1) // 4, 4).softmax(-1) + 1  # noqa: E731
    check(groups, [(torch.randn(n, c),) for n, c in [(3, 8), (0, 8), (2, 12), (5, 4)]], 3, dynamic=True)
    check(PROGRAMS["a sum over groups"], [(torch.randn(n, c),) for n, c in [(3, 8), (0, 8), (2, 0), (5, 4)]], 4, dynamic=True)


def test_a_group_is_read_and_written_in_one_kernel():
    compiled = oxyfuel.compile(lambda x: F.group_norm(x, 4), dynamic=True)
    before = oxyfuel.metrics()["launches"]
    with torch.no_grad():
        compiled(torch.randn(3, 8, 5, 5))
    assert oxyfuel.metrics()["launches"] - before == 1


def test_what_is_no_multiple_is_compiled_or_raises():
    compiled = oxyfuel.compile(PROGRAMS["four groups"], dynamic=True)
    same(compiled(torch.ones(2, 8)), PROGRAMS["four groups"](torch.ones(2, 8)))
    with pytest.raises(RuntimeError):
        compiled(torch.ones(2, 9))
    by_size = lambda x: x.view(-1, 4).sum(1) if x.size(1) % 4 == 0 else x.sum(1)  # noqa: E731
    check(by_size, [(torch.randn(3, c),) for c in (8, 9, 12, 10, 6)], 4, dynamic=True)
