"""options={"wait": False} on a GPU: workers compile, calls run in eager meanwhile."""

import pytest
import torch
import torch.nn.functional as F
from comparison import check_close

import oxyfuel
from oxyfuel import _core

CUDA = torch.device("cuda")


@pytest.fixture(autouse=True)
def held():
    _core.hold_background()
    yield
    _core.release_background()
    _core.wait_for_background()


def finish():
    _core.release_background()
    _core.wait_for_background()
    _core.hold_background()


def program(x, w):
    return F.layer_norm((x @ w).relu() + x, (x.size(-1),)).softmax(-1)


def test_inference():
    compiled = oxyfuel.compile(program, fullgraph=True, options={"wait": False})
    x, w = torch.randn(33, 72, device=CUDA), torch.randn(72, 72, device=CUDA)
    for call in range(8):
        if call == 2:
            finish()
        check_close(compiled(x, w), program(x, w), program(x.double(), w.double()))
    metrics = oxyfuel.metrics()
    assert (metrics["calls_eager"], metrics["calls_compiled"], metrics["pending"]) == (2, 6, 0)
    explanation = oxyfuel.explain(compiled)(x, w)
    assert sum(segment["device_graphs"] for segment in explanation.segments) >= 1


def test_training():
    compiled = oxyfuel.compile(program, options={"wait": False})
    x, data = torch.randn(33, 72, device=CUDA), torch.randn(72, 72, device=CUDA)
    for call in range(8):
        if call == 2:
            finish()
        gradients = []
        for function in (compiled, program):
            w = data.clone().requires_grad_()
            function(x, w).square().sum().backward()
            gradients.append(w.grad)
        torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)
    metrics = oxyfuel.metrics()
    assert (metrics["calls_eager"], metrics["calls_compiled"], metrics["pending"]) == (2, 6, 0)


def test_while_the_program_records_a_graph():
    """The background does not touch the driver while the program records; eager's work is what is recorded."""
    compiled = oxyfuel.compile(program, options={"wait": False})
    x, w = torch.randn(40, 80, device=CUDA), torch.randn(80, 80, device=CUDA)
    for _ in range(2):
        program(x, w)
    compiled(x, w)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        finish()
        result = program(x, w)
    graph.replay()
    torch.testing.assert_close(result, program(x, w))
    torch.testing.assert_close(compiled(x, w), program(x, w), rtol=1e-4, atol=1e-5)
    assert oxyfuel.metrics()["calls_compiled"] == 1


def test_reset_and_end_of_the_process():
    import subprocess
    import sys

    code = """
import torch, oxyfuel
def f(x):
    for k in range(30):
        x = (x * k).softmax(-1).sum(0, keepdim=True) + x.sin()
    return x
x = torch.randn(37, 53, device="cuda")
g = oxyfuel.compile(f, options={"wait": False})
g(x)
oxyfuel.reset()
g(x)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr
