"""Writes the golden shape cases beside this file: what eager PyTorch answers to random calls, as graph text.

Every node of FAMILY.graph is one call; the metadata of its results are eager's. Run it with a torch-enabled Python
after adding an operator, with the names of the families to write again (all by default). `--device cuda`, on a machine
with a GPU, writes to gpu/ the calls of operators that a GPU answers otherwise than the CPU.
"""

import argparse
import pathlib
import random

import torch

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTS = [torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16]
NUMBERS = FLOATS + INTS
ANY = NUMBERS + [torch.bool]
rng = random.Random(0)


def shape(rank=None, smallest=1, largest=5, ones=0.25):
    rank = rng.randint(0, 4) if rank is None else rank
    return [1 if rng.random() < ones and smallest <= 1 else rng.randint(smallest, largest) for _ in range(rank)]


def values(size, dtype):
    if dtype == torch.bool:
        return torch.rand(size) > 0.5
    if dtype.is_complex:
        return torch.randn(size, dtype=dtype)
    if dtype.is_floating_point:
        return (torch.rand(size) * 0.8 + 0.1).to(dtype)
    return torch.randint(1, 4, size).to(dtype)


def tensor(size, dtype=torch.float32, layout=None):
    """A tensor with a random memory layout."""
    size = list(size)
    layout = layout or rng.choice(["plain", "plain", "permuted", "channels_last", "gaps", "expanded", "mixed", "mixed"])
    if layout == "channels_last" and len(size) in (4, 5):
        last = torch.channels_last if len(size) == 4 else torch.channels_last_3d
        return values(size, dtype).to(memory_format=last)
    order = list(range(len(size)))
    if layout in ("permuted", "mixed"):
        rng.shuffle(order)
    base = [size[d] for d in order]
    steps = [1] * len(size)
    if layout == "gaps" or (layout == "mixed" and rng.random() < 0.4):
        steps = [rng.choice([1, 1, 2]) for _ in size]
    expanded = [layout in ("expanded", "mixed") and rng.random() < 0.25 for _ in size]
    allocated = [1 if e else n * s for n, s, e in zip(base, steps, expanded)]
    result = values(allocated, dtype)
    if layout == "gaps" and size and rng.random() < 0.5:
        result = values([2] + allocated, dtype)[1]
    for d, step in enumerate(steps):
        if step > 1 and not expanded[d]:
            result = result[(slice(None),) * d + (slice(None, None, step),)]
    result = result.expand(base)
    inverse = [order.index(d) for d in range(len(size))]
    return result.permute(inverse)


def broadcastable(size):
    """A shape that broadcasts to `size`."""
    kept = size[rng.choice([0, 0, 0, rng.randint(0, len(size))]) :]
    return [1 if rng.random() < 0.2 else n for n in kept]


def indices(size, limit, dtype=torch.int64):
    # Distinct layouts matter, values only have to be in range.
    return tensor(size, torch.int64) % max(limit, 1) if dtype == torch.int64 else (tensor(size) * 0).to(dtype)


# Text --------------------------------------------------------------------------------------------------------------


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def meta_text(t):
    extra = []
    contiguous = torch.empty(t.shape, device="meta").stride()
    if t.stride() != contiguous:
        extra.append(f"strides={list(t.stride())}")
    if t.storage_offset():
        extra.append(f"offset={t.storage_offset()}")
    return f"{name_of(t.dtype)}{list(t.shape)}" + (f"{{{', '.join(extra)}}}" if extra else "")


def on_cpu(value):
    """The same argument with its tensors on the CPU, in their layouts."""
    if isinstance(value, torch.Tensor):
        empty = torch.empty(0, dtype=value.dtype, device="cpu")
        return empty.set_(value.untyped_storage().cpu(), value.storage_offset(), value.shape, value.stride())
    return [on_cpu(item) for item in value] if isinstance(value, (list, tuple)) else value


def results_of(op, arguments, named):
    """The tensors, in one list; None for undefined ones. Nothing else: the text of what eager raises."""
    try:
        result = op(*arguments, **named)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        return str(error).splitlines()[0]
    flat = []
    for r in result if isinstance(result, (tuple, list)) else [result]:
        flat.extend(r if isinstance(r, (tuple, list)) else [r])
    return [r for r in flat if r is None or isinstance(r, torch.Tensor)]


def metas_of(results):
    return results if isinstance(results, str) else [r if r is None else meta_text(r) for r in results]


class Writer:
    def __init__(self, differing_only=False):
        self.differing_only = differing_only  # keep operators that the CPU answers otherwise in some call, or refuses
        self.differing = set()
        self.inputs = {}
        self.lines = []
        self.next_value = 0
        self.refused = {}
        self.cases = {}

    def value(self, t):
        text = meta_text(t)
        if text not in self.inputs:
            self.inputs[text] = None
        return f"<{text}>"

    def literal(self, a):
        if a is None or isinstance(a, bool):
            return str(a)
        if isinstance(a, torch.Tensor):
            return self.value(a)
        if isinstance(a, torch.dtype):
            return name_of(a)
        if isinstance(a, torch.memory_format):
            return {"contiguous_format": "contiguous", "preserve_format": "preserve"}.get(name_of(a), name_of(a))
        if isinstance(a, complex):
            return f"complex({float(a.real)!r}, {float(a.imag)!r})"
        if isinstance(a, str):
            return f'"{a}"'
        if isinstance(a, (list, tuple)):
            return "[" + ", ".join(self.literal(i) for i in a) + "]"
        return repr(a)

    def call(self, name, *args, results=None, **kwargs):
        """`results`: eager's answer, where this machine has no kernel that gives it."""
        base, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, base), overload or "default")
        texts = [self.literal(a) for a in args] + [f"{k}={self.literal(v)}" for k, v in kwargs.items()]
        result = results_of(op, args, kwargs) if results is None else results
        if isinstance(result, str):
            self.refused.setdefault(name, result)
            return
        if all(r is None for r in result):
            return
        self.cases[name] = self.cases.get(name, 0) + 1
        if self.differing_only:
            moved = results_of(op, on_cpu(args), {k: on_cpu(v) for k, v in kwargs.items()})
            if metas_of(result) != metas_of(moved):
                self.differing.add(name)
        self.lines.append((name, metas_of(result), f"aten::{name}({', '.join(texts)})"))

    def text(self):
        lines = [line for line in self.lines if not self.differing_only or line[0] in self.differing]
        used = {t for t in self.inputs if any(f"<{t}>" in line for *_, line in lines)}
        ids = {text: i for i, text in enumerate(t for t in self.inputs if t in used)}
        header = ",\n      ".join(f"%{i} : {text}" for text, i in ids.items())
        body, number, seen = [], len(ids), set()
        for _, results, line in lines:
            if line in seen:
                continue
            seen.add(line)
            for text, i in ids.items():
                if f"<{text}>" in line:
                    line = line.replace(f"<{text}>", f"%{i}")
            defines = []
            for r in results:
                if r is None:  # an undefined tensor
                    defines.append("_")
                    continue
                defines.append(f"%{number} : {r}")
                number += 1
            body.append(f"  {', '.join(defines)} = {line}")
        return f"graph({header}) {{\n" + "\n".join(body) + "\n  return\n}\n"


# Masks of gradients that leave some out.
SOME_GRADIENTS = [[bool(n & 4), bool(n & 2), bool(n & 1)] for n in range(1, 7)]


# Families ----------------------------------------------------------------------------------------------------------

UNARY_ANY = "relu sign sgn neg abs floor ceil trunc round nan_to_num"
UNARY_FLOAT = """exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh
 acosh atanh sigmoid erf erfc erfinv lgamma digamma i0 sinc deg2rad rad2deg special_i0e special_i1 special_entr"""
