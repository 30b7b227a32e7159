"""Regions with tensors on a GPU and on the host: numbers beside tensors, copies between them, indices, random numbers of both."""

import pytest
import torch
from comparison import check_close

import oxyfuel

CUDA = torch.device("cuda")
CALLS = 5  # the third one records its work, and those behind it replay it


def numbers(x, n):
    return x * n + n.abs() - (n + 1) / x.exp()


def number_first(x, n):
    return n / (x * x + 1)


def literal(x, n):
    return x * torch.tensor(2.5) + torch.tensor([1.0, 2.0, 3.0, 4.0]).to(x.device)


def to_and_fro(x, n):
    y = (x * 2).cpu()
    return y + n, (y.sin() + 1).to(x.device) * x


def only_the_result_is_on_the_host(x, n):
    return (x.sum() * 2).cpu()


def written_from_the_host(x, n):
    y = torch.zeros_like(x)
    y[0].copy_(torch.arange(4.0))
    y[1] = n
    return y + x


def indices(x, n):
    i = torch.tensor([2, 0])
    y = x.clone()
    y[torch.tensor([1, 1])] = 3.0
    return x[i] + 1, y * 2


def filled(x, n):
    return x.masked_fill(x > 0, n) + torch.where(x > 0, x, n)


PROGRAMS = [numbers, number_first, literal, to_and_fro, only_the_result_is_on_the_host, written_from_the_host, indices, filled]


@pytest.mark.parametrize("dynamic", [None, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program, dynamic):
    compiled = oxyfuel.compile(program, fullgraph=True, dynamic=dynamic)
    for call in range(CALLS):
        x, n = torch.randn(3, 4, device=CUDA), torch.tensor(1.5 + call)
        check_close(compiled(x, n), program(x, n), program(x.double(), n.double()))
    metrics = oxyfuel.metrics()
    assert metrics["calls_eager"] == 0 and metrics["graphs"] == 1, oxyfuel.explain(program)


def test_pinned_inputs_are_copied_without_waiting():
    def program(x, w):
        return x.to("cuda", non_blocking=True) @ w + 1

    compiled = oxyfuel.compile(program, fullgraph=True)
    w = torch.randn(4, 4, device=CUDA)
    for _ in range(CALLS):
        x = torch.randn(3, 4).pin_memory()
        torch.testing.assert_close(compiled(x, w), program(x, w))
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_gradients_cross_devices():
    def program(x, n):
        return ((x.cpu() * n).to(CUDA) * x).sum()

    compiled = oxyfuel.compile(program, fullgraph=True)
    for call in range(CALLS):
        data = torch.randn(3, 4, device=CUDA)
        gradients = []
        for function in (compiled, program):
            x, n = data.clone().requires_grad_(), torch.tensor(2.0 + call, requires_grad=True)
            function(x, n).backward()
            gradients.append((x.grad, n.grad))
        for ours, eager in zip(*gradients):
            assert ours.device == eager.device
            torch.testing.assert_close(ours, eager)
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_random_numbers_of_both():
    def program(x):
        return torch.nn.functional.dropout(x, 0.5) * torch.rand([]), torch.rand(3)

    compiled = oxyfuel.compile(program, fullgraph=True)
    x = torch.randn(64, 64, device=CUDA)
    for seed in range(CALLS):
        results = []
        for function in (compiled, program):
            torch.manual_seed(seed)
            results.append((*function(x), torch.get_rng_state(), torch.cuda.get_rng_state()))
        for ours, eager in zip(*results):
            assert torch.equal(ours, eager)
    assert oxyfuel.metrics()["calls_eager"] == 0


PROGRAMS_THAT_EAGER_REFUSES = {
    "two inputs": lambda x, y: x.sin() + y,
    "a tensor that is made on the way": lambda x, y: x.sin() * 2 + torch.ones(4, device="cpu"),
    "where": lambda x, y: torch.where(x > 0, x * 2, y),
    "a product": lambda x, y: x.sin() @ y.t(),
    "cat": lambda x, y: torch.cat([x * 2, y]),
    "gather": lambda x, y: (x * 2).gather(1, y.long()),
    "the device reads the host": lambda x, y: y.cos() + x,
}


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("name", PROGRAMS_THAT_EAGER_REFUSES)
def test_tensors_that_do_not_match_raise_as_in_eager(name, fullgraph):
    program = PROGRAMS_THAT_EAGER_REFUSES[name]
    compiled = oxyfuel.compile(program, fullgraph=fullgraph)
    x, y = torch.randn(3, 4, device=CUDA), torch.randn(3, 4)
    with pytest.raises(RuntimeError) as eager:
        program(x, y)
    for _ in range(2):
        with pytest.raises(RuntimeError) as ours:
            compiled(x, y)
        assert str(ours.value) == str(eager.value)
