"""Functions that kernels compute to half precision's needs alone: all numbers of both types, in programs and alone."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

FUNCTIONS = {
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sigmoid": torch.sigmoid,
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "log of sigmoid": lambda x: torch.sigmoid(x).log(),
}


def relative(results, exact, counts):
    return ((results.double() - exact).abs() / exact.abs())[counts]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_numbers(name, dtype):
    function = FUNCTIONS[name]
    numbers = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(dtype).cuda()
    ours, eagers, exact = oxyfuel.compile(function)(numbers), function(numbers), function(numbers.double())
    assert torch.equal(ours.isnan(), eagers.isnan())
    counts = exact.isfinite() & eagers.isfinite() & (exact.abs() > torch.finfo(dtype).tiny)
    error, eager = relative(ours, exact, counts), relative(eagers, exact, counts)
    assert (error <= 1.5 * eager.clamp(min=torch.finfo(dtype).eps / 2)).all(), error.max()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gradients_of_gelu(dtype, approximate):
    def gradient(function, x):
        x = x.detach().requires_grad_()
        function(x, approximate=approximate).sum().backward()
        return x.grad

    numbers = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(dtype).cuda()
    numbers = numbers[numbers.isfinite() & (numbers.abs() < 100)]
    ours, eagers, exact = gradient(oxyfuel.compile(F.gelu), numbers), gradient(F.gelu, numbers), gradient(F.gelu, numbers.double())
    counts = exact.abs() > torch.finfo(dtype).tiny
    error, eager = relative(ours, exact, counts), relative(eagers, exact, counts)
    assert error.square().mean() <= 1.5 * eager.square().mean() and error.max() <= 2 * eager.max()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("threshold", [0.1, 1 / 3, -0.7])
def test_thresholds_that_halves_do_not_hold(threshold, dtype):
    """Eager's kernels for GPUs round them; those for the CPU do not."""

    def result_and_gradient(function, x):
        x = x.detach().requires_grad_()
        result = function(x)
        result.sum().backward()
        return result.detach(), x.grad

    numbers = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(dtype).cuda()
    numbers = numbers[numbers.isfinite()]
    function = lambda x: F.threshold(x * 1, threshold, 0.3)  # noqa: E731
    for ours, eagers in zip(result_and_gradient(oxyfuel.compile(function), numbers), result_and_gradient(function, numbers), strict=True):
        assert torch.equal(ours, eagers)


BESIDE_NUMBERS = {
    "sums": lambda x, h: (x + 0.1, 0.7 + x, x.clone().add_(-0.1), torch.add(x, x, alpha=0.3), x + 2049, x + h, h + x),
    "differences": lambda x, h: (x - 0.1, 0.3 - x, torch.rsub(x, 0.7), x - h, h - x),
    "products": lambda x, h: (x * 0.1, 0.1 * x, x * h, h * x),
    "quotients": lambda x, h: (x / 0.7, x / h, h / x, x // 0.7, x // h, torch.div(x, 0.3, rounding_mode="trunc")),
    "remainders": lambda x, h: (x % 0.7, 0.7 % x, torch.fmod(x, 0.3), x % h),
    "powers": lambda x, h: (x**0.5, x**-0.5, x**-1, x**2, x**3, x**-2),
    "logarithms": lambda x, h: (torch.xlogy(x, 0.3), torch.xlogy(0.3, x.abs())),
    "a tensor of the device": lambda x, h: (x + h.cuda() * 2, x * (h.cuda() * 2)),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", BESIDE_NUMBERS)
def test_numbers_beside_halves(name, dtype):
    """Eager's kernels read some of them, and tensors of the host without dimensions, as they are."""
    program = BESIDE_NUMBERS[name]
    x, number = torch.linspace(-3, 3, 250, device="cuda").to(dtype), torch.tensor(0.1)
    for ours, eagers in zip(oxyfuel.compile(program)(x, number), program(x, number), strict=True):
        assert ours.dtype == eagers.dtype
        assert torch.equal(ours.nan_to_num(7.0), eagers.nan_to_num(7.0))
