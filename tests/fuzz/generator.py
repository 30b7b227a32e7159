"""Makes random tensor programs from seeds. A program is built line by line and run in eager meanwhile, so that what
a line needs (shapes, types) is known; a line that raises is mostly dropped, and now and then kept as the last one.

Every value has a *depth*: how many roundings it may carry, or None for "not exact". Comparisons, roundings to
integers and sorting are drawn for exact values only: for others the two answers may rightly differ.
"""

import random

import torch

from program import NAME_OF, Line, Program, load

SIZES = (1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 100, 129)
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
MOST_ELEMENTS = 40_000
MOST_DEPTH = 3


class Builder:
    def __init__(self, seed, gradients=False):
        self.seed = seed
        self.gradients = gradients  # some of the inputs require grad, and the lines run with it
        self.random = random.Random(seed)
        r = self.random
        base = [r.choice(SIZES) for _ in range(3)]
        if r.random() < 0.06:
            base[0] = 0
        if r.random() < 0.04:
            base[1] = r.choice((1000, 1023, 4097))
        other = list(base)
        other[0] = r.choice(SIZES) if r.random() < 0.5 else base[0]
        self.sizes = [base, base, other]
        self.inputs, self.lines = [], []
        self.names = []  # of tensors, oldest first
        self.values = {}
        self.depth = {}
        self.alias = {}  # name -> group of names that may share memory
        self.space = load(Program(seed, self.sizes, [], [], ["0"], "no_grad"))
        self.space.update(D=base, call=0)
        self.raises = False

    # ---- inputs ----

    def size_text(self, size):
        sizes = self.sizes[0]
        return f"D[{sizes.index(size)}]" if size in sizes and size > 1 else str(size)

    def shape_text(self, shape):
        return "(" + "".join(self.size_text(s) + ", " for s in shape) + ")"

    def grad_mode(self):
        return torch.set_grad_enabled(self.gradients)

    def input_dtype(self):
        r = self.random.random() * (0.85 if self.gradients else 1)
        for limit, name in ((0.6, "f32"), (0.7, "f64"), (0.77, "bf16"), (0.82, "f16"), (0.89, "i64"), (0.92, "i32"), (0.94, "u8"), (0.95, "i8"),
                            (0.96, "i16"), (0.99, "b8"), (1, "c64")):
            if r < limit:
                return name
        return "f32"

    def add_input(self, shape=None, dtype=None, text=None, depth=0, plain=False):
        name = f"a{len(self.inputs)}"
        r = self.random
        if text is None:
            if shape is None:
                shape = [r.choice(self.sizes[0] + [1]) for _ in range(r.choice((0, 1, 2, 2, 2, 3, 3, 4)))]
                while torch.Size(shape).numel() > MOST_ELEMENTS:
                    shape.pop()
            dtype = dtype or self.input_dtype()
            special = ", special=True" if r.random() < 0.04 else ""
            kind = 1 if plain else r.random()
            seed = f"{r.randrange(1000)} + call"
            text = f"values({seed}, {self.shape_text(shape)}, {dtype}{special})"
            if special:
                depth = 0
            if len(shape) >= 2 and kind < 0.15:
                order = list(range(len(shape)))
                r.shuffle(order)
                stored = [0] * len(shape)
                for i, at in enumerate(order):
                    stored[at] = shape[i]
                text = f"values({seed}, {self.shape_text(stored)}, {dtype}{special}).permute({tuple(order)})"
            elif shape and kind < 0.22:
                at = r.randrange(len(shape))
                wide = "".join((f"2 * {self.size_text(s)} + 1" if i == at else self.size_text(s)) + ", " for i, s in enumerate(shape))
                cut = ", ".join(f"1:1 + 2 * {self.size_text(s)}:2" if i == at else ":" for i, s in enumerate(shape))
                text = f"values({seed}, ({wide}), {dtype}{special})[{cut}]"
            elif shape and kind < 0.27:
                at = r.randrange(len(shape))
                thin = "".join(("1" if i == at else self.size_text(s)) + ", " for i, s in enumerate(shape))
                text = f"values({seed}, {thin and '(' + thin + ')'}, {dtype}{special}).expand({self.shape_text(shape)})"
            elif len(shape) == 4 and kind < 0.6:
                text += ".to(memory_format=torch.channels_last)"
        if self.gradients and not self.uses(text) and dtype in ("f32", "f64", "bf16", "f16", "c64") and r.random() < 0.75:
            text = f"{r.choice(('leaf', 'leaf', 'leaf', 'result'))}({text})"
        line = Line(f"{name} = {text}", name, self.uses(text))
        exec(line.text, self.space)
        self.inputs.append(line)
        self.adopt(name, self.space[name], depth, self.uses(text))
        return name

    def uses(self, text):
        import re

        return frozenset(n for n in re.findall(r"\b[av]\d+\b", text))

    def adopt(self, name, value, depth, sources):
        self.names.append(name)
        self.values[name] = value
        self.depth[name] = depth
        self.alias[name] = {name}
        for source in sources:
            other = self.values.get(source)
            if isinstance(other, torch.Tensor) and other.untyped_storage()._cdata == value.untyped_storage()._cdata:
                group = self.alias[source] | self.alias[name]
                for member in group:
                    self.alias[member] = group

    # ---- choosing ----

    def pick(self, wanted=lambda t: True, tries=30):
        """The name of a tensor, recent ones more often, or None."""
        for _ in range(tries):
            at = int(len(self.names) * max(self.random.random(), self.random.random()))
            name = self.names[min(at, len(self.names) - 1)]
            if wanted(self.values[name]):
                return name
        return None

    def pick_exact(self, wanted=lambda t: True):
        return self.pick(lambda t: wanted(t) and any(self.values[n] is t and self.depth[n] is not None for n in self.names))

    def dim(self, name):
        n = self.values[name].dim()
        at = self.random.randrange(n)
        return at - n if self.random.random() < 0.4 else at

    def partner(self, name, exact=False):
        """Something that broadcasts with a tensor: another one, part of itself, a new input, a number."""
        r, t = self.random, self.values[name]

        def fits(other):
            try:
                return torch.broadcast_shapes(t.shape, other.shape).numel() <= MOST_ELEMENTS
            except RuntimeError:
                return False

        kind = r.random()
        if kind < 0.15:
            return r.choice(("2", "0.5", "-3", "1.25", "True") if t.dtype.is_floating_point else ("2", "3", "-1", "0.5"))
        found = (self.pick_exact if exact else self.pick)(fits)
        if found and kind < 0.8:
            return found
        if kind < 0.9 and t.dim() and t.shape[0]:
            return f"{name}[{r.choice((':1', '0', '-1'))}]"
        shape = [s if r.random() < 0.7 else 1 for s in t.shape][r.choice((0, 0, 1)) if t.dim() > 1 else 0 :]
        return self.add_input(shape, NAME_OF.get(t.dtype, "f32") if r.random() < 0.8 else None)

    # ---- lines ----

    def emit(self, text, depth=None, keep_raising=0.03):
        """Adds ``v = text``; returns the name, or None if eager raises (then the line is mostly left out)."""
        name = f"v{len(self.lines)}"
        try:
            with self.grad_mode():
                value = eval(text, self.space)
        except Exception:
            if self.random.random() < keep_raising:
                self.lines.append(Line(f"{name} = {text}", name, self.uses(text)))
                self.raises = True
            return None
        if not isinstance(value, torch.Tensor) or value.numel() > MOST_ELEMENTS or value.layout != torch.strided:
            return None
        if value.dtype.is_floating_point and value.numel():
            with torch.no_grad():  # the base of a view may have been written to, which then has no gradient
                finite = value.detach()[value.detach().isfinite()]
            if finite.numel() and finite.abs().max() > 500:
                try:
                    text, value = f"({text}).clamp(-60, 60)", value.clamp(-60, 60)
                except RuntimeError:
                    return None
        self.space[name] = value
        self.lines.append(Line(f"{name} = {text}", name, self.uses(text)))
        if not (value.dtype.is_floating_point or value.dtype.is_complex):
            depth = 0 if depth is not None or all(self.depth.get(u) is not None for u in self.uses(text)) else None
        elif depth is not None and depth > MOST_DEPTH:
            depth = None
        self.adopt(name, value, depth, self.uses(text))
        return name

    def statement(self, text, target, exact, keep_raising=0.3):
        """Adds a statement that writes to a tensor, if eager lets it."""
        try:
            backup = self.values[target].detach().clone()
            with self.grad_mode():
                exec(text, self.space)
        except Exception:
            if self.random.random() < keep_raising:
                self.lines.append(Line(text, "", self.uses(text)))
                self.raises = True
            return
        value = self.values[target]
        with torch.no_grad():  # a view made without grad cannot be read with it, once its base was written to
            if value.dtype.is_floating_point and value.numel() and (value.nan_to_num(0, 0, 0).abs().max() > 500 or not value.isfinite().all() and backup.isfinite().all()):
                value.copy_(backup)
                return
        self.lines.append(Line(text, "", self.uses(text)))
        if not exact:
            for member in self.alias[target]:
                self.depth[member] = None

    def depth_of(self, *texts, more=0):
        """The depth of what is computed exactly from these, or None."""
        most = 0
        for text in texts:
            for name in self.uses(text):
                if self.depth.get(name) is None:
                    return None
                if more and self.values[name].dtype in (torch.bfloat16, torch.float16):
                    return None
                most = max(most, self.depth[name])
        return most + more