ACTIVATIONS = "gelu silu mish hardswish hardsigmoid hardtanh leaky_relu elu celu softplus hardshrink softshrink"
BINARY = """add.Tensor sub.Tensor rsub.Tensor mul.Tensor div.Tensor maximum minimum fmax fmin remainder.Tensor fmod.Tensor
 floor_divide hypot atan2 copysign.Tensor xlogy.Tensor logaddexp logaddexp2 pow.Tensor_Tensor nextafter heaviside"""
BINARY_INTEGRAL = """gcd lcm bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor bitwise_left_shift.Tensor
 bitwise_right_shift.Tensor"""
WITH_SCALAR = """add.Scalar sub.Scalar rsub.Scalar mul.Scalar div.Scalar remainder.Scalar fmod.Scalar floor_divide.Scalar
 pow.Tensor_Scalar copysign.Scalar xlogy.Scalar_Other bitwise_and.Scalar bitwise_or.Scalar bitwise_xor.Scalar
 bitwise_left_shift.Tensor_Scalar"""


SPECIAL = """special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_i0
 special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0
 special_scaled_modified_bessel_k1 special_spherical_bessel_j0"""
POLYNOMIALS = """special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
 special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l
 special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
 special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w"""


def scalar():
    return rng.choice([2, 3, 1.5, True, -1, 0.5])


