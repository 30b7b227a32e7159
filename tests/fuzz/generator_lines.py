"""The kinds of lines that random programs are made of: each function adds one line, or nothing where it does not fit."""

import torch

from generator import is_float

SMOOTH = (
    "{}.sin()", "{}.cos()", "{}.tanh()", "{}.sigmoid()", "torch.erf({})", "{}.clamp(-4, 4).exp()", "{}.clamp(-4, 4).exp2()",
    "{}.clamp(-4, 4).expm1()", "({}.abs() + 0.1).log()", "{}.abs().log1p()", "({}.abs() + 0.5).sqrt()", "({}.abs() + 0.5).rsqrt()",
    "{}.atan()", "{}.asinh()", "F.gelu({})", "F.gelu({}, approximate='tanh')", "F.silu({})", "F.softplus({})", "F.mish({})", "F.elu({})",
    "F.selu({})", "F.celu({}, 1.5)", "F.logsigmoid({})", "F.softsign({})", "F.tanhshrink({})", "{}.square()", "{}.clamp(-3, 3).pow(3)",
    "({}.abs() + 0.5).pow(0.5)", "({}.abs() + 0.5).pow(-1)", "({}.abs() + 0.5).reciprocal()", "{}.clamp(-3, 3).sinh()", "{}.clamp(-3, 3).cosh()",
    "({}.abs() + 0.5).log2()", "({}.abs() + 0.5).log10()", "({}.abs() + 1).acosh()", "{}.tanh().mul(0.9).acos()", "{}.tanh().mul(0.9).asin()",
    "{}.tanh().mul(0.9).atanh()", "torch.erfc({})", "({}.abs() + 0.5).lgamma()", "torch.sinc({})", "F.softplus({}, beta=2, threshold=3)",
    "{} / 3", "{} * 0.1", "{} + 0.7", "1.5 - {}", "2 / ({}.abs() + 0.5)", "2 ** {}.clamp(-4, 4)", "torch.special.expit({})", "torch.logit({}.sigmoid(), 1e-3)",
    "F.hardswish({})", "F.hardsigmoid({})", "F.leaky_relu({}, 0.1)", "F.rrelu({})", "torch.deg2rad({})", "({}.abs() + .5).digamma()", "torch.special.i0({}.clamp(-4, 4))",
    "torch.special.ndtr({})", "torch.special.log_ndtr({})", "torch.special.erfcx({}.abs())", "torch.special.entr({}.abs())",
)
# The number of roundings that they may add for numbers of few bits.
EXACT = (
    ("-{}", 0), ("{}.abs()", 0), ("{}.relu()", 0), ("F.relu6({})", 0), ("F.hardtanh({}, -2, 2.5)", 0), ("{}.sign()", 0), ("{}.floor()", 0),
    ("{}.ceil()", 0), ("{}.trunc()", 0), ("{}.round()", 0), ("{}.frac()", 0), ("{}.clamp(-1, 2)", 0), ("{}.clamp(min=0.5)", 0),
    ("{}.clamp_max(1)", 0), ("{}.nan_to_num()", 0), ("{}.logical_not()", 0), ("{}.isnan()", 0), ("{}.isfinite()", 0), ("{}.isinf()", 0),
    ("{} > 0", 0), ("{} <= 1.5", 0), ("{} == 0", 0), ("{} != 1", 0), ("{} + 1", 1), ("{} * 2", 1), ("3 - {}", 1), ("{} - 0.5", 1), ("{} * {}", 2), ("{} + {}", 1),
    ("F.threshold({}, 0.25, -1)", 0), ("F.hardshrink({})", 0), ("(F.softshrink({}) + 0)", 1), ("torch.clip({}, -2, 1)", 0), ("{}.signbit()", 0), ("{}.positive()", 0),
    ("{}.clamp(2, 1)", 0), ("{}.sgn()", 0), ("torch.square({})", 2), ("{}.conj()", 0), ("{}.resolve_conj()", 0), ("{}.neg().neg()", 0), ("{}.isposinf()", 0),
)
INTEGER = (
    "{} // 3", "{} % 3", "{} // -2", "{} % -4", "{}.bitwise_not()", "{} & 5", "{} | 2", "{} ^ 7", "{} << 1", "{} >> 1", "{} * 37", "{} ** 2", "{}.pow(3)", "{} / 3", "{} - 100",
    "torch.div({}, 3, rounding_mode='trunc')", "torch.div({}, -2, rounding_mode='floor')", "torch.fmod({}, 3)", "torch.remainder({}, -3)", "{} * 0.5", "{} + True", "~{}",
    "{}.clamp(-3, 5)", "{}.abs()", "-{}", "{}.sign()", "{}.square()", "{}.float()", "{} == 3", "{}.bool()", "{}.sigmoid()", "{}.sqrt()", "{}.exp().log1p()", "{} // 0",
    "{}.bitwise_and(3)", "{}.mul(300)", "{} >> 3", "{}.pow(0)", "{}.pow(-1)", "2 ** {}.clamp(0, 4)", "{}.float_power(2)", "{} - 5", "{}.bitwise_left_shift(2)", "{} % 0", "{}.floor()",
    "{}.reciprocal()", "{}.gcd({})", "{}.to(f32).rsqrt()",
)


