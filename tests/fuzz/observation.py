"""What a call of a function does that its caller can see, and whether two calls did the same.

`observe` runs a function; `difference` compares the run in eager with the compiled one: results (types, dtypes,
shapes, strides, values, what shares memory with what), what became of the arguments, exceptions with their text.
Values of floating point may be off by rounding: by what their type allows, or by twice eager's own error against the
same call in float64, here or for inputs that are about the same.
"""

import dataclasses
import math
import re
import sys
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

sys.path.append(str(Path(__file__).resolve().parent.parent / "python"))
from torch_stacks import leave_out_stacks  # noqa: E402

leave_out_stacks()

# Relative and absolute tolerance of a result that took some tens of operations.
TOLERANCES = {
    torch.float64: (1e-9, 1e-9),
    torch.float32: (2e-5, 2e-5),
    torch.float16: (4e-3, 4e-3),
    torch.bfloat16: (3e-2, 3e-2),
    torch.complex64: (2e-5, 2e-5),
    torch.complex128: (1e-9, 1e-9),
    torch.complex32: (4e-3, 4e-3),
}


@dataclasses.dataclass
class Observation:
    raised: tuple | None  # type and text of the exception
    value: object
    inputs: list  # the tensors among the arguments, after the call
    written: list  # whether the version counter of each moved
    changed: list  # whether the contents of each did


def tensors_of(tree):
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def observe(function, arguments, seed=0):
    """Runs ``function(*arguments)`` on the arguments themselves."""
    inputs = tensors_of(arguments)
    versions = [None if t.is_inference() else t._version for t in inputs]
    raised = value = None
    before = [t.clone() for t in inputs]
    torch.manual_seed(seed)
    try:
        value = function(*arguments)
    except Exception as error:
        raised = (type(error).__name__, str(error))
    written = [v is not None and t._version != v for t, v in zip(inputs, versions)]
    changed = [t.shape != b.shape or not same_values(t, b) for t, b in zip(inputs, before)]
    return Observation(raised, value, inputs, written, changed)


def same_values(a, b):
    if a.layout != torch.strided:
        a, b = a.to_dense(), b.to_dense()
    if a.dim() > 64:
        a, b = a.cpu(), b.cpu()  # kernels of GPUs take no more dimensions
    return bool(torch.equal(a, b) or ((a == b) | ((a != a) & (b != b))).all())


def in_float64(tree):
    """A copy of the arguments with floating point tensors in float64 (complex128)."""

    def widen(leaf):
        if isinstance(leaf, torch.Tensor):
            if leaf.dtype.is_complex:
                return leaf.detach().to(torch.complex128)
            return leaf.detach().double() if leaf.dtype.is_floating_point else leaf.detach().clone()
        return leaf

    return pytree.tree_map(widen, tree)


PRODUCT_OF_WRONG_SIZES = ("mat1 and mat2 shapes cannot be multiplied", "Expected size for first two dimensions of batch2 tensor")


def _comparable(text, all_strides):
    """An error's text without what need not be the same: which of several bad indices a kernel came to first."""
    text = re.sub(r"^(index|Target) -?\d+ is out of bounds", r"\1 is out of bounds", _first_lines(text))
    if text.startswith("an index is out of bounds in the backward pass"):
        return "index is out of bounds"
    if not all_strides and text.startswith(PRODUCT_OF_WRONG_SIZES):
        return "sizes of a product"  # which of eager's kernels refuses them is up to strides of dimensions of size 1
    return text


# What PyTorch says of an index into a tensor without dimensions: it looks for their size in memory that holds none, and which of
# these it says is up to what it finds there.
INDEX_OF_A_NUMBER = re.compile(r"select\(\) cannot be applied to a 0-dim tensor|index is out of bounds for dimension 0 with size -?\d+$")

# What PyTorch says of a tensor that is copied to itself in another shape: strides of dimensions of one element decide whether it
# sees one tensor or two that share memory.
COPY_TO_ITSELF = re.compile(r"output with shape \[.*\] doesn't match the broadcast shape|unsupported operation: some elements of the input")


def _same_text(expected, actual, all_strides):
    expected, actual = _comparable(expected, all_strides), _comparable(actual, all_strides)
    texts = (expected, actual)
    if not all_strides and all(map(COPY_TO_ITSELF.match, texts)):
        return True
    if any(text.startswith("select()") for text in texts) and all(map(INDEX_OF_A_NUMBER.match, texts)):
        return True
    return expected == actual or (actual == "index is out of bounds" and expected.startswith(actual))


