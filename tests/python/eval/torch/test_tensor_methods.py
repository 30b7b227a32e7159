"""Every method and attribute of tensors, with arguments that fit and others, and what else can be done with them."""

import itertools
import math
import re

import numpy as np
import oxyfuel
import pytest
import torch
from eager_comparison import assert_reasons_are_readable, is_close

ADDRESS = re.compile("0x[0-9a-f]+")
FRACTION = re.compile("[0-9]+[.][0-9]+")  # in a message: may be rounded in another way
TENSORS = {
    "float": lambda g: torch.rand(2, 3, generator=g) * 2 - 0.5,
    "integer": lambda g: torch.randint(-2, 5, (2, 3), generator=g),
    "bool": lambda g: torch.rand(2, 3, generator=g) > 0.5,
    "vector": lambda g: torch.rand(3, generator=g),
    "number": lambda g: torch.rand((), generator=g),
    "square": lambda g: torch.rand(3, 3, generator=g),
    "transposed": lambda g: torch.rand(3, 2, generator=g).t(),
    "complex": lambda g: torch.rand(2, 3, generator=g, dtype=torch.complex64),
    "bfloat16": lambda g: torch.rand(2, 3, generator=g).to(torch.bfloat16),
    "leaf": lambda g: torch.rand(2, 3, generator=g).requires_grad_(),
    "images": lambda g: torch.rand(1, 2, 4, 4, generator=g),
}
KINDS_EACH = {"eager": 2, "native": 1}  # the kinds take turns
ARGUMENTS = (
    " | 0 | 1 | -1 | 0, 1 | o | p | o, p | 2.0 | -1, 0 | [1, 0] | (3, 2) | torch.float64 | p, 1 | 1, 0, 2 | o, 0 | 0, o > 0, 1.0 | None | keepdim=True |"
    "dim=(0, 1) | 0, keepdim=True | out=p | 1, 1, 1 | p > 0 | 0, torch.tensor([0, 1]) | 0, torch.tensor([[0, 1, 1]]) | 2, 3 | 'a' | p, alpha=2"
).split("|")
SPECIAL = (
    "getitem setitem contains len iter and rsub rpow rdiv matmul floordiv rfloordiv mod rmod invert bool float int index complex reversed radd iadd ixor "
    "ilshift abs neg pos copy".split()
)
EXPRESSIONS = (
    "o[0] | o[:, 1] | o[..., None] | o[o > 0] | o[[0, 1]] | o[torch.tensor([1, 0])] | o[0, 1] | o[-1, ::2] | o[None] | o[True] | o[5] | o[0:0] | o[:, [0, 2]] |"
    "o[(0, 1)] | o[torch.tensor(1)] | o[slice(None)] | o[p > 0] | o[0][1] | o + 1 | 1 - o | o / 2 | 2 / o | o // 2 | o % 2 | 2 % o | o ** 2 | 2 ** o | -o | ~o |"
    "o & 1 | o ^ o | o << 1 | o @ o.t() | o == o | o != p | o < 1 | 1 >= o | not o | o and 1 | list(o) | tuple(o) | len(o) | sum(o) | max(o[0]) | abs(o) |"
    "round(o) | divmod(o, 2) | pow(o, 2) | o in [o] | 0 in o | bool(o.sum()) | float(o.sum()) | int(o.sum()) | str(o.dtype) | f'{o.shape}' | o.shape[0] * 2 |"
    "torch.Size(o.shape) | sorted(o.shape) | [*o] | {o: 1}[o] | isinstance(o, torch.Tensor) | type(o) | o is o | o.T | o.mT | o.H | o.real | o.imag | o.grad |"
    "o.is_leaf | o.device | o.layout | o.ndim | o.itemsize | o.nbytes | o.names | math.sqrt(2) * o | np.float32(2) * o | o * np.float64(2)"
).split("|")
STATEMENTS = (
    "o[0] = 9 | o[:, 1] = p[:, 1] | o[o > 0] = 0 | o += 1 | o -= p | o *= 2 | o /= 2 | o //= 2 | o %= 2 | o **= 2 | o &= 1 | o[0] += p[0] | o[0:1] = p[0:1] |"
    "o.t()[0] = 1 | o[..., 0] *= 2 | o.data = p | o.requires_grad = True | o.grad = p | o.x = 1 | o[torch.tensor([0, 0])] = 5 | v = o.view(-1); v[0] = 7 |"
    "v = o[0]; o.zero_(); o = v + o | o, q = p, o; o.add_(q) | q = o.clone(); q.mul_(o); o = q | o.resize_(1) | o.t_() | o.squeeze_() | o.unsqueeze_(0) |"
    "o.transpose_(0, 1) | v = o.reshape(3, 2); v.add_(1) | a, b = o; a += b | o[0], o[1] = o[1], o[0]"
).split("|")
# What gives random numbers, memory that nobody has written, an address, or what follows from where an object lies.
LEFT_OUT = set(
    "data_ptr const_data_ptr mutable_data_ptr storage untyped_storage typed_storage storage_type share_memory_ is_shared register_hook register_post_accumulate_grad_hook cuda xpu ipu mtia "
    "hpu random_ uniform_ normal_ bernoulli_ exponential_ cauchy_ geometric_ log_normal_ bernoulli multinomial backward map_ map2_ apply_ pin_memory set_ "
    "resize_ resize_as_ new_empty empty_like new numpy new_empty_strided data retain_grad module_load coalesce qscheme reinforce".split()
)
# PyTorch itself does not end.
LEFT_OUT |= {"index"}