def unary_smooth(b):
    name = b.pick(is_float)
    if name:
        b.emit(b.random.choice(SMOOTH).replace("{}", name))


def unary_exact(b):
    name = b.pick_exact(lambda t: not t.dtype.is_complex)
    if name:
        text, more = b.random.choice(EXACT)
        b.emit(text.replace("{}", name), b.depth_of(name, more=more) if more else b.depth[name])


def unary_integer(b):
    name = b.pick(lambda t: not is_float(t) and not t.dtype.is_complex)
    if name:
        text = b.random.choice(INTEGER).replace("{}", name)
        rounds = any(part in text for part in ("/ 3", "sigmoid", "sqrt", "log1p", "float_power", "pow(-1", "recip", "**"))
        b.emit(text, None if rounds else b.depth_of(name))


def binary(b):
    name = b.pick()
    other = b.partner(name)
    if b.random.random() < 0.3:
        name, other = other, name
    text, more = b.random.choice((
        ("{} + {}", 1), ("{} - {}", 1), ("{} * {}", 2), ("torch.add({}, {}, alpha=2)", 2), ("torch.sub({}, {}, alpha=3)", 2), ("torch.rsub({}, {})", 1),
        ("torch.maximum({}, {})", 0), ("torch.minimum({}, {})", 0), ("torch.fmax({}, {})", 0), ("torch.fmin({}, {})", 0),
        ("{} / ({}.abs() + 0.5)", None), ("torch.atan2({}, {}.abs() + 0.5)", None), ("torch.hypot({}, {})", None),
        ("({}.abs() + 0.5) ** {}.clamp(-2, 2)", None), ("torch.logaddexp({}, {})", None), ("torch.lerp({}, {}, 0.3)", None), ("torch.xlogy({}, {}.abs() + 0.5)", None),
        ("torch.addcmul({0}, {1}, {1}, value=0.5)", None), ("torch.addcdiv({0}, {0}, {1}.abs() + 0.5, value=2)", None), ("torch.copysign({}, {}.abs())", 0),
        ("torch.nextafter({}, {}.abs() + 64)", None), ("torch.ldexp({}, {}.clamp(-3, 3))", None), ("torch.true_divide({}, {}.abs() + 1)", None), ("F.prelu({0}, {0}.mean().reshape(1))", None),
    ))
    b.emit(fill(text, name, other), b.depth_of(name, other, more=more) if more is not None else None)


def binary_discontinuous(b):
    name = b.pick_exact()
    if not name:
        return
    other = b.partner(name, exact=True)
    if b.depth_of(name, other) is None:
        return
    text = b.random.choice((
        "{} < {}", "{} >= {}", "{} == {}", "{} != {}", "{}.gt({})", "torch.le({}, {})", "torch.logical_and({}, {})", "torch.logical_xor({}, {})",
        "torch.where({0} > {1}, {0}, {1})", "torch.where({0} == {1}, 0, {1})", "{} // {}", "{} % {}", "torch.fmod({}, {})", "torch.div({}, {}, rounding_mode='floor')",
        "torch.div({}, {}, rounding_mode='trunc')", "torch.floor_divide({}, {})", "torch.remainder({}, {})", "torch.heaviside({}, {})", "{} & {}", "{} | {}", "{} ^ {}", "torch.isclose({}, {})",
        "torch.bitwise_right_shift({}, {}.abs())", "{} << {}.abs()", "torch.where({0}.bool(), {0}, {1})", "torch.where({0} < 0, {1}, -1.5)", "torch.gcd({}, {})", "torch.isin({}, {})",
    ))
    b.emit(fill(text, name, other), b.depth_of(name, other))


def fill(text, first, second):
    return text.format(first, second) if "{0}" in text else text.replace("{}", first, 1).replace("{}", second)


