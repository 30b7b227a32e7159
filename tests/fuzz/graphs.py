#!/usr/bin/env python3
"""Random tensor programs, compiled and in eager, compared in everything that can be seen of them.

    python tests/fuzz/graphs.py --seeds 0:10000          many; a failing one is shrunk and printed as a program
    python tests/fuzz/graphs.py --seeds 4711 --show      one, with its text
    python tests/fuzz/graphs.py --gradients --seeds 0:10000      programs that are differentiated, with their gradients

A seed makes a program, its inputs, and three calls of it: other values at the second, other sizes or weights at the third.
"""

import argparse
import collections
import contextlib
import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OXYFUEL_STRICT", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch  # noqa: E402

import eager_kernels  # noqa: E402

import oxyfuel  # noqa: E402
from generator import generate  # noqa: E402
from memory_limit import limited_memory, ran_out_of_memory  # noqa: E402
from observation import difference, errors_of_eager, gradients_overlap, observe, saves_more, tensors_of, value_difference  # noqa: E402
from program import load, raising_line, shrink  # noqa: E402
from seeds import seeds_in  # noqa: E402

MODES = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode, "grad": torch.enable_grad}


def _parameter(value):
    return torch.nn.Parameter(value.detach(), requires_grad=value.requires_grad)


def _is_overwritten(weight, value):
    """Whether the second call of a program writes its value of a weight into the first call's."""
    return weight.shape == value.shape and 0 not in value.stride()


def _weights_of(program, namespace, call, inputs):
    """The weights that a call sees whose module is new: the second call writes into the first one's where it can."""
    weights = inputs[: program.weights]
    if call != 1 or not weights:
        return weights
    leaves = list(namespace["leaves"])
    first = namespace["inputs"](0)[: program.weights]
    namespace["leaves"][:] = leaves  # those of this call's inputs
    return [value if _is_overwritten(weight, value) else weight for weight, value in zip(first, weights)]


def _prepare(program, namespace, call, module=None):
    """The module, which keeps its weights unless it is new or they change, and the arguments of a call."""
    inputs = namespace["inputs"](call)
    names = [line.defines for line in program.inputs]
    if module is None:
        module = namespace["Program"]()
        for name, value in zip(names, _weights_of(program, namespace, call, inputs)):
            setattr(module, name, _parameter(value))
    elif program.weights and call == 1:
        with torch.no_grad():
            for name, value in zip(names, inputs[: program.weights]):
                weight = getattr(module, name)
                if _is_overwritten(weight, value):
                    weight.copy_(value)
                if weight.is_leaf and weight.requires_grad != value.requires_grad:
                    weight.requires_grad_(value.requires_grad)  # the call before took it away; a float64 run starts with it
    elif program.weights and call >= 2:
        for name, value in zip(names, inputs[: program.weights]):
            setattr(module, name, _parameter(value))
    weights = [getattr(module, name) for name in names[: program.weights]]
    return module, weights, inputs[program.weights :]


def _layout(tensor):
    return [stride for stride, size in zip(tensor.stride(), tensor.shape) if size > 1] if tensor.numel() else []


MOVED_RUNS = 8  # of eager, with inputs about the same
COARSE = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, ".float()": torch.float32}  # the coarser ones first


def _observe(program, namespace, function, weights, arguments, limited=contextlib.nullcontext):
    """The observation of a call and its backward passes, which run inside of `limited()`, and the program's line that raised."""
    line = None
    leaves = [t for t in weights if t.requires_grad] + namespace["leaves"]
    for leaf in leaves:
        leaf.grad = None

    def call(weights, *arguments):
        nonlocal line
        try:
            with limited():
                outputs = function(*arguments)
        except Exception as error:
            line = raising_line(error, program.seed)
            raise
        if not program.backward:
            return outputs
        with limited():
            gradients = namespace["backward"](outputs, leaves)
        given = len(gradients) - len(leaves)
        layouts = [_layout(g) for g in gradients[given:] if g is not None]
        # They may share memory or not. Some without elements are the leaf itself.
        returned = [g if g is None else g.clone() if g.numel() else g.detach().clone() for g in gradients[:given]]
        return outputs, returned, gradients[given:], layouts, [t.is_leaf for t in outputs]

    observation = observe(call, (weights, *arguments))
    return observation, line


def _observed_or_none(program, namespace, call):
    """The observation of a call in eager with this namespace; None if it raises."""
    try:
        module, weights, arguments = _prepare(program, namespace, call)
        return _observe(program, namespace, module, weights, arguments)[0]
    except Exception:
        return None


