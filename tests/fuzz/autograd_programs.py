"""Random programs that use autograd in every way that Python has: leaves and results, hooks, backward passes inside and
outside of what is compiled, several results that depend on each other, custom functions, writes in place.
Eager against compiled: values, gradients, what autograd tells of each tensor, what hooks see and in which order, errors.

    python tests/fuzz/autograd_programs.py --seeds 0:1000
    python tests/fuzz/autograd_programs.py --seeds 7:8 --show
"""

import builtins
import random
import re
import traceback

import torch

import oxyfuel
import seeds
from devices import device

PRELUDE = """
import oxyfuel, torch, torch.nn.functional as F
from devices import device
LOG = []
pause = oxyfuel.disable(lambda: None)

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k=2):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        LOG.append("backward")
        return g * ctx.k + x * 0, None

class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 1
    @staticmethod
    def backward(ctx, g): return -g

W = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, device=device()))
V = torch.nn.Parameter(torch.tensor([0.5, 1.0, -1.0], dtype=torch.float64, device=device()))
B = torch.ones(3, dtype=torch.float64, device=device())
L = torch.nn.Linear(3, 3).double().to(device())
with torch.no_grad():
    L.weight.copy_(torch.tensor([[2.0, 0, 1], [0.5, 1, 0], [0, 1, 2]])), L.bias.fill_(0.5)

def see(g): LOG.append([round(v, 6) for v in g.flatten().tolist()])
def double(g): return g * 2

@oxyfuel.disable
def forget():
    # After an error the gradients are undefined: the engine's order of nodes decides which were added before it.
    for tensor in (W, V, *L.parameters(), *GIVEN):
        if tensor.is_leaf: tensor.grad = None
"""

STATEMENTS = [
    # Values
    "{a} = {b} * {c}", "{a} = {b} + {c}", "{a} = {b}.sin()", "{a} = {b} * W", "{a} = {b} * V", "{a} = L({b})", "{a} = {b} + B", "{a} = {b}.clone()",
    "{a} = {b}[:1]", "{a} = {b}.expand(2, 3)", "{a} = {b}.view({b}.shape)", "{a} = {b}.unsqueeze(0)", "{a} = {b}[..., 0]", "{a} = {b}[..., 1:]", "keep.extend({b}.unbind(-1))", "{a} = {b}.sum()", "{a} = {b}.relu()", "{a} = {b}.softmax(-1)",
    "{a} = torch.where({b} > 0, {b}, {c})", "{a} = torch.stack([{b}, {b}]).mean(0)", "{a} = torch.cat([{b}.flatten(), {c}.flatten()])[:3]",
    "{a} = {b} @ L.weight if {b}.shape[-1:] == (3,) else {b}", "{a} = x0 * 2", "{a} = x0", "{a} = {b}.masked_fill({b} > 1, 0.0)", "{a} = {b} * W.detach()",
    "{a} = Scaled.apply({b})", "{a} = Scaled.apply({b}, 3)", "{a} = Reversed.apply({b})",
    # Where gradients begin and end
    "{a} = {b}.detach()", "{a} = {b}.detach().requires_grad_()", "{a} = torch.ones_like({b}, requires_grad=True)", "{a} = torch.nn.Parameter({b}.detach())",
    "{a}.requires_grad_()", "{a}.requires_grad_(False)", "with torch.no_grad(): {a} = {b} * 2", "with torch.enable_grad(): {a} = {b} * V",
    "with torch.inference_mode(): i = {b} * 2", "torch.set_grad_enabled(False)", "torch.set_grad_enabled(True)",
    # Hooks
    # (PyTorch crashes where a hook is registered on a view whose base was written to, unless somebody has asked for its history.)
    "{a}.grad_fn; {a}.register_hook(see)", "{a}.grad_fn; {a}.register_hook(double)", "{a}.grad_fn; h = {a}.register_hook(see); h.remove()", "{a}.grad_fn; {a}.retain_grad()",
    "x0.grad_fn; x0.register_hook(double)",
    # Backward passes
    "g = torch.autograd.grad({b}.sum(), {c}, retain_graph=True, allow_unused=True)[0]", "g = torch.autograd.grad({b}.sum(), [{c}, W], retain_graph=True, allow_unused=True)[0]",
    "g = torch.autograd.grad(({b} ** 2).sum(), x0, retain_graph=True, allow_unused=True)[0]", "g = torch.autograd.grad(({b} * {c}).sum(), {c}, retain_graph=True)[0]",
    "{a} = {b} + g if isinstance(g, torch.Tensor) else {b}", "{b}.sum().backward(retain_graph=True)", "({b} * V).sum().backward(retain_graph=True)",
    "{b}.sum().backward(inputs=[W], retain_graph=True)", "{b}.backward(torch.ones_like({b}), retain_graph=True)", "{b}.sum().backward()",
    "{a}.grad = None", "W.grad = None",
    # Writes
    "{a}.add_(1)", "{a}.mul_({b})", "{a}[0] = 2", "with torch.no_grad(): W.mul_(1.5)",
    "with torch.no_grad(): B.add_({a}.sum())",
    # What can be asked, and what ends a region
    "LOG.append({a}.requires_grad)", "LOG.append({a}.is_leaf)", "LOG.append({a}.grad_fn is None)", "LOG.append({a}.grad is None)", "LOG.append({a}.retains_grad)",
    "LOG.append(round({b}.sum().item(), 6))", "if {b}.sum() > 0.01: {a} = {c} * 3", "pause()", "pause()", "keep.append({a})",
]  # fmt: skip