def reduction(b):
    name = b.pick()
    t = b.values[name]
    keep = b.random.choice(("", ", keepdim=True"))
    if t.dim() == 0 or b.random.random() < 0.25:
        text = b.random.choice(("{}.sum()", "{}.mean()", "{}.amax()", "{}.min()", "{}.max()", "{}.var()", "{}.std(correction=0)", "{}.norm()", "{}.prod()", "{}.logsumexp(())", "{}.all()", "{}.any()",
                                "torch.nansum({})", "{}.norm(1)", "{}.norm(float('inf'))", "torch.linalg.vector_norm({}, 3)", "torch.count_nonzero({})", "{}.sum(dtype=f64)", "{}.mean(dtype=f32)",
                                "{}.argmax()", "{}.argmin()", "{}.nanmean()", "torch.trace({})", "torch.aminmax({})[1]", "{}.median()", "{}.cumsum(0)"))
    else:
        d = str(b.dim(name))
        dims = d
        if t.dim() > 1 and b.random.random() < 0.4:
            chosen = b.random.sample(range(t.dim()), b.random.randint(1, t.dim()))
            dims = str(tuple(chosen))
        text = b.random.choice((
            f"{{}}.sum({dims}{keep})", f"{{}}.mean({dims}{keep})", f"{{}}.amax({dims}{keep})", f"{{}}.amin({dims}{keep})", f"{{}}.max({d}{keep})[0]", f"{{}}.min({d}{keep}).values",
            f"{{}}.max({d}{keep})[1]", f"{{}}.min({d}{keep}).indices", f"{{}}.argmax({d}{keep})", f"{{}}.argmin({d}{keep})", f"{{}}.prod({d}{keep})", f"({{}} + 0.1).var({dims}{keep})",
            f"{{}}.var({dims}, correction=0{keep})", f"torch.var_mean({{}}, {dims}{keep})[{b.random.randrange(2)}]", f"torch.std_mean({{}}, {dims}, correction=0)[1]", f"{{}}.logsumexp({dims}{keep})",
            f"{{}}.norm(2, {dims}{keep})", f"{{}}.norm(1, {dims}{keep})", f"torch.linalg.vector_norm({{}}, float('inf'), {dims}{keep})", f"{{}}.all({d}{keep})", f"{{}}.any({d}{keep})", f"torch.count_nonzero({{}}, {d})",
            f"{{}}.cumsum({d})", f"{{}}.softmax({d})", f"{{}}.log_softmax({d})", f"F.softmin({{}}, {d})", f"{{}}.cumsum({d})", f"{{}}.cummax({d})[0]", f"{{}}.cummin({d})[1]", f"torch.logcumsumexp({{}}, {d})", f"{{}}.clamp(-1, 1).cumprod({d})",
            f"torch.nansum({{}}, {d}{keep})", f"torch.nanmean({{}}, {d}{keep})", f"torch.aminmax({{}}, dim={d}{keep})[0]", f"{{}}.sum({dims}, dtype=f64)", f"{{}}.softmax({d}, dtype=f32)", f"{{}}.mean({dims}, dtype=f32)",
            f"F.normalize({{}}, dim={d})", f"torch.diff({{}}, dim={d})", f"{{}}.sort({d}, stable=True)[0]", f"{{}}.argsort({d}, stable=True)", f"{{}}.topk(1, {d})[0]", f"{{}}.kthvalue(1, {d})[0]", f"{{}}.median({d})[0]", f"{{}}.unique(dim={d})",
            f"torch.std({{}}, {dims})", f"F.glu({{}}, {d})", f"torch.trapz({{}}, dim={d})", f"F.cosine_similarity({{}}, {{}} + 1, {d})", f"F.gumbel_softmax({{}}, dim={d})",
        ))
    if ".median(" in text and 0 in t.stride():
        text = text.replace("{}.median", "{}.contiguous().median")  # eager reads beyond the elements of an expanded dimension
    discontinuous = any(part in text for part in ("arg", "[1]", ".indices", "any", "all", "count", "sort", "kth", "median", "unique"))
    if discontinuous:
        name = name if b.depth[name] is not None else None
        if not name:
            return
    selects = any(part in text for part in ("amax", "amin", "max(", "min(", "arg", "any", "all", "count", "sort", "topk", "kth", "cummax", "cummin", "unique")) and "softmax" not in text and "softmin" not in text
    more = 0 if selects else 2 if ".sum(" in text or "cumsum" in text else None
    b.emit(text.replace("{}", name), b.depth_of(name, more=more) if more is not None else None)


