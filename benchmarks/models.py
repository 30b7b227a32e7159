"""The models that oxyfuel is measured and tested on, with random weights.

build(name, size) gives a model in eval mode; inputs(name, size, batch, labels) its keyword arguments.
size is "base" (the published configuration; Llama reduced to 16 layers of width 1024) or "small" (seconds to compile).
"""

from dataclasses import dataclass
from typing import Callable

import accuracy
import torch

import torchvision_operators  # noqa: F401  isort: skip (before timm and transformers)

SEQUENCE = {"base": 128, "small": 16}  # tokens
VOCABULARY = 128  # of the small language models
CLASSES = 10  # of the small image models


@dataclass(frozen=True)
class Language:
    """A transformers model: its class, and its configuration's class and arguments by size."""

    model: str
    config: str
    sizes: dict
    encoder_decoder: bool = False
    causal: bool = False

    def build(self, size, keeps_states=False):
        """`keeps_states`: the model's results hold the hidden states and attention weights of all layers."""
        import transformers

        arguments = dict(self.sizes[size])
        if keeps_states:
            arguments.update(output_hidden_states=True, output_attentions=True, attn_implementation="eager")
        if size == "small":
            arguments["vocab_size"] = VOCABULARY
        if self.causal or self.encoder_decoder:
            arguments["use_cache"] = False  # one forward pass: nothing would read the cache
        config = getattr(transformers, self.config)(**arguments)
        return getattr(transformers, self.model)(config)

    def inputs(self, size, batch, labels, generator):
        import transformers

        vocabulary = VOCABULARY if size == "small" else getattr(transformers, self.config)().vocab_size
        length = SEQUENCE[size]

        def tokens():
            return torch.randint(2, vocabulary, (batch, length), generator=generator)

        arguments = {"input_ids": tokens()}
        if labels:
            arguments["labels"] = tokens()
        elif self.encoder_decoder:
            arguments["decoder_input_ids"] = tokens()
        return arguments


@dataclass(frozen=True)
class Image:
    """A timm model; `small` overrides its arguments, and its image size in pixels by size."""

    name: str
    small: dict
    pixels: dict
    input_name: str = "x"

    def build(self, size, keeps_states=False):
        import timm

        if keeps_states:
            raise ValueError(f"{self.name} returns no states of its layers")
        arguments = {"num_classes": CLASSES, **self.small} if size == "small" else {}
        return timm.create_model(self.name, pretrained=False, **arguments)

    def inputs(self, size, batch, labels, generator):
        if labels:
            raise ValueError(f"{self.name} takes no labels")
        pixels = self.pixels[size]
        return {self.input_name: torch.randn(batch, 3, pixels, pixels, generator=generator)}


_MODELS = {
    "bert": Language(
        "BertForMaskedLM",
        "BertConfig",
        {
            "base": {},
            "small": dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64),
        },
    ),
    "distilbert": Language(
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"base": {}, "small": dict(dim=32, n_layers=2, n_heads=2, hidden_dim=64)},
    ),
    "gpt2": Language(
        "GPT2LMHeadModel",
        "GPT2Config",
        {"base": {}, "small": dict(n_embd=32, n_layer=2, n_head=2)},
        causal=True,
    ),
    "llama": Language(
        "LlamaForCausalLM",
        "LlamaConfig",
        {
            "base": dict(
                hidden_size=1024,
                intermediate_size=2816,
                num_hidden_layers=16,
                num_attention_heads=16,
                num_key_value_heads=8,
            ),
            "small": dict(
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
            ),
        },
        causal=True,
    ),
    "t5": Language(
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "base": dict(d_model=768, d_ff=3072, d_kv=64, num_layers=12, num_heads=12, decoder_start_token_id=0),
            "small": dict(d_model=32, d_ff=64, d_kv=16, num_layers=2, num_heads=2, decoder_start_token_id=0),
        },
        encoder_decoder=True,
    ),
    "resnet50": Image("resnet50", dict(layers=(1, 1, 1, 1), channels=(8, 16, 24, 32)), {"base": 224, "small": 64}),
    "vit": Image(
        "vit_base_patch16_224",
        dict(img_size=32, embed_dim=32, depth=2, num_heads=2),
        {"base": 224, "small": 32},
    ),
    "mobilenetv3": Image("mobilenetv3_large_100", {}, {"base": 224, "small": 64}),
    "convnext": Image(
        "convnext_tiny", dict(depths=(1, 1, 2, 1), dims=(8, 16, 24, 32)), {"base": 224, "small": 64}
    ),
}

