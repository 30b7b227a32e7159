#!/usr/bin/env python3
"""Random programs whose sizes and numbers depend on data: masks, nonzero, item() of all types, unique, checks, branches.

    python tests/fuzz/data_programs.py --seeds 0:2000

A seed makes a function of a matrix, a vector of integers and a number, and calls with other data and sizes: masks that select
nothing, one element and all, numbers that fit and do not. Every third program is differentiated.
"""

import os
import random
import sys
from pathlib import Path

os.environ.setdefault("OXYFUEL_STRICT", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch  # noqa: E402

import oxyfuel  # noqa: E402
from observation import difference as difference_of  # noqa: E402
from observation import observe, saves_more  # noqa: E402
from seeds import main  # noqa: E402

COLUMNS = 4
CALLS = 6
MOST_LINES = 9


class Writer:
    """The lines of one function, and what each name is: a kind, and for tensors a label for the number of rows."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.lines = []
        self.names = {"x": ("matrix", "rows"), "k": ("integers", "rows"), "t": ("scalar", None)}
        self.labels = 0

    def some(self, kind, label=None):
        found = [name for name, (k, rows) in self.names.items() if k == kind and (label is None or rows == label)]
        return self.chance.choice(found) if found else None

    def label(self):
        self.labels += 1
        return f"rows{self.labels}"

    def add(self, kind, label, text):
        name = f"v{len(self.names)}"
        self.names[name] = (kind, label)
        self.lines.append(f"{name} = {text}")

    def constant(self):
        return self.chance.choice(["-1.0", "0.0", "0.5", "1.5", "9.0"])

    def write(self):
        chance = self.chance
        x = self.some("matrix")
        rows = self.names[x][1]
        mask, full = self.some("mask", rows), self.some("full mask", rows)
        places, flat, number = self.some("places", rows), self.some("flat"), self.some("number")
        choices = [
            lambda: self.add("mask", rows, f"{x}[:, {chance.randrange(COLUMNS)}] > {self.constant()}"),
            lambda: self.add("full mask", rows, f"{x} > {self.constant()}"),
            lambda: self.add("mask", "rows", f"k % {chance.randint(1, 4)} == 0"),
            lambda: self.add("matrix", rows, chance.choice(["torch.relu({})", "{} * 2 + 1", "torch.tanh({})", "{} - {}.sum(0)", "torch.softmax({}, 1)", "{}.cumsum(0)"]).replace("{}", x)),
            lambda: self.add("number", None, chance.choice(["t.item()", "int(t)", f"{x}.size(0)", f"len({x})", "k.sum().item()"])),
            lambda: self.add("number", None, f"({x}[:, 0] > {self.constant()}).sum().item()"),
        ]
        real = self.some("real")
        choices += [
            lambda: self.add("real", None, chance.choice(["{}[0, 1].item()", "float({}[-1, 0])", "{}.abs().amax().item()"]).replace("{}", x)),
            lambda: self.add("real", None, "k.sum().item() * 0.25"),
            lambda: self.add("truth", None, f"({x} > {self.constant()}).any().item()"),
        ]
        if real:
            choices += [
                lambda: self.add("real", None, chance.choice(["{} * 0.3 + 1", "abs({})", "min({}, 2.5)", "1.0 / {}", "-{}", "max({}, 0.25)", "{} - 1 / 3"]).replace("{}", real)),
                lambda: self.add("matrix", rows, chance.choice(["{x} * {r}", "{r} - {x}", "{x} + {r}", "{x} / {r}", "{r} / ({x} + 20)", "{x}.clamp(max={r})", "{x}.masked_fill({x} > 1, {r})"]).format(x=x, r=real)),
                lambda: self.add("mask", rows, f"{x}[:, 0] > {real}"),
                lambda: self.add("number", None, f"int({real})"),
                lambda: self.add("result", None, chance.choice(["torch.tensor({})", "[{}, {}]", "{} > 0.5", "round({}, 1)"]).replace("{}", real)),
                lambda: self.lines.append(f"if {real} > {self.constant()}: {x} = {x} * 2"),
                lambda: self.lines.append(f"if {real} != {real}: raise ValueError('nan')"),
                lambda: self.lines.append(f"if ({x} > 90).any(): raise ValueError('large')"),
            ]
        if number:
            choices += [lambda: self.add("real", None, chance.choice(["{} / 3", "{} * 0.5", "2.0 / {}", "float({})"]).replace("{}", number))]
        if truth := self.some("truth"):
            choices += [lambda: self.lines.append(f"if {truth}: {x} = {x} - 1")]
        if other := self.some("matrix", rows):
            choices += [lambda: self.add("matrix", rows, f"{x} + {other} * 0.5")]
        if other := self.some("matrix"):
            choices += [
                lambda: self.add("matrix", self.label(), f"torch.cat([{x}, {other}])"),
                lambda: self.add("result", None, f"{x} @ {other}.t()"),
            ]
        if mask:
            choices += [
                lambda: self.add("matrix", self.label(), f"{x}[{mask}]"),
                lambda: self.add("matrix", self.label(), f"{x}[~{mask}] * 2"),
                lambda: self.add("places", rows, f"{mask}.nonzero()[:, 0]"),
                lambda: self.add("places", rows, f"torch.where({mask})[0]"),
                lambda: self.lines.append(f"{x}[{mask}] = {self.constant()}"),
                lambda: self.lines.append(f"{x}[{mask}] = {x}[{mask}] * 2"),
                lambda: self.add("matrix", self.label(), f"torch.repeat_interleave({x}, {mask}.long() + {chance.randint(0, 1)}, dim=0)"),
                lambda: self.add("flat", None, f"{x}[{mask}, {chance.randrange(COLUMNS)}]"),
                lambda: self.add("number", None, f"{mask}.sum().item()"),
            ]
        if full:
            choices += [
                lambda: self.add("flat", None, f"{x}[{full}]"),
                lambda: self.add("flat", None, f"torch.masked_select({x}, {full})"),
                lambda: self.add("result", None, f"{full}.nonzero()"),
                lambda: self.lines.append(f"{x}.masked_fill_({full}, {self.constant()})"),
            ]
        if places:
            choices += [lambda: self.add("matrix", self.label(), f"{x}[{places}]") for _ in range(2)]
            choices += [lambda: self.add("result", None, f"torch.zeros({x}.size(0)).index_add_(0, {places}, {places}.float())")]
        if flat:
            choices += [
                lambda: self.add("flat", None, chance.choice(["{} * 3", "{}[{} > 0]", "{}.sort().values", "torch.rand_like({}) + {}"]).replace("{}", flat)),
                lambda: self.add("result", None, chance.choice(["{}.sum()", "({}.round()).unique()", "{}.shape", "{}.view(-1, 1) * 2", "torch.unique(({} * 2).round(), return_counts=True)"]).replace("{}", flat)),
            ]
        if number:
            choices += [
                lambda: self.add("number", None, chance.choice(["{} * 2 + 1", "{} // 2", "{} % 3", "max({}, 2)", "min({}, 7)", "{} - 1", "-{}"]).replace("{}", number)),
                lambda: self.add("matrix", self.label(), f"{x}[:{number}]"),
                lambda: self.add("matrix", self.label(), f"{x}[{number}:] + 1"),
                lambda: self.add("matrix", self.label(), f"{x}.narrow(0, 0, {number})"),
                lambda: self.add("matrix", self.label(), f"torch.zeros({number}, {COLUMNS}) + 1"),
                lambda: self.add("matrix", rows, chance.choice(["{x} * {n}", "{n} - {x}", "{x} + {n}", "{x} / {n}"]).format(x=x, n=number)),
                lambda: self.add("result", None, chance.choice(["torch.arange({})", "torch.full((2,), {})", "torch.rand({})", "({}, [{}])", "x[0].repeat({})"]).replace("{}", number)),
                lambda: self.lines.append(f"torch._check({number} {chance.choice(['>=', '<', '!='])} {chance.randint(0, 9)})"),
                lambda: self.lines.append(f"assert {number} {chance.choice(['>=', '<=', '!='])} {chance.randint(0, 9)}, 'no'"),
                lambda: self.lines.append(f"if {number} > {chance.randint(0, 6)}: {x} = {x} * 2"),
                lambda: self.lines.append(f"if {number} < 0: raise ValueError('negative')"),
            ]
        chance.choice(choices)()


def program(seed):
    """The text of a function `f(x, k, t)`."""
    writer = Writer(seed)
    for _ in range(writer.chance.randint(3, MOST_LINES)):
        writer.write()
    last = list(writer.names)[-4:]
    return "\n".join(["def f(x, k, t):", *(f"    {line}" for line in writer.lines), f"    return {', '.join(last)},", ""])


def arguments(seed, call):
    generator = torch.Generator().manual_seed(seed * 100 + call)
    rows = [6, 6, 6, 9, 1, 0][call]
    shift = [0.0, 0.3, -5.0, 0.0, 0.0, 0.0][call]
    x = torch.randn(rows, COLUMNS, generator=generator) + shift
    k = torch.randint(0, 4, (rows,), generator=generator)
    return x, k, torch.randint(0, 5, (), generator=generator) - (1 if call == 4 else 0)


def with_gradient(function):
    """The function with the gradient of its matrix among the results."""

    def call(x, k, t):
        leaf = x.requires_grad_()
        results = function(leaf, k, t)
        parts = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
        gradient = torch.autograd.grad([(part * (i + 1)).sum() for i, part in enumerate(parts)], leaf, allow_unused=True) if parts else ()
        return [r.detach() if isinstance(r, torch.Tensor) else r for r in results], gradient

    return call


def difference(seed):
    """What differs between eager and compiled; empty if nothing does."""
    space = {"torch": torch}
    exec(compile(program(seed), f"<seed {seed}>", "exec"), space)
    function = space["f"]
    compiled = oxyfuel.compile(function, dynamic=True if seed % 2 else None)
    differentiated = seed % 3 == 0
    with torch.set_grad_enabled(differentiated):
        for call in range(CALLS):
            given, again = arguments(seed, call), arguments(seed, call)
            expected = observe(with_gradient(function) if differentiated else function, given, seed)
            following = torch.rand(2)
            actual = observe(with_gradient(compiled) if differentiated else compiled, again, seed)
            if saves_more(expected, actual):
                break  # what follows has other gradients
            if found := difference_of(expected, actual, all_strides=False):
                return f"call {call}: {found}"
            if not torch.equal(following, torch.rand(2)):
                return f"call {call}: the generator is elsewhere"
    return ""


if __name__ == "__main__":
    main(__doc__, program, difference)