def view(b):
    name = b.pick()
    t, r = b.values[name], b.random
    n = t.dim()
    choices = [f"{name}.reshape(-1)", f"{name}.unsqueeze({r.randint(-n - 1, n)})", f"{name}.contiguous()", f"{name}.clone()", f"{name}.flatten()", f"{name}.view({name}.shape)", f"{name}.view_as({name})", f"{name}.detach()", f"{name}[None]",
               f"{name}[...]", f"{name}.squeeze()", f"{name}.expand(2, *{name}.shape)", f"{name}.ravel()", f"{name}[..., None]", f"{name}.reshape({name}.shape)", f"torch.atleast_2d({name})"]
    if n:
        d = b.dim(name)
        size = t.shape[d]
        middle = r.randint(0, max(size, 1))
        order = list(range(n))
        r.shuffle(order)
        cut = ", ".join(r.choice((":", "1:", ":-1", "::2", "0:1", "-3:", ":5", "1::3", "2:2")) for _ in range(r.randint(1, n)))
        choices += [
            f"{name}.permute({tuple(order)})", f"{name}.permute({tuple(order)})", f"{name}.transpose(0, {d})", f"{name}.squeeze({d})", f"{name}[{cut}]", f"{name}[{cut}]", f"{name}.select({d}, {r.choice((0, -1, middle))})",
            f"{name}.narrow({d}, 0, {middle})", f"{name}.chunk(2, {d})[-1]", f"{name}.split({max(1, middle)}, {d})[0]", f"{name}.unbind({d})[0]", f"{name}.unfold({d}, {min(2, size)}, {r.choice((1, 2))})", f"{name}.flip({d})", f"{name}.flip(({d},))",
            f"{name}.roll({r.choice((1, -2, 5))}, {d})", f"{name}.movedim({d}, 0)", f"{name}.repeat({', '.join(str(r.choice((1, 2))) for _ in range(n))})", f"{name}.repeat_interleave(2, {d})", f"torch.tile({name}, (2,))", f"{name}.mT", f"{name}.unflatten({d}, (-1, {r.choice((1, size or 1))}))",
            f"{name}.tensor_split(2, {d})[1]", f"{name}.reshape({size}, -1)", f"{name}.swapaxes(0, -1)", f"{name}.roll(1)", f"{name}[{', '.join(['0'] * n)}]", f"{name}[-1]", f"{name}[..., 0]", f"{name}.unsafe_chunk(2, {d})[0]", f"{name}.reshape({', '.join(map(str, reversed(t.shape)))})",
            f"{name}.view({', '.join(map(str, t.shape[1:] + t.shape[:1]))})", f"{name}.as_strided(({size},), (1,))", f"{name}.repeat_interleave(torch.arange({size}) % 3, {d}, output_size=int((torch.arange({size}) % 3).sum()))",
        ]
    if n >= 2:
        choices += [f"{name}.diagonal({r.choice((0, 1, -1))})", f"{name}.tril({r.choice((0, 1, -1))})", f"{name}.triu({r.choice((0, 1, -2))})", f"{name}.rot90(1, (0, 1))", f"{name}.flatten(-2)", f"torch.diagonal({name}, 0, -2, -1)", f"{name}.transpose(-1, -2)", f"{name}.T", f"{name}.flatten(0, 1)"]
    if n == 4:
        choices += [f"{name}.contiguous(memory_format=torch.channels_last)", f"{name}.clone(memory_format=torch.channels_last)", f"F.pixel_shuffle({name}, 1)", f"{name}.to(memory_format=torch.channels_last)"]
    if n == 1:
        choices += [f"torch.diag({name})", f"torch.outer({name}, {name}[:3])", f"torch.vander({name}[:3])", f"torch.diag_embed({name}[:7])"]
    if t.dtype in (torch.float32, torch.int32):
        choices.append(f"{name}.view(i32).view({'f32' if t.dtype == torch.float32 else 'i32'})")
    if t.dtype == torch.complex64:
        choices += [f"torch.view_as_real({name})", f"{name}.real", f"{name}.imag", f"{name}.abs()", f"{name}.conj() * {name}"]
    text = r.choice(choices)
    b.emit(text, b.depth_of(name, more=1) if any(p in text for p in ("outer", "vander")) else None if ".abs()" in text or "conj" in text else b.depth[name])