def is_float(t):
    return t.dtype in FLOATS


def generate(seed, gradients=False):
    import generator_gradients
    from generator_lines import FAMILIES

    if gradients:
        FAMILIES = generator_gradients.FAMILIES
    builder = Builder(seed, gradients)
    r = builder.random
    for _ in range(r.choice((1, 1, 2, 2, 3))):
        builder.add_input()
    if r.random() < 0.08:
        name = r.choice(builder.names)
        dims = builder.values[name].dim()
        text = r.choice((name, f"{name}[1:]" if dims else name, f"{name}.t()" if dims <= 2 else name, f"{name}.view(-1)", f"{name}.detach()"))
        try:
            builder.add_input(text=text)
        except Exception:
            builder.space.pop(f"a{len(builder.inputs)}", None)
    families, weights = zip(*FAMILIES)
    length = r.choice((1, 2, 3, 4, 6, 8, 10, 12, 15, 20))
    for _ in range(length * 6):
        if len(builder.lines) >= length or builder.raises:
            break
        r.choices(families, weights)[0](builder)
    made = [n for n in builder.names if n.startswith("v")]
    outputs = [made[-1]] if made else [builder.names[-1]]
    for name in made + builder.names[:1]:
        if r.random() < 0.25 and name not in outputs:
            outputs.append(name)
    mode = "grad" if gradients else r.choice(("no_grad", "no_grad", "inference_mode", "grad"))
    aliased = any("a" + str(i) in line.uses for line in builder.inputs for i in range(9))
    weights = 0
    if not aliased and len(builder.inputs) > 1 and r.random() < 0.3 and mode != "inference_mode":
        weights = r.randrange(1, len(builder.inputs))
        if any(not is_float(builder.values[line.defines]) for line in builder.inputs[:weights]):
            weights = 0
    options = {"freezing": False} if weights and r.random() < 0.2 else {"fusion": False} if r.random() < 0.1 else {}
    backward = generator_gradients.backward_passes(builder, outputs) if gradients else []
    return Program(seed, builder.sizes, builder.inputs, builder.lines, outputs, mode, weights, options, backward)
