"""The models of benchmarks/models.py, and others, on the GPU: one graph each, right by the rule of benchmarks/accuracy.py.

They are small, as in tests/python/models. Inference in three types, training with gradients, and texts that are generated.
"""

import copy
import inspect
from contextlib import nullcontext

import accuracy
import models
import pytest
import torch
from torch import nn

import oxyfuel

CUDA = torch.device("cuda")


@pytest.fixture(autouse=True)
def full_precision(monkeypatch):
    """Errors of TF32 would hide others, and vary from kernel to kernel."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


CALLS = 4  # the third one records its work, and the fourth replays it


def on_device(inputs, dtype=None):
    moved = {}
    for name, value in inputs.items():
        moved[name] = value.to(CUDA, dtype) if dtype is not None and value.is_floating_point() else value.to(CUDA)
    return moved


class UNetBlock(nn.Module):
    """A residual block and self-attention between channels of images, as a diffusion model has them."""

    def __init__(self, channels=32, heads=2):
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(8, channels) for _ in range(3))
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(16, channels)
        self.project = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)
        self.down = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.heads = heads

    def forward(self, x, time):
        h = self.convolutions[0](nn.functional.silu(self.norms[0](x)))
        h = h + self.time(nn.functional.silu(time))[:, :, None, None]
        x = x + self.convolutions[1](nn.functional.silu(self.norms[1](h)))
        batch, channels, height, width = x.shape
        rows = self.norms[2](x).flatten(2).transpose(1, 2)
        query, key, value = (
            part.view(batch, -1, self.heads, channels // self.heads).transpose(1, 2)
            for part in self.project(rows).chunk(3, dim=-1)
        )
        attention = nn.functional.scaled_dot_product_attention(query, key, value)
        rows = self.out(attention.transpose(1, 2).reshape(batch, -1, channels))
        x = x + rows.transpose(1, 2).reshape(batch, channels, height, width)
        return nn.functional.interpolate(self.down(x), scale_factor=2.0, mode="nearest")


class MixtureOfExperts(nn.Module):
    """Every token goes through the two experts that its router prefers; all experts see all tokens, by weights."""

    def __init__(self, width=32, experts=4):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.1)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * 0.1)

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, dim=-1)
        gates = torch.zeros(*x.shape[:-1], self.up.shape[0], dtype=x.dtype, device=x.device)
        gates = gates.scatter(-1, chosen, (weights / weights.sum(-1, keepdim=True)).to(x.dtype))
        tokens = x.reshape(1, -1, x.shape[-1]).expand(self.up.shape[0], -1, -1)
        expert = torch.bmm(nn.functional.gelu(torch.bmm(tokens, self.up)), self.down)
        return (expert.permute(1, 2, 0) * gates.reshape(-1, 1, gates.shape[-1])).sum(-1).reshape(x.shape)


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=models.VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8, max_source_positions=16,
        max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, use_cache=False,
    )  # fmt: skip
    return WhisperForConditionalGeneration(config)


def others_inputs(name):
    generator = torch.Generator().manual_seed(1)

    def normal(*sizes):
        return torch.randn(sizes, generator=generator)

    if name == "whisper":
        ids = torch.randint(3, models.VOCABULARY, (2, 8), generator=generator)
        return {"input_features": normal(2, 8, 32), "decoder_input_ids": ids}
    if name == "unet":
        return {"x": normal(2, 32, 16, 16), "time": normal(2, 16)}
    return {"x": normal(2, 10, 32)}


def breaks_in_training(name):
    """In some releases of transformers, a random number on the host says whether a layer is left out, also where none is."""
    if name != "whisper":
        return False
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    return "layerdrop > 0" not in inspect.getsource(WhisperEncoder.forward)


OTHERS = {"whisper": whisper, "unet": UNetBlock, "experts": MixtureOfExperts}


def build(name):
    torch.manual_seed(0)
    return models.Case(name, "small", 2).build() if name in models.NAMES else OTHERS[name]().eval()


def inputs_of(name, labels=False):
    return models.Case(name, "small", 2, labels).inputs() if name in models.NAMES else others_inputs(name)


def counts_one_graph():
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] == 1 and not metrics["breaks"], metrics["breaks"]
    assert metrics["calls_eager"] == 0


TYPES = {"float32": (torch.float32, None), "bfloat16": (torch.bfloat16, None), "autocast": (torch.float32, torch.float16)}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", [*models.NAMES, *OTHERS])
def test_inference(name, kind):
    dtype, autocast = TYPES[kind]
    model, inputs = build(name).to(CUDA, dtype), on_device(inputs_of(name), dtype)
    context = torch.autocast("cuda", autocast) if autocast else nullcontext()
    compiled = oxyfuel.compile(model, fullgraph=True)
    with torch.no_grad():
        reference = accuracy.in_float64(model, inputs)
        with context:
            expected = model(**inputs)
            for _ in range(CALLS):
                verdict = accuracy.compare(compiled(**inputs), expected, reference)
                assert verdict.ok, verdict.problems[:5]
    counts_one_graph()


def loss_of(output):
    if getattr(output, "loss", None) is not None:
        return output.loss
    return (output if isinstance(output, torch.Tensor) else output.logits).float().square().mean()


def gradients(model, call, inputs, autocast):
    model.zero_grad()
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        loss = loss_of(call(**inputs))
    loss.backward()
    return {"loss": loss.detach(), **{name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}}


@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "autocast"])
@pytest.mark.parametrize("name", [*models.NAMES, *OTHERS])
def test_training(name, autocast):
    model = build(name).to(CUDA)
    inputs = on_device(inputs_of(name, labels=name in models.LANGUAGE_NAMES))
    models.without_dropout(model.train())
    exact, mirror = copy.deepcopy(model).double(), copy.deepcopy(model)
    wide = {key: value.double() if value.is_floating_point() else value for key, value in inputs.items()}
    reference = gradients(exact, exact, wide, False)
    expected = gradients(model, model, inputs, autocast)
    breaks = breaks_in_training(name)
    compiled = oxyfuel.compile(mirror, fullgraph=not breaks)
    for _ in range(CALLS):
        verdict = accuracy.compare(gradients(mirror, compiled, inputs, autocast), expected, reference)
        assert verdict.ok, verdict.problems[:5]
        mirror.load_state_dict(model.state_dict())
    if breaks:
        assert oxyfuel.metrics()["calls_eager"] == 0
    else:
        counts_one_graph()


@pytest.mark.parametrize("cache", ["growing", "static"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_generation(name, cache):
    model = build(name).to(CUDA)
    model.config.use_cache = True
    ids = inputs_of(name)["input_ids"].to(CUDA)
    options = {"max_new_tokens": 20, "min_new_tokens": 20, "do_sample": False, "pad_token_id": 0, "use_cache": True}
    if cache == "static":
        options["cache_implementation"] = "static"
        options["disable_compile"] = True  # by transformers itself
    expected = model.generate(ids, **options)
    model.forward = oxyfuel.compile(model.forward)
    for _ in range(2):
        assert torch.equal(model.generate(ids, **options), expected)
    metrics = oxyfuel.metrics()
    assert metrics["calls_compiled"] > 0 and metrics["calls_eager"] == 0, metrics["breaks"]
    assert metrics["graphs"] <= 4