def indexing(b):
    name = b.pick(lambda t: t.dim() > 0 and t.numel() > 0)
    if not name:
        return
    r, t = b.random, b.values[name]
    n, d = t.dim(), b.dim(name)
    size = t.shape[d]
    text_size = b.size_text(size)
    index = b.add_input(text=f"indices({r.randrange(99)} + call, ({r.choice((1, 3, 8))},), {text_size})")
    first = b.add_input(text=f"indices({r.randrange(99)} + call, ({r.choice((2, 5))}, 1), {b.size_text(t.shape[0])})") if r.random() < 0.3 else index
    if first == index and d not in (0, -n):
        first = b.add_input(text=f"indices({r.randrange(99)} + call, (3,), {b.size_text(t.shape[0])})")
    like = f"indices({r.randrange(99)} + call, {b.shape_text(t.shape)}, {text_size})"
    mask = f"({name} > 0)" if b.depth[name] is not None and not t.dtype.is_complex else None
    lead = ":, " * (d % n)
    number = r.choice(("0", "1", "-1.5")) if is_float(t) else r.choice(("0", "1"))
    choices = [f"{name}[{first}]", f"{name}.index_select({d}, {index})", f"{name}[{lead}{index}]", f"{name}.index_fill({d}, {index}, {number})", f"{name}[{lead}{index}]", f"{name}[{first}, ..., None]",
               f"{name}.index_add({d}, {index}, {name}.index_select({d}, {index}))", f"{name}.index_copy({d}, {index}[:1], {name}.narrow({d}, 0, 1))", f"torch.take({name}, {index})",
               f"torch.index_put({name}, ({first},), {name}[0])", f"torch.index_put({name}, ({first},), {name}.sum(0) * 0 + 1, accumulate=True)", f"{name}.index_select({d}, {index} + {r.choice((0, 0, 1, -9))})",
               f"{name}[{first} - {b.size_text(t.shape[0])}]", f"F.one_hot({index}, {text_size})", f"{name}[torch.tensor([0, -1])]", f"{name}[[0, 0]]", f"{name}[{lead}{index} * 2]"]
    if n >= 2:
        second = b.add_input(text=f"indices({r.randrange(99)} + call, {tuple(b.values[first].shape)}, {b.size_text(t.shape[1])})")
        last = b.add_input(text=f"indices({r.randrange(99)} + call, {tuple(b.values[first].shape)}, {b.size_text(t.shape[-1])})")
        choices += [f"{name}[{first}, {second}]", f"{name}[{first}, :, {last}]" if n > 2 else f"{name}[{first}, {second}]", f"{name}[:, {second}]", f"{name}[{first}, ..., {last}]", f"{name}[0, {second}]", f"{name}[..., {last}]"]
    if mask:
        choices += [f"{name}.masked_fill({mask}, {number})", f"torch.where({mask}, {name}, 0)", f"{name}[{mask}]", f"{name}.masked_fill({name} == 0, 1)", f"torch.masked_select({name}, {mask}).sum()"]
    if r.random() < 0.5:
        full = b.add_input(text=like)
        choices = [f"{name}.gather({d}, {full})", f"torch.scatter_add({name}, {d}, {full}, {name})", f"{name}.scatter({d}, {full}, {number})", f"torch.take_along_dim({name}, {full}, {d})", f"{name}.gather({d}, {full}.narrow({d}, 0, 1))",
                   f"{name}.scatter_reduce({d}, {full}, {name}, '{r.choice(('sum', 'amax', 'amin', 'mean'))}', include_self={r.choice((True, False))})", f"{name}.gather({d}, {full} + {r.choice((0, 1))})", f"torch.scatter({name}, {d}, {full}.clamp(0, 0).narrow({d}, 0, 1), {name})"]
    text = r.choice(choices)
    b.emit(text, b.depth_of(name, more=2) if "add" in text or "accum" in text or "reduce" in text else b.depth[name], keep_raising=0.3)


def joining(b):
    name = b.pick(lambda t: t.dim() > 0)
    if not name:
        return
    r, t, d = b.random, b.values[name], b.dim(name)
    other = b.pick(lambda u: u.shape == t.shape) or name
    dims = ", ".join(str(r.choice((0, 1, 2))) for _ in range(2 * r.randint(1, min(3, t.dim()))))
    text = r.choice((f"torch.cat([{name}, {other}], {d})", f"torch.stack([{name}, {other}], {d})", f"torch.cat([{name}, {other}.narrow({d}, 0, {min(1, t.shape[d])}), {name}], {d})", f"torch.hstack([{name}, {other}])",
                     f"torch.vstack([{name}, {other}])", f"F.pad({name}, ({dims}))", f"F.pad({name}, ({dims}), value=1.5)", f"F.pad({name}, (1, 1), mode='{r.choice(('reflect', 'replicate', 'circular'))}')", f"F.pad({name}, (-1, 2))",
                     f"torch.cat([{name}, torch.empty(0)], {d})", f"torch.dstack([{name}, {other}])", f"torch.block_diag({name}, {other})", f"torch.cat([{name}.float(), {other}.double()], {d})", f"torch.cartesian_prod({name}[:5], {other}[:3])"))
    b.emit(text, b.depth_of(name, other))


