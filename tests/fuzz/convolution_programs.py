#!/usr/bin/env python3
"""Random networks of convolutions and what stands between them, whose results and gradients have to be eager's.

    python tests/fuzz/convolution_programs.py --seeds 0:2000

Layouts are chosen for convolutions, and what comes before and behind them follows or not: kernels that rely on the
layout of their operands are what this looks for. What is drawn at random goes by the layout, too.
"""

import copy
import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402, F401
import torch.nn.functional as F  # noqa: E402

import oxyfuel  # noqa: E402
from seeds import main  # noqa: E402

TOLERANCE = 1e-3  # of a gradient's length
NOISE = 5e-5  # of the length of the longest one: what is left of gradients that cancel
NUDGE, NUDGES = 1e-6, 4  # of a weight: where rounding decides an order, such a change gives another answer
CHANNELS = 16

# Modules by letter; {d}: the number of dimensions, {c}: channels.
MODULES = {
    "conv3": "nn.Conv{d}d({c}, {c}, 3, padding=1)",
    "conv1": "nn.Conv{d}d({c}, {c}, 1)",
    "strided": "nn.Conv{d}d({c}, {c}, 3, padding=1, stride=2)",
    "depthwise": "nn.Conv{d}d({c}, {c}, 3, padding=1, groups={c})",
    "transposed": "nn.ConvTranspose{d}d({c}, {c}, 2, stride=2)",
    "transposed1": "nn.ConvTranspose{d}d({c}, {c}, 1)",
    "group_norm": "nn.GroupNorm(4, {c})",
    "batch_norm": "nn.BatchNorm{d}d({c})",
    "instance_norm": "nn.InstanceNorm{d}d({c}, affine=True)",
    "prelu": "nn.PReLU({c})",
}
# Statements about x, {d} dimensions behind batch and channels; `m` is a module of its own: one of LINEAR.
STATEMENTS = {
    "smooth": "x = {f}(x)",
    "down": "x = F.{pool}_pool{d}d(x, 2)",
    "up": "x = F.interpolate(x, scale_factor=2.0)",
    "linear_up": "x = F.interpolate(x, scale_factor=2.0, mode='{linear}', align_corners={align})",
    "layer_norm": "x = m(x.movedim(1, -1)).movedim(-1, 1)",
    "linear": "x = x.movedim(1, -1); x = F.linear(x, m.weight.diag() + 0.1); x = x.movedim(-1, 1)",
    "flat_norm": "s = x.shape; x = F.group_norm(x.flatten(2), 4, m.weight).view(s)",
    "tokens": "s = x.shape; t = x.flatten(2).transpose(1, 2); x = (t @ (m.weight.diag() + 0.1)).transpose(1, 2).reshape(s)",
    "attention": "s = x.shape; t = x.flatten(3) if x.dim() > 4 else x; x = F.scaled_dot_product_attention(t, t * 0.7, t + 0.3).reshape(s)",
    "token_attention": "s = x.shape; t = x.flatten(2).transpose(1, 2).unflatten(2, (2, -1)).transpose(1, 2);"
    " x = F.scaled_dot_product_attention(t, t * 0.7, t).transpose(1, 2).flatten(2).transpose(1, 2).reshape(s)",
    "softmax": "x = x.softmax({dim}) * 4",
    "cumulated": "x = x.cumsum({dim}) * 0.3",
    "sorted": "x = x.sort({dim})[0] + x",
    "pad": "x = F.pad(x, (1, 0) * {d}, mode='{pad}')",
    "gate": "x = x * x.mean(dim=tuple(range(2, x.dim())), keepdim=True).sigmoid()",
    "halves": "a, b = x.chunk(2, 1); x = torch.cat((b * a.sigmoid(), a), 1)",
    "shuffle": "x = x.unflatten(1, (4, -1)).transpose(1, 2).flatten(1, 2)",
    "flip": "x = x.flip({dim}) + x.roll(1, {dim})",
    "swap": "x = x.transpose(-1, -2)",
    "dropout": "x = F.dropout(x, 0.2)",
    "noise": "x = x + 0.1 * torch.randn_like(x)",
    "push": "kept.append(x)",
    "add": "x = x + kept.pop() if kept and kept[-1].shape == x.shape else x * 1.5",
    "cat": "x = torch.cat((x, kept.pop()), 1)[:, ::2] if kept and kept[-1].shape == x.shape else x",
    "index": "x = torch.take_along_dim(x, x.argsort({dim}), {dim}) + x",
}
ONLY_2D = {
    "unfold": "s = x.shape; x = F.fold(F.unfold(x, 3, padding=1), s[2:], 3, padding=1) * 0.2",
    "pixels": "x = F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2)",
    "sampled": "x = F.grid_sample(x, F.affine_grid(torch.eye(2, 3).expand(x.shape[0], 2, 3) * 0.9, x.shape, align_corners=False),"
    " align_corners=False)",
    "cubic": "x = F.interpolate(x, scale_factor=1.5, mode='bicubic')",
}
SMOOTH = ["F.silu", "F.gelu", "F.mish", "F.softplus", "F.elu", "torch.tanh", "torch.sigmoid", "F.relu", "F.hardswish"]
WEIGHTS = {"conv3": 5, "conv1": 3, "group_norm": 3, "smooth": 3}


