"""Graphs with symbolic sizes through the whole compiler: eager's answers for all sizes, in few compilations."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from graphs import run_seed
from sizes import program_with_sizes
from size_checks import check, compiles, same


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first, gradients", [*((first, False) for first in range(250, 450, 20)), (160, True), (180, True)])
def test_random_programs(first, gradients):
    different = {}
    for seed in range(first, first + 20):
        found = run_seed(seed, shrinks=False, gradients=gradients, make=program_with_sizes)
        if found:
            different[seed] = found[0]
    assert not different, f"see one with: tests/fuzz/sizes.py{' --gradients' * gradients} --seeds N; {different}"


def rows(*sizes, columns=6):
    return [(torch.randn(n, columns),) for n in sizes]


# --- indices into what may be empty


def index(n):
    return torch.zeros(2, dtype=torch.long), torch.randn(n, 4)


INDEXING = {
    "gather": lambda i, x: x.gather(0, i[:, None].expand(2, 4)),
    "index_select": lambda i, x: x.index_select(0, i),
    "an index": lambda i, x: x[i] + 1,
    "embedding": lambda i, x: F.embedding(i, x),
    "index_put": lambda i, x: x.index_put((i,), torch.ones(2, 4)),
    "scatter": lambda i, x: x.scatter(0, i[:, None].expand(2, 4), 1.0),
}


@pytest.mark.parametrize("name", INDEXING)
def test_an_index_into_nothing(name):
    function = INDEXING[name]
    compiled = oxyfuel.compile(function, dynamic=True)
    for n in (4, 3, 1):
        arguments = index(n)
        same(compiled(*arguments), function(*arguments))
    arguments = index(0)
    with pytest.raises((IndexError, RuntimeError)) as expected:
        function(*arguments)
    with pytest.raises(type(expected.value)) as actual:
        compiled(*arguments)
    assert str(actual.value).split("\n")[0] == str(expected.value).split("\n")[0]


# --- memory


def test_an_arena_serves_larger_and_smaller_sizes():
    """Blocks of several symbolic sizes, whose order by size is another one at later calls."""

    def function(x, y):
        for _ in range(4):
            a = torch.mm(x, y)
            b = torch.mm(a.t(), x)
            c = torch.mm(b, y)
            x = torch.tanh(torch.mm(a, c) @ b) * 0.1 + x
        return x, a.sum(0), b.mean()

    calls = [(torch.randn(n, m) / (n + m), torch.randn(m, k) / (m + k)) for n, m, k in [(4, 300, 5), (300, 4, 7), (1, 1, 200), (64, 64, 64), (90, 3, 2), (0, 5, 4)]]
    with torch.no_grad():
        check(function, calls, 2, dynamic=True)


def test_a_row_of_symbolic_length():
    """Rows that pass between the loops of one kernel, shorter and much longer than at the compilation."""

    def function(x):
        return torch.softmax(x * 2, -1), F.layer_norm(x, x.shape[-1:]), torch.log_softmax(x.exp() + 1, -1)

    with torch.no_grad():
        check(function, [(torch.randn(3, n),) for n in (40, 5, 1, 4096, 17, 70001)], 2, dynamic=True)


def test_reductions_of_symbolic_size():
    def function(x):
        return x.sum(), x.mean(0), x.var(), x.amax(1), x.std(0, correction=0), x.logsumexp(0), x.argmax(1)

    with torch.no_grad():
        check(function, [(torch.randn(n, m),) for n, m in [(7, 9), (2, 1000), (900, 3), (33, 64), (300, 500)]], 2, dynamic=True)


# --- random numbers


@pytest.mark.parametrize("draw", ("dropout", "rand_like", "randn", "bernoulli_", "bernoulli_ of a transposed tensor", "multinomial"))
def test_random_numbers(draw):
    functions = {
        "dropout": lambda x: (F.dropout(x, 0.4, True), torch.rand(3)),
        "rand_like": lambda x: (torch.rand_like(x), torch.rand(3)),
        "randn": lambda x: (torch.randn(x.shape), torch.randn(x.size(0), 2)),
        "bernoulli_": lambda x: (torch.empty_like(x).bernoulli_(0.3), torch.rand(2)),
        "bernoulli_ of a transposed tensor": lambda x: (torch.empty_like(x).t().bernoulli_(0.3), torch.rand(2)),
        "multinomial": lambda x: (torch.multinomial(x.softmax(-1), 2), torch.rand(2)),
    }
    function = functions[draw]
    compiled = oxyfuel.compile(function, dynamic=True)
    for (x,) in rows(4, 5, 1, 33):
        torch.manual_seed(3)
        expected, state = function(x), torch.get_rng_state()
        torch.manual_seed(3)
        same(compiled(x), expected)
        assert torch.equal(torch.get_rng_state(), state)


# --- frozen weights


def test_frozen_weights_serve_all_rows():
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 128)).eval()
    with torch.no_grad():
        check(model, [(torch.randn(n, 256),) for n in (4, 1, 64, 300)], 1, dynamic=True)
        check(model, [(torch.randn(n, m, 256),) for n, m in ((4, 3), (1, 1), (2, 60), (5, 0))], 1, dynamic=True)


def test_convolutions_serve_all_images():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(32, 10),
    ).eval()
    with torch.no_grad():
        check(model, [(torch.randn(n, 3, h, w),) for n, h, w in ((2, 16, 16), (1, 17, 20), (5, 9, 33), (3, 3, 3))], 2, dynamic=True)


# --- gradients


def test_a_gradient_of_a_gradient():
    def function(x, w):
        return torch.tanh(x @ w).pow(3).sum(1)

    def steps(function, x, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        first = torch.autograd.grad(function(x, w).sum(), (x, w), create_graph=True)
        second = torch.autograd.grad(sum(g.pow(2).sum() for g in first), (x, w))
        return *first, *second

    compiled = oxyfuel.compile(function, dynamic=True)
    w = torch.randn(6, 3)
    count = compiles(lambda: [same(steps(compiled, x, w), steps(function, x, w)) for (x,) in rows(4, 5, 1, 9)])
    assert count <= 1


def test_mutated_arguments_and_views():
    def function(x, y):
        x[1:].mul_(2)
        y.t()[0].copy_(x.sum(1)[: y.size(0)])
        z = x.view(-1)
        return z, z[2:], x.t(), y[:, 1:]

    compiled = oxyfuel.compile(function, dynamic=True)
    for n in (4, 5, 9, 2):
        x, y = torch.randn(n, 6), torch.randn(n, 3)
        other, another = x.clone(), y.clone()
        mine, expected = compiled(x, y), function(other, another)
        same((x, y, *mine), (other, another, *expected))
        for a, b in zip(mine, expected):
            assert a.storage_offset() == b.storage_offset()
            assert (a.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()) == (b.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())