WRITTEN_TO = "one of the variables needed for gradient computation has been modified by an inplace operation"
WRITTEN_VIEW = re.compile(r"Output \d+ of \w+ is a view of a view which was created in no_grad mode and its base or another view")


def _first_lines(text):
    # Which one, and how often it was written to, is up to who saved it: eager a view, a region what it is a view of.
    if text.startswith(WRITTEN_TO) or WRITTEN_VIEW.match(text):
        return WRITTEN_TO
    return text.strip().split("\n")[0][:300]


def difference(expected, actual, reference=None, single=False, with_layout=None, all_strides=True, coarsest=None, noise=None):
    """The first thing in which two observations differ, in words, or None. ``reference``: the call in float64.

    ``single``: the function is one operator, and what a failed one has written so far is undefined. ``with_layout``:
    so many of the results must have eager's strides; none: all. Without ``all_strides`` those of dimensions of size 1
    may differ. ``coarsest``: a type that values were rounded to on the way; it counts where there is no reference.
    ``noise``: eager's errors for inputs that are about the same, of the arguments and of the results (`errors_of_eager`).
    """
    if (expected.raised is None) != (actual.raised is None):
        return f"eager {_outcome(expected)}, compiled {_outcome(actual)}"
    if expected.raised:
        if expected.raised[0] != actual.raised[0]:
            return f"eager {_outcome(expected)}, compiled {_outcome(actual)}"
        if not _same_text(expected.raised[1], actual.raised[1], all_strides):
            return f"eager {_outcome(expected)}, compiled {_outcome(actual)}"
    if expected.raised and single:
        return None
    if any(changed and a and not b for changed, a, b in zip(expected.changed, expected.written, actual.written)):
        return f"arguments written to: {expected.written} in eager, {actual.written} compiled"
    references = [None] * len(expected.inputs)
    if reference is not None and reference.raised is None and len(reference.inputs) == len(references):
        references = reference.inputs
    noise = noise or ([0.0] * len(references), [0.0] * len(pytree.tree_leaves(expected.value)))
    for i, (a, b, r, n) in enumerate(zip(expected.inputs, actual.inputs, references, noise[0])):
        found = tensor_difference(a, b, r, coarsest=coarsest, noise=n)
        if found:
            return f"argument {i} afterwards: {found}"
    if expected.raised:
        return None
    left, left_spec = pytree.tree_flatten(expected.value)
    right, right_spec = pytree.tree_flatten(actual.value)
    if left_spec != right_spec:
        return f"eager returned {left_spec}, compiled {right_spec}"
    references = [None] * len(left)
    if reference is not None and reference.raised is None:
        leaves, spec = pytree.tree_flatten(reference.value)
        if spec == left_spec:
            references = leaves
    for i, (a, b, r, n) in enumerate(zip(left, right, references, noise[1])):
        found = leaf_difference(a, b, r, with_layout is None or i < with_layout, all_strides, coarsest, n)
        if found:
            return f"result {i}: {found}"
    return alias_difference(expected, actual, left, right, with_layout)


def errors_of_eager(runs):
    """The largest error of eager for each tensor among the arguments and the leaves of the results.

    ``runs``: observations in eager, each with that of the same call in float64. Where an exact sum is 0, one run may come
    close to it by chance; several tell how far off such a sum is. None: no run tells.
    """
    worst = None
    for own, exact in runs:
        if own is None or exact is None or own.raised or exact.raised:
            continue
        trees = [(o.inputs, pytree.tree_leaves(o.value)) for o in (own, exact)]
        if [len(part) for part in trees[0]] != [len(part) for part in trees[1]]:
            continue
        errors = [[_error(a, b) for a, b in zip(*parts)] for parts in zip(*trees)]
        if worst is None:
            worst = errors
        elif [len(part) for part in errors] == [len(part) for part in worst]:
            worst = [[max(pair) for pair in zip(*parts)] for parts in zip(worst, errors)]
    return worst


def _error(value, exact):
    if not (isinstance(value, torch.Tensor) and isinstance(exact, torch.Tensor) and value.dtype.is_floating_point):
        return 0.0
    if value.layout != torch.strided or exact.layout != torch.strided or value.shape != exact.shape or not exact.dtype.is_floating_point:
        return 0.0
    off = (value.detach().double() - exact.detach().double()).abs()
    off = off[off.isfinite()]
    return off.max().item() if off.numel() else 0.0


