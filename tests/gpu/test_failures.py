"""What fails on the device: memory that is not there, and a child of a fork."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import oxyfuel

if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

CUDA = torch.device("cuda")
CALLS = 5  # the third one records its work, and those behind it replay it


@pytest.fixture
def little_memory():
    """A function that leaves PyTorch so many bytes, or all of the device again."""
    total = torch.cuda.get_device_properties(0).total_memory

    def leave(size=None):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        taken = torch.cuda.memory_reserved() + size if size is not None else total
        torch.cuda.set_per_process_memory_fraction(min(taken / total, 1.0))

    yield leave
    leave()


def refuses(call):
    with pytest.raises(torch.OutOfMemoryError):
        call()


def products(x, w):
    return ((x @ w).relu() @ w).tanh().sum(0)


@pytest.mark.parametrize("calls", [0, 1, CALLS])
def test_a_call_without_memory(calls, little_memory):
    x, w = torch.randn(4096, 1024, device=CUDA), torch.randn(1024, 1024, device=CUDA) / 32
    larger = torch.randn(16 * 4096, 1024, device=CUDA)
    expected = products(x, w)
    compiled = oxyfuel.compile(products)
    for _ in range(calls):
        torch.testing.assert_close(compiled(x, w), expected, rtol=1e-3, atol=1e-2)
    little_memory(1 << 20)
    refuses(lambda: products(larger, w))
    refuses(lambda: compiled(larger, w))
    little_memory()
    for _ in range(CALLS):
        torch.testing.assert_close(compiled(x, w), expected, rtol=1e-3, atol=1e-2)
        torch.testing.assert_close(compiled(larger, w), products(larger, w), rtol=1e-3, atol=1e-1)


def test_a_backward_pass_without_memory(little_memory):
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4))).to(CUDA)
    compiled = oxyfuel.compile(model)

    def gradients(call, x):
        model.zero_grad()
        call(x).square().mean().backward()
        return [p.grad.clone() for p in model.parameters()]

    small, large = torch.randn(64, 1024, device=CUDA), torch.randn(1 << 16, 1024, device=CUDA)
    expected = gradients(model, small)
    for _ in range(CALLS):
        torch.testing.assert_close(gradients(compiled, small), expected, rtol=1e-3, atol=1e-4)
    little_memory(64 << 20)
    refuses(lambda: gradients(model, large))
    refuses(lambda: gradients(compiled, large))
    little_memory()
    for x in (small, large) * 2:
        torch.testing.assert_close(gradients(compiled, x), gradients(model, x), rtol=1e-3, atol=1e-4)


def test_a_call_without_memory_has_written_nothing_twice(little_memory):
    """What the call wrote before it failed may stay, as in eager; a later call is right."""
    counter, w = torch.zeros(4, device=CUDA), torch.randn(1024, 1024, device=CUDA) / 32

    def count(counter, x, w):
        counter += 1
        return products(x, w)

    compiled = oxyfuel.compile(count)
    small, large = torch.randn(64, 1024, device=CUDA), torch.randn(1 << 16, 1024, device=CUDA)
    for _ in range(CALLS):
        compiled(counter, small, w)
    little_memory(1 << 20)
    refuses(lambda: compiled(counter, large, w))
    little_memory()
    compiled(counter, small, w)
    assert counter.tolist() in ([CALLS + 1.0] * 4, [CALLS + 2.0] * 4)


FORKS = """
import os, signal, torch, oxyfuel

def function(x):
    return (x * 2).sin().sum()

compiled = oxyfuel.compile(function)
x = torch.ones(1000, device="cuda")
for _ in range(CALLS):
    compiled(x)
torch.cuda.synchronize()

def what(call):
    try:
        return f"{call():.0f}"
    except Exception as error:
        return type(error).__name__

def in_child(call):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os.write(writing, what(call).encode())
        os._exit(0)
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0, "the child did not end by itself"
    return os.read(reading, 1000).decode()

def other(x):
    return (x * 3).cos().sum()

fresh = oxyfuel.compile(other)
for ours, eager in (
    (lambda: compiled(x).item(), lambda: function(x).item()),
    (lambda: fresh(x).item(), lambda: other(x).item()),
    (lambda: compiled(torch.ones(3, device="cuda")).item(), lambda: function(torch.ones(3, device="cuda")).item()),
    (lambda: compiled(torch.ones(3)).item(), lambda: function(torch.ones(3)).item()),
):
    print(in_child(ours), in_child(eager))
print(what(lambda: compiled(x).item()), what(lambda: function(x).item()))
print(what(lambda: fresh(x).item()), what(lambda: other(x).item()))
"""


@pytest.mark.parametrize("calls", [0, 1, CALLS])
def test_a_child_of_a_fork_fails_as_in_eager(calls, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(FORKS.replace("CALLS", str(calls)))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        ours, eager = line.split()
        assert ours == eager, done.stdout
    assert len(done.stdout.splitlines()) == 6