def pointwise(w):
    for op in UNARY_ANY.split() + ["frac", "bitwise_not"]:
        for _ in range(6):
            w.call(op, tensor(shape(), rng.choice(ANY)))
    w.call("abs", tensor([2, 3], torch.complex64))
    w.call("angle", tensor([2, 3], torch.complex64))
    for _ in range(6):
        w.call("angle", tensor(shape(), rng.choice(ANY)))
        w.call("bitwise_and.Scalar_Tensor", 3, tensor(shape(), rng.choice(INTS)))
    for op in UNARY_FLOAT.split():
        for _ in range(4):
            w.call(op, tensor(shape(), rng.choice(ANY)))
    for op in ACTIVATIONS.split():
        for _ in range(4):
            w.call(op, tensor(shape(), rng.choice(FLOATS)))
    for op in BINARY.split() * 2:
        for _ in range(10):
            size = shape()
            a, b = size, broadcastable(size)
            if rng.random() < 0.3:
                a, b = b, a
            kinds = [rng.choice(ANY), rng.choice(ANY)] if rng.random() < 0.5 else [torch.float32] * 2
            w.call(op, tensor(a, kinds[0]), tensor(b, kinds[1]))
    for op in BINARY_INTEGRAL.split():
        for _ in range(6):
            size = shape()
            kinds = [rng.choice(INTS + [torch.bool]) for _ in range(2)]
            w.call(op, tensor(size, kinds[0]), tensor(broadcastable(size), kinds[1]))
    for op in WITH_SCALAR.split():
        for _ in range(8):
            w.call(op, tensor(shape(), rng.choice(ANY)), scalar())
    for _ in range(10):
        w.call("pow.Scalar", rng.choice([2, 2.5]), tensor(shape(), rng.choice(NUMBERS)))
        for mode in (None, "floor", "trunc"):
            size = shape()
            w.call("div.Tensor_mode", tensor(size, rng.choice(NUMBERS)), tensor(broadcastable(size), rng.choice(NUMBERS)),
                   rounding_mode=mode)
            w.call("div.Scalar_mode", tensor(size, rng.choice(NUMBERS)), rng.choice([2, 0.5]), rounding_mode=mode)
    for op in ("addcmul", "addcdiv"):
        for _ in range(12):
            size = shape()
            kinds = [rng.choice(NUMBERS) for _ in range(3)] if rng.random() < 0.4 else [torch.float32] * 3
            w.call(op, tensor(size, kinds[0]), tensor(broadcastable(size), kinds[1]), tensor(broadcastable(size), kinds[2]))
    for _ in range(12):
        size = shape()
        w.call("lerp.Scalar", tensor(size), tensor(broadcastable(size)), 0.5)
        w.call("lerp.Tensor", tensor(size), tensor(broadcastable(size)), tensor(broadcastable(size)))
        w.call("clamp", tensor(size, rng.choice(NUMBERS)), rng.choice([None, 1, 0.5]), rng.choice([2, 2.5]))
        w.call("clamp_min", tensor(size, rng.choice(NUMBERS)), rng.choice([1, 0.5]))
        w.call("clamp_max", tensor(size, rng.choice(NUMBERS)), rng.choice([1, 0.5]))
        w.call("clamp.Tensor", tensor(size, rng.choice(NUMBERS)), tensor(broadcastable(size), rng.choice(NUMBERS)),
               rng.choice([None, tensor(broadcastable(size))]))
        w.call("clamp_min.Tensor", tensor(size), tensor(broadcastable(size), rng.choice(NUMBERS)))
        w.call("threshold", tensor(size), 0.5, 0.0)
        w.call("logit", tensor(size), 0.01)
    for _ in range(60):
        size = shape()
        kinds = [rng.choice(ANY) for _ in range(2)] if rng.random() < 0.5 else [torch.float32] * 2
        parts = [size, broadcastable(size), broadcastable(size)]
        rng.shuffle(parts)
        w.call("where.self", tensor(parts[0], torch.bool), tensor(parts[1], kinds[0]), tensor(parts[2], kinds[1]))
        w.call("masked_fill.Scalar", tensor(size, rng.choice(ANY)), tensor(broadcastable(size), torch.bool), 1)
    for _ in range(12):
        size = shape()
        w.call("masked_fill.Tensor", tensor(size), tensor(broadcastable(size), torch.bool), torch.tensor(1.0))
        w.call("log_sigmoid_forward", tensor(size))
        w.call("log_sigmoid_forward", tensor(shape(4)))
        even = [n * 2 for n in shape(rng.randint(1, 4))]
        w.call("glu", tensor(even), rng.randint(-len(even), len(even) - 1))
        w.call("_prelu_kernel", tensor(size), tensor(broadcastable(size)))
    for op in "tanh_backward sigmoid_backward silu_backward hardswish_backward hardsigmoid_backward gelu_backward".split():
        for _ in range(15):
            size = shape()
            w.call(op, tensor(size), tensor(size))
    for _ in range(20):
        size = shape()
        w.call("threshold_backward", tensor(size), tensor(size), 0)
        w.call("leaky_relu_backward", tensor(size), tensor(size), 0.1, False)
        w.call("elu_backward", tensor(size), 1.0, 1.0, 1.0, False, tensor(size))
        w.call("hardtanh_backward", tensor(size), tensor(size), -1, 1)
        w.call("softplus_backward", tensor(size), tensor(size), 1, 20)
        w.call("logit_backward", tensor(size), tensor(size), 0.1)
        w.call("hardshrink_backward", tensor(size), tensor(size), 0.1)
        w.call("softshrink_backward", tensor(size), tensor(size), 0.1)


    for _ in range(8):
        size = shape()
        w.call("ldexp.Tensor", tensor(size, rng.choice(NUMBERS)), tensor(broadcastable(size), rng.choice(NUMBERS)))
        w.call("frexp.Tensor", tensor(size, rng.choice(FLOATS[:2])))
        for op in ("igamma", "igammac"):
            w.call(op, tensor(size), tensor(broadcastable(size)))
        w.call("_prelu_kernel_backward", tensor(size), tensor(size), tensor(broadcastable(size)))
        even = [n * 2 for n in shape(rng.randint(1, 4))]
        dim = rng.randrange(len(even))
        half = [n // 2 if d == dim else n for d, n in enumerate(even)]
        w.call("glu_backward", tensor(half), tensor(even), dim)
        w.call("dist", tensor(size), tensor(broadcastable(size)), rng.choice([2, 1.0, float("inf")]))
    for op in SPECIAL.split():
        for _ in range(2):
            w.call(op, tensor(shape(), rng.choice(FLOATS[:2] + INTS)))
    for op in POLYNOMIALS.split():
        size = shape()
        w.call(op, tensor(size), tensor(broadcastable(size)))
        w.call(f"{op}.n_scalar", tensor(size, rng.choice(FLOATS[:2])), 2)
        w.call(f"{op}.x_scalar", 0.5, tensor(size))
    for _ in range(4):
        w.call("polygamma", 1, tensor(shape(), rng.choice(FLOATS[:2] + INTS)))
        w.call("_conj_physical", tensor(shape(), torch.complex64))
    for p in (1, 2, 3):
        w.call("mvlgamma", tensor(shape(), rng.choice(FLOATS[:2])) + 3, p)
        w.call("mvlgamma", tensor(shape(3), torch.int64) + 3, p)


def comparison(w):
    for op in "eq ne lt le gt ge".split():
        for _ in range(12):
            size = shape()
            w.call(op + ".Tensor", tensor(size, rng.choice(ANY)), tensor(broadcastable(size), rng.choice(ANY)))
            w.call(op + ".Scalar", tensor(size, rng.choice(ANY)), scalar())
    for op in "logical_and logical_or logical_xor".split():
        for _ in range(8):
            size = shape()
            w.call(op, tensor(size, rng.choice(ANY)), tensor(broadcastable(size), rng.choice(ANY)))
    for op in "logical_not isnan isinf signbit isposinf isneginf".split():
        for _ in range(8):
            w.call(op, tensor(shape(), rng.choice(ANY)))


def some_dims(rank):
    return sorted(rng.sample(range(-rank, 0), rng.randint(0, rank))) if rank else []


def reductions(w):
    flags = (True, False)
    for _ in range(12):
        size = shape()
        rank = len(size)
        dim = rng.randint(-max(rank, 1), max(rank, 1) - 1)
        number, real = rng.choice(ANY), rng.choice(FLOATS)
        keep = rng.choice(flags)
        for op in "sum prod nansum max min any all count_nonzero".split():
            w.call(op, tensor(size, number))
        w.call("sum", tensor(size, number), dtype=torch.float64)
        for op in ("mean", "median", "nanmedian"):
            w.call(op, tensor(size, real))
        w.call("mean", tensor(size, number), dtype=torch.float32)
        w.call("sum.dim_IntList", tensor(size, number), rng.choice([None, some_dims(rank)]), keep)
        w.call("nansum", tensor(size, number), some_dims(rank), keep)
        w.call("prod.dim_int", tensor(size, number), dim, keep)
        w.call("mean.dim", tensor(size, real), rng.choice([None, some_dims(rank)]), keep)
        for op in ("amax", "amin"):
            w.call(op, tensor(size, number), some_dims(rank), keep)
        for op in ("max.dim", "min.dim", "mode", "median.dim", "nanmedian.dim"):
            w.call(op, tensor(size, number), dim, keep)
        w.call("aminmax", tensor(size, real), dim=rng.choice([None, dim]), keepdim=keep)
        for op in ("argmax", "argmin"):
            w.call(op, tensor(size, rng.choice(NUMBERS)), rng.choice([None, dim]), keep)
        for op in ("any", "all"):
            w.call(op + ".dim", tensor(size, number), dim, keep)
            w.call(op + ".dims", tensor(size, number), rng.choice([None, some_dims(rank)]), keep)
        w.call("count_nonzero.dim_IntList", tensor(size, number), some_dims(rank))
        for op in ("var", "std", "var_mean", "std_mean"):
            x, dims, correction = tensor(size, real), rng.choice([None, some_dims(rank)]), rng.choice([0, 1, None])
            if x.sum(dims).numel() == x.numel():  # eager warns of the rest, which the rule therefore refuses
                correction = 0
            w.call(op + ".correction", x, dims, correction=correction, keepdim=keep)
        w.call("logsumexp", tensor(size, number), some_dims(rank), keep)
        w.call("norm.Scalar", tensor(size, real), 2)
        w.call("norm.ScalarOpt_dim", tensor(size, real), 2, some_dims(rank), keep)
        w.call("linalg_vector_norm", tensor(size, real), 2, rng.choice([None, some_dims(rank)]), keep)
        w.call("histc", tensor(size, rng.choice([torch.float32, torch.float64])), rng.randint(1, 9), 0, 1)
        for op in ("cumsum", "cumprod"):
            w.call(op, tensor(size, number), dim)
            w.call(op, tensor(size, number), dim, dtype=torch.float32)
        w.call("logcumsumexp", tensor(size, real), dim)
        for op in ("cummax", "cummin"):
            w.call(op, tensor(size, number), dim)
        w.call("sort", tensor(size, number), dim, keep)
        w.call("sort.stable", tensor(size, number), stable=True, dim=dim, descending=keep)
        w.call("kthvalue", tensor(size, real), 1, dim, keep)
        w.call("topk", tensor(size, rng.choice(NUMBERS)), 1, dim)
        w.call("_cdist_forward", tensor([2, 3, 4]), tensor(rng.choice([[5, 4], [2, 5, 4], [3, 2, 5, 4]])), 2.0, None)
        w.call("trace", tensor([3, 4], number))
        w.call("_is_all_true", tensor(size, torch.bool))
    w.call("linalg_vector_norm", tensor([2, 3], torch.complex64), 2)
    for order in (0, 1, 2, 3.5):
        w.call("linalg_vector_norm", tensor([0, 3]), order, [0])
        w.call("linalg_vector_norm", tensor([2, 0]), order)
    w.call("sum", tensor([0, 3]))
    for _ in range(6):
        n, m, k = (rng.randint(2, 5) for _ in range(3))
        rows = tensor([n, m])
        w.call("_pdist_forward", rows.contiguous(), 2.0)
        distances = torch.ops.aten._pdist_forward(rows.contiguous(), 2.0)
        w.call("_pdist_backward", distances, rows.contiguous(), 2.0, distances)
        w.call("renorm", tensor(shape(rng.randint(2, 4))), 2, 0, 1.0)
        w.call("histogram.bin_ct", tensor([n, m]), rng.randint(1, 6))
        batch = shape(rng.randint(0, 2))
        one, two = values(batch + [n, m], torch.float32), values(batch + [k, m], torch.float32)
        between = torch.ops.aten._cdist_forward(one, two, 2.0, None)
        w.call("_cdist_backward", between, one, two, 2.0, between)


def views(w):
    for _ in range(40):
        size = shape()
        rank = len(size)
        dim = rng.randint(-max(rank, 1), max(rank, 1) - 1)
        other = rng.randint(-max(rank, 1), max(rank, 1) - 1)
        x = tensor(size, rng.choice(ANY))
        for op in ("alias", "detach", "squeeze", "t"):
            w.call(op, x)
        target = shape(rng.randint(0, 2)) + [rng.choice([n, -1]) if n != 1 else rng.choice([1, 3, -1]) for n in size]
        w.call("expand", x, target)
        order = list(range(rank))
        rng.shuffle(order)
        w.call("permute", x, [d - rng.choice([0, rank]) for d in order])
        w.call("transpose.int", x, dim, other)
        w.call("unsqueeze", x, rng.randint(-rank - 1, rank))
        w.call("squeeze.dim", x, dim)
        w.call("squeeze.dims", x, some_dims(rank))
        if rank:
            n = size[dim]
            w.call("select.int", x, dim, rng.randint(-n, n - 1))
            w.call("slice.Tensor", x, dim, rng.choice([None, 0, 1, -2, 10]), rng.choice([None, 2, -1, 2**60, 0]), rng.randint(1, 3))
            w.call("split.Tensor", x, rng.randint(1, n + 1), dim)
            cut = rng.randint(0, n)
            w.call("split_with_sizes", x, [cut, n - cut], dim)
            w.call("unbind.int", x, dim)
            w.call("unfold", x, dim, rng.randint(1, n), rng.randint(1, 2))
        if rank >= 2:
            w.call("diagonal", x, rng.randint(-2, 2), dim, other)
        w.call("as_strided", x, [1, 1], [3, 1], rng.choice([None, 0]))
        # Reshapes: merge and split runs of dimensions, put in ones.
        count = x.numel()
        factors = []
        for f in (2, 3, 5):
            while count % f == 0:
                factors.append(f)
                count //= f
        new = [count] if count > 1 else []
        for f in factors:
            at = rng.randint(0, len(new))
            if new and rng.random() < 0.5:
                new[min(at, len(new) - 1)] *= f
            else:
                new.insert(at, f)
        if rng.random() < 0.3:
            new.insert(rng.randint(0, len(new)), 1)
        if new and rng.random() < 0.3:
            new[rng.randint(0, len(new) - 1)] = -1
        for target in (new, size, [x.numel()], size + [1], [-1] + size[2:] if rank > 1 else [-1]):
            w.call("view", x, target)
            if rng.random() < 0.2:
                w.call("_unsafe_view", x, target)
        for a in range(rank):
            w.call("view", x, size[:a] + [-1] + size[a + 2 :])
        w.call("view.dtype", tensor(size + [4], torch.float32, "plain"), rng.choice([torch.int32, torch.int8, torch.float64]))
        w.call("view_as_real", tensor(size, torch.complex64))
        w.call("view_as_complex", tensor(size + [2], torch.float32, "plain"))
    w.call("view", torch.empty(0, 3), [3, 0])
    w.call("view", torch.empty(0, 3), [0, 3])
    w.call("slice.Tensor", torch.empty(4)[2:], 0, 1, 2, 1)


def creation(w):
    formats = [None, torch.contiguous_format, torch.preserve_format, torch.channels_last]
    for op in ("zeros", "ones", "empty.memory_format", "rand", "randn"):
        w.call(op, [2, 3])
        w.call(op, [], dtype=torch.float64)
    w.call("empty.memory_format", [2, 3, 4, 5], memory_format=torch.channels_last)
    w.call("empty.memory_format", [2, 0, 4, 5], memory_format=torch.channels_last)
    for value in (1, 1.0, True, 1 + 2j):
        w.call("full", [2, 3], value)
    w.call("full", [2, 3], 1, dtype=torch.float16)
    for _ in range(30):
        x = tensor(shape(), rng.choice(ANY))
        kind = rng.choice([None, torch.float64, torch.int64])
        for op in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"):
            w.call(op, x, dtype=torch.float32 if op.startswith("rand") else kind, memory_format=rng.choice(formats))
        w.call("full_like", x, 1, dtype=kind)
        for op in ("new_zeros", "new_ones", "new_empty"):
            w.call(op, x, [2, 3], dtype=kind)
        w.call("new_full", x, [2, 3], 1.5, dtype=kind)
        w.call("clone", x, memory_format=rng.choice(formats))
        w.call("_to_copy", x, dtype=kind, memory_format=rng.choice(formats + [None, None]))
        w.call("copy", x, tensor(broadcastable(list(x.shape))))
        w.call("fill.Scalar", x, 1)
        w.call("zero", x)
        x = tensor(shape(rng.randint(2, 4)), rng.choice(ANY))
        w.call("tril", x)
        w.call("triu", x, 1)
        size = shape()
        w.call("complex", tensor(size), tensor(broadcastable(size)))
    w.call("new_empty_strided", tensor([2]), [2, 3], [1, 2])
    w.call("empty_strided", [2, 3], [1, 2])
    w.call("empty_permuted", [2, 3, 4], [1, 2, 0])
    for args in ([5], [5.5], [0], [2, 7], [2, 7.5], [1.0, 7], [2, 7, 2], [2, 8, 2], [7, 2, -1], [0.0, 1.0, 0.1], [1, 2, 0.3],
                 [5, -5, -3]):
        for kind in (None, torch.int64, torch.float32, torch.int32):
            op = ["arange", "arange.start", "arange.start_step"][len(args) - 1]
            w.call(op, *args, dtype=kind)
    for window in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
        w.call(f"{window}_window", 5)
        w.call(f"{window}_window.periodic", 5, False, dtype=torch.float64)
    w.call("linspace", 0, 1, 5)
    w.call("linspace", 0, 1, 5, dtype=torch.float64)
    w.call("logspace", 0, 1, 5)
    w.call("scalar_tensor", 1.5)
    w.call("scalar_tensor", 1)
    w.call("scalar_tensor", 1, dtype=torch.int64)
    w.call("eye", 3)
    w.call("eye.m", 3, 4, dtype=torch.int64)
    for args in ((3, 4, 0), (4, 3, 1), (4, 4, -1), (2, 5, -3), (5, 2, 4)):
        w.call("tril_indices", *args)
        w.call("triu_indices", *args)


def random_numbers(w):
    for _ in range(25):
        x = tensor(shape())
        w.call("bernoulli", x)
        w.call("bernoulli.p", x, 0.5)
        w.call("native_dropout", x, 0.5, True)
        w.call("native_dropout", x, 0.0, True)
        w.call("native_dropout", x, 0.5, False)
        w.call("randint_like", x, 5)
        w.call("randint_like.low_dtype", x, 2, 5, dtype=torch.int64)
        for op in ("normal_functional", "uniform", "exponential"):
            w.call(op, x)
        w.call("native_dropout_backward", x, torch.ones_like(x, dtype=torch.bool), 2.0)
    w.call("randint", 5, [2, 3])
    w.call("randint.low", 1, 5, [2, 3], dtype=torch.int32)
    w.call("randperm", 7)
    w.call("multinomial", tensor([2, 5]), 3)
    w.call("multinomial", tensor([5]), 3)


def cut(size, dim):
    size = list(size)
    size[dim] = rng.randint(1, 4)
    return size


def indexing(w):
    for _ in range(40):
        rank = rng.randint(1, 5)
        size = shape(rank)
        dim = rng.randint(-rank, rank - 1)
        kinds = [rng.choice(ANY) for _ in range(3)] if rng.random() < 0.3 else [torch.float32] * 3
        layout = rng.choice([None, None, "channels_last", "plain"])
        w.call("cat", [tensor(cut(size, dim), k, layout) for k in kinds], dim)
        same = [tensor(size, k, layout) for k in kinds]
        w.call("stack", same, rng.randint(-rank - 1, rank))
        pad = [rng.randint(-1, 2) for _ in range(2 * rng.randint(0, rank))]
        w.call("constant_pad_nd", tensor(shape(rank, 3, 5), layout=layout), pad, 0)
        x = tensor(size, rng.choice(ANY))
        w.call("gather", x, dim, indices([rng.randint(1, n) for n in size], 1))
        w.call("scatter.src", x, dim, indices(size, 1), tensor(size, x.dtype))
        w.call("scatter.value", x, dim, indices(size, 1), 1)
        w.call("scatter_add", tensor(size), dim, indices(size, 1), tensor(size))
        w.call("scatter_reduce.two", tensor(size), dim, indices(size, 1), tensor(size), "sum")
        w.call("index_add", tensor(size), dim, indices([2], 1), tensor(size[:dim % rank] + [2] + size[dim % rank + 1:]))
        w.call("index_copy", tensor(size), dim, indices([2], 1), tensor(size[:dim % rank] + [2] + size[dim % rank + 1:]))
        w.call("index_select", x, dim, indices(rng.choice([[3], []]), 1))
        w.call("index_fill.int_Scalar", x, dim, indices([2], 1), 1)
        w.call("masked_scatter", tensor(size), tensor(size, torch.bool), tensor(size))
        w.call("flip", x, [dim])
        if rank > 1:
            w.call("rot90", x, rng.randint(-1, 4), rng.sample(range(-rank, 0), 2))
            w.call("diag_embed", x, rng.randint(-1, 2), -2, rng.choice([-1, 0]))
        w.call("take", x, indices(shape(), 1))
        w.call("repeat", x, [rng.randint(1, 3) for _ in range(rank + rng.randint(0, 1))])
        w.call("roll", x, [rng.randint(-3, 3)], [dim])
        w.call("roll", x, [rng.randint(-3, 3)], [])
        if rank > 1:
            dims = rng.sample(range(rank), 2)
            w.call("roll", x, [1, -2], dims)
        w.call("select_scatter", tensor(size), tensor(size[:dim % rank] + size[dim % rank + 1:]), dim, 0)
        w.call("slice_scatter", tensor(size), tensor(size), dim)
        if rank > 1:
            w.call("diagonal_scatter", x, torch.diagonal(x).clone())
        w.call("slice_backward", tensor(size), cut(size, dim)[:dim % rank] + [9] + size[dim % rank + 1:], dim, 0, size[dim], 1)
        w.call("select_backward", tensor(size[:dim % rank] + size[dim % rank + 1:]), size, dim, 0)
        w.call("embedding", tensor([7, 3]), indices(shape(), 7))
        w.call("bucketize.Tensor", x, torch.arange(4.0), out_int32=rng.choice([True, False]))
        w.call("searchsorted.Tensor", torch.arange(4.0), tensor(size))
        w.call("isin.Tensor_Tensor", x, tensor([3], x.dtype))
        w.call("isin.Tensor_Scalar", x, 1)
        # Advanced indexing: tensors of shapes that broadcast, some dimensions left out.
        common = shape(rng.randint(0, 3))
        picks = [indices(broadcastable(common), 1) if rng.random() < 0.5 else None for _ in range(rng.randint(1, rank))]
        if any(p is not None for p in picks):
            w.call("index.Tensor", x, picks)
            plain = [None if p is None else p * 0 for p in picks]
            shape_of = x[tuple(slice(None) if p is None else p for p in plain)].shape
            w.call("index_put", x, plain, tensor(list(shape_of), x.dtype))
    for _ in range(8):
        grad = tensor([2, 3, 4])
        w.call("embedding_dense_backward", grad, indices([2, 3], 7), 7, -1, False)
        for spatial in (1, 2, 3):
            for batch in ([2, 3], [3]):
                x = tensor(batch + shape(spatial, 3, 5), layout=rng.choice([None, "channels_last"]))
                pad = [rng.randint(0, 2) for _ in range(2 * spatial)]
                w.call(f"reflection_pad{spatial}d", x, pad)
                w.call(f"replication_pad{spatial}d", x, pad)
        w.call("pixel_shuffle", tensor([2, 8, 3, 4]), 2)
        w.call("pixel_unshuffle", tensor([2, 3, 4, 6]), 2)
        w.call("im2col", tensor([2, 3, 6, 7]), [2, 3], [1, 1], [0, 1], [1, 2])
        w.call("col2im", tensor([2, 12, 4]), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1])
    for layout in ("plain", "channels_last", "permuted"):
        w.call("native_channel_shuffle", tensor([2, 6, 3, 4], layout=layout), 3)


    for _ in range(6):
        for rank in (1, 2, 3):
            for batch in ([2, 3], [3]):
                size = batch + [rng.randint(3, 5) for _ in range(rank)]
                padding = [rng.randint(0, 2) for _ in range(2 * rank)]
                for op in ("reflection", "replication"):
                    x = tensor(size, layout=rng.choice(["plain", "channels_last", None]))
                    padded = getattr(torch.ops.aten, f"{op}_pad{rank}d")(x, padding)
                    w.call(f"{op}_pad{rank}d_backward", padded, x, padding)


    for _ in range(12):
        rows, width, count = rng.randint(3, 6), rng.randint(1, 5), rng.randint(3, 8)
        offsets = torch.tensor(sorted([0] + [rng.randint(0, count) for _ in range(rng.randint(0, 3))]))
        chosen = indices([count], rows, rng.choice([torch.int64, torch.int32]))
        for mode in (0, 1, 2):
            table = tensor([rows, width], rng.choice(FLOATS[:2]), rng.choice(["plain", "plain", "permuted"]))
            factors = values([count], table.dtype) if mode == 0 and rng.random() < 0.4 else None
            last = len(offsets) > 1 and rng.random() < 0.3
            padding = rng.choice([-1, -1, 1])
            call = (table, chosen, offsets.to(chosen.dtype), False, mode, False, factors, last, padding)
            w.call("_embedding_bag", *call)
            w.call("_embedding_bag_forward_only", *call)
            bags, of_index, sizes, maxima = torch.ops.aten._embedding_bag_forward_only(*call)
            if padding < 0 and len(of_index):
                w.call("_embedding_bag_dense_backward", bags, chosen, of_index, sizes, maxima, rows, False, mode, factors)

    for size in ([0, 4, 4, 6], [2, 0, 4, 4], [1, 4, 0, 2]):
        w.call("pixel_unshuffle", tensor(size, layout="plain"), 2)
        w.call("pixel_shuffle", tensor(size, layout="plain"), 2)


