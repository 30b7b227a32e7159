"""The state of the process that torch reads unseen: an answer follows it, whoever changes it."""


import pytest
import torch
import torch.nn as nn

import oxyfuel
from eager_comparison import outcome, program


def x23():
    return torch.arange(6.0).reshape(2, 3)


@pytest.fixture
def defaults():
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    yield
    torch.set_default_dtype(dtype)
    torch.set_num_threads(threads)


def test_grad_and_inference_mode():
    f = oxyfuel.compile(lambda x: (x * 2, torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
    for _ in range(2):
        for mode, expected in ((torch.no_grad, (False, False)), (torch.inference_mode, (False, True)), (torch.enable_grad, (True, False))):
            x = x23()
            with mode():
                y, *state = f(x)
            assert tuple(state) == expected
            assert y.is_inference() == expected[1]
            torch.testing.assert_close(y, x * 2)


def test_inference_tensors_into_no_grad():
    f = oxyfuel.compile(lambda x: x + 1)
    with torch.inference_mode():
        x = x23()
        f(x)
    with torch.no_grad():
        y = f(x)
        assert not y.is_inference()
        torch.testing.assert_close(y, x23() + 1)


@program(grad=True)
def test_parameters_made_under_inference_mode(compile):
    with torch.inference_mode():
        model = torch.nn.Linear(3, 2)
    x, results = x23(), []
    compiled = compile(model)
    for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with mode():
            y = compiled(x)
            results.append((y.requires_grad, y.is_inference(), y.shape))
    return results, outcome(compiled, x23().requires_grad_())[0]


@program()
def test_default_dtype(compile):
    f = compile(lambda x: (torch.ones(2), torch.tensor(1.5), x.long() / 2, torch.arange(0.0, 1.0, 0.5), x * 2))
    results = [f(x23())]
    torch.set_default_dtype(torch.float64)
    try:
        results.append(f(x23()))
    finally:
        torch.set_default_dtype(torch.float32)
    return results + [f(x23())]


@program()
def test_autocast_around(compile):
    net = nn.Linear(3, 3)
    for p in net.parameters():
        p.fill_(0.5)
    f = compile(net)
    results = [f(x23())]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        results.append(f(x23()))
    with torch.autocast("cpu", dtype=torch.float16):
        results.append(f(x23()))
    with torch.autocast("cpu", enabled=False):
        results.append(f(x23()))
    return results + [f(x23())]


@program()
def test_autocast_of_other_devices(compile):
    @compile
    def f(x):
        return torch.is_autocast_enabled("cuda"), torch.is_autocast_enabled("xpu"), torch.get_autocast_gpu_dtype(), x + 1

    results = [f(x23())]
    for device in ("cuda", "xpu"):
        torch.set_autocast_enabled(device, True)
        try:
            results.append(f(x23()))
        finally:
            torch.set_autocast_enabled(device, False)
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    try:
        results.append(f(x23()))
    finally:
        torch.set_autocast_dtype("cuda", torch.float16)
    return results + [f(x23())]


def test_number_of_threads(defaults):
    f = oxyfuel.compile(lambda x: (x * 2).sum())
    x = torch.randn(64, 1024)
    with torch.no_grad():
        for threads in (1, 2, 1, 2):
            torch.set_num_threads(threads)
            torch.testing.assert_close(f(x), (x * 2).sum(), rtol=1e-4, atol=1e-3)
            torch.testing.assert_close(f(x), (x * 2).sum(), rtol=1e-4, atol=1e-3)


@program()
def test_default_device_and_torch_function_modes(compile):
    from torch.overrides import TorchFunctionMode

    class Counting(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            Counting.calls += 1
            return func(*args, **(kwargs or {}))

    f = compile(lambda x: torch.ones(2, 3) + x)
    results = [f(x23())]
    with Counting():
        results.append(f(x23()))
    results.append(Counting.calls)
    with torch.device("meta"):
        results.append(outcome(lambda: torch.ones(2).device.type))
    with torch.device("cpu"):
        results.append(f(x23()))
    return results + [f(x23())]


@program()
def test_deterministic_algorithms(compile):
    f = compile(lambda x: (x + 1, torch.are_deterministic_algorithms_enabled()))
    results = [f(x23())]
    torch.use_deterministic_algorithms(True)
    try:
        results.append(f(x23()))
    finally:
        torch.use_deterministic_algorithms(False)
    return results + [f(x23())]


def test_traced_by_torch_jit():
    function = lambda x: (x * 2).sin()
    compiled = oxyfuel.compile(function)
    x = torch.ones(2, 3)
    compiled(x)
    traced = torch.jit.trace(lambda x: compiled(x) + x, x, check_trace=False)
    torch.testing.assert_close(traced(x * 3), function(x * 3) + x * 3)
    module = oxyfuel.compile(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    torch.testing.assert_close(torch.jit.trace(module, x)(x * 3), module(x * 3))


@pytest.mark.parametrize("device", ["cpu", "meta"])
@program()
def test_a_device_for_a_block(compile, device):
    @compile
    def f(x, fails):
        with torch.device(device):
            made = torch.ones(2)
            print(made.device)
            if fails:
                raise ValueError("in the block")
        return x + 1, made.device

    @compile
    def entered(x):
        block = torch.device(device)
        block.__enter__()
        made = torch.ones(2).device
        block.__exit__(None, None, None)
        return x + 1, made

    results = [outcome(f, torch.ones(2), fails) for fails in (False, True, False)]
    return results, entered(torch.ones(2)), entered(torch.ones(2)), torch.ones(1).device, torch._C._len_torch_function_stack()