def product(b):
    r = b.random
    name = b.pick(lambda t: is_float(t) and t.dim() >= 1)
    if not name:
        return
    t = b.values[name]
    dtype = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16"}[t.dtype]
    width = r.choice(b.sizes[0] + [4])
    inner = t.shape[-1]
    weight = b.add_input((width, inner), dtype)
    bias = b.add_input((width,), dtype)
    choices = [f"F.linear({name}, {weight}, {bias})", f"F.linear({name}, {weight})", f"{name} @ {weight}.t()", f"F.relu(F.linear({name}, {weight}, {bias}))", f"torch.einsum('...i,ji->...j', {name}, {weight})", f"F.gelu(F.linear({name}, {weight}, {bias})) + 1"]
    if t.dim() == 2:
        choices += [f"torch.addmm({bias}, {name}, {weight}.t(), beta=0.5, alpha=2)", f"torch.mm({name}, {weight}.t())", f"torch.mv({name}, {weight}[0])", f"{name}.t() @ {name}", f"F.bilinear({name}, {name}, {weight}[:1, :1].expand(3, {inner}, {inner}))"]
    if t.dim() == 3:
        choices += [f"torch.bmm({name}, {name}.transpose(1, 2))", f"torch.baddbmm({name}.new_zeros(()), {name}, {name}.mT, beta=0)", f"F.scaled_dot_product_attention({name}, {name}, {name})"]
    if t.dim() == 4:
        choices += [f"F.scaled_dot_product_attention({name}, {name}, {name}, is_causal=True)", f"{name} @ {name}.mT"]
    if t.dim() == 1:
        choices += [f"torch.dot({name}, {name})", f"torch.outer({name}, {name})", f"{weight} @ {name}"]
    b.emit("(" + r.choice(choices) + ") / 8")


def network(b):
    r = b.random
    name = b.pick(lambda t: is_float(t) and t.dim() >= 2)
    if not name:
        return
    t = b.values[name]
    dtype = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16"}[t.dtype]
    scale, shift = b.add_input((t.shape[-1],), dtype), b.add_input((t.shape[-1],), dtype)
    per, mean = (b.add_input((t.shape[1],), dtype, plain=True) for _ in range(2))
    # Eager's gradients of the parameters alone read invalid memory where the batch is channels-last.
    plain = f"{name}.clone(memory_format=torch.contiguous_format)" if b.gradients else name
    choices = [f"F.layer_norm({name}, ({b.size_text(t.shape[-1])},), {scale}, {shift})", f"F.layer_norm({name}, {name}.shape[-2:])", f"F.rms_norm({name}, {name}.shape[-1:], {scale})", f"F.batch_norm({name}, {mean}, {per}.abs() + 1, {per}, {mean})",
               f"F.batch_norm({name}, None, None, training=True)", f"F.batch_norm({name}, {mean}, {per}, training=True)", f"F.group_norm({name}, 1)", f"F.group_norm({plain}, {b.size_text(t.shape[1])}, {per}, {mean})", f"F.instance_norm({name})", f"F.dropout({name}, 0.3, {r.choice((True, False))})",
               f"F.mse_loss({name}, {name} * 0.5)", f"F.smooth_l1_loss({name}, {name} * 0.5 + 1, reduction='none')", f"F.l1_loss({name}, {name} + 1)", f"F.local_response_norm({name}, 3)", f"F.binary_cross_entropy_with_logits({name}, {name}.sigmoid())", f"F.alpha_dropout({name}, 0.2)", f"F.kl_div({name}.log_softmax(-1), {name}.softmax(-1), reduction='batchmean')", f"F.huber_loss({name}, {name} / 2)"]
    if t.dim() == 2:
        target = b.add_input(text=f"indices({r.randrange(99)} + call, ({b.size_text(t.shape[0])},), {b.size_text(t.shape[1])})") if t.shape[1] else None
        if target:
            # Eager's multi_margin_loss leaves the reduced loss of an empty batch unwritten.
            choices += [f"F.cross_entropy({name}, {target})", f"F.nll_loss({name}.log_softmax(1), {target}, reduction='none')", f"F.cross_entropy({name}, {target}, label_smoothing=0.1, reduction='sum')", f"F.embedding({target}, {name}.t())", f"F.cross_entropy({name}, {target}, ignore_index=0)", f"F.embedding({target} + 1, {name}.t().contiguous())", f"F.multi_margin_loss({name}, {target}, reduction='none').mean()", f"F.embedding_bag({target}.view(1, -1), {name}.t())"]
    if t.dim() in (3, 4):
        channels = t.shape[1]
        out = r.choice((1, 3, 8))
        k = r.choice((1, 2, 3))
        two = t.dim() == 4
        weight = b.add_input((out, channels) + (k,) * (2 if two else 1), dtype)
        depthwise = b.add_input((channels, 1) + (k,) * (2 if two else 1), dtype)
        c = "2d" if two else "1d"
        choices += [f"F.conv{c}({name}, {weight}, padding={r.choice((0, 1))}, stride={r.choice((1, 2))}) / 8", f"F.relu(F.conv{c}({name}, {weight}, padding=1)) / 8", f"F.conv{c}({name}, {depthwise}, groups={b.size_text(channels)}, padding=1)", f"F.max_pool{c}({name}, {k}, stride={r.choice((1, 2))}, padding={k // 2})", f"F.avg_pool{c}({name}, {k}, padding={k // 2}, count_include_pad={r.choice((True, False))})",
                    f"F.adaptive_avg_pool{c}({name}, {r.choice((1, 2, 3))})", f"F.adaptive_max_pool{c}({name}, 2)", f"F.interpolate({name}, scale_factor=2, mode='nearest')", f"F.interpolate({name}, size={(5, 7) if two else 6}, mode='{'bilinear' if two else 'linear'}', align_corners={r.choice((True, False))})", f"F.max_pool{c}({name}, 2, ceil_mode=True)", f"F.conv_transpose{c}({name}, {weight}.transpose(0, 1)) / 8", f"F.avg_pool{c}({name}, 2, ceil_mode=True)",
                    f"F.lp_pool{c}({name}.abs() + .1, 2, 2)"]
        if two:
            choices += [f"F.pixel_unshuffle({name}, 2)", f"F.channel_shuffle({name}, 1)", f"F.unfold({name}, 2)", f"F.interpolate({name}, scale_factor=0.5, mode='bicubic')", f"F.interpolate({name}, size=(3, 3), mode='area')", f"F.dropout2d({name}, 0.5, True)", f"F.interpolate({name}, size=(4, 9), mode='nearest-exact')", f"F.batch_norm(F.conv2d({name}, {weight}), {weight}[:, 0, 0, 0], {weight}[:, 0, 0, 0].abs() + 1) / 8"]
    b.emit(r.choice(choices), keep_raising=0.05)


