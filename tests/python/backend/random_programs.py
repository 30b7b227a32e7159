"""Programs of ATen operators from a seed: odd shapes, strides and types, reductions, broadcasting, gathers, cat, pad."""

import random

import torch

from graph_programs import Program

SIZES = (1, 1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 65, 100, 127, 130)
FLOATS = (torch.float32, torch.float32, torch.bfloat16, torch.float16, torch.float64)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
UNARY = ("relu", "sigmoid", "tanh", "exp", "gelu", "silu", "abs", "neg", "sin", "cos", "rsqrt", "erf", "floor", "round", "sign", "expm1", "log1p", "square")
BINARY = ("add.Tensor", "sub.Tensor", "mul.Tensor", "maximum", "minimum", "div.Tensor")
COMPARISONS = ("gt.Tensor", "le.Tensor", "eq.Tensor", "ne.Tensor")
MOST_ELEMENTS = 20000


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.torch = torch.Generator().manual_seed(seed)
        self.program = Program()
        self.tensors = []

    def run(self):
        for _ in range(self.random.randint(1, 3)):
            self.keep(self.program.input(self.strided(self.data(self.shape(), self.dtype()))))
        for _ in range(self.random.randint(2, 9)):
            self.step()
        outputs = self.tensors[-2:] if len(self.program.lines) > 1 else self.tensors[-1:]
        return self.program, [t for t in outputs if all(t is not x for _, x in self.program.inputs)]

    def keep(self, tensor):
        self.tensors.append(tensor)

    def pick(self):
        return self.random.choice(self.tensors[-4:])

    def dtype(self):
        return self.random.choice(FLOATS if self.random.random() < 0.75 else INTEGERS)

    def shape(self):
        rank = self.random.choice((0, 1, 2, 2, 3, 3, 4))
        shape = [self.random.choice(SIZES) for _ in range(rank)]
        while torch.Size(shape).numel() > MOST_ELEMENTS:
            shape[shape.index(max(shape))] //= 4
        if rank and self.random.random() < 0.04:
            shape[self.random.randrange(rank)] = 0
        return shape

    def data(self, shape, dtype):
        if dtype.is_floating_point:
            return torch.randn(shape, generator=self.torch, dtype=torch.float32).to(dtype)
        return torch.randint(0, 9, shape, generator=self.torch).to(dtype)

    def strided(self, tensor):
        """The same elements with other strides: transposed, with gaps, expanded."""
        kind = self.random.random()
        if tensor.dim() >= 2 and kind < 0.3:
            order = self.random.sample(range(tensor.dim()), tensor.dim())
            inverse = [order.index(k) for k in range(tensor.dim())]
            return tensor.permute(order).contiguous().permute(inverse)
        if tensor.dim() >= 1 and kind < 0.4:
            wide = torch.zeros([*tensor.shape[:-1], tensor.shape[-1] + 3], dtype=tensor.dtype)
            wide[..., 1:tensor.shape[-1] + 1] = tensor
            return wide[..., 1:tensor.shape[-1] + 1]
        if tensor.dim() >= 1 and kind < 0.5 and tensor.shape[0] > 1:
            return tensor[:1].expand(tensor.shape)
        return tensor

    def call(self, name, *arguments, **named):
        result = self.program.call(name, *arguments, **named)
        self.keep(result if isinstance(result, torch.Tensor) else result[0])

    def floating(self, tensor):
        if tensor.dtype.is_floating_point:
            return tensor
        self.call("_to_copy", tensor, dtype=torch.float32)
        return self.tensors[-1]

    def partner(self, tensor):
        """A tensor that broadcasts with `tensor` and has its type."""
        shape = list(tensor.shape)
        for k in range(len(shape)):
            if self.random.random() < 0.3:
                shape[k] = 1
        return self.program.input(self.strided(self.data(shape[self.random.randrange(len(shape) + 1):], tensor.dtype)))

    def step(self):
        self.random.choice(
            (self.unary, self.unary, self.unary, self.binary, self.binary, self.binary, self.reduction, self.reduction, self.comparison,
             self.permutation, self.cast, self.normalization, self.gather, self.joined, self.padded, self.position, self.scan)
        )()

    def unary(self):
        x = self.pick()
        name = self.random.choice(UNARY)
        if not x.dtype.is_floating_point and name not in ("abs", "neg", "relu", "sign"):
            x = self.floating(x)
        if x.dtype == torch.bool:
            x = self.floating(x)
        if name in ("rsqrt", "log1p"):
            self.call("abs", x)
            self.call("add.Scalar", self.tensors[-1], 0.5)
            x = self.tensors[-1]
        if name == "exp":
            self.call("clamp", x, -3, 3)
            x = self.tensors[-1]
        self.call(name, x)

    def binary(self):
        x = self.pick()
        if x.dtype == torch.bool:
            return
        name = self.random.choice(BINARY)
        y = self.partner(x)
        if name == "div.Tensor":
            x, y = self.floating(x), self.floating(y)
            self.call("abs", y)
            self.call("add.Scalar", self.tensors[-1], 0.5)
            y = self.tensors[-1]
        self.call(name, x, y)

    def comparison(self):
        x = self.pick()
        if x.dtype == torch.bool:
            return
        y = self.partner(x)
        self.call(self.random.choice(COMPARISONS), x, y)
        self.call("where.self", self.tensors[-1], x, y)

    def reduction(self):
        x = self.pick()
        if x.dim() == 0 or x.numel() == 0:
            return
        dims = sorted(self.random.sample(range(x.dim()), self.random.randint(1, x.dim())))
        keep = self.random.random() < 0.5
        name = self.random.choice(("sum.dim_IntList", "mean.dim", "amax", "amin", "any.dim", "var.correction", "prod.dim_int"))
        if name in ("mean.dim", "var.correction"):
            x = self.floating(x)
        if name == "var.correction":
            return self.call(name, x, dims, correction=0, keepdim=keep)
        if name in ("any.dim", "prod.dim_int"):
            if name == "prod.dim_int":
                x = self.floating(x)
                self.call("tanh", x)
                x = self.tensors[-1]
            return self.call(name, x, dims[0], keep)
        if name.startswith("am"):
            return self.call(name, x, dims, keep)
        self.call(name, x, dims, keep)

    def scan(self):
        """From the beginning or, as gradients of scans do, from the end."""
        x = self.pick()
        if x.dim() == 0:
            return
        name, dim = self.random.choice(("cumsum", "cumsum", "cumprod", "logcumsumexp")), self.random.randrange(x.dim())
        if name != "cumsum":
            x = self.floating(x)
        if name == "cumprod":
            self.call("tanh", x)
            x = self.tensors[-1]
        from_end = self.random.random() < 0.3
        if from_end:
            self.call("flip", x, [dim])
            x = self.tensors[-1]
        self.call(name, x, dim)
        if from_end:
            self.call("flip", self.tensors[-1], [dim])

    def position(self):
        x = self.pick()
        if x.dim() == 0 or x.numel() == 0 or x.dtype in (torch.bool,):
            return
        self.call(self.random.choice(("argmax", "argmin")), x, self.random.randrange(x.dim()), self.random.random() < 0.5)

    def permutation(self):
        x = self.pick()
        if x.dim() < 2:
            return
        self.call("permute", x, self.random.sample(range(x.dim()), x.dim()))
        self.call("clone", self.tensors[-1], memory_format=torch.contiguous_format)

    def cast(self):
        x = self.pick()
        to = self.dtype()
        if x.dtype.is_floating_point and not to.is_floating_point:
            self.call("clamp", x, 0, 100)
            x = self.tensors[-1]
        self.call("_to_copy", x, dtype=to)

    def normalization(self):
        x = self.pick()
        if x.dim() == 0 or x.numel() == 0:
            return
        x = self.floating(x)
        name = self.random.choice(("_softmax", "_log_softmax", "native_layer_norm"))
        if name != "native_layer_norm":
            return self.call(name, x, self.random.randrange(x.dim()), False)
        n = x.shape[-1]
        w = self.program.input(self.data([n], x.dtype))
        self.call(name, x, [n], w, None, 1e-5)

    def gather(self):
        x = self.pick()
        if x.dim() == 0 or x.numel() == 0:
            return
        dim = self.random.randrange(x.dim())
        index = torch.randint(0, x.shape[dim], (self.random.choice((1, 3, 17)),), generator=self.torch)
        self.call("index_select", x, dim, self.program.input(index))

    def joined(self):
        x = self.pick()
        if x.dim() == 0 or x.numel() * 3 > MOST_ELEMENTS:
            return
        y = self.program.input(self.strided(self.data(list(x.shape), x.dtype)))
        self.call("cat", [x, y, x], self.random.randrange(x.dim()))

    def padded(self):
        x = self.pick()
        if x.dim() == 0 or x.numel() > MOST_ELEMENTS:
            return
        self.call("constant_pad_nd", x, [self.random.randint(0, 3), self.random.randint(0, 2)], 1)
