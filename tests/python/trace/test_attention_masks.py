"""A mask of sizes alone that hides nothing is no mask; any other one stays."""

import pytest
import torch
from torch.nn import functional as F

import oxyfuel

ROWS = 6


def rows(q):
    return torch.arange(q.shape[2])


MASKS = {
    "of sizes": (lambda q, x: (rows(q)[:, None] >= 0).expand(q.shape[0], 1, q.shape[2], q.shape[2]), False),
    "behind no others": (lambda q, x: ((rows(q) + 0)[:, None] >= 0).expand(q.shape[0], 1, q.shape[2], q.shape[2]), False),
    "behind others": (lambda q, x: ((rows(q) - 2)[:, None] >= 0).expand(q.shape[0], 1, q.shape[2], q.shape[2]), True),
    "of two": (lambda q, x: (rows(q) >= 0)[None, :] & torch.ones(ROWS, 1, dtype=torch.bool), False),
    "causal": (lambda q, x: rows(q)[:, None] >= rows(q)[None, :], True),
    "from below 0": (lambda q, x: (torch.arange(-1, q.shape[2] - 1) >= 0).expand(q.shape[2], q.shape[2]), True),
    "of data": (lambda q, x: (x >= 0)[None, :].expand(q.shape[2], q.shape[2]), True),
    "added": (lambda q, x: torch.zeros(q.shape[2], q.shape[2]), True),
}


def written(q, x):
    mask = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool)
    mask[:, 0] = x[0] > 9
    return mask


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", [*MASKS, "written"])
def test_masks(name, dynamic):
    make, stays = MASKS.get(name, (written, True))
    graphs = []

    def function(q, x):
        return F.scaled_dot_product_attention(q, q, q, attn_mask=make(q, x))

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    q, x = torch.randn(2, 3, ROWS, 8), torch.arange(ROWS) - 2.0
    torch.testing.assert_close(oxyfuel.compile(function, dynamic=dynamic, fullgraph=True)(q, x), function(q, x))
    oxyfuel.compile(function, fullgraph=True, backend=backend)(q, x)
    attention = [node for node in graphs[0].graph.nodes if "attention" in str(node.target)]
    assert [node.kwargs.get("attn_mask") is not None for node in attention] == [stays]


def test_an_expanded_mask_is_needed_for_gradients():
    def function(q, m):
        s = torch.where(m, torch.scalar_tensor(0.0), torch.scalar_tensor(-9.0))
        return ((q * 2).softmax(-1) * s).sum() + (q.sin() * s).sum()

    mask = (torch.arange(64).view(4, 16) % 3 > 0)[:, None, None, :].expand(4, 1, 16, 16)
    mine, theirs = (torch.randn(4, 2, 16, 16, generator=torch.Generator().manual_seed(1), requires_grad=True) for _ in range(2))
    oxyfuel.compile(function, fullgraph=True)(mine, mask).backward()
    function(theirs, mask).backward()
    torch.testing.assert_close(mine.grad, theirs.grad)
    assert oxyfuel.metrics()["calls_eager"] == 0
