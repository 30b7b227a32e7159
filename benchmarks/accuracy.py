"""Whether a compiled model's answer is right: against a float64 run of the same model.

Each output tensor must have eager's dtype, shape, strides, device, requires_grad and Python type, and an error of at
most twice eager's, or be within 1e-3 of the float64 answer. Infinities and NaN must be those of eager.
"""

import copy
from dataclasses import dataclass

import torch

TOLERANCE = 1e-3
ERROR_FACTOR = 2.0


def tensors_of(output, path="output", inside=()):
    """(path, tensor) of every tensor in a nest of mappings, sequences, model outputs and objects, in order."""
    if isinstance(output, torch.Tensor):
        yield path, output
    elif isinstance(output, dict):
        for key, value in output.items():
            yield from tensors_of(value, f"{path}.{key}", inside)
    elif isinstance(output, (list, tuple)):
        for index, value in enumerate(output):
            yield from tensors_of(value, f"{path}[{index}]", inside)
    elif _has_contents(output) and id(output) not in inside:
        for key, value in vars(output).items():
            yield from tensors_of(value, f"{path}.{key}", (*inside, id(output)))


def _has_contents(output):
    """True for objects such as caches; classes, functions and modules are not looked into."""
    return hasattr(output, "__dict__") and not callable(output)


def widened(model, inputs):
    """A float64 copy of the model, and its inputs for it."""
    wide = {key: value.double() if value.is_floating_point() else value for key, value in inputs.items()}
    return copy.deepcopy(model).double(), wide


def in_float64(model, inputs):
    """The output of a float64 copy of the model."""
    wide_model, wide_inputs = widened(model, inputs)
    return wide_model(**wide_inputs)


def error_of(tensor, reference):
    """Root mean square of the difference, in float64."""
    difference = tensor.double() - reference.double()
    return difference.square().mean().sqrt().item() if difference.numel() else 0.0


def _as_they_are(tensor):
    """0 for finite values, else which one."""
    return tensor.isnan() * 1 + tensor.isposinf() * 2 + tensor.isneginf() * 3


@dataclass
class Verdict:
    problems: list
    error: float = 0.0  # the largest of ours
    eager_error: float = 0.0  # eager's on the same tensor
    inexact: int = 0  # how many of the problems are errors larger than eager's

    @property
    def ok(self):
        return not self.problems


def compare(actual, eager, reference):
    """Judges `actual` against eager's output and the float64 one."""
    verdict = Verdict([])
    if type(actual) is not type(eager):
        verdict.problems.append(f"type {type(actual).__name__} instead of {type(eager).__name__}")
    ours, theirs, exact = (list(tensors_of(output)) for output in (actual, eager, reference))
    if [path for path, _ in ours] != [path for path, _ in theirs]:
        verdict.problems.append("other outputs than eager's")
        return verdict
    for (path, a), (_, e), (_, r) in zip(ours, theirs, exact):
        for what in ("dtype", "shape", "device", "requires_grad"):
            if getattr(a, what) != getattr(e, what):
                verdict.problems.append(f"{path}: {what} {getattr(a, what)} instead of {getattr(e, what)}")
        if type(a) is not type(e):
            verdict.problems.append(f"{path}: type {type(a).__name__} instead of {type(e).__name__}")
        if a.shape != e.shape:
            continue
        if a.stride() != e.stride():
            verdict.problems.append(f"{path}: strides {a.stride()} instead of {e.stride()}")
        if a.is_complex():
            a, e, r = (torch.view_as_real(t.resolve_conj()) for t in (a, e, r))
        finite = [t.isfinite() for t in (a, e, r)]
        if not all(mask.all() for mask in finite):
            if not torch.equal(_as_they_are(a), _as_they_are(e)):
                verdict.problems.append(f"{path}: infinities or NaN other than eager's")
                continue
            everywhere = finite[0] & finite[2]
            a, e, r = a[everywhere], e[everywhere], r[everywhere]
        error, eager_error = error_of(a, r), error_of(e, r)
        if not error <= ERROR_FACTOR * eager_error and not torch.allclose(
            a.double(), r.double(), rtol=TOLERANCE, atol=TOLERANCE
        ):
            verdict.problems.append(f"{path}: error {error:.3g}, eager's is {eager_error:.3g}")
            verdict.inexact += 1
        if not error <= verdict.error:
            verdict.error, verdict.eager_error = error, eager_error
    return verdict