NAMES = tuple(_MODELS)
LANGUAGE_NAMES = tuple(name for name, spec in _MODELS.items() if isinstance(spec, Language))


# A loss over the result; over all of the results, hidden states and attention weights among them; a step of AdamW too.
TRAINING_MODES = ("training", "distillation", "whole_step")


@dataclass(frozen=True)
class Case:
    """One measurement: a model at a size, batch and mode."""

    model: str
    size: str = "base"
    batch: int = 1
    labels: bool = False
    mode: str = "no_grad"  # or "inference_mode", or of TRAINING_MODES

    @property
    def trains(self):
        return self.mode in TRAINING_MODES

    @property
    def title(self):
        return f"{self.model} b{self.batch}{' labels' if self.labels else ''}"

    def build(self) -> torch.nn.Module:
        torch.manual_seed(0)
        model = _MODELS[self.model].build(self.size, keeps_states=self.mode == "distillation").train(self.trains)
        settle_statistics(model)
        return model

    def inputs(self) -> dict:
        return _MODELS[self.model].inputs(self.size, self.batch, self.labels, torch.Generator().manual_seed(1))

    def grad_mode(self) -> Callable:
        modes = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}
        return modes.get(self.mode, torch.enable_grad)()

    def loss(self, output):
        if self.mode == "distillation":  # as if a teacher's were all zero
            return sum(tensor.square().mean() for _, tensor in accuracy.tensors_of(output))
        return output.loss if self.labels else output.square().mean()

    def program(self, model):
        """What is compiled: the model, or a function of its inputs that trains it by one step of AdamW."""
        if self.mode != "whole_step":
            return model
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

        def whole_step(**inputs):
            optimizer.zero_grad()
            loss = self.loss(model(**inputs))
            loss.backward()
            optimizer.step()
            return loss.detach()

        return whole_step

    def step(self, model, function, inputs):
        """One measured call of `function`, which is program(model) or made from it: its output; in training the loss and
        the gradients of forward, backward pass and the reset of the gradients; of a whole step the loss and the
        parameters it leaves behind."""
        if not self.trains:
            return function(**inputs)
        torch.manual_seed(0)
        if self.mode == "whole_step":
            return {"loss": function(**inputs), **{name: p.detach() for name, p in model.named_parameters()}}
        loss = self.loss(function(**inputs))
        loss.backward()
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        model.zero_grad(set_to_none=True)
        return {"loss": loss.detach(), **gradients}


def settle_statistics(model):
    """Gives every batch norm the statistics and parameters of a trained one, not those it starts with."""
    generator = torch.Generator().manual_seed(2)
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            with torch.no_grad():
                module.running_mean.normal_(0, 0.1, generator=generator)
                module.running_var.uniform_(0.5, 1.5, generator=generator)
                module.weight.uniform_(0.5, 1.5, generator=generator)
                module.bias.normal_(0, 0.1, generator=generator)


def without_dropout(model):
    """Sets every probability of dropout of a model to 0, in modules and in attributes of transformers' modules."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("dropout", "attention_dropout", "attn_dropout", "dropout_rate", "activation_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def suite(name, mode="no_grad"):
    """The cases of a suite."""
    sizes = {"small": "small"}.get(name, "base")
    if name not in ("inference", "full", "small"):
        raise ValueError(f"unknown suite {name!r}: expected inference, full or small")
    if mode == "distillation":
        return [Case(model, sizes, 2, mode=mode) for model in LANGUAGE_NAMES]
    if mode in TRAINING_MODES:  # with labels where there are some: they make the loss
        return [Case(model, sizes, 2, model in LANGUAGE_NAMES, mode) for model in NAMES]
    if name != "full":
        return [Case(model, sizes, mode=mode) for model in NAMES]
    return [
        Case(model, sizes, batch, labels, mode)
        for model in NAMES
        for batch in (1, 4)
        for labels in ((False, True) if model in LANGUAGE_NAMES else (False,))
    ]