def gradients_overlap(observation, outputs):
    """Whether gradients, the results behind so many outputs, share elements: one that comes in expanded may be taken by several
    leaves as it is. What eager adds to one of them in another pass shows in the others."""
    if observation.raised is not None:
        return False
    taken = []
    for tensor in pytree.tree_leaves(observation.value)[outputs:]:
        if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.numel():
            first = tensor.data_ptr()
            reached = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
            taken.append((first, first + (reached + 1) * tensor.element_size()))
    taken.sort()
    return any(after[0] < before[1] for before, after in zip(taken, taken[1:]))


def names_a_view(observation):
    """Whether it raised since a view that came with others, as from a split, or that was made under no_grad, cannot be read: its
    base was written to."""
    messages = r"Output \d+ of \w+ is a view and its base|A view was created in no_grad mode and its base"
    return observation.raised is not None and re.match(messages, observation.raised[1]) is not None


def saves_more(expected, actual):
    """Whether eager's backward pass lacks a tensor that the compiled one computes again or does not need (docs/limits.md).

    Then a later pass may be the first that raises. A checkpoint of eager lacks one if its function runs once more after
    `requires_grad` of an argument has changed.
    """
    written, spent = "one of the variables needed for gradient", "Trying to backward through the graph a second time"
    if expected.raised is not None and expected.raised[0] == "CheckpointError":
        return actual.raised is None or actual.raised[1].startswith(spent)
    # Eager keeps zeros without memory as a gradient, and cannot add another one to them.
    if expected.raised is not None and expected.raised[1].startswith("ZeroTensors are immutable"):
        return actual.raised is None
    # So eager says that a part of a split, or a view, was written to since, where it is what it saved.
    if names_a_view(expected):
        return actual.raised is None or actual.raised[1].startswith(written)
    if expected.raised is None or not expected.raised[1].startswith((written, spent)):
        return False
    goes_on = (spent, "ZeroTensors are immutable")  # errors of a pass behind the one in which eager raises
    return actual.raised is None or expected.raised[1].startswith(written) and actual.raised[1].startswith(goes_on)


def _outcome(observation):
    if observation.raised:
        return f"raised {observation.raised[0]}: {_first_lines(observation.raised[1])}"
    return "returned"


def leaf_difference(expected, actual, reference, layout=True, all_strides=True, coarsest=None, noise=0.0):
    if type(expected) is not type(actual):
        return f"{type(expected).__name__} in eager, {type(actual).__name__} compiled"
    if isinstance(expected, torch.Tensor):
        return tensor_difference(expected, actual, reference if isinstance(reference, torch.Tensor) else None, layout, all_strides, coarsest, noise)
    if isinstance(expected, float):
        same = expected == actual or math.isclose(expected, actual, rel_tol=1e-4) or expected != expected and actual != actual
    else:
        same = expected == actual
    return None if same else f"{expected!r} in eager, {actual!r} compiled"


def _strides(tensor, all_strides):
    return [stride for stride, size in zip(tensor.stride(), tensor.shape) if all_strides or size > 1]


def tensor_difference(expected, actual, reference=None, layout=True, all_strides=True, coarsest=None, noise=0.0):
    for name in ("dtype", "shape", "layout", "device", "requires_grad"):
        if getattr(expected, name) != getattr(actual, name):
            return f"{name} {getattr(expected, name)} in eager, {getattr(actual, name)} compiled"
    for name in ("is_inference", "is_conj", "is_neg"):
        if getattr(expected, name)() != getattr(actual, name)():
            return f"{name}() {getattr(expected, name)()} in eager, {getattr(actual, name)()} compiled"
    if expected.layout != torch.strided:
        return tensor_difference(expected.to_dense(), actual.to_dense())
    if expected.is_quantized:
        expected, actual = expected.dequantize(), actual.dequantize()
    if layout and expected.numel() and _strides(expected, all_strides) != _strides(actual, all_strides):
        return f"shape {tuple(expected.shape)}: strides {expected.stride()} in eager, {actual.stride()} compiled"
    return value_difference(expected.detach(), actual.detach(), None if reference is None else reference.detach(), coarsest, noise)