def leaf(values=(1.0, -2.0, 3.0)):
    return torch.tensor(values, dtype=torch.float64, device=device(), requires_grad=True)


def from_one_leaf(*functions):
    x = leaf()
    return *(f(x) for f in functions), x


ARGUMENTS = [
    lambda: (leaf(), torch.tensor([0.5, 1, -1], dtype=torch.float64, device=device())),
    lambda: (torch.tensor([1.0, -2, 3], dtype=torch.float64, device=device()), leaf((0.5, 1, -1))),
    lambda: (leaf(), leaf((0.5, 1, -1))),
    lambda: from_one_leaf(lambda x: x * 2, lambda x: x * 3),
    lambda: from_one_leaf(lambda x: x, lambda x: x.sin()),
    lambda: from_one_leaf(lambda x: x, lambda x: x),
    lambda: from_one_leaf(lambda x: x, lambda x: x.detach()),
    lambda: (leaf(((1, -2, 3), (0.5, 1, 2))), torch.tensor([0.5, 1, -1], dtype=torch.float64, device=device())),
]


def program(seed):
    """The source of ``f(x, y)``; what it uses is in its globals."""
    draw = random.Random(seed)
    lines = []
    for _ in range(draw.randint(2, 10)):
        a, b, c = (draw.choice("xyz") for _ in range(3))
        statement = draw.choice(STATEMENTS).format(a=a, b=b, c=c)
        if draw.random() < 0.3 and not statement.startswith(("with", "if")):
            then = "; forget()" if "backward(" in statement else ""
            lines += [f"    try: {statement}", f"    except Exception as e: LOG.append(type(e).__name__){then}"]
        else:
            lines.append(f"    {statement}")
    body = "\n".join(lines)
    return f"{PRELUDE}\ndef f(x, y):\n    z = x0 = x; g = None; keep = []\n{body}\n    return x, y, z, keep\n"


def looks(value):
    if isinstance(value, torch.Tensor):
        return [list(value.shape), value.dtype, value.stride(), value.requires_grad, value.is_leaf, value.detach().flatten().tolist(),
                looks(value.grad) if value.is_leaf or value.retains_grad else None]
    if isinstance(value, (list, tuple)):
        return [looks(item) for item in value]
    return value if isinstance(value, float) else repr(value)


def as_comparable(text):
    """An error's text without addresses, and without the saved tensor that it names: eager and a region save others."""
    if text.startswith("one of the variables needed for gradient"):
        return text.split(": [")[0]
    return re.sub(r"0x\w+|Output 0 of \w+", "", text)


def run(source, name, compile, seed):
    """What three calls of the program give; a backward pass through all that it returned follows each."""
    scope = {}
    exec(builtins.compile(source, name, "exec"), scope)
    f = compile(scope["f"])
    draw = random.Random(seed)
    kinds = [draw.randrange(len(ARGUMENTS)) for _ in range(2)]
    outcomes = []
    for kind in (kinds[0], kinds[0], kinds[1]):
        given = scope["GIVEN"] = ARGUMENTS[kind]()
        scope["LOG"].clear()
        failed = False
        try:
            with torch.enable_grad():
                results = f(*given[:2])
            outcome = [looks(results)]
            for tensor in (*results[:3], *results[3]):
                if tensor.requires_grad:
                    try:
                        tensor.sum().backward(retain_graph=True)
                    except RuntimeError:
                        failed = True
            outcome.append(failed)
        except Exception as error:
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
            outcome = [type(error).__name__, as_comparable(str(error)), lines]
            failed = True
        if failed:
            scope["forget"]()
        seen = [] if failed else [looks(given), looks([scope["W"], scope["V"], scope["B"], *scope["L"].parameters()])]
        outcomes.append([kind, outcome, seen, looks(list(scope["LOG"])) if not failed else None])
    return outcomes


def close(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b or a != a and b != b or abs(a - b) <= 1e-6 * (1 + abs(a))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b


def first_difference(a, b, path=""):
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (left, right) in enumerate(zip(a, b)):
            if not close(left, right):
                return first_difference(left, right, f"{path}[{i}]")
    return f"at {path}: expected {str(a)[:300]}, got {str(b)[:300]}"


def saves_more(expected, actual):
    """Whether eager's call lacks a saved tensor that the compiled one does not need (docs/limits.md)."""
    lacks = [str(outcome[1]).startswith("one of the variables needed for gradient") for _, outcome, *_ in (expected, actual)]
    return lacks == [True, False]


def difference(seed):
    """None, or what a compiled program does otherwise than eager."""
    source, name = program(seed), f"<autograd {seed}>"
    oxyfuel.reset()
    expected = run(source, name, lambda f: f, seed)
    actual = run(source, name, oxyfuel.compile, seed)
    for count, (left, right) in enumerate(zip(expected, actual)):
        if saves_more(left, right):  # what follows has other gradients
            expected, actual = expected[:count], actual[:count]
            break
    return None if close(expected, actual) else first_difference(expected, actual)


if __name__ == "__main__":
    seeds.main(__doc__, program, difference)