def normalization(w):
    for _ in range(15):
        size = shape(rng.randint(1, 4))
        inner = size[-rng.randint(1, len(size)):]
        kind = rng.choice([torch.float32, torch.float32, torch.float64, torch.bfloat16])
        weight = rng.choice([None, tensor(inner, kind, "plain")])
        bias = rng.choice([None, tensor(inner, kind, "plain")])
        x = tensor(size, kind)
        w.call("native_layer_norm", x, inner, weight, bias, 1e-5)
        if kind == torch.bfloat16:
            w.call("native_layer_norm", x, inner, tensor(inner, torch.float32, "plain"), None, 1e-5)
        full = tensor(inner, layout="plain")
        out, mean, rstd = torch.native_layer_norm(tensor(size), inner, full, full, 1e-5)
        w.call("native_layer_norm_backward", tensor(size), tensor(size), inner, mean, rstd, full, full, [True] * 3)
        for mask in SOME_GRADIENTS:
            weight = full if mask[1] else rng.choice([None, full])
            bias = full if mask[2] else rng.choice([None, full])
            w.call("native_layer_norm_backward", tensor(size), tensor(size), inner, mean, rstd, weight, bias, mask)
        channels = rng.choice([2, 4])
        size = [2, channels] + shape(rng.randint(0, 3))
        x = tensor(size, kind)
        vector = lambda: tensor([channels], kind, "plain")
        maybe = lambda: rng.choice([None, vector()])
        for training in (True, False):
            w.call("native_batch_norm", x, maybe(), maybe(), vector(), vector(), training, 0.1, 1e-5)
            w.call("_native_batch_norm_legit_functional", x, vector(), vector(), vector(), vector(), training, 0.1, 1e-5)
        w.call("_native_batch_norm_legit.no_stats", x, vector(), vector(), True, 0.1, 1e-5)
        w.call("_native_batch_norm_legit_no_training", x, maybe(), maybe(), vector(), vector(), 0.1, 1e-5)
        w.call("native_batch_norm_backward", tensor(size, kind), x, vector(), vector(), vector(), vector(), vector(), True, 1e-5,
               [True] * 3)
        for mask in SOME_GRADIENTS:
            w.call("native_batch_norm_backward", tensor(size, kind), x, maybe(), vector(), vector(), vector(), vector(),
                   rng.choice([True, False]), 1e-5, mask)
        positions = x[0, 0].numel()
        # The composed group_norm makes its operand contiguous (in some format) first.
        dense = tensor(size, kind, rng.choice(["plain", "channels_last"]))
        w.call("native_group_norm", dense, maybe(), maybe(), 2, channels, positions, 2, 1e-5)
        w.call("native_group_norm_backward", dense, dense, tensor([2, 2], kind, "plain"), tensor([2, 2], kind, "plain"),
               vector(), 2, channels, positions, 2, [True] * 3)
        for mask in SOME_GRADIENTS:
            if not mask[0] and not dense.is_contiguous():
                continue  # eager writes to the gradient that is left out
            w.call("native_group_norm_backward", dense, dense, tensor([2, 2], kind, "plain"), tensor([2, 2], kind, "plain"),
                   vector() if mask[1] or mask[2] else maybe(), 2, channels, positions, 2, mask)
        size = shape()
        dim = rng.randint(-max(len(size), 1), max(len(size), 1) - 1)
        x = tensor(size, kind)
        for op in ("_softmax", "_log_softmax"):
            w.call(op, x, dim, False)
            w.call(op + "_backward_data", x, x, dim, kind)
        w.call("_safe_softmax", x, dim)
        w.call("_weight_norm_interface", tensor([3, 4]), tensor([3, 1]), 0)
    fused_rms_norms(w)


