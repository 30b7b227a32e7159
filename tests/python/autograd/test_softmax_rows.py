"""Softmaxes of halves: the backward pass gets the halves, and the maximum and the sum of each row."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

ROWS, COLUMNS = 40, 8192  # more than a megabyte of single precision
LABELS = torch.arange(ROWS) * 7 % COLUMNS
OPERANDS = {
    "given": lambda x: x,
    "computed": lambda x: x * 1.7 + x.sin(),
    "product": lambda x: x[:, :16] @ x[:16],
    "large, of a root": lambda x: (x * x * 50 + x.abs() * 3).sqrt() * 30,
}
FUNCTIONS = {
    "cross entropy": lambda x: F.cross_entropy(x.float(), LABELS),
    "softmax": lambda x: (F.softmax(x.float(), -1) * torch.linspace(0, 9, COLUMNS)).sum(),
    "softmax of columns": lambda x: (F.softmax(x.float(), 0) * torch.linspace(0, 9, ROWS)[:, None]).sum(),
    "softmax and its logarithm": lambda x: (F.softmax(x.float(), -1) * F.log_softmax(x.float(), -1)).sum(),
    "masked": lambda x: F.log_softmax(x.float().masked_fill(torch.arange(COLUMNS) % 3 == 0, -torch.inf), -1)[:, 1].sum(),
}


@pytest.mark.parametrize("options", [{}, {"wait": False}], ids=["compiled", "interpreted at first"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_softmaxes_of_halves(name, operand, dtype, options):
    function = lambda x: FUNCTIONS[name](OPERANDS[operand](x))  # noqa: E731
    x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(5)).to(dtype).requires_grad_()
    wide = x.detach().double().requires_grad_()
    exact = torch.autograd.grad(function(wide), wide)[0]
    off = []
    for call in (function, oxyfuel.compile(function, options=options)):
        result = call(x)
        gradient = torch.autograd.grad(result, x)[0]
        assert gradient.dtype == dtype and gradient.stride() == x.stride()
        off.append((gradient.double() - exact).norm().item())
    assert off[1] <= 1.1 * off[0] + 1e-3 * exact.norm().item(), off


def test_rows_of_any_length_share_a_program():
    """Forward and backward pass, and the numbers of a row of each length."""
    compiled = oxyfuel.compile(lambda x: F.cross_entropy(x.float(), torch.zeros(x.shape[0], dtype=torch.int64)), dynamic=True)
    for rows, columns in ((40, 8192), (33, 9000), (64, 8191), (1, 50000)):
        x = torch.randn(rows, columns).bfloat16().requires_grad_()
        gradient = torch.autograd.grad(compiled(x), x)[0]
        labels = torch.zeros(rows, dtype=torch.int64)
        expected = torch.autograd.grad(F.cross_entropy(x.float(), labels), x)[0]
        torch.testing.assert_close(gradient, expected, rtol=2e-2, atol=1e-6)


@pytest.mark.parametrize("shift", ["shifted", "flat"])
def test_logits_of_a_language_model(shift):
    """The logits are reshaped between their conversion and the loss, and returned: a write to them changes no gradient."""

    def program(x, w):
        logits = x @ w
        wide = logits.float()
        wide, labels = (wide[:, :-1], LABELS[:38]) if shift == "shifted" else (wide, LABELS)
        return F.cross_entropy(wide.reshape(-1, COLUMNS), labels), logits

    x, w = torch.randn(2, 20, 32).bfloat16().requires_grad_(), torch.randn(32, COLUMNS).bfloat16().requires_grad_()
    results = []
    for call in (program, oxyfuel.compile(program)):
        loss, logits = call(x, w)
        logits.data.zero_()
        results.append(torch.autograd.grad(loss, (x, w)))
    for expected, found in zip(*results):
        torch.testing.assert_close(found, expected, rtol=2e-2, atol=1e-4)


@pytest.mark.parametrize("dynamic", [None, True])
def test_rows_of_computed_sizes(dynamic):
    """The sizes of what is normalised are written in other ways than those of its result."""
    programs = [
        lambda q: F.softmax((q * 2).view(q.shape[0], -1, 2, q.shape[2] // 2).float(), -1),
        lambda q: F.log_softmax(q.view(q.shape[0], -1, 2, q.shape[2] // 2).float(), -1),
        lambda q: F.softmax(q.view(-1, q.shape[2] // 4).float(), 0),
    ]
    for program in programs:
        oxyfuel.reset()
        compiled = oxyfuel.compile(program, dynamic=dynamic)
        for sizes in ((40, 30, 512), (41, 31, 512), (2, 300, 1024)):
            q = torch.randn(sizes).bfloat16().requires_grad_()
            gradients = [torch.autograd.grad(f(q).square().sum(), q)[0] for f in (program, compiled)]
            torch.testing.assert_close(*gradients, rtol=5e-2, atol=1e-3)
        assert oxyfuel.metrics()["calls_eager"] == 0


@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.3, -0.7, 1 / 3])
def test_thresholds_that_halves_do_not_hold(threshold):
    for dtype in (torch.bfloat16, torch.float16):
        near = torch.tensor(threshold, dtype=dtype)
        x = torch.stack([near, near * 1.01, near * 0.99, near + 1, near - 1]).requires_grad_()
        function = lambda x: F.threshold(x * 1, threshold, 0.0)  # noqa: E731
        assert torch.equal(*(torch.autograd.grad(f(x).sum(), x)[0] for f in (function, oxyfuel.compile(function))))