def program(seed):
    """The text of a class Net."""
    chance = random.Random(seed)
    dimensions = 3 if chance.random() < 0.2 else 2
    names = [*MODULES, *STATEMENTS, *(ONLY_2D if dimensions == 2 else ())]
    weights = [WEIGHTS.get(name, 1) for name in names]
    modules, lines = [], []
    for index in range(chance.randint(3, 9)):
        name = chance.choices(names, weights)[0]
        given = {
            "d": dimensions, "c": CHANNELS, "f": chance.choice(SMOOTH), "pool": chance.choice(["max", "avg"]),
            "linear": "bilinear" if dimensions == 2 else "trilinear", "align": chance.choice([False, True]),
            "dim": chance.choice([1, 2, -1]), "pad": chance.choice(["reflect", "replicate", "constant"]),
        }
        if name in MODULES:
            modules.append(f"self.m{index} = {MODULES[name].format(**given)}")
            lines.append(f"x = self.m{index}(x)")
            continue
        line = {**STATEMENTS, **ONLY_2D}[name].format(**given)
        if "m." in line or "m(" in line:
            modules.append(f"self.m{index} = nn.LayerNorm({CHANNELS})")
            line = re.sub(r"\bm(?=[.(])", f"self.m{index}", line)
        lines.append(line)
    body = "\n        ".join(["kept = []", *lines, "return x"])
    made = "\n        ".join(["super().__init__()", *modules])
    return f"class Net(nn.Module):\n    def __init__(self):\n        {made}\n\n    def forward(self, x):\n        {body}\n"


def outcome(model, call, x, seed):
    """(result, gradients by name, state of the generator), or the error."""
    x = x.clone(memory_format=torch.preserve_format).requires_grad_()
    model.zero_grad()
    torch.manual_seed(seed)
    try:
        result = call(x)
        tangent = torch.randn(result.shape, generator=torch.Generator().manual_seed(seed))
        result.backward(tangent.to(result.dtype))
    except Exception as error:
        return type(error), str(error)
    found = {"the result": result.detach(), "the input": x.grad}
    found.update((name, parameter.grad) for name, parameter in model.named_parameters())
    found.update((name, buffer) for name, buffer in model.named_buffers() if buffer.is_floating_point())
    return {name: tensor.clone() for name, tensor in found.items() if tensor is not None}, result.stride(), torch.get_rng_state()


def in_float64(model, x, seed):
    """The tensors of a call of the model in float64 by name; none if it draws numbers, which would be others."""
    if re.search("dropout|rand", program(seed)):
        return {}
    model = copy.deepcopy(model).double()
    found = outcome(model, model, x.double(), seed)
    return found[0] if len(found) == 3 else {}


def spread(model, x, seed, name):
    """How far the tensor of that name moves in eager when the weights are changed by about what rounding does."""
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    found = []
    for number in range(NUDGES + 1):
        chance = torch.Generator().manual_seed(number)
        with torch.no_grad():
            for parameter, before in zip(model.parameters(), (weights[key] for key, _ in model.named_parameters())):
                parameter.copy_(before * (1 + NUDGE * min(number, 1) * torch.randn(before.shape, generator=chance)))
        found.append(outcome(model, model, x, seed)[0][name])
        model.load_state_dict(weights)
    return max((one - found[0]).norm() for one in found)


def difference(seed):
    """What differs between eager and compiled; empty if nothing does."""
    namespace = {"torch": torch, "nn": nn, "F": F}
    exec(compile(program(seed), f"<seed {seed}>", "exec"), namespace)
    models = []
    for _ in range(2):
        torch.manual_seed(seed)
        models.append(namespace["Net"]())
    compiled = oxyfuel.compile(models[1])
    chance = random.Random(seed)
    for training in (True, False):
        size = chance.choice([4, 6, 8] if "3d" in program(seed) else [6, 8, 12, 16])
        # Of single images in unusual strides eager's own gradients of batch norms (and of instance norms, which are such) are wrong.
        images = chance.choice([2, 3] if re.search("BatchNorm|InstanceNorm", program(seed)) else [1, 2, 3])
        x = torch.randn(images, CHANNELS, size, *[size] * (2 if "3d" in program(seed) else 1))
        if chance.random() < 0.3:
            x = x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)
        for model in models:
            model.train(training)
        before = copy.deepcopy(models[0])
        expected, actual = (outcome(model, call, x, seed) for model, call in ((models[0], models[0]), (models[1], compiled)))
        if len(expected) != len(actual) or (len(expected) == 2 and expected != actual):
            return f"expected {expected if len(expected) == 2 else 'a result'}, got {actual if len(actual) == 2 else 'a result'}"
        if len(expected) == 2:
            continue
        strides = [
            # The second call may have symbols: strides of dimensions of size 1 may be others then.
            stride if training else tuple(step for step, size in zip(stride, found["the result"].shape) if size > 1)
            for found, stride, _ in (expected, actual)
        ]
        if strides[0] != strides[1]:
            return f"expected strides {expected[1]}, got {actual[1]}"
        if not torch.equal(expected[2], actual[2]):
            return "the generator's state differs"
        longest = max(tensor.norm() for tensor in expected[0].values())
        for name, tensor in expected[0].items():
            error = (actual[0][name] - tensor).norm() if name in actual[0] else torch.tensor(float("inf"))
            if not error <= TOLERANCE * tensor.norm() + NOISE * longest:
                # Gradients of norms over nearly equal numbers (tokens after an attention) lose most of their digits, in eager
                # more than here. What counts is to be as close to float64 as eager is.
                exact = in_float64(before, x, seed).get(name)
                if exact is not None and name in actual[0] and (actual[0][name] - exact).norm() <= 2 * (tensor - exact).norm():
                    continue
                if error <= 4 * spread(copy.deepcopy(before), x, seed, name):
                    return ""  # chance: eager's own answer is as uncertain
                return f"{name} is off by {(error / tensor.norm()).item():.2g}"
    return ""


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main(__doc__, program, difference)