def fused_rms_norms(w):
    """Kernels of GPUs: results are contiguous, and statistics of halves are single precision."""
    for _ in range(15):
        size = shape(rng.randint(1, 4))
        inner = size[-rng.randint(1, len(size)):]
        kind = rng.choice([torch.float32, torch.float64, torch.bfloat16, torch.float16])
        weight = tensor(inner, kind)
        x, rows = tensor(size, kind), size[: len(size) - len(inner)] + [1] * len(inner)
        whole = torch.empty(size, dtype=kind)
        rstd = torch.empty(rows, dtype=torch.float32 if kind in (torch.bfloat16, torch.float16) else kind)
        w.call("_fused_rms_norm", x, inner, rng.choice([None, weight]), rng.choice([None, 1e-6]), results=(whole, rstd))
        for mask in ([True, True], [True, False], [False, True]):
            gradients = tuple(torch.empty(s, dtype=kind) if there else None for s, there in zip((size, inner), mask))
            given = weight if mask[1] else rng.choice([None, weight])
            w.call("_fused_rms_norm_backward", tensor(size, kind), x, inner, rstd, given, mask, results=gradients)


def matmul(w):
    for _ in range(15):
        n, k, m, b = (rng.randint(1, 5) for _ in range(4))
        kind = rng.choice(FLOATS + [torch.int64])
        one, two = tensor([n, k], kind), tensor([k, m], kind)
        w.call("mm", one, two)
        w.call("bmm", tensor([b, n, k], kind), tensor([b, k, m], kind))
        w.call("addmm", tensor(broadcastable([n, m]), kind), one, two)
        w.call("baddbmm", tensor(broadcastable([b, n, m]), kind), tensor([b, n, k], kind), tensor([b, k, m], kind))
        w.call("addbmm", tensor([n, m], kind), tensor([b, n, k], kind), tensor([b, k, m], kind))
        w.call("mv", one, tensor([k], kind))
        w.call("addmv", tensor([n], kind), one, tensor([k], kind))
        w.call("addr", tensor([n, m], kind), tensor([n], kind), tensor([m], kind))
        w.call("dot", tensor([k], kind), tensor([k], kind))
        w.call("vdot", tensor([k], kind), tensor([k], kind))
        size = shape(rng.randint(1, 4))
        dim = rng.randrange(len(size))
        size[dim] = 3
        other = [n if d == dim or rng.random() < 0.8 else 1 for d, n in enumerate(size)]
        w.call("linalg_cross", tensor(size, kind), tensor(other, kind), dim=rng.choice([dim, dim - len(size)]))
    for _ in range(6):
        b, n, m, k = (rng.randint(1, 4) for _ in range(4))
        # bilinear(), and its gradients for the first operand and for the weight
        w.call("_trilinear", tensor([b, n]), tensor([k, n, m]), tensor([b, m]), [1, 3], [0], [1, 2], [2, 3])
        w.call("_trilinear", tensor([b, k]), tensor([k, n, m]), tensor([b, m]), [2, 3], [0], [1, 2], [1, 3], 1)
        w.call("_trilinear", tensor([b, k]), tensor([b, n]), tensor([b, m]), [2, 3], [1, 3], [1, 2], [0], 1)