def conversion(b):
    name = b.pick_exact() if b.random.random() < 0.7 else b.pick(is_float)
    if not name:
        return
    exact = b.depth[name] is not None
    with torch.no_grad():
        t = b.values[name].detach()
    targets = ["f32", "f64", "bf16", "f16"] + (["i64", "i32", "b8", "i16", "i8"] if exact else [])
    if exact and t.numel() and not t.dtype.is_complex and bool((t.nan_to_num(-1) >= 0).all()):
        targets.append("u8")
    target = b.random.choice(targets)
    if t.dtype.is_floating_point and target[0] in "iu" and t.numel() and not (t.isfinite().all() and t.abs().max() < 120):
        return
    text = b.random.choice((f"{name}.to({target})", f"{name}.type({target})", f"{name}.to({target}, copy=True)", f"{name}.to({name}.dtype)", f"{name}.type_as({name})", f"torch.zeros_like({name}, dtype={target}) + {name}", f"{name}.to({target}).to({name}.dtype)"))
    lossy = target in ("bf16", "f16")
    b.emit(text, b.depth_of(name, more=1 if lossy else 0) if exact and not (lossy and "+" in text) else None)


def creation(b):
    name, r = b.pick(), b.random
    t = b.values[name]
    shape = b.shape_text(t.shape).replace("D[", "self.D[") if False else str(tuple(t.shape))
    text, exact = r.choice(((f"torch.zeros_like({name})", True), (f"torch.ones_like({name})", True), (f"torch.full_like({name}, 2)", True), (f"{name}.new_zeros(3, 2)", True), (f"torch.arange({r.choice((0, 5, 17))})", True), (f"torch.arange(1, 9, 2.5)", True),
                            (f"torch.zeros({shape})", True), (f"torch.eye({r.choice((1, 4))})", True), (f"torch.linspace(0, 1, {r.choice((1, 5, 9))})", False), (f"torch.tensor([1.0, 2.5, -3])", True), (f"torch.tensor({r.choice(('3', '0.5', 'True', '[[1, 2]]'))})", True),
                            (f"torch.rand_like({name})", False), (f"torch.randn({shape})", False), (f"{name}.new_full((2,), 1.5)", True), (f"torch.full((), 7)", True), (f"torch.arange({name}.shape[0])", True), (f"torch.scalar_tensor(2.0)", True), (f"torch.empty_like({name}).fill_(1)", True),
                            (f"torch.tensor([0.5, -1], dtype=bf16)", True), (f"torch.ones((2, 3), dtype=i32)", True), (f"torch.empty_like({name}, memory_format=torch.contiguous_format).zero_()", True), (f"torch.bernoulli({name}.sigmoid())", False), (f"torch.tril(torch.ones(5, 5))", True), (f"torch.arange(10).view(2, 5)", True)))
    b.emit(text, 0 if exact else None)


