"""Small programs on the GPU, each captured whole, against eager."""

import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from comparison import check, check_close, in_float64
from torch import nn

import oxyfuel

CUDA = torch.device("cuda")


def tensor(*sizes, dtype=torch.float32):
    return torch.randn(sizes, device=CUDA).to(dtype)


PROGRAMS = {
    "add": (lambda a, b: a + b, [(64, 1024), (64, 1024)]),
    "broadcast": (lambda a, b: a * b + 1, [(64, 1024), (1024,)]),
    "a chain": (lambda a, b: torch.sigmoid(a) * b.tanh() + a.exp().clamp(max=3), [(64, 1024), (64, 1024)]),
    "odd sizes": (lambda a, b: (a - b).relu(), [(7, 1031), (7, 1031)]),
    "empty": (lambda a: a + 1, [(0, 5)]),
    "one element": (lambda a: a.exp(), [()]),
    "softmax": (lambda a: a.softmax(-1), [(64, 1024)]),
    "long softmax": (lambda a: a.softmax(-1), [(3, 50257)]),
    "layer norm": (lambda a: F.layer_norm(a, (1024,)), [(64, 1024)]),
    "group norm": (lambda a: F.group_norm(a, 4), [(2, 32, 15, 17)]),
    "sum of rows": (lambda a: a.sum(-1), [(64, 1024)]),
    "sum of columns": (lambda a: a.sum(0), [(64, 1024)]),
    "sum of all": (lambda a: a.sum(), [(640, 1024)]),
    "largest": (lambda a: (a.amax(1), a.argmax(1)), [(64, 1001)]),
    "transposed": (lambda a: a.t().contiguous() + 1, [(65, 1023)]),
    "joined": (lambda a, b: torch.cat([a, b.sin()], 1), [(8, 100), (8, 31)]),
    "padded": (lambda a: F.pad(a, (1, 2)) * 2, [(8, 100)]),
    "made here": (lambda a: a + torch.zeros(64, device=a.device) + torch.arange(64, device="cuda"), [(8, 64)]),
    "products": (lambda a, b: F.gelu(a @ b), [(64, 256), (256, 128)]),
    "gathered": (lambda a: a[torch.arange(5, device=a.device) * 2], [(64, 100)]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, dtype):
    function, sizes = PROGRAMS[name]
    with torch.no_grad():
        check(function, *(tensor(*size, dtype=dtype) for size in sizes))


JOINED = {  # with the number of kernels
    "rows": (lambda a, b: torch.cat([a, b]), [(300, 257), (3, 257)], 1),
    "columns": (lambda a, b, c: torch.cat([a, b.exp(), c], 1), [(64, 100), (64, 31), (64, 1)], 1),
    "channels": (lambda a, b: F.relu(torch.cat([a, b], 1) * 2), [(2, 8, 28, 28), (2, 24, 28, 28)], 1),
    "and normed": (lambda a, b: F.layer_norm(torch.cat([a, b], 1), (131,)), [(64, 100), (64, 31)], 1),
    "and turned": (lambda a, b: torch.cat([a, b.t()], 1), [(64, 100), (96, 64)], 1),
    "stacked": (lambda *xs: torch.stack(xs, 1), [(64, 100)] * 5, 1),
    "stacked last": (lambda a, b: torch.stack([a, b], -1).flatten(1), [(64, 100)] * 2, 1),
    "many": (lambda *xs: torch.cat(xs), [(1 + k % 4, 100) for k in range(20)], 2),
    "nothing": (lambda a, b: torch.cat([a, b, a.new_zeros(0)]), [(5, 7), (0, 7)], 1),
    "computed of the same": (lambda a: torch.cat([a * 2, a + 1], 1), [(64, 100)], 1),
    "reductions of the same": (lambda a: torch.cat([a.mean(1, True), a.amax(1, True)], 1), [(4, 32, 28, 28)], 1),
    "halves changed over": (lambda a: torch.cat([-a[:, 50:], a[:, :50]], 1), [(64, 100)], 1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", JOINED)
def test_joined_tensors(name, dtype):
    function, sizes, kernels = JOINED[name]
    with torch.no_grad():
        check(function, *(tensor(*size, dtype=dtype) for size in sizes), kernels=kernels)


@pytest.mark.parametrize("kinds", [("half", "single"), ("whole", "half"), ("truth", "whole"), ("truth", "other truth"), ("half", "whole", "truth", "single")], ids=" ".join)
def test_joined_tensors_of_several_types(kinds):
    tensors = {"half": tensor(9, 10, dtype=torch.float16), "single": tensor(3, 10), "whole": torch.arange(2040, 2060, device=CUDA).view(2, 10), "truth": tensor(4, 10) > 0, "other truth": tensor(2, 10) > 0}
    check(lambda *xs: torch.cat(xs), *(tensors[kind] for kind in kinds), kernels=1)


def test_a_tensor_that_becomes_its_own_parts():
    def rotate(x):
        x.copy_(torch.cat([x[3:], x[:3]]))
        return x * 2

    x = tensor(8, 100)
    expected = rotate(x.clone())
    compiled = oxyfuel.compile(rotate, fullgraph=True)
    for _ in range(4):
        torch.testing.assert_close(compiled(x.clone()), expected)


def test_gradients_of_joined_tensors():
    def function(a, b, c):
        return (torch.cat([a, b.sin(), a * 2], 1).softmax(1) * torch.stack([c, c + 1], 1).flatten(1)).sum(0)

    def run(call):
        leaves = [t.clone().requires_grad_() for t in tensors]
        return [call(*leaves).square().sum(), *leaves]

    tensors = [tensor(8, 10), tensor(8, 12), tensor(8, 16)]
    ours, eager = run(oxyfuel.compile(function, fullgraph=True)), run(function)
    for total, *_ in (ours, eager):
        total.backward()
    for mine, theirs in zip(ours[1:], eager[1:], strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_pointwise_operators_are_one_kernel():
    check(lambda a, b: ((a + b) * a).relu() - b, tensor(64, 64), tensor(64, 64), kernels=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_attention(dtype):
    with torch.no_grad():
        check(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True) + 1, tensor(2, 4, 64, 32, dtype=dtype))


@pytest.mark.parametrize("function", [lambda a: a * 2 + 1, lambda a: a.sum()])
def test_inputs_that_are_not_aligned(function):
    check(function, tensor(4097)[3:])


def test_an_input_that_is_not_aligned_and_shows_a_part_of_its_storage():
    """Windows that begin before the input, or show what lies between its elements."""

    def function(a):
        return torch.as_strided_copy(a, (2, 2), (1, 2), 1), a.as_strided((3,), (1,), 0) + 1, a * 2

    base = tensor(64)
    compiled = oxyfuel.compile(function)
    for offset in (4, 3, 5, 4, 3, 3):
        x = base.as_strided((3, 3), (6, 2), offset)
        for actual, expected in zip(compiled(x), function(x), strict=True):
            assert torch.equal(actual, expected)


def test_an_input_that_is_written_and_not_aligned():
    mine = tensor(4097)
    theirs = mine.clone()
    oxyfuel.compile(lambda a: a.mul_(2))(mine[1:])
    theirs[1:].mul_(2)
    assert torch.equal(mine, theirs)


def test_writes_to_inputs():
    def function(a):
        a.mul_(2)
        return a + 1

    mine, theirs = tensor(33), None
    theirs = mine.clone()
    expected, result = function(theirs), oxyfuel.compile(function, fullgraph=True)(mine)
    assert torch.equal(mine, theirs) and torch.equal(result, expected)


def test_the_caller_has_another_stream():
    compiled = oxyfuel.compile(lambda a: (a * 2).cumsum(0) + 1)
    x = tensor(1000)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(10):
            x = compiled(x) % 7
    stream.synchronize()
    assert torch.isfinite(x).all()


def test_gradients():
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10)).to(CUDA)
    x, target = tensor(32, 64), torch.randint(0, 10, (32,), device=CUDA)

    def gradients(forward, x):
        model.zero_grad()
        loss = F.cross_entropy(forward(x), target)
        loss.backward()
        return [loss.detach(), *(p.grad.clone() for p in model.parameters())]

    compiled = oxyfuel.compile(model, fullgraph=True)
    eager, ours = gradients(model, x), gradients(compiled, x)
    model.double()
    check_close(ours, eager, gradients(model, in_float64(x)))
    assert oxyfuel.metrics()["calls_compiled"] == 1


def test_dropout_draws_what_the_seed_says():
    compiled = oxyfuel.compile(lambda a: F.dropout(a, 0.5))
    x = torch.ones(10000, device=CUDA)
    torch.manual_seed(3)
    first = compiled(x)
    torch.manual_seed(3)
    assert torch.equal(compiled(x), first)
    assert 0.4 < (first == 0).float().mean().item() < 0.6


INDEX_PROGRAM = """
import torch, oxyfuel

@oxyfuel.compile
def rows(table, places):
    scaled = places * 2
    chosen = table[scaled]
    return chosen + 1

table = torch.ones(4, 3, device="cuda")
for _ in range(CALLS):
    rows(table, torch.tensor([0, 1], device="cuda"))
torch.cuda.synchronize()
rows(table, torch.tensor([0, 9], device="cuda"))
torch.cuda.synchronize()
"""


@pytest.mark.parametrize("calls", [0, 5])  # the fifth call replays a graph
@pytest.mark.parametrize("is_blocking", [False, True])
def test_an_index_out_of_range_names_the_users_line(calls, is_blocking, tmp_path):
    # In a process of its own: the device is lost to the process that met it, as in eager.
    program = tmp_path / "program.py"
    program.write_text(INDEX_PROGRAM.replace("CALLS", str(calls)))
    environment = {**os.environ, "CUDA_LAUNCH_BLOCKING": "1" if is_blocking else "0"}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=120)
    said = done.stderr + done.stdout
    assert done.returncode != 0 and "device-side assert" in said, said
    assert "index out of range at program.py:7 in rows" in said, said
    if is_blocking:
        assert "AcceleratorError" in said and "It is an error of the kernel" in said, said


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("sizes", [(256, 768, 50257), (2048, 770, 1001), (512, 1023, 4097)], ids=str)
def test_products_of_odd_sizes(sizes, dtype):
    """Some are padded (passes.pad_products): values, gradients and strides are those of eager."""
    rows, inner, columns = sizes
    x = torch.randn(rows, inner, device=CUDA).to(dtype).requires_grad_()
    weight = (torch.randn(columns, inner, device=CUDA) / inner**0.5).to(dtype).requires_grad_()
    bias = torch.randn(columns, device=CUDA).to(dtype).requires_grad_()

    def gradients(function, *tensors):
        tensors = [t.detach().requires_grad_() for t in tensors]
        result = function(*tensors)
        result.sin().sum().backward()
        return [result.detach(), *(t.grad for t in tensors)]

    for function, arguments in ((F.linear, (x, weight, bias)), (lambda a, w: (a.tanh() @ w.t()), (x, weight)), (lambda a, w: (a @ w).relu(), (x, weight.t()))):
        oxyfuel.reset()
        actual = gradients(oxyfuel.compile(function), *arguments)
        exact = gradients(function, *(t.double() for t in arguments))
        for mine, other, reference in zip(actual, gradients(function, *arguments), exact, strict=True):
            assert mine.stride() == other.stride() and mine.dtype == other.dtype
            error = (mine.double() - reference).norm() / reference.norm()
            assert error <= 2 * (other.double() - reference).norm() / reference.norm() + 1e-4