def convolution(w):
    for _ in range(60):
        spatial = rng.choice([1, 2, 2, 2, 3])
        groups = rng.choice([1, 1, 2])
        ins, outs = groups * rng.randint(1, 3), groups * rng.randint(1, 3)
        kind = rng.choice([torch.float32, torch.float32, torch.float32, torch.float64])
        transposed = rng.random() < 0.3
        kernel = [rng.randint(1, 3) for _ in range(spatial)]
        layouts = ["plain", "plain", "channels_last", None]
        x = tensor([rng.choice([1, 2, 17]), ins] + [rng.randint(5, 9) for _ in range(spatial)], kind, rng.choice(layouts))
        first, second = (ins, outs // groups) if transposed else (outs, ins // groups)
        weight = tensor([first, second] + kernel, kind, rng.choice(layouts))
        bias = rng.choice([None, tensor([outs], kind, "plain")])
        stride = [rng.randint(1, 2) for _ in range(spatial)]
        padding = [rng.randint(0, 1) for _ in range(spatial)]
        dilation = [rng.randint(1, 2) for _ in range(spatial)]
        args = [stride, padding, dilation, transposed, [0] * spatial, groups]
        w.call("convolution", x, weight, bias, *args)
        try:
            out = torch.convolution(x, weight, bias, *args)
        except RuntimeError:
            continue
        w.call("convolution_backward", out, x, weight, [outs], *args, [True] * 3)
        mask = rng.choice(SOME_GRADIENTS)
        w.call("convolution_backward", out, x, weight, [outs] if mask[2] else None, *args, mask)


def pooling(w):
    layouts = ["plain", "channels_last", None]
    for _ in range(15):
        for batch in ([2, 3], [3], [1, 1]):
            x = tensor(batch + [rng.randint(6, 9), rng.randint(6, 9)], layout=rng.choice(layouts))
            y = tensor(batch + [6, 7, 8], layout=rng.choice(layouts))
            k, s, p, ceil = rng.randint(2, 3), rng.randint(1, 3), rng.randint(0, 1), rng.choice([True, False])
            w.call("max_pool2d_with_indices", x, [k, k], [s, s], [p, p], [1, 1], ceil)
            w.call("max_pool3d_with_indices", y, [k], [s], [p], [1], ceil)
            w.call("avg_pool2d", x, [k, k], rng.choice([[], [s, s]]), [p, p], ceil)
            w.call("avg_pool3d", y, [k, k, k], [s, s, s], [p, p, p], ceil)
            w.call("_adaptive_avg_pool2d", x, [2, 3])
            w.call("_adaptive_avg_pool3d", y, [2, 3, 1])
            w.call("adaptive_max_pool2d", x, [2, 3])
            w.call("adaptive_max_pool3d", y, [2, 3, 1])
            values, where = torch.ops.aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
            w.call("max_pool2d_with_indices_backward", torch.empty_like(values), x, [2, 2], [2, 2], [0, 0], [1, 1], False, where)
            mean = torch.ops.aten.avg_pool2d(x, [2, 2])
            w.call("avg_pool2d_backward", mean, x, [2, 2], [2, 2], [0, 0], False, True, None)
            w.call("_adaptive_avg_pool2d_backward", torch.ops.aten._adaptive_avg_pool2d(x, [2, 3]), x)
        x = tensor([2, 3, 4, 5], layout=rng.choice(layouts))
        y = tensor([2, 3, 4, 5, 6], layout=rng.choice(layouts))
        z = tensor([2, 3, 4])
        for op in ("upsample_nearest", "_upsample_nearest_exact"):
            w.call(op + "1d", z, [7])
            w.call(op + "2d", x, [7, 6])
            w.call(op + "3d", y, [7, 6, 5])
        w.call("upsample_linear1d", z, [7], False)
        for op in ("upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
            w.call(op, x, [7, 6], False)
        w.call("upsample_trilinear3d", y, [7, 6, 5], False)
        out = torch.ops.aten.upsample_nearest2d(x, [8, 10])
        w.call("upsample_nearest2d_backward", out, [8, 10], [2, 3, 4, 5])
        w.call("upsample_bilinear2d_backward", out, [8, 10], [2, 3, 4, 5], False)
        w.call("upsample_bicubic2d_backward", out, [8, 10], [2, 3, 4, 5], False)
        w.call("grid_sampler_2d", x, tensor([2, 6, 7, 2]), 0, 0, False)
        w.call("grid_sampler_3d", y, tensor([2, 6, 7, 3, 3]), 0, 0, False)
        for mask in ([True, True], [False, True], [True, False]):
            grad = tensor([2, 3, 6, 7], layout=rng.choice(layouts))
            w.call("grid_sampler_2d_backward", grad, x, tensor([2, 6, 7, 2]), 0, 0, False, mask)
            grad = tensor([2, 3, 6, 7, 3], layout=rng.choice(layouts))
            w.call("grid_sampler_3d_backward", grad, y, tensor([2, 6, 7, 3, 3]), 0, 0, False, mask)


    for _ in range(8):
        x = tensor([2, 3, 4, 6], layout=rng.choice(layouts))
        y = tensor([2, 3, 4, 6, 2], layout=rng.choice(layouts))
        w.call("max_unpool2d", x, indices([2, 3, 4, 6], 24), [8, 12])
        w.call("max_unpool2d", x[0], indices([3, 4, 6], 24), [8, 12])
        w.call("max_unpool3d", y, indices([2, 3, 4, 6, 2], 48), [8, 12, 4], [2, 2, 2], [0, 0, 0])
        pooled, where = torch.ops.aten.max_pool3d_with_indices(y, [2], [2])
        w.call("max_pool3d_with_indices_backward", torch.empty_like(pooled), y, [2], [2], [0], [1], False, where)
        w.call("avg_pool3d_backward", torch.ops.aten.avg_pool3d(y, [2]), y, [2], [2], [0], False, True, None)
        pooled, where = torch.ops.aten.adaptive_max_pool2d(x, [2, 3])
        w.call("adaptive_max_pool2d_backward", torch.empty_like(pooled), x, where)
        pooled, where = torch.ops.aten.adaptive_max_pool3d(y, [2, 3, 1])
        w.call("adaptive_max_pool3d_backward", torch.empty_like(pooled), y, where)
        w.call("_adaptive_avg_pool3d_backward", torch.ops.aten._adaptive_avg_pool3d(y, [2, 3, 1]), y)
        for op in ("upsample_nearest1d_backward", "upsample_linear1d_backward"):
            w.call(op, tensor([2, 3, 8]), [8], [2, 3, 4], *([False] if "linear" in op else []))
        w.call("_upsample_nearest_exact2d_backward", tensor([2, 3, 8, 12], layout=rng.choice(layouts)), [8, 12], [2, 3, 4, 6])
        for op in ("upsample_nearest3d_backward", "upsample_trilinear3d_backward"):
            w.call(op, tensor([2, 3, 8, 6, 4], layout=rng.choice(layouts)), [8, 6, 4], [2, 3, 4, 3, 2],
                   *([False] if "linear" in op else []))
        w.call("channel_shuffle", tensor([2, 6, 3, 4], layout=rng.choice(layouts)), rng.choice([2, 3]))


def attention_on_gpu(w):
    for _ in range(30):
        kind = rng.choice([torch.float16, torch.bfloat16])
        b, h, s, t = (rng.randint(1, 5) for _ in range(4))
        d = rng.choice([8, 16, 64])
        by_rows = rng.random() < 0.5
        query, key, value = (
            torch.rand([b, n, h, d], dtype=kind).transpose(1, 2) if by_rows else torch.rand([b, h, n, d], dtype=kind) for n in (s, t, t)
        )
        mask = rng.choice([None, torch.rand([b, h, s, 8 * t], dtype=kind)[..., :t]])
        for name in ("efficient", "flash", "cudnn"):
            call = f"_scaled_dot_product_{name}_attention"
            w.call(call, query, key, value, *([] if name == "flash" else [mask, True]))
        output, *saved = torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, mask, True)
        for wanted in ([True, True, True, mask is not None], [True, False, True, False]):
            w.call("_scaled_dot_product_efficient_attention_backward", output, query, key, value, mask, output, *saved, 0.0, wanted)
        output, *saved = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value)
        state = saved[5:7]
        w.call("_scaled_dot_product_flash_attention_backward", output, query, key, value, output, *saved[:5], 0.0, False, *state)


