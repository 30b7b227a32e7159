"""What a user says of the sizes of a tensor. The marks are attributes of the tensor, the ones that torch.compile reads."""

import dataclasses

import torch


@dataclasses.dataclass(frozen=True)
class _SizeRange:
    dim: int
    min: int | None
    max: int | None


def mark_dynamic(tensor, dim, *, min=None, max=None):
    """One compilation is to serve all values of a size.

    Args:
        tensor: an argument of a compiled function.
        dim: a dimension, or a list or tuple of such. Negative ones count from the end.
        min, max: the least and the greatest value of the size; None: no bound.

    A compiled function that takes the size for one number, or needs a narrower range than the given one, raises
    ``RuntimeError`` with the line that does so. The marks stay on the tensor object. They do not pass to tensors that are made from it.

    Raises:
        TypeError, IndexError, ValueError: for arguments of another type, a dimension that the tensor does not have, and an
            empty range.
    """
    _check_bounds(min, max)
    for index in _dimensions("mark_dynamic", tensor, dim):
        _indices(tensor, "_dynamo_dynamic_indices").add(index)
        ranges = _indices(tensor, "_dynamo_dynamic_range")
        ranges -= {known for known in ranges if known.dim == index}
        ranges.add(_SizeRange(index, min, max))


def maybe_mark_dynamic(tensor, dim):
    """As ``mark_dynamic``, but a compiled function that needs the size to be one number is compiled for that number."""
    for index in _dimensions("maybe_mark_dynamic", tensor, dim):
        _indices(tensor, "_dynamo_weak_dynamic_indices").add(index)


def mark_static(tensor, dim=None):
    """Each value of a size is compiled for itself, whatever ``dynamic`` says. ``dim=None``: all sizes of the tensor."""
    for index in _dimensions("mark_static", tensor, range(getattr(tensor, "ndim", 0)) if dim is None else dim):
        _indices(tensor, "_dynamo_static_indices").add(index)


def mark_unbacked(tensor, dim, *, min=None, max=None, shape_id=None):
    """One compilation is to serve all values of a size, and nothing in it may depend on the value at the first call.

    Args:
        tensor, dim, min, max: as those of ``mark_dynamic``.
        shape_id: a str. Sizes with the same one are equal.

    A compiled function that needs to know the size raises ``RuntimeError`` with the line that does, and the
    ``torch._check`` that would decide there. What ``torch._check`` says of the size is relied on, and checked at each
    call. Operators rely on the usual: a size is neither 0 nor 1 where that makes a difference, and sizes that have to be
    equal are. A call for which that does not hold runs in eager.
    """
    _check_bounds(min, max)
    if shape_id is not None and not isinstance(shape_id, str):
        raise TypeError(f"shape_id must be a str or None, not {type(shape_id).__name__}")
    for index in _dimensions("mark_unbacked", tensor, dim):
        _indices(tensor, "_dynamo_unbacked_indices").add(index)
        for name, said in (("_dynamo_unbacked_bounds", (min, max)), ("_dynamo_shape_ids", shape_id)):
            known = getattr(tensor, name, {})
            known.pop(index, None)
            if said not in (None, (None, None)):
                known[index] = said
            setattr(tensor, name, known)
        for name in ("_specialize_on", "_dynamo_hint_overrides"):  # torch.compile reads them
            if not hasattr(tensor, name):
                setattr(tensor, name, {})
        tensor._specialize_on.setdefault(index, [])


def _check_bounds(least, most):
    for name, bound in (("min", least), ("max", most)):
        if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool)):
            raise TypeError(f"{name} must be an int or None, not {type(bound).__name__}")
    if least is not None and most is not None and least > most:
        raise ValueError(f"no size is at least {least} and at most {most}")


def _indices(tensor, name):
    if not hasattr(tensor, name):
        setattr(tensor, name, set())
        tensor._has_dynamo_dim_marking = True  # torch.compile looks for marks only where this is set
    return getattr(tensor, name)


def _dimensions(function, tensor, dim):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"oxyfuel.{function}() takes a tensor, not {type(tensor).__name__}")
    rank = tensor.dim()
    found = []
    for index in dim if isinstance(dim, (list, tuple, range)) else (dim,):
        if not isinstance(index, int) or isinstance(index, bool):
            raise TypeError(f"a dimension must be an int, not {type(index).__name__}")
        if not -rank <= index < rank:
            raise IndexError(f"the tensor has {rank} dimensions, and none with the number {index}")
        found.append(index % rank)
    return found