def programs():
    for name in [n for n in dir(torch.Tensor) if not n.startswith("_") and n not in LEFT_OUT] + [f"__{n}__" for n in SPECIAL]:
        if callable(getattr(torch.Tensor, name, None)):
            yield from (f"return o.{name}({arguments.strip()})" for arguments in ARGUMENTS)
        else:
            yield f"return o.{name}"
    yield from (f"return {expression.strip()}" for expression in EXPRESSIONS)
    yield from (f"{statement.strip()}\n  return o" for statement in STATEMENTS)


def look(value, storages):
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        numbers = value.detach().resolve_conj().resolve_neg()
        numbers = torch.view_as_real(numbers) if numbers.is_complex() else numbers
        storage = storages.setdefault(value.untyped_storage()._cdata, (len(storages), value))[0]
        stride = value.stride() if value.numel() else None
        place = tuple(value.shape), stride, value.storage_offset(), storage
        return (type(value).__name__, str(value.dtype), place, value.requires_grad, value.is_leaf, value.is_conj(), numbers.double().flatten().tolist() if value.numel() else [])
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [look(item, storages) for item in value]
    if isinstance(value, dict):
        return [(look(key, storages), look(item, storages)) for key, item in value.items()]
    return type(value).__name__, value if isinstance(value, float) else ADDRESS.sub("0x", repr(value))


def seen(function, kind, number):
    """The outcome, and the tensors after it. The interpreter's words on how many arguments a method takes vary."""
    o = TENSORS[kind](torch.Generator().manual_seed(number))
    p = TENSORS[kind](torch.Generator().manual_seed(number + 10)).detach()
    storages = {}
    look((o, p), storages)
    try:
        result = function(o, p)
    except Exception as error:
        message = FRACTION.sub("#", str(error).split("\n")[0])
        result = type(error).__name__, "takes ..." if "takes " in message else message
    return look((result, o, p), storages)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("part", range(8))
@pytest.mark.filterwarnings("ignore")
def test_what_can_be_done_with_tensors(part, backend):
    kinds = itertools.cycle(TENSORS)
    for body in itertools.islice(programs(), part, None, 8):
        namespace = {}
        exec(f"def f(o, p):\n  {body}", globals(), namespace)
        function = namespace["f"]
        for kind in itertools.islice(kinds, KINDS_EACH[backend]):
            if kind == "leaf" and body.startswith("a, b = o"):
                continue  # the words of this error: docs/limits.md
            oxyfuel.reset()
            compiled = oxyfuel.compile(function, backend=backend)
            for number in (1, 2):
                wanted = seen(function, kind, number)
                found = seen(compiled, kind, number)
                tolerance = (0.05, 0.005) if kind == "bfloat16" else (1e-3, 1e-6)
                assert is_close(found, wanted, *tolerance), (body, kind, number, found, wanted)
            assert_reasons_are_readable((body, kind))