def attention(w):
    if torch.get_default_device().type == "cuda":
        attention_on_gpu(w)
        return
    for _ in range(30):
        kind = rng.choice([torch.float32, torch.bfloat16, torch.float64])
        b, h, s, t, d = (rng.randint(1, 5) for _ in range(5))
        layout = rng.choice(["plain", "permuted", "mixed"])
        query, key, value = (tensor([b, h, n, d], kind, layout) for n in (s, t, t))
        mask = rng.choice([None, tensor([s, t], kind, "plain")])
        w.call("_scaled_dot_product_flash_attention_for_cpu", query, key, value, 0.0, mask is None, attn_mask=mask)
        out, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value)
        w.call("_scaled_dot_product_flash_attention_for_cpu_backward", out, query, key, value, out, sums, 0.0, False)


    for norm_first in (False, True):
        w.call("_transformer_encoder_layer_fwd", tensor([2, 3, 4], layout="plain"), 4, 2, tensor([12, 4], layout="plain"),
               tensor([12], layout="plain"), tensor([4, 4], layout="plain"), tensor([4], layout="plain"), False, norm_first, 1e-5,
               *[tensor([4], layout="plain") for _ in range(4)], tensor([8, 4], layout="plain"), tensor([8], layout="plain"),
               tensor([4, 8], layout="plain"), tensor([4], layout="plain"))


