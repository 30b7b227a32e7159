"""Operators on parts of tensors that data choose: one graph each, whatever is chosen, and eager's results and gradients."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel

MODULES = {
    "conv1d": torch.nn.Conv1d(4, 6, 3, padding=1), "conv2d": torch.nn.Conv2d(1, 2, 3, padding=1), "lstm": torch.nn.LSTM(4, 5, batch_first=True),
    "mha": torch.nn.MultiheadAttention(4, 2, batch_first=True).eval(), "encoder": torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(),
}  # fmt: skip
WEIGHT, TABLE = torch.rand(5, 4), torch.rand(10, 4)


def assigned(v):
    out = torch.zeros(20)
    out[: v.numel()] = v
    return out


# Of a vector and of rows of four, both as long as data tell.
OPERATORS = {
    "topk": lambda v, m: v.topk(2)[0],
    "topk rows": lambda v, m: m.topk(2, 0)[0],
    "topk n": lambda v, m: v.topk(v.numel() // 2)[0],
    "sort": lambda v, m: v.sort()[0],
    "argsort": lambda v, m: m.argsort(0),
    "cumsum": lambda v, m: v.cumsum(0),
    "cummax": lambda v, m: v.cummax(0)[0],
    "conv1d": lambda v, m: MODULES["conv1d"](m.t()[None]),
    "conv1d b": lambda v, m: F.conv1d(m[:, None], WEIGHT[:2, None, :3]),
    "conv2d": lambda v, m: MODULES["conv2d"](m[None, None]),
    "chunk": lambda v, m: v.chunk(2)[0],
    "split half": lambda v, m: v.split([1, v.numel() - 1])[1],
    "scatter_add": lambda v, m: torch.zeros(3).scatter_add(0, torch.zeros_like(v, dtype=torch.long), v),
    "scatter into": lambda v, m: torch.zeros_like(v).scatter_add(0, torch.arange(v.numel()), v),
    "scatter rows": lambda v, m: torch.zeros(9, 4).scatter_add(0, torch.zeros_like(m, dtype=torch.long), m),
    "index_add": lambda v, m: torch.zeros(3, 4).index_add(0, torch.zeros(m.size(0), dtype=torch.long), m),
    "scatter_reduce": lambda v, m: torch.zeros(3).scatter_reduce(0, torch.zeros_like(v, dtype=torch.long), v, "amax"),
    "gather": lambda v, m: m.gather(1, torch.zeros(m.size(0), 1, dtype=torch.long)),
    "gather0": lambda v, m: v.gather(0, torch.zeros(3, dtype=torch.long)),
    "index_select": lambda v, m: m.index_select(0, torch.tensor([0, 1])),
    "take_along": lambda v, m: torch.take_along_dim(m, m.argmax(1, keepdim=True), 1),
    "pad": lambda v, m: F.pad(v, (1, 2)),
    "pad to": lambda v, m: F.pad(v, (0, 20 - v.numel())),
    "pad reflect": lambda v, m: F.pad(m.t()[None], (1, 1), mode="reflect"),
    "interpolate": lambda v, m: F.interpolate(m.t()[None], scale_factor=2),
    "interp size": lambda v, m: F.interpolate(m.t()[None], size=7, mode="linear"),
    "max_pool1d": lambda v, m: F.max_pool1d(m.t()[None], 2),
    "avg_pool1d": lambda v, m: F.avg_pool1d(m.t()[None], 2),
    "adaptive": lambda v, m: F.adaptive_avg_pool1d(m.t()[None], 2),
    "adaptive max": lambda v, m: F.adaptive_max_pool1d(m.t()[None], 1),
    "softmax": lambda v, m: m.softmax(0),
    "log_softmax": lambda v, m: v.log_softmax(0),
    "layer_norm": lambda v, m: F.layer_norm(m, (4,)),
    "bn": lambda v, m: F.batch_norm(m, torch.zeros(4), torch.ones(4)),
    "bn train": lambda v, m: F.batch_norm(m, None, None, training=True),
    "group_norm": lambda v, m: F.group_norm(m[None].transpose(1, 2), 2),
    "instance": lambda v, m: F.instance_norm(m.t()[None]),
    "rms": lambda v, m: F.rms_norm(m, (4,)),
    "matmul": lambda v, m: m @ m.t(),
    "linear": lambda v, m: F.linear(m, WEIGHT),
    "bmm": lambda v, m: m[None] @ m[None].transpose(1, 2),
    "outer": lambda v, m: torch.outer(v, v),
    "einsum": lambda v, m: torch.einsum("nd,md->nm", m, m),
    "cat": lambda v, m: torch.cat([v, v]),
    "stack": lambda v, m: torch.stack([v, v]),
    "var": lambda v, m: v.var(),
    "std rows": lambda v, m: m.std(0),
    "median": lambda v, m: v.median(),
    "kthvalue": lambda v, m: v.kthvalue(2)[0],
    "mode": lambda v, m: v.mode()[0],
    "argmax": lambda v, m: v.argmax(),
    "max dim": lambda v, m: m.max(0)[0],
    "amax": lambda v, m: v.amax(),
    "min": lambda v, m: v.min(),
    "aminmax": lambda v, m: torch.aminmax(v)[0],
    "flip": lambda v, m: v.flip(0),
    "roll": lambda v, m: v.roll(1),
    "unfold": lambda v, m: v.unfold(0, 2, 1),
    "repeat": lambda v, m: v.repeat(2),
    "tile": lambda v, m: m.tile(2, 1),
    "expand": lambda v, m: v[None].expand(3, -1),
    "view": lambda v, m: m.view(-1, 2, 2),
    "reshape": lambda v, m: m.reshape(-1),
    "flatten": lambda v, m: m.flatten(),
    "view n": lambda v, m: m.view(m.size(0) * 2, 2),
    "unflatten": lambda v, m: m.unflatten(1, (2, 2)),
    "cdist": lambda v, m: torch.cdist(m, m),
    "pdist": lambda v, m: F.pdist(m),
    "cosine": lambda v, m: F.cosine_similarity(m, m),
    "norm": lambda v, m: m.norm(),
    "normalize": lambda v, m: F.normalize(m),
    "vector_norm": lambda v, m: torch.linalg.vector_norm(m, dim=0),
    "tril": lambda v, m: (m @ m.t()).tril(),
    "diag": lambda v, m: torch.diag(v),
    "diagonal": lambda v, m: (m @ m.t()).diagonal(),
    "eye": lambda v, m: torch.eye(v.numel()),
    "cross_entropy": lambda v, m: F.cross_entropy(m, m.argmax(1)),
    "nll": lambda v, m: F.nll_loss(m.log_softmax(1), m.argmax(1)),
    "bce": lambda v, m: F.binary_cross_entropy_with_logits(v, torch.ones_like(v)),
    "mse": lambda v, m: F.mse_loss(v, v * 2),
    "kl": lambda v, m: F.kl_div(m.log_softmax(1), m.softmax(1), reduction="batchmean"),
    "smooth": lambda v, m: F.smooth_l1_loss(v, v * 2),
    "embedding": lambda v, m: F.embedding(m.argmax(1), TABLE),
    "embedding_bag": lambda v, m: F.embedding_bag(m.argmax(1)[None], TABLE),
    "one_hot": lambda v, m: F.one_hot(m.argmax(1), 4),
    "lstm": lambda v, m: MODULES["lstm"](m[None])[0],
    "mha": lambda v, m: MODULES["mha"](m[None], m[None], m[None])[0],
    "sdpa": lambda v, m: F.scaled_dot_product_attention(m[None, None], m[None, None], m[None, None]),
    "encoder": lambda v, m: MODULES["encoder"](m[None]),
    "histc": lambda v, m: v.histc(4),
    "searchsorted": lambda v, m: torch.searchsorted(v.sort()[0], torch.tensor([0.1])),
    "bucketize": lambda v, m: torch.bucketize(v, torch.tensor([0.1, 0.5])),
    "where": lambda v, m: torch.where(v > 0.5, v, 0.0),
    "masked_fill": lambda v, m: v.masked_fill(v > 0.5, 0),
    "mask again": lambda v, m: v[v > 0.5],
    "nonzero again": lambda v, m: (v > 0.5).nonzero(),
    "unique": lambda v, m: m.argmax(1).unique(),
    "logsumexp": lambda v, m: m.logsumexp(0),
    "select": lambda v, m: v[0],
    "last": lambda v, m: v[-1],
    "third": lambda v, m: m[2],
    "step": lambda v, m: v[::2],
    "tail": lambda v, m: v[1:],
    "head": lambda v, m: v[:3],
    "but last": lambda v, m: v[:-1],
    "last two": lambda v, m: v[-2:],
    "narrow": lambda v, m: v.narrow(0, 1, 2),
    "narrow n": lambda v, m: v.narrow(0, 0, v.numel() - 1),
    "repeat_interleave": lambda v, m: v.repeat_interleave(2),
    "cumprod": lambda v, m: v.cumprod(0),
    "logcumsumexp": lambda v, m: v.logcumsumexp(0),
    "quantile": lambda v, m: v.quantile(0.5),
    "meshgrid": lambda v, m: torch.meshgrid(v, v, indexing="ij")[0],
    "cartesian": lambda v, m: torch.cartesian_prod(v, v),
    "combinations": lambda v, m: torch.combinations(v),
    "block_diag": lambda v, m: torch.block_diag(m, m),
    "diff": lambda v, m: v.diff(),
    "cov": lambda v, m: m.t().cov(),
    "corrcoef": lambda v, m: m.t().corrcoef(),
    "trapz": lambda v, m: torch.trapezoid(v),
    "dot": lambda v, m: v @ v,
    "addmm": lambda v, m: torch.addmm(torch.zeros(4), m, torch.eye(4)),
    "index_put": lambda v, m: torch.zeros(20).index_put((torch.arange(v.numel()),), v),
    "setitem": lambda v, m: assigned(v),
    "arange": lambda v, m: torch.arange(v.numel()) * v,
    "linspace": lambda v, m: torch.linspace(0, 1, v.numel()),
    "fft": lambda v, m: torch.fft.rfft(v).abs(),
    "triu_indices": lambda v, m: (m @ m.t())[torch.triu(torch.ones(m.size(0), m.size(0)), 1).bool()],
    "pinverse": lambda v, m: torch.linalg.pinv(m),
    "lstsq": lambda v, m: torch.linalg.svdvals(m),
    "qr": lambda v, m: torch.linalg.qr(m)[1].abs(),
    "solve": lambda v, m: torch.linalg.solve(m.t() @ m + torch.eye(4), m.t()),
    "det": lambda v, m: torch.linalg.det(m.t() @ m),
    "pixel": lambda v, m: F.pixel_shuffle(m.t()[None, :, :, None], 2),
    "glu": lambda v, m: F.glu(m),
    "prelu": lambda v, m: F.prelu(m, torch.tensor([0.1])),
    "cross": lambda v, m: torch.cross(m[:, :3], m[:, 1:], dim=1),
    "movedim": lambda v, m: m.movedim(0, 1),
    "squeeze": lambda v, m: v.squeeze(),
    "squeeze0": lambda v, m: m[:, None].squeeze(1),
    "unbind1": lambda v, m: m.unbind(1)[0],
    "prod": lambda v, m: v.prod(),
    "any": lambda v, m: (v > 1).any(),
    "all": lambda v, m: (v > 0).all(),
    "mean": lambda v, m: v.mean(),
    "clone": lambda v, m: m.t().contiguous(),
    "count": lambda v, m: v.count_nonzero(),
    "renorm": lambda v, m: m.renorm(2, 0, 1.0),
    "unfold2": lambda v, m: F.unfold(m[None, None], 2),
    "lerp": lambda v, m: v.lerp(v * 2, 0.5),
    "isin": lambda v, m: torch.isin(m.argmax(1), torch.tensor([1, 2])),
    "nanmean": lambda v, m: v.nanmean(),
    "tri": lambda v, m: torch.ones(v.numel(), v.numel()).triu(),
    "hist": lambda v, m: torch.histogram(v, 4)[0],
    "repeat n": lambda v, m: torch.ones(2).repeat(v.numel()),
    "expand n": lambda v, m: torch.ones(1, 3).expand(v.numel(), 3),
    "zeros n": lambda v, m: torch.zeros(v.numel(), v.numel()),
    "slice n": lambda v, m: torch.arange(30)[: v.numel()],
    "slice from": lambda v, m: torch.arange(30)[v.numel() :],
    "range slice": lambda v, m: torch.arange(30)[v.numel() - 2 : v.numel()],
}
# With gradients they are a break, as PyTorch's formulas need to know the size. A histogram has no gradient.
WITHOUT_GRADIENTS = {"block_diag", "fft", "pinverse", "lstsq", "qr", "hist"}


def inputs(seed, with_gradients):
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn(14, generator=generator), torch.rand(14, 4, generator=generator)
    return x.requires_grad_(with_gradients), y.requires_grad_(with_gradients)


def program_of(operator):
    def program(x, y):
        return operator(x[x > 0], y[x > 0])

    return program


def check(name, with_gradients):
    program = program_of(OPERATORS[name])
    compiled = oxyfuel.compile(program)
    for seed in range(4):
        (x, y), (a, b) = inputs(seed, with_gradients), inputs(seed, with_gradients)
        with torch.set_grad_enabled(with_gradients):
            expected, actual = program(x, y), compiled(a, b)
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
        assert actual.requires_grad == expected.requires_grad
        if not expected.requires_grad:
            continue
        expected.square().sum().backward()
        actual.square().sum().backward()
        for given, eager in ((a, x), (b, y)):
            torch.testing.assert_close(given.grad, eager.grad, rtol=1e-3, atol=1e-4, equal_nan=True)
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] == 1 and not metrics["breaks"] and metrics["calls_eager"] == 0, (metrics["breaks"], metrics["recompile_reasons"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPERATORS)
def test_without_gradients(name):
    check(name, False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in WITHOUT_GRADIENTS])
def test_with_gradients(name):
    check(name, True)
