"""Attention that a program writes as products and a softmax becomes one operator, and stays what it is in eager."""

import math

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

BATCH, HEADS, ROWS, KEYS, WIDTH = 2, 4, 272, 280, 32
MODEL = HEADS * WIDTH
EPSILON = torch.finfo(torch.float64).eps


def numbers(*sizes, dtype=torch.float32):
    return torch.randn(*sizes, dtype=torch.float64).to(dtype)


def heads(dtype=torch.float32, rows=ROWS, keys=None, key_heads=HEADS):
    """Query, keys and values as projections give them: [batch, rows, heads, width], transposed."""
    keys = rows if keys is None else keys
    sizes = ((rows, HEADS), (keys, key_heads), (keys, key_heads))
    return [numbers(BATCH, length, count, WIDTH, dtype=dtype).transpose(1, 2) for length, count in sizes]


def padding(dtype=torch.float32, number=None, rows=1, keys=ROWS):
    """A mask that hides a fourth of the keys of the first sequence."""
    mask = torch.zeros(BATCH, 1, rows, keys, dtype=dtype)
    mask[0, :, :, keys - keys // 4:] = torch.finfo(dtype).min if number is None else number
    return mask


def causal(rows=ROWS):
    return torch.ones(rows, rows, dtype=torch.bool).tril()


def with_symbols(tensors):
    """Batches and lengths may be others at later calls."""
    tensors = [tensor.view_as(tensor) for tensor in tensors]
    for tensor in tensors:
        for dimension, size in enumerate(tensor.shape):
            if size in (BATCH, ROWS, KEYS):
                oxyfuel.mark_dynamic(tensor, dimension)
    return tensors


def run(function, *args, dynamic=False):
    """The result, and how many calls of libraries it took."""
    oxyfuel.reset()
    with torch.no_grad():
        result = oxyfuel.compile(function)(*(with_symbols(args) if dynamic else args))
    return result, oxyfuel.metrics()["extern_calls"]


def in_double(value):
    if isinstance(value, torch.nn.Module):
        raise TypeError("modules are not compared in float64")
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def check(function, *args, calls=1, **options):
    """As close to float64 as eager, within a factor of 2."""
    with torch.no_grad():
        expected = function(*args)
        exact = function(*[in_double(argument) for argument in args])
    actual, found = run(function, *args, **options)
    assert (actual.dtype, actual.shape, actual.stride()) == (expected.dtype, expected.shape, expected.stride())
    assert torch.equal(actual.isnan(), expected.isnan())
    known = ~exact.isnan()
    errors = [(result.double() - exact)[known].abs().max().item() if known.any() else 0 for result in (actual, expected)]
    allowed = 50 * EPSILON if expected.dtype == torch.float64 else 2 * errors[1] + torch.finfo(expected.dtype).eps / 2
    assert errors[0] <= allowed, errors
    assert found == calls, f"{found} calls"


def plain(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(WIDTH), -1) @ v


def bert(q, k, v, mask):
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1)) + mask
    return torch.matmul(F.dropout(F.softmax(scores, dim=-1), 0.1, training=False), v).permute(0, 2, 1, 3).contiguous()


