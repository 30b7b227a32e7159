"""Small instances of transformers' model classes, with inputs: configurations are shrunk by the names of their fields.

names(which) lists the classes; build(name) gives a model and the keyword arguments of a call that runs in eager.
NotBuilt says why there is none. Nothing is downloaded.
"""

import dataclasses
import inspect
import re
from functools import cache

import torch

import torchvision_operators  # noqa: F401  isort: skip (before transformers)

LAYERS = 2  # at most; MORE_LAYERS where two would not show every kind of layer
MORE_LAYERS = 8
WIDTH = 64  # of hidden states
HEADS = 4
VOCABULARY = 256
ORDINARY = (20, 150)  # the token numbers that inputs are drawn from; special ones get higher or lower numbers
TOKENS = 16
BATCH = 2
MOST_PARAMETERS = 120_000_000
ATTEMPTS = 12  # calls of one model with other inputs


class NotBuilt(Exception):
    """No small instance of the class runs in eager."""


@cache
def _mappings():
    """(task, {model type: class names}) of the auto classes, base models first."""
    from transformers.models.auto import modeling_auto

    found = {name: table for name, table in vars(modeling_auto).items() if re.fullmatch(r"MODEL_.*_NAMES", name)}
    return sorted(found.items(), key=lambda item: item[0] != "MODEL_MAPPING_NAMES")


@cache
def _classes():
    """Class name -> (model type, task)."""
    result = {}
    for task, table in _mappings():
        for model_type, classes in table.items():
            for name in classes if isinstance(classes, (list, tuple)) else [classes]:
                result.setdefault(name, (model_type, task))
    return result


def names(which="base"):
    """The names of the base models, or with "all" of those with heads too."""
    return [name for name, (_, task) in _classes().items() if which == "all" or task == "MODEL_MAPPING_NAMES"]


# Fields by name, and what becomes of a number there. The first pattern that fits counts.
def _at_most(limit):
    return lambda value: min(value, limit)


