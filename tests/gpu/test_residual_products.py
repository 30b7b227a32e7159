"""Products that add a residual before they are stored, by cuBLASLt: right for all layouts, and taken where the sum is read twice."""

import os
import subprocess
import sys
import threading

import pytest
import torch
import torch.nn.functional as F
from comparison import check, check_close, in_float64
from torch import nn
from torch.utils._pytree import tree_map

import oxyfuel

pytestmark = pytest.mark.skipif(os.environ.get("OXYFUEL_RESIDUAL_PRODUCTS") != "1", reason="they are on trial: set OXYFUEL_RESIDUAL_PRODUCTS=1")
CUDA = torch.device("cuda")
NAME = "oxyfuel::residual_product"


def tensor(*sizes, dtype=torch.bfloat16):
    return torch.randn(sizes, device=CUDA).mul(0.5).to(dtype)


def count():
    return oxyfuel.metrics()["extern_names"].get(NAME, 0)


def with_norm(sum_):
    return sum_, F.layer_norm(sum_, sum_.shape[-1:])


SHAPES = [(2048, 768, 768), (128, 3072, 768), (33, 64, 96), (257, 40, 8), (16, 16, 1000), (1000, 8, 24)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows, inner, columns", SHAPES)
@pytest.mark.parametrize("bias", [False, True])
def test_linear(rows, inner, columns, dtype, bias):
    arguments = [tensor(rows, columns, dtype=dtype), tensor(rows, inner, dtype=dtype), tensor(columns, inner, dtype=dtype)]
    if bias:
        arguments.append(tensor(columns, dtype=dtype))
    check(lambda h, x, w, *b: with_norm(h + F.linear(x, w, *b)), *arguments)
    assert count() == 1


PROGRAMS = {
    "transposed operands": (lambda h, x, w: with_norm(x.t() @ w + h), lambda: (tensor(64, 96), tensor(40, 64), tensor(40, 96))),
    "a part of the columns": (lambda h, x, w: with_norm(h + x[:, 8:72] @ w), lambda: (tensor(48, 32), tensor(48, 100), tensor(64, 32))),
    "an address of two bytes": (lambda h, x, w: with_norm(h + x[:, 1:65] @ w), lambda: (tensor(48, 32), tensor(48, 100), tensor(64, 32))),
    "odd columns": (lambda h, x, w: with_norm(h + x @ w), lambda: (tensor(48, 33), tensor(48, 64), tensor(64, 33))),
    "a batch": (lambda h, x, w: with_norm(h + x @ w), lambda: (tensor(3, 5, 16, 32), tensor(3, 5, 16, 64), tensor(64, 32))),
    "a residual of rows": (lambda h, x, w: with_norm(h + x @ w), lambda: (tensor(32), tensor(48, 64), tensor(64, 32))),
    "no rows": (lambda h, x, w: with_norm(h + x @ w), lambda: (tensor(0, 32), tensor(0, 64), tensor(64, 32))),
    "the residual twice": (lambda h, x, w: with_norm((h + x @ w) + h), lambda: (tensor(48, 32), tensor(48, 64), tensor(64, 32))),
    "the product of the sum": (lambda h, x, w: with_norm(h + h @ w), lambda: (tensor(48, 32), tensor(1), tensor(32, 32))),
    "two products": (lambda h, x, w: with_norm(h @ w + x @ w), lambda: (tensor(48, 64), tensor(48, 64), tensor(64, 32))),
    "two square products": (lambda h, x, w: with_norm(h @ w + x @ w), lambda: (tensor(32, 32), tensor(32, 32), tensor(32, 32))),
    "a bias of one element": (lambda h, x, w, b: with_norm(h + torch.addmm(b, x, w)), lambda: (tensor(48, 32), tensor(48, 64), tensor(64, 32), tensor(1))),
    "on the host, beside the device": (lambda h, x, w, g: (*with_norm(h + x @ w), g + 1), lambda: (tensor(48, 32).cpu(), tensor(48, 64).cpu(), tensor(64, 32).cpu(), tensor(4))),
    "a row": (lambda h, x, w: with_norm(h + x @ w), lambda: (tensor(1, 32), tensor(1, 64), tensor(64, 32))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_layouts(name):
    program, make = PROGRAMS[name]
    check(program, *make())


def taken(program, *settings):
    """What the log of a process of its own says."""
    text = "import torch, oxyfuel\nimport torch.nn.functional as F\n" + "\n".join(settings) + """
def tensor(*sizes):
    return torch.randn(sizes, device="cuda", dtype=torch.bfloat16)
def with_norm(s):
    return s, F.layer_norm(s, s.shape[-1:])
h, x, w, b, c = tensor(48, 32), tensor(48, 64), tensor(64, 32), tensor(32), tensor(32, 64)
with torch.no_grad():
    f = oxyfuel.compile(lambda h, x, w, b, c: with_norm(PROGRAM))
    f(h, x, w, b, c), f(h, x, w, b, c)
""".replace("PROGRAM", program)
    run = subprocess.run([sys.executable, "-c", text], env=dict(os.environ, OXYFUEL_LOGS="timing"), check=True, capture_output=True, text=True)
    return [" ".join(line.split()[1:]) for line in run.stderr.splitlines() if "with a residual" in line]


@pytest.mark.parametrize("program", ["h + x @ w", "h + F.linear(x, c, b)", "torch.addmm(b, x, w) + h", "h + x @ c.t()", "h + x[:, 32:] @ c[:, 32:].t()"])
def test_the_library_takes(program):
    inner = 32 if ":" in program else 64
    assert taken(program) == [f"cuBLASLt computes 48 x {inner} x 32 with a residual"]


@pytest.mark.parametrize("setting", ["torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False", ""])
def test_settings_of_products(setting):
    assert len(taken("h + x @ w", setting)) == (0 if setting else 1)


def test_a_sum_that_one_kernel_reads_is_left_alone():
    check(lambda h, x, w: F.layer_norm(h + x @ w, (32,)), tensor(48, 32), tensor(48, 64), tensor(64, 32))
    assert count() == 0


class Block(nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.first, self.up, self.down = nn.Linear(width, width, bias), nn.Linear(width, 4 * width, bias), nn.Linear(4 * width, width, bias)

    def forward(self, x):
        x = x + self.first(self.norms[0](x))
        return x + self.down(F.silu(self.up(self.norms[1](x))))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dynamic", [None, True])
def test_a_stream(bias, dynamic):
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(128, bias) for _ in range(3)), nn.LayerNorm(128)).to(CUDA).bfloat16().eval()
    exact = nn.Sequential(*(Block(128, bias) for _ in range(3)), nn.LayerNorm(128)).to(CUDA).double().eval()
    exact.load_state_dict(model.state_dict())
    compiled = oxyfuel.compile(model, dynamic=dynamic)
    with torch.no_grad():
        for rows in (64, 64, 64, 64, 96, 7, 64):
            x = tensor(4, rows, 128)
            check_close(compiled(x), model(x), exact(x.double()))
    assert count() >= 5


@pytest.mark.parametrize("bias", [False, True])
def test_gradients(bias):
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(64, bias) for _ in range(2))).to(CUDA).bfloat16()
    compiled = oxyfuel.compile(model)
    for _ in range(4):
        x = tensor(8, 16, 64).requires_grad_()
        twin, exact = x.detach().clone().requires_grad_(), x.detach().double().requires_grad_()
        compiled(x).square().sum().backward()
        mine = [p.grad.clone() for p in model.parameters()] + [x.grad]
        model.zero_grad()
        model(twin).square().sum().backward()
        theirs = [p.grad.clone() for p in model.parameters()] + [twin.grad]
        model.zero_grad()
        parameters = {name: p.detach().double().requires_grad_() for name, p in model.named_parameters()}
        torch.func.functional_call(model, parameters, exact).square().sum().backward()
        best = [p.grad for p in parameters.values()] + [exact.grad]
        for own, other, right in zip(mine, theirs, best, strict=True):
            scale = right.abs().max().item() + 1e-6
            assert (own.double() - right).abs().max().item() <= 2 * (other.double() - right).abs().max().item() + 0.02 * scale


def test_streams_and_threads():
    weight = tensor(64, 64)
    compiled = oxyfuel.compile(lambda h, x: with_norm(h + x @ weight))
    problems = []

    def work():
        try:
            with torch.cuda.stream(torch.cuda.Stream()), torch.no_grad():
                for _ in range(20):
                    arguments = tensor(32, 64), tensor(32, 64)
                    result = compiled(*arguments)
                    expected = with_norm(arguments[0] + arguments[1] @ weight)
                    check_close(result, expected, tree_map(in_float64, expected))
                torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
