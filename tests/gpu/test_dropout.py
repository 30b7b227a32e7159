"""Dropout inside of generated kernels draws eager's numbers, whatever its tensors look like and whoever draws beside it."""

import pytest
import torch
from comparison import CALLS
from torch import nn
from torch.nn import functional as F

import oxyfuel

CUDA = torch.device("cuda")
SIZES = [(1,), (7,), (6,), (1000,), (33, 8), (4, 12, 128, 128), (2048, 768), (3, 1, 5, 16)]


def tensor(*shape, dtype=torch.float32):
    return torch.randn(shape, device=CUDA, dtype=dtype)


def check(function, *arguments):
    """Each of several calls gives eager's result to the bit, and leaves the generator where eager leaves it."""
    compiled = oxyfuel.compile(function, fullgraph=True)
    for call in range(CALLS):
        torch.manual_seed(call)
        expected = function(*arguments)
        state = torch.cuda.get_rng_state()
        torch.manual_seed(call)
        result = compiled(*arguments)
        assert torch.equal(torch.cuda.get_rng_state(), state)
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
    counted = oxyfuel.metrics()
    assert counted["calls_eager"] == 0, counted["breaks"]
    return counted


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("shape", SIZES)
def test_every_element_is_kept_as_in_eager(shape, dtype):
    oxyfuel.reset()
    counted = check(lambda x: F.dropout(x * 2, 0.3), tensor(*shape, dtype=dtype))
    assert "aten::native_dropout" not in counted["extern_names"]


@pytest.mark.parametrize("count", [2_162_688, 2_162_696, 6_488_064, 1_892_353])
def test_threads_take_several_rounds(count):
    check(lambda x: F.dropout(x, 0.1), tensor(count, dtype=torch.bfloat16))


def test_layouts():
    def function(a, b, c):
        return F.dropout(a, 0.2), F.dropout(b.transpose(1, 2), 0.2), F.dropout(c[:, ::2], 0.2), F.dropout(c[1:], 0.2)

    check(function, tensor(4, 8, 6, 6).to(memory_format=torch.channels_last), tensor(4, 8, 16), tensor(9, 12))


def test_what_else_draws_keeps_its_place():
    def function(x):
        a = F.dropout(x, 0.5)
        b = torch.rand_like(x)
        c = F.dropout(F.dropout(a + b, 0.1), 0.1)
        return c, torch.randn(7, device=CUDA), F.dropout(x, 0.5)

    check(function, tensor(64, 64))


def test_sizes_that_change():
    oxyfuel.reset()
    compiled = oxyfuel.compile(lambda x: F.dropout(x + 1, 0.4), dynamic=True)
    for rows in (4, 100, 3, 40_000, 1):
        x = tensor(rows, 64)
        torch.manual_seed(rows)
        expected = F.dropout(x + 1, 0.4)
        torch.manual_seed(rows)
        assert torch.equal(compiled(x), expected)


def test_gradients_go_where_elements_were_kept():
    model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.3), nn.GELU(), nn.Dropout(0.1)).to(CUDA)
    compiled, x = oxyfuel.compile(model, fullgraph=True), tensor(32, 64)
    gradients = []
    for forward in (model, compiled, compiled, compiled, compiled):
        torch.manual_seed(11)
        model.zero_grad()
        forward(x).sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for ours in gradients[1:]:
        torch.testing.assert_close(ours, gradients[0])


def test_a_graph_of_the_program_draws_anew():
    compiled, x = oxyfuel.compile(lambda x: F.dropout(x, 0.5)), torch.ones(4096, device=CUDA)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            compiled(x)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compiled(x)
    graph.replay()
    first = result.clone()
    graph.replay()
    assert not torch.equal(result, first)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_attention_without_its_mask(training, dropout):
    """A mask of sizes alone that hides nothing: the kernel that eager takes without a mask."""
    oxyfuel.reset()

    def function(q):
        mask = (torch.arange(q.shape[2], device=q.device)[:, None] >= 0).expand(q.shape[0], 1, q.shape[2], q.shape[2])
        return F.scaled_dot_product_attention(q, q, q, mask, dropout)

    x = tensor(2, 4, 32, 64, dtype=torch.bfloat16).requires_grad_(training)
    compiled, results = oxyfuel.compile(function, fullgraph=True), []
    for forward in (lambda q: F.scaled_dot_product_attention(q, q, q, None, dropout), compiled, compiled, compiled, compiled):
        torch.manual_seed(5)
        result = forward(x)
        results.append([result.detach(), *(torch.autograd.grad(result.sum(), x) if training else ())])
    for ours in results[1:]:  # the backward pass adds up in no fixed order
        torch.testing.assert_close(ours, results[0], rtol=2e-2, atol=1e-2)
    names = oxyfuel.metrics()["extern_names"]
    assert not any("bmm" in name or "softmax" in name for name in names), names


def test_a_mask_that_repeats_along_rows():
    def function(q, hidden):
        mask = hidden[:, None, :, None].expand(q.shape[0], 1, q.shape[2], q.shape[2])
        return F.scaled_dot_product_attention(q, q, q, mask)

    q, hidden = tensor(2, 4, 32, 64), torch.ones(2, 32, device=CUDA, dtype=torch.bool)
    torch.testing.assert_close(oxyfuel.compile(function, fullgraph=True)(q, hidden), function(q, hidden), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("trains", [False, True])
def test_numbers_that_nobody_reads(trains):
    """The generator goes on as in eager."""

    def program(x):
        F.dropout(x * 2, 0.3)
        return F.dropout(x + 1, 0.5)

    oxyfuel.reset()
    check(program, tensor(33, 8).requires_grad_(trains))
    oxyfuel.reset()
    check(lambda x: (F.dropout(x * 2, 0.3), x.sin())[1], tensor(33, 8).requires_grad_(trains))
