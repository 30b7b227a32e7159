"""Eager with other kernels, or with rounding errors inside: what tells a wrong answer from one that is as good as eager's."""

import contextlib

import torch
from torch.nn import functional
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

SCALAR_KERNELS = ("hardtanh", "hardswish", "relu6", "elu", "celu", "selu", "softshrink", "hardshrink")  # with gradients at NaN that eager's vectorised kernels do not give
NORMS = ("batch_norm", "instance_norm")  # whose gradients eager gets wrong for one image with strides of two layouts
OF_LIBRARY = ("gelu",)  # NaN of infinity where oneDNN computes it
OTHERS = (*SCALAR_KERNELS, *NORMS, *OF_LIBRARY)


def _in_order(tensor):
    """A copy with the strides of a new tensor."""
    return torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)


def _vectorised(function):
    """The operand is followed by copies of it, so that none of its elements are the rest that scalar code does."""
    return lambda tensor, *args, **kwargs: function(torch.stack([_in_order(tensor)] * 64), *args, **kwargs)[0]


class _InOrder(torch.autograd.Function):
    """The tensor itself, whose gradient gets the strides of a new tensor."""

    @staticmethod
    def forward(ctx, tensor):
        return tensor.clone()

    @staticmethod
    def backward(ctx, gradient):
        return _in_order(gradient)


def _of_one_layout(function):
    return lambda tensor, *args, **kwargs: _InOrder.apply(function(_in_order(tensor), *args, **kwargs))


def _without_library(function):
    def called(*args, **kwargs):
        with torch.backends.mkldnn.flags(enabled=False):
            return function(*args, **kwargs)

    return called


def _other(name):
    return _vectorised if name in SCALAR_KERNELS else _of_one_layout if name in NORMS else _without_library


@contextlib.contextmanager
def other_kernels():
    """Eager without what docs/limits.md says of some kernels: compiled regions do what its other ones do."""
    eager = {name: getattr(functional, name) for name in OTHERS}
    try:
        for name, function in eager.items():
            setattr(functional, name, _other(name)(function))
        yield
    finally:
        for name, function in eager.items():
            setattr(functional, name, function)


def _other_mean(function):
    """Where eager gives NaN, what a sum gives, and NaN where eager gives an infinity."""

    def spread_and_mean(tensor, dim, **options):
        spread, mean = function(tensor, dim, **options)
        by_sum = tensor.mean(dim, keepdim=options.get("keepdim", False))
        return spread, torch.where(mean.isinf(), torch.nan, by_sum)

    return spread_and_mean


def _other_product(prod):
    """Where eager gives NaN of finite numbers, what the logarithms of these give: no product of some of them overflows."""

    def product(tensor, *args, **kwargs):
        result = prod(tensor.contiguous(), *args, **kwargs)
        if not tensor.dtype.is_floating_point or not tensor.isfinite().all():
            return result
        sign = prod(tensor.sign().double(), *args, **kwargs)
        exponent = tensor.double().abs().log2().sum(*args, **kwargs)
        return torch.where(result.isnan(), (sign * exponent.exp2()).nan_to_num(0).to(result.dtype), result)

    return product


@contextlib.contextmanager
def other_orders():
    """Eager that takes elements in another order. A product that passes the largest number on its way to 0 is 0 or NaN, and the
    mean that var_mean gives of data with an infinity is this infinity or NaN."""
    prod, means = torch.Tensor.prod, {name: getattr(torch, name) for name in ("var_mean", "std_mean")}
    torch.Tensor.prod = _other_product(prod)
    for name, function in means.items():
        setattr(torch, name, _other_mean(function))
    try:
        yield
    finally:
        torch.Tensor.prod = prod
        for name, function in means.items():
            setattr(torch, name, function)


