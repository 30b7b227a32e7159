"""Random tensor programs as Python text: what `graphs.py` generates, runs, shrinks and prints."""

import dataclasses
import linecache
import traceback
import types

import torch

DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64, "i32": torch.int32,
    "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "b8": torch.bool, "c64": torch.complex64,
}
NAME_OF = {dtype: name for name, dtype in DTYPES.items()}

PRELUDE = """import torch
import torch.nn.functional as F
f32, f64, bf16, f16, c64 = torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64
i64, i32, i16, i8, u8, b8 = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool


def values(seed, shape, dtype, special=False):
    \"\"\"Multiples of 1/8, so that few operations round; integers and indices are small.\"\"\"
    random = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=random).bool()
    if dtype.is_complex:
        return torch.complex(values(seed, shape, f32), values(seed + 1, shape, f32)).to(dtype)
    if not dtype.is_floating_point:
        low = 0 if dtype == torch.uint8 else -9
        return torch.randint(low, 10, shape, generator=random).to(dtype)
    made = torch.randint(-24, 25, shape, generator=random).to(dtype) / 8
    if special and made.numel():
        where = torch.randint(0, made.numel(), (3,), generator=random)
        for place, number in zip(where.tolist(), (float("nan"), float("inf"), -float("inf"))):
            made.view(-1)[place] = number  # one by one: which of two at one place stays is up to the type
    return made


def indices(seed, shape, bound):
    return torch.randint(0, bound, shape, generator=torch.Generator().manual_seed(seed))


leaves = []


def leaf(tensor):
    leaves.append(tensor.requires_grad_())
    return tensor


def result(tensor):
    return leaf(tensor) * 1


def tangent(seed, output, kind):
    \"\"\"A gradient for an output, laid out in memory in an odd way.\"\"\"
    shape = tuple(output.shape)
    if kind == "expanded":
        return values(seed, (1,) * len(shape), output.dtype).expand(shape)
    if kind == "transposed":
        return values(seed, shape[::-1], output.dtype).permute(tuple(range(len(shape)))[::-1])
    if kind == "strided" and shape:
        return values(seed, (*shape[:-1], 2 * shape[-1]), output.dtype)[..., ::2]
    return values(seed, shape, output.dtype)


def carry(outputs, chosen):
    \"\"\"What torch.autograd.backward takes, for those of the (name, seed, kind) that are differentiable outputs.\"\"\"
    chosen = [(outputs[name], seed, kind) for name, seed, kind in chosen if name in outputs and outputs[name].requires_grad]
    return [o for o, _, _ in chosen], [tangent(seed, o, kind) for o, seed, kind in chosen]


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, scale):
        ctx.save_for_backward(a)
        ctx.scale = scale
        return a * a * scale, (a > 0)

    @staticmethod
    def backward(ctx, gradient, unused):
        (a,) = ctx.saved_tensors
        return gradient * a * 3 * ctx.scale, None
"""


@dataclasses.dataclass
class Line:
    text: str
    defines: str  # the variable, or "" for a statement
    uses: frozenset