def nanogpt(q, k, v, bias):
    rows = q.size(-2)
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    scores = scores.masked_fill(bias[:, :, :rows, :rows] == 0, float("-inf"))
    return (F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(q.size(0), rows, -1)


def gpt2(q, k, v, bias, mask):
    weights = torch.matmul(q, k.transpose(-1, -2))
    weights = weights / torch.full([], v.size(-1) ** 0.5, dtype=torch.float32 if v.dtype == torch.bfloat16 else v.dtype)
    rows, keys = q.size(-2), k.size(-2)
    shown = bias[:, :, keys - rows : keys, :keys]
    lowest = torch.full([], torch.finfo(weights.dtype).min, dtype=weights.dtype)
    weights = torch.where(shown, weights.to(weights.dtype), lowest) + mask
    return torch.matmul(F.softmax(weights, dim=-1).type(v.dtype), v).transpose(1, 2)


def t5(q, k, v, position_bias):
    scores = torch.matmul(q, k.transpose(3, 2))
    scores += position_bias
    weights = F.softmax(scores.float() if scores.dtype != torch.float64 else scores, dim=-1).type_as(scores)
    return torch.matmul(weights, v).transpose(1, 2).contiguous().view(q.size(0), -1, MODEL)


def repeat_kv(x, count):
    batch, groups, rows, width = x.shape
    return x[:, :, None].expand(batch, groups, count, rows, width).reshape(batch, groups * count, rows, width)


def llama(q, k, v, mask):
    k, v = repeat_kv(k, HEADS // k.size(1)), repeat_kv(v, HEADS // v.size(1))
    weights = torch.matmul(q, k.transpose(2, 3)) * WIDTH**-0.5 + mask[:, :, :, : k.shape[-2]]
    weights = F.softmax(weights, dim=-1, dtype=torch.float64 if q.dtype == torch.float64 else torch.float32).to(q.dtype)
    return torch.matmul(weights, v).transpose(1, 2).contiguous()


def opt(q, k, v, mask):
    """Batches and heads are one dimension, but for the mask."""
    batch, count, rows, width = q.shape
    q, k, v = [x.reshape(batch * count, -1, width) for x in (q * width**-0.5, k, v)]
    weights = torch.bmm(q, k.transpose(1, 2)).view(batch, count, rows, -1) + mask
    weights = F.softmax(weights.view(batch * count, rows, -1), dim=-1)
    return torch.bmm(weights, v).view(batch, count, rows, width).transpose(1, 2).reshape(batch, rows, -1)


def einsum(q, k, v):
    weights = torch.einsum("bhid,bhjd->bhij", q, k) * 0.2
    return torch.einsum("bhij,bhjd->bhid", weights.softmax(dim=-1), v)


def einsum_of_rows(q, k, v):
    q, k, v = [x.transpose(1, 2) for x in (q, k, v)]
    weights = torch.einsum("blhd,bshd->bhls", q, k) * 0.2
    return torch.einsum("bhls,bshd->blhd", weights.softmax(dim=-1), v)


def hidden_by_a_billion(q, k, v, shown):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(WIDTH)
    return torch.matmul(scores.masked_fill(shown == 0, -1e9).softmax(dim=-1), v)


def three_dimensions(q, k, v):
    q, k, v = [x.flatten(0, 1) for x in (q, k, v)]
    return torch.softmax(torch.bmm(q, k.transpose(1, 2)) / 4, 2) @ v


def bias():
    return torch.ones(1, 1, 2 * ROWS, 2 * ROWS).tril()


PROGRAMS = {
    "plain": (plain, lambda dtype: heads(dtype)),
    "three dimensions": (three_dimensions, lambda dtype: heads(dtype)),
    "other keys": (plain, lambda dtype: heads(dtype, keys=KEYS)),
    "bert": (bert, lambda dtype: [*heads(dtype), padding(dtype)]),
    "nanogpt": (nanogpt, lambda dtype: [*heads(dtype), bias()]),
    "gpt2": (gpt2, lambda dtype: [*heads(dtype), bias() == 1, padding(dtype, -5.0)]),
    "t5": (t5, lambda dtype: [*heads(dtype), numbers(1, HEADS, ROWS, ROWS, dtype=dtype)]),
    "llama": (llama, lambda dtype: [*heads(dtype, key_heads=2), padding(dtype, -3.0, ROWS)]),
    "opt": (opt, lambda dtype: [*heads(dtype), padding(dtype, -2.0, ROWS)]),
    "einsum": (einsum, lambda dtype: heads(dtype)),
    "einsum of rows": (einsum_of_rows, lambda dtype: heads(dtype)),
    "a billion": (hidden_by_a_billion, lambda dtype: [*heads(dtype), padding(dtype, 1) == 0]),
    "scale of the query": (lambda q, k, v: torch.softmax((q * 0.3) @ k.mT, -1) @ v, lambda dtype: heads(dtype)),
    "scale of the keys": (lambda q, k, v: torch.softmax(q @ (k / 3).mT, -1) @ v, lambda dtype: heads(dtype)),
    "scale of both": (lambda q, k, v: torch.softmax((q * 0.5) @ (k.mT * 0.5), -1) @ v, lambda dtype: heads(dtype)),
    "two masks": (lambda q, k, v, a, b: torch.softmax((q @ k.mT + a) / 4 + b, -1) @ v,
                  lambda dtype: [*heads(dtype), padding(dtype, -4.0), numbers(ROWS, ROWS, dtype=dtype)]),
    "a bias taken away": (lambda q, k, v, a: torch.softmax(q @ k.mT / 6 - a, -1) @ v,
                          lambda dtype: [*heads(dtype), numbers(HEADS, 1, ROWS, dtype=dtype)]),
    "a mask in columns": (lambda q, k, v, a: torch.softmax(q @ k.mT / 6 + a.t(), -1) @ v,
                          lambda dtype: [*heads(dtype), numbers(ROWS, ROWS, dtype=dtype)]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, dtype):
    function, arguments = PROGRAMS[name]
    check(function, *arguments(dtype))


# The others cut a mask or ask for a size of -1: such a size is an expression of its own.
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("llama", "opt")])
def test_sizes_that_change(name):
    function, arguments = PROGRAMS[name]
    check(function, *arguments(torch.float32), dynamic=True)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_rows_whose_keys_are_all_hidden_are_nan(dtype, dynamic):
    q, k, v = heads(dtype)
    shown = causal()
    shown[3] = False
    additive = torch.zeros(ROWS, ROWS, dtype=dtype).masked_fill(~shown, -torch.inf)
    one_head = torch.zeros(HEADS, 1, ROWS, dtype=dtype)
    one_head[1] = -torch.inf

    def filled(q, k, v, shown):
        return (q @ k.mT / 5).masked_fill(~shown, -torch.inf).softmax(-1) @ v

    def added(q, k, v, mask):
        return (q @ k.mT / 5 + mask).softmax(-1) @ v

    check(filled, q, k, v, shown, dynamic=dynamic)
    check(added, q, k, v, additive, dynamic=dynamic)
    check(added, q, k, v, one_head, dynamic=dynamic)
    # A row of zeros that sees one key has the logarithm 0, and is not hidden.
    check(filled, q * 0, k * 0, v * 0, shown, dynamic=dynamic)
    check(filled, q, k, v, torch.zeros_like(shown), dynamic=dynamic)


@pytest.mark.parametrize("number", [-1e9, -1e30, torch.finfo(torch.float32).min])
def test_rows_hidden_by_a_number_are_means(number):
    q, k, v = heads()
    shown = causal()
    shown[3] = False

    def filled(q, k, v, shown):
        return (q @ k.mT * 10).masked_fill(~shown, number).softmax(-1) @ v

    check(filled, q, k, v, shown)
    result, _ = run(filled, q, k, v, shown)
    torch.testing.assert_close(result[:, :, 3], v.mean(2))


def test_the_lowest_number_of_half_precision():
    q, k, v = heads(torch.float16)
    shown = causal()
    shown[3] = False

    def filled(q, k, v, shown):
        return (q @ k.mT / 5).masked_fill(~shown, -65504).softmax(-1) @ v

    result, calls = run(filled, q, k, v, shown)
    assert calls == 1
    torch.testing.assert_close(result, filled(q, k, v, shown), atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("special", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("place", range(3))
def test_operands_that_are_not_finite(place, special):
    operands = heads()
    operands[place][1, 2, 5] = special if place == 2 else torch.nan
    for rows in (1, 5, ROWS):
        given = [operand[:, :, :rows] for operand in operands]
        assert torch.equal(run(plain, *given)[0].isfinite(), plain(*given).isfinite())


REFUSED = {
    "probabilities are a result": lambda q, k, v: [p := torch.softmax(q @ k.mT, -1), p @ v][1:] + [p],
    "scores are a result": lambda q, k, v: [s := q @ k.mT, torch.softmax(s, -1) @ v],
    "another dimension": lambda q, k, v: [torch.softmax(q @ k.mT, -2) @ v],
    "a factor below 0": lambda q, k, v: [torch.softmax(q @ k.mT * -0.1, -1) @ v],
    "a factor of 0": lambda q, k, v: [torch.softmax(q @ k.mT * 0.0, -1) @ v],
    "a number that hides nothing": lambda q, k, v: [(q @ k.mT).masked_fill(q[..., :1] > 0, -50.0).softmax(-1) @ v],
    "a factor for each head": lambda q, k, v: [torch.softmax(q @ k.mT * q[0, :, :1, :1], -1) @ v],
    "a function": lambda q, k, v: [torch.softmax((q @ k.mT).tanh(), -1) @ v],
    "narrow values": lambda q, k, v: [torch.softmax(q @ k.mT, -1) @ v[..., :8]],
    "probabilities are read twice": lambda q, k, v: [p := torch.softmax(q @ k.mT, -1), p @ v + p @ k][1:],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_such_attention(name):
    operands = heads()
    function = REFUSED[name]
    results, calls = run(function, *operands)
    assert calls >= 2
    for result, expected in zip(results, function(*operands)):
        torch.testing.assert_close(result, expected)


def test_dropout():
    def attend(q, k, v):
        return F.dropout(torch.softmax(q @ k.mT / 4, -1), 0.5) @ v

    operands = heads()
    torch.manual_seed(3)
    expected = attend(*operands)
    torch.manual_seed(3)
    result, _ = run(attend, *operands)
    torch.testing.assert_close(result, expected)
    check(lambda q, k, v: F.dropout(torch.softmax(q @ k.mT / 4, -1), 0.0) @ v, *operands)


def test_many_sizes():
    """One compilation, sizes 0 and 1 among its calls."""
    def attend(q, k, v, bias, mask):
        scores = (q @ k.mT / 4 + bias).masked_fill(mask, -torch.inf)
        return scores.softmax(-1) @ v

    compiled = oxyfuel.compile(attend)
    for batch, rows, keys in ((BATCH, ROWS, KEYS), (3, 170, 160), (1, 160, 180), (2, 1, 300), (2, 5, 1), (0, 4, 4), (2, 0, 4), (2, 4, 0)):
        q, k, v = numbers(batch, HEADS, rows, WIDTH), numbers(batch, HEADS, keys, WIDTH), numbers(batch, HEADS, keys, WIDTH)
        arguments = [q, k, v, numbers(HEADS, rows, keys), torch.rand(batch, 1, 1, keys) < 0.3]
        if rows == ROWS:
            arguments = with_symbols(arguments)
        with torch.no_grad():
            result, expected = compiled(*arguments), attend(*arguments)
        assert result.stride() == expected.stride()
        torch.testing.assert_close(result, expected, equal_nan=True)


def test_autocast():
    def attend(q, k, v):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.softmax(q @ k.mT / 4, -1) @ v

    operands = heads()
    result, calls = run(attend, *operands)
    assert calls == 1
    torch.testing.assert_close(result, attend(*operands), atol=2e-2, rtol=2e-2)


class Block(torch.nn.Module):
    """As nanoGPT has it."""

    def __init__(self, width=64, heads=4, length=256):
        super().__init__()
        self.attention, self.projection, self.heads = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width), heads
        self.register_buffer("bias", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        batch, rows, width = x.size()
        parts = self.attention(x).split(width, dim=2)
        q, k, v = [part.view(batch, rows, self.heads, width // self.heads).transpose(1, 2) for part in parts]
        return self.projection(nanogpt(q, k, v, self.bias))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_module(dynamic):
    block = Block().eval()
    compiled = oxyfuel.compile(block, dynamic=dynamic)
    for rows in (128, 200, 256):
        x = numbers(2, rows, 64)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), block(x))
    # With gradients probabilities are read by the backward pass.
    x = numbers(2, 128, 64).requires_grad_()
    expected, = torch.autograd.grad(block(x).sin().sum(), x)
    actual, = torch.autograd.grad(compiled(x).sin().sum(), x)
    torch.testing.assert_close(actual, expected)