def loss(w):
    for _ in range(15):
        reduction = rng.randint(0, 2)
        n, c = rng.randint(1, 4), rng.randint(1, 4)
        x, target = tensor([n, c]), indices([n], c)
        w.call("nll_loss_forward", x, target, rng.choice([None, tensor([c], layout="plain")]), reduction, -100)
        w.call("nll_loss_forward", tensor([c]), indices([], c), None, reduction, -100)
        w.call("nll_loss2d_forward", tensor([n, c, 2, 3]), indices([n, 2, 3], c), None, reduction, -100)
        out, weight = torch.ops.aten.nll_loss_forward(x, target, None, reduction, -100)
        w.call("nll_loss_backward", out, x, target, None, reduction, -100, weight)
        size = shape()
        other = size if rng.random() < 0.7 else broadcastable(size)
        w.call("mse_loss", tensor(size), tensor(other), reduction)
        w.call("smooth_l1_loss", tensor(size), tensor(other), reduction)
        w.call("huber_loss", tensor(size), tensor(other), reduction)
        w.call("soft_margin_loss", tensor(size), tensor(size), reduction)
        w.call("binary_cross_entropy", tensor(size), tensor(size), rng.choice([None, tensor(size)]), reduction)
        w.call("binary_cross_entropy_with_logits", tensor(size), tensor(size), rng.choice([None, tensor(size)]), None, reduction)
        grad = tensor(size) if reduction == 0 else tensor([])
        w.call("mse_loss_backward", grad, tensor(size), tensor(size), reduction)
        w.call("smooth_l1_loss_backward", grad, tensor(size), tensor(size), reduction, 1.0)
        w.call("huber_loss_backward", grad, tensor(size), tensor(size), reduction, 1.0)
        w.call("binary_cross_entropy_backward", grad, tensor(size), tensor(size), None, reduction)


    for _ in range(8):
        reduction = rng.randint(0, 2)
        n, c = rng.randint(1, 4), rng.randint(1, 4)
        for rows, target in ((tensor([n, c]), indices([n], c)), (tensor([c]), torch.tensor(0))):
            w.call("multi_margin_loss", rows, target, rng.choice([1, 2]), 1.0, rng.choice([None, tensor([c], layout="plain")]), reduction)
            loss = torch.ops.aten.multi_margin_loss(rows, target, 1, 1.0, None, reduction)
            w.call("multi_margin_loss_backward", loss, rows, target, 1, 1.0, None, reduction)
        for rows, target in ((tensor([n, c]), indices([n, c], c)), (tensor([c]), indices([c], c))):
            w.call("multilabel_margin_loss_forward", rows, target, reduction)
            loss, is_target = torch.ops.aten.multilabel_margin_loss_forward(rows, target, reduction)
            w.call("multilabel_margin_loss_backward", loss, rows, target, reduction, is_target)


def solvable(size, layout=None):
    """Symmetric, and positive definite."""
    made = values(size, torch.float32)
    made = made @ made.mT + size[-1] * torch.eye(size[-1])
    order = torch.empty_like(tensor(size, layout=layout)) if layout != "expanded" else made
    return order.copy_(made)


def linear_algebra(w):
    for _ in range(10):
        n, m, k = (rng.randint(1, 4) for _ in range(3))
        batch = shape(rng.randint(0, 2))
        a, other = solvable(batch + [n, n]), tensor(batch + [n, m])
        w.call("linalg_inv_ex", a)
        w.call("linalg_cholesky_ex", a, upper=rng.random() < 0.5)
        w.call("_linalg_det", a)
        w.call("_linalg_slogdet", a)
        w.call("_linalg_solve_ex", a, other)
        w.call("_linalg_solve_ex", a, tensor(batch + [n]))
        w.call("_linalg_solve_ex", a, tensor([n, m]))
        w.call("_linalg_solve_ex", a, tensor(batch + [k, n]), left=False)
        rectangle = tensor(batch + [n, m], layout="plain")
        for mode in ("reduced", "complete", "r"):
            w.call("linalg_qr", rectangle, mode)
        for full in (False, True):
            w.call("_linalg_svd", rectangle, full, True)
        w.call("_linalg_svd", rectangle, False, False)
        for wanted in (False, True):
            w.call("_linalg_eigh", a, "L", wanted)
        w.call("_linalg_eigvals", a)
        w.call("linalg_eig", a)
        w.call("linalg_lu_factor_ex", rectangle)
        w.call("linalg_lu", rectangle)
        lu, pivots, _ = torch.ops.aten.linalg_lu_factor_ex(a)
        w.call("linalg_lu_solve", lu, pivots, other)
        w.call("linalg_lu_solve", lu, pivots, tensor(batch + [k, n]), left=False)
        w.call("lu_unpack", *torch.ops.aten.linalg_lu_factor_ex(rectangle)[:2], rng.random() < 0.5, rng.random() < 0.5)
        w.call("linalg_ldl_factor_ex", a)
        w.call("linalg_solve_triangular", a, other, upper=True)
        w.call("linalg_solve_triangular", a, tensor(batch + [k, n]), upper=False, left=False)
        w.call("cholesky_solve", other, a)
        w.call("cholesky_inverse", a)
        tall = tensor(batch + [n + m, n])
        w.call("geqrf", tall)
        reflectors, tau = torch.geqrf(tall)
        w.call("linalg_householder_product", reflectors, tau)
        w.call("ormqr", reflectors, tau, tensor(batch + [n + m, k]))
        w.call("linalg_pinv.atol_rtol_tensor", rectangle)
        w.call("linalg_matrix_exp", values(batch + [n, n], torch.float32))
        w.call("triangular_solve", other, a)
        w.call("triangular_solve", tensor(batch + [n, m]), solvable([n, n]), False, True)
        w.call("linalg_lstsq", rectangle, tensor(batch + [n, k]))
        w.call("linalg_lstsq", rectangle, tensor(batch + [n]), driver="gelsy")
        w.call("block_diag", [tensor([n, m]), tensor([k]), tensor([], torch.float64), tensor([m, k], torch.int64)])


def fourier(w):
    for _ in range(40):
        rank = rng.randint(1, 4)
        size = [rng.randint(1, 5) for _ in range(rank)]
        dims = rng.sample(range(rank), rng.randint(1, rank))
        w.call("_fft_r2c", tensor(size, rng.choice(FLOATS[:2])), dims, rng.randint(0, 2), rng.random() < 0.7)
        made = tensor(size)
        number = torch.complex(made, made)
        number = torch.empty_strided(size, made.stride(), dtype=torch.complex64).copy_(number) if 0 not in made.stride() else number
        w.call("_fft_c2c", number, dims, rng.randint(0, 2), rng.random() < 0.5)
        w.call("_fft_c2r", number, dims, rng.randint(0, 2), size[dims[-1]] * 2 - 1)


FAMILIES = dict(pointwise=pointwise, comparison=comparison, reductions=reductions, views=views, creation=creation,
                random=random_numbers, indexing=indexing, normalization=normalization, matmul=matmul,
                convolution=convolution, pooling=pooling, attention=attention, loss=loss, linear_algebra=linear_algebra,
                fourier=fourier)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--seed", type=int, default=0, help="another one draws other calls")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="of the tensors of the calls")
    parser.add_argument("--folder", type=pathlib.Path, help="what is written to (default: beside this file, or gpu/ there)")
    options = parser.parse_args()
    folder = options.folder or pathlib.Path(__file__).parent / ("gpu" if options.device == "cuda" else "")
    folder.mkdir(exist_ok=True)
    torch.set_default_device(options.device)
    for family in options.families:
        rng.seed(f"{family}{options.seed or ''}")
        torch.manual_seed(0)
        writer = Writer(differing_only=options.device != "cpu")
        FAMILIES[family](writer)
        (folder / f"{family}.graph").write_text(writer.text())
        print(f"{family}: {len(writer.lines)} calls of {len(writer.cases)} operators")
        for name, why in writer.refused.items():
            if name not in writer.cases:
                print(f"  eager never ran {name}: {why}")