FLOATING = re.compile(r"\b(f32|f64|bf16|f16)\b")


@contextlib.contextmanager
def _default_float64():
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


CONVERSION = re.compile(r"\.(?:to|type)\((f32|f64|bf16|f16)\)")


def _in_wide_types(program, copies):
    """The program without methods that name narrow types, and with no line that looks at bits, which float64 has others of.
    ``copies``: conversions make a new tensor, as they do between types that differ."""

    def wide(text):
        text = CONVERSION.sub(r".to(\1, copy=True)", text) if copies else text
        return text.replace(".view(i32).view(f32)", ".detach()").replace(".float()", ".double()")

    return dataclasses.replace(program, lines=[dataclasses.replace(line, text=wide(line.text)) for line in program.lines])


def _observed_in_wide_types(program, call, prepared):
    """The call of that program in eager; `prepared(namespace)` changes what it names. A leaf that is written to, and is a
    copy of one in its own types, would raise: then conversions are copies."""
    for copies in (False, True):
        namespace = load(_in_wide_types(program, copies))
        prepared(namespace)
        observed = _observed_or_none(program, namespace, call)
        if observed is not None and not observed.raised:
            break
    return observed


RANDOM = ("normal_", "uniform_", "rand_like", "randn", "bernoulli", "gumbel", "dropout", "rrelu")


def _draws(program):
    return any(word in line.text for line in program.lines for word in RANDOM)


def _in_float64(program, call, noise=0.0, draws=contextlib.nullcontext, trial=0):
    """The same call with every floating point type replaced by float64, the default one too, the inputs and the steps of
    norms off by a relative error of `noise`, another one in each trial. `draws()`: how random numbers are drawn."""
    chance = torch.Generator().manual_seed(trial)

    def prepared(namespace):
        values = namespace["values"]

        def noisy(seed, shape, dtype, special=False):
            made = values(seed, shape, dtype, special)
            if noise and made.dtype == torch.float64:
                factor, term = (noise * torch.randn(made.shape, dtype=torch.float64, generator=chance) for _ in range(2))
                made = made * (1 + factor) + 0.1 * term
            return made

        namespace.update(f32=torch.float64, bf16=torch.float64, f16=torch.float64, values=noisy)

    with _default_float64(), draws(), eager_kernels.norms_with_rounding(noise) if noise else contextlib.nullcontext():
        return _observed_in_wide_types(program, call, prepared)