def writing(b):
    r = b.random
    target = b.pick(lambda t: not t.dtype.is_complex)
    if not target:
        return
    t = b.values[target]
    n = t.dim()
    other = b.partner(target) if r.random() < 0.7 else "1"
    if other in b.values and b.values[other].dim() > n:
        return
    source = f"{other} * 1" if other == target else other  # a copy onto itself is no write
    part = r.choice(("", "[0]", "[1:]", "[..., 0]", "[:, 1:]", "[::2]", "[-1]", ".t()", ".view(-1)", "[..., None]")) if n else ""
    at = f"{target}{part}"
    exact = b.depth_of(target, other) is not None and b.depth_of(target, other) <= 1
    mask = f"{target} > 0" if b.depth[target] is not None else None
    choices = [(f"{target}.add_({other})", exact), (f"{target}.mul_(2)", exact), (f"{target}.copy_({source})" if other in b.values else f"{target}.fill_({other})", exact), (f"{at}.zero_()", True), (f"{at}.fill_(1)", True), (f"{target}.relu_()", True), (f"{target}.clamp_(-1, 1)", True),
               (f"{target} += {other}", exact), (f"{target} -= 1", exact), (f"{at}.mul_(0.5)", False), (f"{at}.add_(1)", exact), (f"{target}[{r.choice(('0', '1:', '-1', '...', '::2'))}] = {other}", exact), (f"{target}[...] = {r.choice(('0', '2.5'))}", True), (f"{at}.sub_({other})", exact), (f"{target}.neg_()", True), (f"{target}.sigmoid_()", False), (f"{target}.tanh_()", False),
               (f"torch.add({target}, 1, out={target})", exact), (f"{target}.div_(2)", False), (f"{target}.copy_({target} * 2)", exact), (f"{target}.exp_()", False), (f"{target}.set_(torch.ones(3))", True), (f"{target}.uniform_()", False), (f"{target}.detach().mul_(2)", exact), (f"{target}.data.add_(1)", exact), (f"{target} *= 0.5", exact), (f"{target}.lerp_({target} + 1, 0.5)", False),
               (f"{target}.addcmul_({target}, {target}, value=0.25)", False), (f"{target}.pow_(2)", False), (f"{target}.abs_()", True), (f"{target}.floor_()", exact), (f"F.relu({target}, inplace=True)", True), (f"{target}.normal_()", False), (f"{target}.square_()", False), (f"{target}.sqrt_()", False)]
    if n:
        d = b.dim(target)
        size = t.shape[d]
        if size:
            index = b.add_input(text=f"indices({r.randrange(99)} + call, (3,), {b.size_text(size)})")
            first = b.add_input(text=f"indices({r.randrange(99)} + call, (2,), {b.size_text(t.shape[0])})") if t.shape[0] else index
            choices += [(f"{target}.index_fill_({d}, {index}, 1)", True), (f"{target}[{first}] = 2", True), (f"{target}[{first}] += 1", exact), (f"{target}.index_put_(({first},), {target}.new_ones(()), accumulate=True)", exact), (f"{target}.narrow({d}, 0, 1).add_(1)", exact), (f"{target}.select({d}, 0).copy_({target}.select({d}, -1))", exact), (f"{target}[{first} + 1] = 0", exact), (f"{target}.index_add_({d}, {index}, {target}.index_select({d}, {index}))", False), (f"{target}.scatter_({d}, {index}.view({', '.join(['-1' if i == d % n else '1' for i in range(n)])}), 1)", exact)]
    if mask:
        choices += [(f"{target}.masked_fill_({mask}, 0.5)", is_float(t)), (f"{target}[{mask}] = 0", True), (f"{target}.copy_(torch.where({mask}, {target}, 0))", True)]
    if n >= 2:
        choices += [(f"{target}.diagonal().fill_(1)", True), (f"{target}.fill_diagonal_(2)", True), (f"{target}.triu_()", True), (f"{target}.transpose(0, 1)[0].add_(1)", exact), (f"{target}.t().copy_({target})", exact)]
    text, still = r.choice(choices)
    if text.split("(")[0].endswith("set_"):
        return
    if b.gradients and ".data." in text and not is_float(t):
        return  # eager's gradients of losses take indices as they are by then, and may write anywhere
    b.statement(text, target, still)


def breaking(b):
    name = b.pick(lambda t: t.numel() > 0 and not t.dtype.is_complex)
    if not name or b.random.random() < 0.5:
        return
    r = b.random
    exact = b.depth[name] is not None
    choices = [f"{name} * len({name}.shape)", f"{name}.reshape([s for s in {name}.shape])", f"[{name} + i for i in range(3)][-1]", f"(lambda x, y=2: x * y)({name})", f"max([{name}, {name}.t()] if False else [{name}], key=lambda t: t.dim())", f"{name} if {name}.shape[0] > 3 else {name} + 1"]
    if exact:
        choices += [f"{name} + {name}.flatten()[0].item()", f"{name} + 1 if ({name} > 0).any() else {name} - 1", f"{name} * float({name}.max())", f"torch.tensor({name}.tolist())", f"{name}[torch.nonzero({name})[:, 0]]" if b.values[name].dim() else name]
    b.emit(r.choice(choices), None)


FAMILIES = ((unary_smooth, 10), (unary_exact, 8), (unary_integer, 5), (binary, 10), (binary_discontinuous, 6), (reduction, 11), (view, 14), (indexing, 7), (joining, 4), (product, 4), (network, 5), (conversion, 5), (creation, 3), (writing, 9), (breaking, 1))
