"""torch.use_deterministic_algorithms(): the same bits at each call, and eager's refusals."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

CUDA = torch.device("cuda")
CALLS = 6


def places(count, bound):
    return torch.randint(bound, (count,), device=CUDA)


def numbers(*sizes, dtype=torch.float32):
    return torch.randn(sizes, device=CUDA).to(dtype)


@pytest.fixture(autouse=True)
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


PROGRAMS = {
    "column sums": (lambda x: x.sum(0) * 2, lambda: (numbers(1 << 17, 24),)),
    "a sum of everything": (lambda x: (x * x).sum(), lambda: (numbers(1 << 21),)),
    "mean and variance of columns": (lambda x: torch.var_mean(x, 0), lambda: (numbers(1 << 15, 40),)),
    "norms of channels": (lambda x: F.batch_norm(x, None, None, training=True), lambda: (numbers(16, 32, 40, 40),)),
    "rows that are added": (lambda x, i, y: x.index_add(0, i, y).relu(), lambda: (numbers(64, 32), places(5000, 64), numbers(5000, 32))),
    "elements that are added": (lambda x, i, y: x.scatter_add(0, i, y) + 1, lambda: (numbers(64), places(9000, 64), numbers(9000))),
    "elements that are put": (lambda x, i, y: x.index_put((i,), y, accumulate=True), lambda: (numbers(64), places(9000, 64), numbers(9000))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_bits(name):
    program, make = PROGRAMS[name]
    arguments = make()
    compiled = oxyfuel.compile(program)
    with torch.no_grad():
        results = [torch.utils._pytree.tree_leaves(compiled(*arguments)) for _ in range(CALLS)]
        expected = torch.utils._pytree.tree_leaves(program(*arguments))
    for leaves in results:
        for first, leaf, eager in zip(results[0], leaves, expected, strict=True):
            assert torch.equal(leaf, first)
            torch.testing.assert_close(leaf, eager, atol=1e-2, rtol=1e-3)


def test_gradients_of_embeddings():
    weight, index = numbers(50, 64).requires_grad_(), places(4000, 50)
    compiled = oxyfuel.compile(lambda w, i: F.embedding(i, w).sin().sum())
    gradients = []
    for _ in range(CALLS):
        weight.grad = None
        compiled(weight, index).backward()
        gradients.append(weight.grad)
    weight.grad = None
    F.embedding(index, weight).sin().sum().backward()
    torch.testing.assert_close(gradients[0], weight.grad, atol=1e-3, rtol=1e-3)
    assert all(torch.equal(gradient, gradients[0]) for gradient in gradients)


REFUSABLE = (
    lambda t: torch.cumsum(t * 2, 1) + 1,
    lambda t: torch.histc(t * 2, bins=8) + 1,
    lambda t: torch.kthvalue(t * 2, 3, dim=1).values + 1,
    lambda t: torch.median(t * 2, dim=1).values + 1,
    lambda t: torch.bincount((t * 2).abs().flatten().long(), weights=t.flatten()) + 1,
)


def outcome(program, x):
    """A result, or what the error says."""
    try:
        return program(x), None
    except RuntimeError as error:
        return None, str(error)


def test_what_eager_refuses():
    """Which operators those are depends on the release of PyTorch."""
    x = numbers(7, 300)
    refused = 0
    for program in REFUSABLE:
        (result, error), (expected, eager_error) = outcome(oxyfuel.compile(program), x), outcome(program, x)
        assert error == eager_error
        refused += error is not None
        if error is None:
            torch.testing.assert_close(result, expected)
    assert refused > 0