def _moved_by_a_bit(tensor, seed):
    """Each element is the same, the next larger or the next smaller one of its type, or the one behind that."""
    if not tensor.dtype.is_floating_point:
        return tensor
    steps = torch.randint(-1, 2, tensor.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (tensor.double() * (1 + 0.75 * torch.finfo(tensor.dtype).eps * steps)).to(tensor.dtype)


def _with_moved_inputs(program, call, trial, draws=contextlib.nullcontext):
    """The call in eager with its inputs moved by a bit, in the program's types and in float64: what differs is rounding."""
    inputs = [dataclasses.replace(line, text=re.sub(r"\bvalues\(", "moved(", FLOATING.sub(r"own_\1", line.text))) for line in program.inputs]
    moved_program = dataclasses.replace(program, inputs=inputs)
    own = load(moved_program)
    values = own["values"]

    def moved(seed, shape, dtype, special=False):
        return _moved_by_a_bit(values(seed, shape, dtype, special), 1000 * trial + seed)

    def moved_and_widened(*arguments, **options):
        made = moved(*arguments, **options)
        return made.double() if made.dtype.is_floating_point else made

    types = {f"own_{name}": own[name] for name in ("f32", "f64", "bf16", "f16")}
    own.update(types, moved=moved)
    wide = {**types, "moved": moved_and_widened, "f32": torch.float64, "bf16": torch.float64, "f16": torch.float64}
    in_own_types = _observed_or_none(moved_program, own, call)
    with _default_float64(), draws():
        return in_own_types, _observed_in_wide_types(moved_program, call, lambda namespace: namespace.update(wide))


def _with_moved_steps(program, call, trial):
    """The call in eager with each rounded result moved by a bit. Where all elements are the same, as behind a logical operator,
    all of them round in one direction, and eager's sum may be right by chance."""
    with eager_kernels.MovedSteps(trial):
        return _observed_or_none(program, load(program), call)


def _in_other_orders(program, call):
    """The call in eager that takes elements in another order."""
    with eager_kernels.other_orders():
        return _observed_or_none(program, load(program), call)


def _as_other_kernels(program, call, actual, coarsest):
    """Whether the values are those of the kernels that eager would have chosen for another layout."""
    text = " ".join(line.text for line in program.lines)
    names = eager_kernels.OTHERS if program.backward else eager_kernels.OF_LIBRARY
    if not any(name in text for name in names):
        return False
    with eager_kernels.other_kernels():
        other, exact = _observed_or_none(program, load(program), call), _in_float64(program, call)
    if other is None or other.raised:
        return False
    trees = [tensors_of(o.value) for o in (other, actual, exact) if o is not None and not o.raised]
    if any(len(tree) != len(trees[0]) for tree in trees):
        return False
    return all(
        left.shape == right.shape and value_difference(left.detach(), right.detach(), *[t.detach() for t in others], coarsest=coarsest) is None
        for left, right, *others in zip(*trees)
    )


def _ill_conditioned(program, call, expected, actual):
    """Whether results move by about as much when the inputs do by a rounding error: then eager's answer is no better."""
    from torch.utils import _pytree as pytree

    text = program.source().split("class Program")[1]
    noise = 1e-2 if "bf16" in text else 2e-3 if "f16" in text or ".half" in text else 1e-6
    base = _in_float64(program, call)
    if base is None or base.raised:
        return False
    # A number may lie at a jump: a few of them go to either side of it.
    moved = [_in_float64(program, call, noise, trial=trial) for trial in range(12)]
    trees = [pytree.tree_leaves((o.value, o.inputs)) for o in (expected, actual, base, *moved) if o is not None and not o.raised]
    if len({len(t) for t in trees}) != 1 or len(trees) < 4:
        return False
    reordered = _in_other_orders(program, call)
    again_of = pytree.tree_leaves((reordered.value, reordered.inputs)) if reordered and not reordered.raised else []
    again_of += [None] * (len(trees[0]) - len(again_of))
    is_singular, only_nan, any_different = False, True, False
    for again, left, right, exact, *others in zip(again_of, *trees):
        if not isinstance(left, torch.Tensor) or left.layout != torch.strided:
            continue
        if any(t.shape != left.shape or t.dtype != exact.dtype for t in others):
            return True
        left, right, exact, *others = [t.detach().to(torch.complex128) for t in (left, right, exact, *others)]
        off = (left - right).abs()
        spread = torch.stack([(t - exact).abs() for t in others] + [torch.zeros_like(off)]).amax(0)
        unsure = torch.stack([(t.isfinite() != exact.isfinite()) for t in others]).any(0)
        if again is not None and again.shape == left.shape:
            unsure |= left.isnan() != again.isnan()
        same = (left == right) | (left.isnan() & right.isnan())
        different = ~(same | unsure | (off <= 50 * spread + 1e-5 * (1 + exact.abs())))
        # Eager's has not even the sign: 0 / 0 is one rounding away. Sums of this NaN are NaN in other results.
        is_singular |= (right.isnan() & (left.real * exact.real < -1e-3)).any().item()
        only_nan &= right[different].isnan().all().item()
        any_different |= different.any().item()
    return not any_different or (is_singular and only_nan)


def _has_sizes_of_data(program):
    return any(word in line.text for line in program.lines for word in ("unique(", "nonzero(", "masked_select("))


def _sums_along_sizes_of_data(program):
    return _has_sizes_of_data(program) and any("einsum(" in line.text for line in program.lines)


def _follows_strides_of_ones(program):
    """Whether an operator that runs in eager, behind a break, or that PyTorch composes of others takes its layout from strides
    of dimensions of size 1 too."""
    return any(word in line.text for line in program.lines for word in ("adaptive_max_pool", "avg_pool1d", "max_pool1d"))


def _without_signs_of_nan(program):
    """The program that asks no NaN for its sign, which depends on the order of operands; None if it asks for no sign."""

    def signless(line):
        text = re.sub(r"(\b[av]\d+)\.signbit\(\)", r"(\1.signbit() & ~\1.isnan())", line.text)
        text = re.sub(r"(torch\.copysign\([^()]*)\.abs\(\)\)", r"\1.abs().nan_to_num(0))", text)
        return dataclasses.replace(line, text=text)

    lines = [line if ".isnan())" in line.text or ".nan_to_num(0))" in line.text else signless(line) for line in program.lines]
    return None if lines == program.lines else dataclasses.replace(program, lines=lines)


def _with_finite_statistics(program):
    """The program whose means and group norms, which are infinite or NaN depending on the order of the arithmetic
    (docs/limits.md), are numbers; None if it has none."""
    if "special=True" not in program.source():
        return None

    def finite(line):
        if not re.search(r"\b((var|std)_mean|group_norm)\(", line.text) or line.text.endswith(".nan_to_num(0, 0, 0)"):
            return line
        name, value = line.text.split(" = ", 1)
        return dataclasses.replace(line, text=f"{name} = ({value}).nan_to_num(0, 0, 0)")

    lines = [finite(line) for line in program.lines]
    return None if lines == program.lines else dataclasses.replace(program, lines=lines)


def _with_small_products(program):
    """The program with products that do not overflow: beside a zero, gradients of those that do are others than eager's
    (docs/limits.md). None if it differentiates none."""
    lines = [dataclasses.replace(line, text=re.sub(r"(?<!\.clamp\(-1, 1\))\.prod\(", ".clamp(-1, 1).prod(", line.text)) for line in program.lines]
    return None if lines == program.lines or not program.backward else dataclasses.replace(program, lines=lines)


def _without_writes_of_data(program):
    """The program without writes to `.data` between the passes, or before the end of the program; None if it has none. What the
    backward pass computes again reads the new values (docs/limits.md)."""
    backward = [statement for statement in program.backward if ".data." not in statement]
    lines = [line for line in program.lines if ".data." not in line.text]
    changed = dataclasses.replace(program, backward=backward, lines=lines)
    return None if len(backward) == len(program.backward) and (len(lines) == len(program.lines) or not backward) else changed


def check(program, ignore_rounding=True):
    """What differs, or None."""
    try:
        namespace = load(program)
    except SyntaxError:
        return None
    oxyfuel.reset()
    with MODES[program.mode]():
        try:
            _prepare(program, namespace, 0)
        except Exception:
            return None  # a shrunk program whose inputs need one that is gone
        eager = compiled = None
        for call in range(len(program.sizes)):
            try:
                with limited_memory():
                    _prepare(program, namespace, call)
            except Exception:
                continue  # there are no such inputs, such as indices into nothing
            eager, weights, arguments = _prepare(program, namespace, call, eager)
            expected, line = _observe(program, namespace, eager, weights, arguments, limited_memory)
            if ran_out_of_memory(expected.raised):
                continue
            if expected.raised and expected.raised[0] in ("NameError", "KeyError", "UnboundLocalError"):
                return None  # a shrunk program that lacks something
            plain, weights, arguments = _prepare(program, namespace, call, compiled and compiled[0])
            if compiled is None:
                compiled = plain, oxyfuel.compile(plain, options=program.options or None, dynamic=program.dynamic)
            actual, line_too = _observe(program, namespace, compiled[1], weights, arguments)
            outputs = len(program.outputs)
            if program.backward and (saves_more(expected, actual) or gradients_overlap(expected, outputs)):
                continue
            # With symbols, strides of dimensions of size 1 may be others; sizes that only data tell are symbols.
            all_strides = program.all_strides and program.sizes[call] == program.sizes[0] and not _has_sizes_of_data(program)
            found = difference(expected, actual, with_layout=outputs, all_strides=all_strides)
            compared = outputs  # of so many results the layouts, too
            has_other_layouts = _sums_along_sizes_of_data(program) or (not all_strides and _follows_strides_of_ones(program))
            if found and ": strides" in found and has_other_layouts:
                compared = 0  # docs/limits.md, docs/dynamic-shapes.md
                found = difference(expected, actual, with_layout=compared)
            if found and (expected.raised is None) == (actual.raised is None):
                texts = [line.text for line in (*program.inputs, *program.lines)]
                coarsest = next((dtype for name, dtype in COARSE.items() if any(name in text for text in texts)), None)
                tolerated = {"with_layout": compared, "all_strides": all_strides, "coarsest": coarsest}
                if expected.raised:  # what was written before is compared
                    found = difference(expected, actual, **tolerated)
            if found and expected.raised is None and actual.raised is None:
                # Random numbers of float64 are others. Which type the program draws is not known.
                for draws in (contextlib.nullcontext, eager_kernels.NarrowDraws)[: 1 + _draws(program)]:
                    exact = _in_float64(program, call, draws=draws)
                    found = difference(expected, actual, exact, **tolerated)
                    moved = (lambda trial: _with_moved_inputs(program, call, trial, draws), lambda trial: (_with_moved_steps(program, call, trial), exact))
                    for run in moved[: 1 + ignore_rounding]:
                        if found and "values differ" in found:
                            noise = errors_of_eager(run(trial) for trial in range(MOVED_RUNS))
                            found = difference(expected, actual, exact, **tolerated, noise=noise)
                    if not found or "values differ" not in found:
                        break
                if found and "values differ" in found and _as_other_kernels(program, call, actual, coarsest):
                    found = None
                if found and "values differ" in found and ignore_rounding and _ill_conditioned(program, call, expected, actual):
                    found = None
            if not found and expected.raised and line != line_too:
                found = f"raised at {line!r} in eager, at {line_too!r} compiled"
            if found and expected.raised and "is out of bounds" in expected.raised[1] and (plain := _without_writes_of_data(program)):
                return check(plain, ignore_rounding)  # of indices: docs/limits.md
            if found and "values differ" in found and (plain := _without_writes_of_data(program) or _with_finite_statistics(program) or _with_small_products(program) or _without_signs_of_nan(program)):
                return check(plain, ignore_rounding)
            if found:
                return f"call {call}: {found}"
    return None


def kind_of(found):
    """Failures of one kind are shrunk into each other, others are not."""
    for part in ("internal error", "strides", "values differ", "raised at", "shares memory", "storage offset", "written to", "dtype", "shape"):
        if part in found:
            return part
    return "raised" if "raised" in found else "other"


def run_seed(seed, show=False, shrinks=True, gradients=False, make=generate):
    """None, or what differs and the program that shows it; `make(seed, gradients)` is the program."""
    program = make(seed, gradients)
    if show:
        print(program.runnable())
    found = check(program)
    if found and shrinks:
        kind = kind_of(found)

        def fails(smaller):
            again = check(smaller)
            return again is not None and kind_of(again) == kind

        program = shrink(program, fails)
        found = check(program) or found
    return (found, program) if found else None


def work(seeds, progress, options, make):
    """Runs seeds one after the other, noting each in a file before it starts, so that a crash can be told."""
    warnings.simplefilter("ignore")
    failures = 0
    for seed in seeds:
        Path(progress).write_text(str(seed))
        result = run_seed(seed, options.show, not options.no_shrink, options.gradients, make)
        if result:
            failures += 1
            print(f"{result[1].runnable() if not options.brief else brief(result[1])}\n# seed {seed}: {result[0]}\n", flush=True)
    return failures


def brief(program):
    inputs = "\n".join("    " + line.text for line in program.inputs)
    lines = "\n".join("    " + line.text for line in program.lines)
    held = f", {program.weights} weights" if program.weights else ""
    passes = "".join(f"\n    {statement}" for statement in program.backward)
    return f"{program.mode}{held}, D = {program.sizes}\n{inputs}\n    --\n{lines}\n    return {', '.join(program.outputs)}{passes}"


def main(description=__doc__, make=generate, script=__file__):
    """Runs the programs that `make(seed, gradients)` gives, in processes of `script`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:200", help="first:last (excluded), or one")
    parser.add_argument("--gradients", action="store_true", help="programs that are differentiated")
    parser.add_argument("--show", action="store_true", help="print each program before it runs")
    parser.add_argument("--brief", action="store_true", help="print the lines of failing programs only")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--chunk", type=int, default=500, help="seeds that run in one process")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    seeds = seeds_in(options.seeds)
    if options.worker:
        return work(seeds, options.worker, options, make)
    passed = [f"--{name}" for name in ("show", "brief", "gradients") if getattr(options, name)] + ["--no-shrink"] * options.no_shrink
    outcomes = collections.Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "seed"
        at = seeds.start
        while at < seeds.stop:
            last = min(at + options.chunk, seeds.stop)
            progress.write_text(str(at))
            done = subprocess.run([sys.executable, script, "--worker", str(progress), "--seeds", f"{at}:{last}", *passed])
            if done.returncode in (0, 1):
                outcomes["failed"] += done.returncode
                at = last
                continue
            crashed = int(progress.read_text())
            print(f"# seed {crashed}: the process died with status {done.returncode}\n{brief(make(crashed, options.gradients))}\n", flush=True)
            outcomes["crashed"] += 1
            at = crashed + 1
    print(f"{len(seeds)} seeds in {time.monotonic() - started:.0f} s, {outcomes['failed']} chunks with failures, {outcomes['crashed']} crashes")
    return 1 if outcomes.total() else 0


if __name__ == "__main__":
    sys.exit(min(main(), 1))
