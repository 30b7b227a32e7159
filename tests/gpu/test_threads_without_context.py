"""Threads in which nothing of CUDA has run: the driver's context of the device is not theirs yet."""

import ctypes
import subprocess
import sys
import threading

import pytest
import torch

import oxyfuel

CUDA = torch.device("cuda")


def has_context():
    context = ctypes.c_void_p()
    assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
    return context.value is not None


def in_new_thread(function):
    """What the function returns in a thread of its own, and whether that thread had a context before."""
    results = []

    def work():
        try:
            results.extend([has_context(), function()])
        except Exception as error:  # noqa: BLE001
            results.extend([False, error])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return results


@pytest.mark.parametrize("calls", [1, 6], ids=["launched", "replayed"])
@pytest.mark.parametrize("graphs", [True, False], ids=["graphs", "no graphs"])
def test_calls(calls, graphs):
    x = torch.randn(64, 64, device=CUDA)

    def function(x):
        return (x * 2).softmax(-1) + x.sum(0)

    compiled = oxyfuel.compile(function, fullgraph=True, options={"graphs": graphs})
    with torch.no_grad():
        for _ in range(calls):
            compiled(x)
        before, result = in_new_thread(lambda: compiled(x).detach())
    assert not before
    torch.testing.assert_close(result, function(x))


def test_dropouts():
    x = torch.ones(1000, device=CUDA)
    compiled = oxyfuel.compile(lambda x: torch.nn.functional.dropout(x, 0.5) * 2, fullgraph=True)
    for _ in range(6):
        compiled(x)
    before, result = in_new_thread(lambda: compiled(x))
    assert not before
    assert set(result.unique().tolist()) == {0.0, 4.0}


BACKWARD = """
import torch, oxyfuel

def function(x, y):
    return (x * y).softmax(-1) * x

x, y = (torch.randn(64, 64, device="cuda", requires_grad=True) for _ in range(2))
gradient = torch.randn(64, 64, device="cuda")
compiled = oxyfuel.compile(function, fullgraph=True)
for _ in range(calls):
    x.grad = y.grad = None
    compiled(x, y).backward(gradient)
expected = torch.autograd.grad(function(x, y), [x, y], gradient)
torch.testing.assert_close([x.grad, y.grad], list(expected))
"""


@pytest.mark.parametrize("calls", [1, 6])
def test_first_backward_pass_of_a_process(calls):
    """The thread of backward passes begins with generated kernels."""
    done = subprocess.run([sys.executable, "-c", f"calls = {calls}\n{BACKWARD}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