class NarrowDraws(TorchDispatchMode):
    """Eager that draws random numbers of float64 as it draws those of float32."""

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        aten = torch.ops.aten
        if operator in (aten.normal_.default, aten.uniform_.default, aten.exponential_.default) and args[0].dtype == torch.float64:
            return args[0].copy_(operator(args[0].float(), *args[1:], **kwargs))
        made = (aten.rand_like.default, aten.randn_like.default, aten.randn.default, aten.rand.default)
        if operator in made and (kwargs.get("dtype") or (args[0].dtype if isinstance(args[0], torch.Tensor) else torch.get_default_dtype())) == torch.float64:
            return operator(*args, **{**kwargs, "dtype": torch.float32}).double()
        return operator(*args, **kwargs)


NARROW = (torch.float16, torch.bfloat16, torch.float32)


class MovedSteps(TorchDispatchMode):
    """Eager whose results are larger or smaller by a bit, where they were rounded: equal elements in the same direction."""

    def __init__(self, seed):
        super().__init__()
        self.chance = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        made = operator(*args, **kwargs)
        given = {t.untyped_storage().data_ptr() for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        results = [t for t in pytree.tree_leaves(made) if isinstance(t, torch.Tensor)]
        is_random = torch.Tag.nondeterministic_seeded in operator.tags  # and would draw other numbers a second time
        if is_random or not any(t.dtype in NARROW and t.numel() for t in results) or any(t.untyped_storage().data_ptr() in given for t in results):
            return made
        try:
            exact = [t for t in pytree.tree_leaves(operator(*_widened(args), **_widened(kwargs))) if isinstance(t, torch.Tensor)]
        except (RuntimeError, NotImplementedError):
            return made
        for result, wide in zip(results, exact):
            if result.dtype in NARROW and result.shape == wide.shape and not torch.equal(result.double().nan_to_num(), wide.double().nan_to_num()):
                values, places = torch.unique(result, return_inverse=True)
                steps = torch.randint(-1, 2, values.shape, generator=self.chance)[places]
                result.copy_(result.double() * (1 + 0.75 * torch.finfo(result.dtype).eps * steps))
        return made


def _widened(tree):
    def wide(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.double() if leaf.dtype.is_floating_point else leaf
        return torch.float64 if leaf in NARROW else leaf

    return pytree.tree_map(wide, tree)


class _Rounded(torch.autograd.Function):
    """The tensor with a random relative error, and its gradient with another one."""

    @staticmethod
    def forward(ctx, tensor, error):
        ctx.error = error
        return tensor * (1 + error * torch.randn_like(tensor))

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (1 + ctx.error * torch.randn_like(gradient)), None


def _normalised(tensor, dimensions, eps, error):
    """(tensor - mean) / deviation over `dimensions`. Each use of the tensor has its own error, so that gradients whose exact
    value is 0, such as those of a single element, get the rounding error that a kernel makes."""
    centred = _Rounded.apply(tensor, error) - _Rounded.apply(tensor.mean(dimensions, keepdim=True), error)
    return centred * (centred.square().mean(dimensions, keepdim=True) + eps).rsqrt()


def _layer_norm(error):
    def layer_norm(tensor, normalized_shape, weight=None, bias=None, eps=1e-5):
        result = _normalised(tensor, list(range(-len(normalized_shape), 0)), eps, error)
        result = result if weight is None else result * weight
        return result if bias is None else result + bias

    return layer_norm


def _group_norm(error):
    def group_norm(tensor, num_groups, weight=None, bias=None, eps=1e-5):
        grouped = tensor.reshape(tensor.shape[0], num_groups, -1)
        result = _normalised(grouped, [-1], eps, error).reshape(tensor.shape)
        channels = [-1] + [1] * (tensor.dim() - 2)
        result = result if weight is None else result * weight.reshape(channels)
        return result if bias is None else result + bias.reshape(channels)

    return group_norm


@contextlib.contextmanager
def norms_with_rounding(error):
    """Eager whose layer and group norms make a relative error of `error` at each step, as kernels of a coarser type do."""
    eager = functional.layer_norm, functional.group_norm
    functional.layer_norm, functional.group_norm = _layer_norm(error), _group_norm(error)
    try:
        yield
    finally:
        functional.layer_norm, functional.group_norm = eager