_LAYER_COUNT = object()
_RULES = [
    (r"vision_feature_layer|.*_token_.*|.*layers?_to_.*|.*layer_id.*|.*_idx|.*_index|num_feat_extract_layers", None),
    (r"n_group|topk_group|num_expert_groups?", lambda value: 1),
    (r"(num_)?experts_per_tok|num_experts_per_token|moe_(top)?k|.*top_?k.*", _at_most(2)),
    (r"(n|num|moe_num)_(routed_|local_|shared_)?experts|.*num_experts", _at_most(4)),
    (r"first_k_dense_replace|moe_layer_start_index|num_dense_layers|first_k_dense.*", _at_most(1)),
    (r"num_.*layers|n_layers?|.*_layers|num_blocks|depth|.*_depth|num_.*_blocks|n_blocks", _LAYER_COUNT),
    (r".*num_(key_value|kv)_heads|n_kv_heads?|multi_query_group_num|.*num_global_key_value_heads", _at_most(2)),
    (r"qk_rope_head_dim", _at_most(WIDTH // HEADS // 2)),
    (r"rotary_dim|.*head_(dim|size)|d_kv|.*_d_head|qk_nope_head_dim|kv_channels|head_width|attention_key_size", _at_most(WIDTH // HEADS)),
    (r".*heads|n_head", _at_most(HEADS)),
    (r".*lora_rank|.*_lora_dim", _at_most(16)),
    (r".*vocab(ulary)?_size.*|.*num_embeddings|codebook_size|vocab_size_.*", _at_most(VOCABULARY)),
    (
        r".*hidden_size|.*hidden_dim|d_model|n_embd|.*embed_dim|dim|.*embedding_size|.*embedding_dim|width"
        r"|projection_dim|.*_channels_out|.*fusion_channels|model_dim|.*embed_size|.*output_dim|lru_width"
        r"|.*hidden_channels|decoder_dim|feature_dim|attention_dim|lstm_dim|.*bottleneck_.*",
        _at_most(WIDTH),
    ),
    (r".*intermediate_(size|dim)|.*ffn_(hidden_)?(dim|size)|d_ff|n_inner|.*feedforward.*|.*ffn_dim.*|mlp_dim|dim_feedforward", _at_most(2 * WIDTH)),
    (r".*num_.*queries|num_object_queries|num_latents|num_proposals", _at_most(8)),
    (r"max_position_embeddings|n_positions|max_.*positions|n_ctx|max_seq_len.*", _at_most(512)),
    (r".*window_size|sliding_window|attention_window", _at_most(8)),
    (r"num_frames", _at_most(2)),
]

def _shrunk_number(name, value, gentle, most_layers):
    if isinstance(value, bool) or value < 1:
        return value
    for pattern, rule in _RULES:
        if re.fullmatch(pattern, name):
            if rule is None or (gentle and not _keeps_widths(name)):
                return value
            return min(value, most_layers) if rule is _LAYER_COUNT else rule(value)
    return value


def _keeps_widths(name):
    return bool(re.fullmatch(r".*(layers?|depth|blocks|experts|queries|position_embeddings|vocab_size|k_dense_replace)", name))


def _image_size(value, patch):
    """A small size with the same meaning: whole patches where there are patches."""
    if not isinstance(patch, int) or patch < 1:
        return min(value, 64)
    patches = max(1, min(value // patch, 4 if patch >= 8 else 16))
    return patches * patch


def _shrunk_list(name, values, layers, gentle, most_layers):
    """Lists: one entry a layer becomes a few entries that keep the kinds there are; widths of stages are divided."""
    if layers > most_layers and len(values) == layers and (isinstance(values[0], str) or layers > 7):
        kinds = list(dict.fromkeys(map(str, values)))
        if len(kinds) > 1:
            picked = [next(v for v in values if str(v) == kind) for kind in kinds[:most_layers]]
            return [*picked, *[picked[-1]] * (most_layers - len(picked))]
        return values[:most_layers]
    if re.fullmatch(r".*(layer_)?(indices|layer_ids|layers_idx)", name) and values:
        return [LAYERS - 1]
    if not values or not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return values
    if re.fullmatch(r"depths|.*layers|.*_depths|num_blocks", name):
        return [min(v, LAYERS) for v in values]
    if re.search(r"hidden_sizes|embed_dims?|channels|widths|dims", name) and not gentle and all(v % 32 == 0 for v in values):
        return [v // 4 for v in values]
    return values


def shrink(fields, gentle=False, most_layers=LAYERS):
    """The fields of a configuration, made small. gentle: only fewer layers, experts, words and pixels."""
    layers = next((fields[n] for n in ("num_hidden_layers", "num_layers", "n_layer") if isinstance(fields.get(n), int)), 0)
    result, special = {}, VOCABULARY
    for name, value in fields.items():
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            result[name] = value if value is _MISSING.get(name) else shrink(value, gentle, most_layers)
        elif isinstance(value, (list, tuple)) and name == "image_size" and all(isinstance(v, int) for v in value):
            result[name] = [_image_size(v, fields.get("patch_size")) for v in value]
        elif isinstance(value, (list, tuple)):
            if name == "mrope_section" and not gentle:
                result[name] = _sections(list(value), fields.get("partial_rotary_factor", 1.0))
            else:
                result[name] = _shrunk_list(name, list(value), layers, gentle, most_layers)
        elif re.fullmatch(r".*(_token_id|_token_index|_token)", name) and isinstance(value, int) and value >= ORDINARY[0]:
            special -= 1
            result[name] = special
        elif isinstance(value, int) and re.fullmatch(r"(image|img|input)_size", name):
            result[name] = _image_size(value, fields.get("patch_size"))
        elif isinstance(value, int):
            result[name] = _shrunk_number(name, value, gentle, most_layers)
        else:
            result[name] = value
    if not gentle:
        _agree(fields, result)
    return result


def _sections(values, rotary_factor):
    """The parts of a rotary embedding's half, for a head of the small width."""
    half = int(WIDTH // HEADS * rotary_factor) // 2
    first = [max(1, value * half // sum(values)) for value in values[:-1]]
    return [*first, half - sum(first)]


def _agree(original, small):
    """Makes fields fit one another that do in the original."""
    heads = original.get("num_attention_heads")
    if heads is not None and original.get("num_key_value_heads") == heads:
        small["num_key_value_heads"] = small["num_attention_heads"]
    for heads, width, factor in (
        ("mamba_n_heads", "mamba_d_head", "mamba_expand"),
        ("mamba_num_heads", "mamba_head_dim", "expand"),
        ("num_heads", "head_dim", "expand"),
    ):
        if isinstance(small.get(width), int) and {heads, factor, "hidden_size"} <= set(small):
            small[heads] = int(small[factor] * small["hidden_size"]) // small[width]
    if isinstance(small.get("num_heads"), list) and isinstance(small.get("embed_dim"), int):
        small["embed_dim"] = 8 * small["num_heads"][0]


def _own_fields(config):
    """What the configuration was given, as nested dicts: what it derived from other fields is derived anew."""
    from transformers import PreTrainedConfig

    result = {}
    for field in dataclasses.fields(config):
        value = vars(config).get(field.name)
        if field.name == "backbone_config" and getattr(value, "model_type", "timm_backbone") == "timm_backbone":
            result[field.name] = _MISSING[field.name]
        elif isinstance(value, PreTrainedConfig):
            result[field.name] = {**_own_fields(value), "model_type": value.model_type}
        elif field.name in _MISSING and value is None:
            result[field.name] = _MISSING[field.name]
        elif field.init and value is not None and field.name not in _NOT_FIELDS:
            if field.default is not None or (isinstance(value, dict) and "mrope_section" in value):
                result[field.name] = value
    return result


def _configurations(config_class):
    """Small configurations, the smallest first; an exception in the place of one that is refused."""
    for gentle, layers in ((False, LAYERS), (False, MORE_LAYERS), (True, LAYERS)):
        try:
            yield config_class(**shrink(_own_fields(config_class()), gentle, layers))
        except Exception as error:
            yield error


def _parameter_count(model_class, config):
    with torch.device("meta"):
        return sum(p.numel() for p in model_class(config).parameters())


# What configurations leave open that a model needs.
_MISSING = {
    "vocab_size": VOCABULARY,
    "num_experts_per_tok": 2,
    "n_routed_experts": 4,
    "num_experts": 4,
    "prediction_length": 8,
    "head_dim": WIDTH // HEADS,
    "pad_token_id": 0,
    "backbone_config": {
        "model_type": "resnet",
        "embedding_size": 8,
        "hidden_sizes": [8, 16, 24, 32],
        "depths": [1, 1, 1, 1],
        "layer_type": "basic",
        "out_features": ["stage2", "stage3", "stage4"],
    },
}
_NOT_FIELDS = ("transformers_version", "dtype", "architectures", "id2label", "label2id")
_OFTEN_NEEDED = ("pixel_values", "input_features", "input_values", "decoder_input_ids", "bbox", "attention_mask")


class Inputs:
    """Makes arguments by the names of a forward's parameters. `step`: how much larger images and sounds are."""

    def __init__(self, config, parameters=(), batch=BATCH, tokens=TOKENS, step=0):
        self.config, self.parameters = config, parameters
        self.batch, self.tokens_count, self.step = batch, tokens, step
        self.generator = torch.Generator().manual_seed(1)

    def field(self, *names, default=None):
        for config in self._configs(self.config):
            for name in names:
                try:
                    value = getattr(config, name, None)
                except Exception:  # one that differs from layer to layer
                    continue
                if value is not None:
                    return value
        return default

    def _configs(self, config):
        yield config
        for name in sorted(vars(config)):
            value = vars(config)[name]
            if hasattr(value, "to_dict") and value is not config:
                yield from self._configs(value)

    def randn(self, *shape):
        return torch.randn(*shape, generator=self.generator)

    def integers(self, high, *shape, low=0):
        return torch.randint(low, max(high, low + 1), shape, generator=self.generator)

    def tokens(self):
        vocabulary = self.field("vocab_size", default=VOCABULARY)
        vocabulary = vocabulary if isinstance(vocabulary, int) else VOCABULARY
        low, high = ORDINARY if vocabulary > ORDINARY[0] + 1 else (0, vocabulary)
        return self.integers(min(high, vocabulary), self.batch, self.tokens_count, low=low)

    def pixels(self):
        size = self.field("image_size", "img_size", "input_size", default=64)
        size = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
        size = tuple(side + self.step * self.image_step() for side in size)
        channels = self.field("num_channels", "in_channels", "in_chans", default=3)
        return self.batch, channels if isinstance(channels, int) else 3, *size[-2:]

    def image_step(self):
        """Whole patches, and where that is no trouble whole windows of patches."""
        patch = self.field("patch_size", default=1)
        return 32 if not isinstance(patch, int) or patch < 1 or 32 % patch == 0 else 2 * patch

    def candidates(self, name):
        """Values for a parameter, the likeliest first; empty if its name says nothing."""
        if re.fullmatch(r"(decoder_)?input_ids|.*_input_ids|input_tokens", name):
            return [self.tokens()]
        if re.fullmatch(r".*attention_mask|padding_mask", name):
            return [torch.ones(self.batch, self.tokens_count, dtype=torch.int64)]
        if "grid_thw" in self.parameters and name in ("hidden_states", "pixel_values"):
            patch, frames = self.field("patch_size", default=14), self.field("temporal_patch_size", default=1)
            return [self.randn(self.batch * 4 * (4 + 2 * self.step), self.field("in_channels", "num_channels", default=3) * frames * patch * patch)]
        if name in ("pixel_values", "pixel_values_videos", "flattened_pixel_values", "images", "original_pixel_values"):
            batch, channels, height, width = self.pixels()
            frames = self.field("num_frames", default=2)
            frames = frames if isinstance(frames, int) else 2
            image, video = self.randn(batch, channels, height, width), self.randn(batch, frames, channels, height, width)
            larger = self.randn(batch, channels, *[224 + 32 * self.step] * 2)
            return [image, video, larger] if "video" not in name else [video, image]
        if name in ("input_features", "input_values", "audio_values", "waveform", "spectrogram", "audio_features"):
            bins = self.field("num_mel_bins", "feature_size", "num_mel_channels", "input_feat_per_channel", "n_mels", default=80)
            samples, frames = 4000 + 800 * self.step, self.field("max_length", "max_source_positions", default=64)
            frames = frames if isinstance(frames, int) and 0 < frames <= 4096 else 64
            frames, raw = frames + 16 * self.step, self.randn(self.batch, samples)
            by_time, by_bin = self.randn(self.batch, frames, bins), self.randn(self.batch, bins, 2 * frames)
            spectra = [by_time, by_bin, self.randn(self.batch, 64 + 16 * self.step, bins), self.randn(self.batch, 1, 256 + 32 * self.step, bins)]
            return [raw, self.randn(self.batch, 1, samples), *spectra] if name in ("input_values", "waveform", "audio_values") else [*spectra[1::-1], *spectra[2:], raw]
        if name == "bbox":
            corners = self.integers(100, self.batch, self.tokens_count, 4)
            corners[..., 2:] += 100
            return [corners]
        if name in ("past_values", "past_observed_mask"):
            length = self.field("context_length", default=32) + max(self.field("lags_sequence", default=[0]))
            channels = self.field("num_input_channels", "input_size", default=1)
            shape = (self.batch, length) if channels == 1 and hasattr(self.config, "lags_sequence") else (self.batch, length, channels)
            return [self.randn(*shape) if name == "past_values" else torch.ones(*shape)]
        if re.fullmatch(r"(past|future)_time_features", name):
            length = self.field("context_length", default=32) + max(self.field("lags_sequence", default=[0]))
            length = length if name.startswith("past") else self.field("prediction_length", default=8)
            return [self.randn(self.batch, length, self.field("num_time_features", default=1))]
        if name == "inputs":
            return [self.tokens(), self.randn(self.batch, self.tokens_count, self.field("d_model", default=WIDTH)), self.randn(*self.pixels())]
        if name == "visual_feats":
            return [self.randn(self.batch, 4 + self.step, self.field("visual_feat_dim", default=64))]
        if name == "visual_pos":
            return [self.randn(self.batch, 4 + self.step, 4).abs()]
        if re.fullmatch(r"(inputs_embeds|query_embeds|hidden_states|encoder_hidden_states|decoder_inputs_embeds)", name):
            return [self.randn(self.batch, self.tokens_count, self.field("hidden_size", "d_model", default=WIDTH))]
        if name in ("labels", "start_positions", "end_positions", "return_dict", "use_cache"):
            return []
        if name == "token_type_ids":
            return [torch.zeros(self.batch, self.tokens_count, dtype=torch.int64)]
        if name == "input_points":
            return [self.randn(self.batch, 1, 2, 2).abs()]
        if re.fullmatch(r"pixel_mask", name):
            batch, _, height, width = self.pixels()
            return [torch.ones(batch, height, width, dtype=torch.int64)]
        if name in ("image_grid_thw", "grid_thw"):
            return [torch.tensor([[1, 4, 4 + 2 * self.step]] * self.batch)]
        return []


def _attempts(model, config):
    """Keyword arguments to try. Send an exception to have those tried next that its message asks for."""
    parameters = inspect.signature(model.forward).parameters
    asked = [n for n, p in parameters.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    if model.main_input_name in parameters and model.main_input_name not in asked:
        asked.insert(0, model.main_input_name)
    if "decoder_input_ids" in parameters and getattr(config, "is_encoder_decoder", False):
        asked.append("decoder_input_ids")
    if not asked and parameters:
        asked = [next(iter(parameters))]
    seen = set()
    queue = [tuple((name, 0) for name in asked)]
    while queue:
        choice = queue.pop(0)
        if choice in seen:
            continue
        seen.add(choice)
        made = {name: Inputs(config, parameters).candidates(name) for name, _ in choice}
        missing = [name for name, values in made.items() if not values]
        if missing:
            raise NotBuilt(f"no input known for the parameter {missing[0]!r}")
        error = yield {name: made[name][index] for name, index in choice}
        text = str(error)
        known = {name for name, _ in choice}
        named = [n for n in parameters if n not in known and re.search(rf"\b{re.escape(n)}\b", text) and Inputs(config, parameters).candidates(n)]
        for name in named[:2]:
            queue.insert(0, (*choice, (name, 0)))
        for position, (name, index) in enumerate(choice):
            if index + 1 < len(made[name]):
                queue.append((*choice[:position], (name, index + 1), *choice[position + 1 :]))
        for name in _OFTEN_NEEDED:
            if name in parameters and name not in known:
                queue.append((*choice, (name, 0)))


def _brief(error):
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:160]}"


def working_inputs(model, config):
    """Arguments with which the model runs in eager. Throws NotBuilt."""
    attempts = _attempts(model, config)
    arguments, errors = next(attempts), []
    for _ in range(ATTEMPTS):
        try:
            torch.manual_seed(0)
            with torch.no_grad():
                model(**{name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in arguments.items()})
            return arguments
        except Exception as error:
            errors.append(_brief(error))
            try:
                arguments = attempts.send(error)
            except StopIteration:
                break
    raise NotBuilt(errors[0])


def resized(model, arguments, batch, tokens, step):
    """The arguments that build() gave, of other sizes. What says nothing of its sizes is as it was."""
    parameters, result = inspect.signature(model.forward).parameters, {}
    for name, value in arguments.items():
        made = Inputs(model.config, parameters).candidates(name)
        index = next((i for i, known in enumerate(made) if known.shape == value.shape and torch.equal(known, value)), None)
        result[name] = value if index is None else Inputs(model.config, parameters, batch, tokens, step).candidates(name)[index]
    return result


def build(name):
    """(model in eval mode, keyword arguments)."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    model_type, _ = _classes()[name]
    try:
        config_class, model_class = CONFIG_MAPPING[model_type], getattr(transformers, name)
    except Exception as error:
        raise NotBuilt(_brief(error)) from error
    first = None
    for config in _configurations(config_class):
        try:
            if isinstance(config, Exception):
                raise config
            count = _parameter_count(model_class, config)
            if count > MOST_PARAMETERS:
                raise NotBuilt(f"{count / 1e6:.0f} million parameters after shrinking")
            torch.manual_seed(0)
            model = model_class(config).eval()
            return model, working_inputs(model, config)
        except Exception as error:
            first = first or (error if isinstance(error, NotBuilt) else NotBuilt(_brief(error)))
    raise first