def value_difference(expected, actual, reference=None, coarsest=None, noise=0.0):
    if expected.numel() == 0:
        return None
    dtype = expected.dtype
    if not (dtype.is_floating_point or dtype.is_complex) or dtype not in TOLERANCES:
        if dtype.is_floating_point:
            expected, actual = expected.float(), actual.float()
        wrong = ~((expected == actual) | ((expected != expected) & (actual != actual)))
        return _describe(wrong, expected, actual, reference) if wrong.any() else None
    if dtype.is_complex:
        expected, actual = (torch.view_as_real(t.to(torch.complex128).resolve_conj()) for t in (expected, actual))
        if reference is not None and reference.is_complex():
            reference = torch.view_as_real(reference.to(torch.complex128))
    relative, absolute = max(TOLERANCES[dtype], TOLERANCES[coarsest] if coarsest and reference is None else (0, 0))
    expected, actual = expected.double(), actual.double()
    close = torch.isclose(actual, expected, rtol=relative, atol=absolute, equal_nan=True)
    if close.all():
        return None
    if reference is not None and reference.shape == expected.shape and not reference.dtype.is_complex:
        reference = reference.double()
        close |= (actual == reference) | (actual.isnan() & reference.isnan())
        # Eager's value lost what it rounded on the way: the compiled one is right.
        coarse = max((relative, absolute), TOLERANCES[coarsest] if coarsest else (0, 0))
        close |= reference.isfinite() & ~expected.isfinite() & torch.isclose(actual, reference, rtol=coarse[0], atol=coarse[1])
        finite = reference.isfinite() & expected.isfinite() & actual.isfinite()
        scale = reference[finite].abs().max().item() if finite.any() else 0.0
        eager_error = (expected - reference)[finite].abs().max().item() if finite.any() else 0.0
        allowed = 2 * max(eager_error, noise) + absolute * scale * 0.1
        # Where eager's is not finite, its errors in other places tell how far off a value may be.
        near = reference.isfinite() & actual.isfinite() & ((actual - reference).abs() <= allowed)
        # Overflow depends on the order of operations where the exact value is at the limit of the type.
        limit = torch.finfo(dtype).max
        near |= (reference.abs() > limit * 0.99) & (expected.isinf() | actual.isinf()) & (expected * actual > 0)
        # Eager's may be NaN there, of an infinity on the way.
        near |= (reference.abs() > limit) & actual.isinf() & (reference * actual > 0)
        close |= near
    return None if close.all() else _describe(~close, expected, actual, reference)


def _describe(wrong, expected, actual, reference):
    where = tuple(wrong.nonzero()[0].tolist())
    text = f"{int(wrong.sum())} of {wrong.numel()} values differ; at {list(where)}: {expected[where].item()!r} in eager, {actual[where].item()!r} compiled"
    if reference is not None and reference.shape == expected.shape:
        text += f", {reference[where].item()!r} in float64"
    return text


def _storage(tensor):
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else None


def alias_difference(expected, actual, left, right, gradients_from=None):
    """Whether the same pairs of arguments and results share memory. Results from number `gradients_from` on are gradients."""
    groups = []
    for observation, leaves in ((expected, left), (actual, right)):
        tensors = observation.inputs + [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        seen, group = {}, []
        for i, tensor in enumerate(tensors):
            key = _storage(tensor)
            # Of a tensor without elements nobody sees whose memory it has: eager's channel_shuffle returns its argument's.
            has_own = key is None or tensor.numel() == 0 or tensor.untyped_storage().nbytes() == 0
            group.append(i if has_own else seen.setdefault(key, i))
        groups.append(group)
    if gradients_from is not None:
        # Eager hands out a view of the gradient that came in where nothing else holds the view at that moment, and a copy
        # otherwise. So two gradients may or may not share its memory.
        first = len(expected.inputs) + sum(isinstance(leaf, torch.Tensor) for leaf in left[:gradients_from])
        groups[0] = [i if first <= min(a, i) and b == i else a for i, (a, b) in enumerate(zip(*groups))]
    if groups[0] == groups[1]:
        for i, (a, b) in enumerate(zip(left, right)):
            shared = isinstance(a, torch.Tensor) and groups[0][len(expected.inputs) + [isinstance(t, torch.Tensor) for t in left[:i]].count(True)]
            if shared is not False and shared < len(expected.inputs) and a.storage_offset() != b.storage_offset():
                return f"result {i}: storage offset {a.storage_offset()} in eager, {b.storage_offset()} compiled"
        identity = [[next((i for i, t in enumerate(o.inputs) if t is leaf), None) for leaf in leaves]
                    for o, leaves in ((expected, left), (actual, right))]
        if identity[0] != identity[1]:
            return f"results that are arguments: {identity[0]} in eager, {identity[1]} compiled"
        return None
    n = len(expected.inputs)
    names = [f"argument {i}" if i < n else f"result {i - n}" for i in range(len(groups[0]))]
    for i, (a, b) in enumerate(zip(*groups)):
        if a != b:
            which = [f"shares memory with {names[k]}" if k != i else "has memory of its own" for k in (a, b)]
            return f"{names[i]} {which[0]} in eager, {which[1]} compiled"
    return None
