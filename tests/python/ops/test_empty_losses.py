"""Kernels of several steps, some of which have nothing to do, as a batch is empty: they read no memory there."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel


def smoothed(x, target):
    return F.cross_entropy(x, target, label_smoothing=0.1, reduction="sum").clamp(-60, 60)


def weighted(x, target):
    return F.cross_entropy(x, target, torch.arange(1.0, x.size(1) + 1), reduction="sum") * 2


def gathered(x, target):
    return x.sum() + x.gather(1, target[:, None]).sum() + F.one_hot(target, x.size(1)).mul(x).sum()


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("function", [smoothed, weighted, gathered])
def test_batches_of_which_one_is_empty(function, dynamic):
    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for rows, classes in ((64, 3), (0, 3), (1, 3), (0, 1), (7, 2)):
        outcomes = []
        for f in (function, compiled):
            torch.manual_seed(rows)
            x, target = torch.randn(rows, classes, requires_grad=True), torch.randint(0, classes, (rows,))
            result = f(x, target)
            outcomes.append((result, *torch.autograd.grad(result * 3, x)))
        torch.testing.assert_close(*outcomes)