@dataclasses.dataclass
class Program:
    seed: int
    sizes: list  # the sizes that inputs are made of, for each call: [[3, 8], [3, 8], [4, 8]]
    inputs: list  # Lines; they may use the inputs before, `D` and `call`
    lines: list
    outputs: list  # names of variables
    mode: str  # "no_grad", "inference_mode", "grad"
    weights: int = 0  # so many of the inputs are parameters of a module
    options: dict = dataclasses.field(default_factory=dict)
    backward: list = dataclasses.field(default_factory=list)  # statements over `outputs` and `leaves`: the backward passes
    dynamic: bool | None = None  # oxyfuel.compile()'s
    all_strides: bool = True  # also those of dimensions of size 1, which are of no account, must be eager's

    def source(self):
        names = [line.defines for line in self.inputs]
        parameters = names[self.weights :]
        body = [f"        {name} = self.{name}" for name in names[: self.weights]]
        body += [f"        {line.text}" for line in self.lines]
        returned = ", ".join(self.outputs) + ("," if len(self.outputs) == 1 else "")
        made = "\n".join(f"    {line.text}" for line in self.inputs)
        forward = f"def forward(self{''.join(', ' + p for p in parameters)}):\n" + "\n".join(body) + f"\n        return ({returned})"
        statements = "\n".join(f"    {statement}" for statement in self.backward)
        return (
            f"{PRELUDE}\n\nclass Program(torch.nn.Module):\n    {forward}\n\n\n"
            f"def inputs(call):\n    D = {self.sizes}[call]\n    leaves.clear()\n{made}\n    return [{', '.join(names)}]\n"
            f"\n\ndef backward(outputs, leaves):\n    gradients, outputs = [], dict(zip({self.outputs}, outputs))\n{statements}\n    return gradients + [leaf.grad for leaf in leaves]\n"
        )

    def runnable(self):
        """A script that shows the two answers."""
        names = [line.defines for line in self.inputs]
        hold = "".join(f"    program.{n} = torch.nn.Parameter({n}, requires_grad={n}.requires_grad)\n" for n in names[: self.weights])
        options = f", options={self.options}" if self.options else ""
        dynamic = "" if self.dynamic is None else f", dynamic={self.dynamic}"
        mode = {"no_grad": "torch.no_grad()", "inference_mode": "torch.inference_mode()", "grad": "torch.enable_grad()"}[self.mode]
        return (
            self.source()
            + f"\n\nimport oxyfuel\n\n\ndef run(compile, call, program=None):\n"
            f"    {', '.join(names)}{',' if len(names) == 1 else ''} = inputs(call)\n    program = program or Program()\n{hold}"
            f"    compiled = compile(program)\n    torch.manual_seed(0)\n    try:\n"
            f"        outputs = compiled({', '.join(names[self.weights:])})\n"
            f"        return outputs, backward(outputs, [*program.parameters(), *leaves]), [{', '.join(names)}]\n"
            f"    except Exception as error:\n        return error, [{', '.join(names)}]\n\n\n"
            f"with {mode}:\n    compiled = oxyfuel.compile(Program(){options}{dynamic})\n"
            f"    for call in range({len(self.sizes)}):\n"
            f"        print('eager   ', run(lambda program: program, call))\n"
            f"        print('compiled', run(lambda program: program, call, compiled))\n"
        )

    def without(self, index):
        """The program without a line and what depends on it, or None if nothing would be left to return."""
        gone, lines = set(), []
        if self.lines[index].defines:
            gone.add(self.lines[index].defines)
        for i, line in enumerate(self.lines):
            if i == index:
                continue
            if line.uses & gone:
                if line.defines:
                    gone.add(line.defines)
                continue
            lines.append(line)
        outputs = [name for name in self.outputs if name not in gone]
        return dataclasses.replace(self, lines=lines, outputs=outputs)

    def without_unused_inputs(self):
        used = set(self.outputs).union(*[line.uses for line in self.lines]) if self.lines else set(self.outputs)
        inputs, weights = [], self.weights
        for i in reversed(range(len(self.inputs))):
            line = self.inputs[i]
            if line.defines in used:
                used |= line.uses
                inputs.insert(0, line)
            elif i < self.weights:
                weights -= 1
        return dataclasses.replace(self, inputs=inputs, weights=weights)


def load(program):
    """The namespace of the program's text; its lines are known to tracebacks."""
    text = program.source()
    filename = f"<program {program.seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace = types.ModuleType("program").__dict__
    exec(compile(text, filename, "exec"), namespace)
    return namespace


def raising_line(error, seed):
    """The last line of the program that the exception went through, or None."""
    lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if frame.filename == f"<program {seed}>"]
    return lines[-1] if lines else None


def shrink(program, fails, limit=300):
    """The smallest program found that still fails: fewer lines, outputs, inputs, calls."""
    tries = 0
    changed = True
    while changed and tries < limit:
        changed = False
        for i in reversed(range(len(program.lines))):
            if i >= len(program.lines):
                continue
            smaller = program.without(i)
            tries += 1
            if fails(smaller):
                program, changed = smaller, True
        for i in reversed(range(len(program.outputs))):
            smaller = dataclasses.replace(program, outputs=program.outputs[:i] + program.outputs[i + 1 :])
            tries += 1
            if fails(smaller):
                program, changed = smaller, True
    for smaller in (
        program.without_unused_inputs(),
        dataclasses.replace(program.without_unused_inputs(), sizes=program.sizes[:1]),
        dataclasses.replace(program.without_unused_inputs(), sizes=program.sizes[:2]),
    ):
        if len(smaller.sizes) <= len(program.sizes) and fails(smaller):
            program = smaller
    for call in reversed(range(len(program.sizes))):
        smaller = dataclasses.replace(program, sizes=program.sizes[:call] + program.sizes[call + 1 :])
        if smaller.sizes and fails(smaller):
            program = smaller
    return program
