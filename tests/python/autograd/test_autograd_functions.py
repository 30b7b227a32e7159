"""torch.autograd.Function inside of compiled functions."""

import gc

import torch
import torch.nn as nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

import oxyfuel
from eager_comparison import outcome, program


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x.sin() * scale

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return gradient * x.cos() * ctx.scale * 2, None  # not the true gradient: it must be this one


class Clamped(Function):
    @staticmethod
    def forward(x, low, high=None):
        inside = (x > low) if high is None else (x > low) & (x < high)
        return torch.where(inside, x, torch.zeros_like(x)), inside

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, low, *_ = inputs
        values, inside = output
        ctx.mark_non_differentiable(inside)
        ctx.save_for_backward(inside, low if isinstance(low, torch.Tensor) else None)
        ctx.low = low

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient, of_mask):
        inside, _ = ctx.saved_tensors
        return gradient * inside, None, None


class TwoResults(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.set_materialize_grads(False)
        y = a * b
        ctx.save_for_backward(a, b, y)
        return y, a + b, "text"

    @staticmethod
    def backward(ctx, gy, gs, gt):
        a, b, y = ctx.saved_tensors
        if gy is None:
            return gs, gs
        if gs is None:
            return gy * b + y * 0, gy * a
        return gy * b + gs, gy * a + gs


class Rounded(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@program(whole=True, grad=True)
def test_forward_and_backward(compile):
    w = leaf(1.0, 2.0, 3.0)

    @compile
    def f(x, scale):
        return Scaled.apply(w * x, scale).sum() + x.sum()

    results = [f(torch.arange(3.0), scale) for scale in (2, 3.0)]
    for result in results:
        result.backward()
    with torch.no_grad():
        results.append(f(torch.arange(3.0), 2))
    return [r.detach() for r in results], w.grad, results[-1].requires_grad


@program(whole=True, grad=True)
def test_inside_of_a_step(compile):
    w = leaf(1.0, 2.0, 3.0)

    @compile
    def f(x):
        loss = Scaled.apply(w * x, 2).sum()
        loss.backward()
        (g,) = torch.autograd.grad(Rounded.apply(w * 1.4).sum(), w)
        return loss.detach(), g

    return [f(torch.arange(3.0)) for _ in range(2)], w.grad


@program(grad=True)
def test_setup_context(compile):
    x = leaf(-1.0, 0.5, 2.0)

    @compile
    def f(x):
        values, inside = Clamped.apply(x, 0.0, 1.0)
        return values * 2, inside

    values, inside = f(x)
    values.sum().backward()
    return values.detach(), inside, inside.requires_grad, x.grad


@program(whole=True, grad=True)
def test_several_results(compile):
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)

    @compile
    def f(which):
        y, s, text = TwoResults.apply(a, b)
        assert text == "text"
        return (y, s, y + s)[which]

    for which in range(3):
        f(which).sum().backward()
    return a.grad, b.grad


@program(whole=True, grad=True)
def test_a_module_with_a_function(compile):
    class Quantised(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            return Rounded.apply(self.linear(x) * 4) / 4

    torch.manual_seed(0)
    model = Quantised()
    f = compile(model)
    f(torch.arange(6.0).reshape(2, 3)).square().sum().backward()
    return [p.grad for p in model.parameters()]


@program(whole=True, grad=True)
def test_gradients_of_gradients_inside(compile):
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, gradient):
            return 3 * ctx.saved_tensors[0] ** 2 * gradient

    w = leaf(1.0, 2.0)

    @compile
    def f(x):
        (g,) = torch.autograd.grad(Cube.apply(w * x).sum(), w, create_graph=True)
        return g.square().sum()

    f(torch.ones(2)).backward()
    return w.grad


COUNTS = {"forward": 0, "backward": 0}


@program(grad=True)
def test_side_effects(compile):
    class Counted(Function):
        @staticmethod
        def forward(ctx, x):
            COUNTS["forward"] += 1
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            COUNTS["backward"] += 1
            return gradient * 2

    w = leaf(1.0, 2.0)
    COUNTS.update(forward=0, backward=0)
    f = compile(lambda: Counted.apply(w).sum())
    log = []
    for _ in range(2):
        y = f()
        log.append(dict(COUNTS))
        y.backward()
        log.append(dict(COUNTS))
    return log, w.grad


@program(grad=True)
def test_functions_that_are_left_to_eager(compile):
    class InPlace(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 3

    class Flipped(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 5

    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            raise ValueError("in backward")

    class TooMany(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient, gradient

    log = []
    for function in (InPlace, Same, Flipped, Failing, TooMany):
        w = leaf(1.0, 2.0)
        y = outcome(compile(lambda x, function=function: function.apply(x * 1).sum()), w)
        error = outcome(y[1].backward)
        log.append((y[1].detach(), error[:3], w.grad))
    return log


@program(grad=True)
def test_saved_tensors_that_are_written(compile):
    w = leaf(1.0, 2.0)

    @compile
    def f(x):
        y = w * 1
        z = Scaled.apply(y, 2)
        y.add_(1)
        return z.sum()

    return outcome(f(torch.ones(2)).backward)[:3]


def test_a_function_is_one_graph():
    w = leaf(1.0, 2.0, 3.0)
    f = oxyfuel.compile(lambda x: Scaled.apply(w * x, 2).sum(), fullgraph=True)
    f(torch.ones(3)).backward()
    assert oxyfuel.metrics()["graphs"] == 1


@program(whole=True, grad=True)
def test_saved_results(compile):
    class Exponential(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0]

    w = leaf(1.0, 2.0)
    compile(lambda: Exponential.apply(w).sum())().backward()
    # The contexts of a capture end with it.
    gc.collect()
    assert not [o for o in gc.get_objects() if type(o).__name__ == "FunctionContext"]
    return w.grad


@program(grad=True)
def test_what_few_contexts_have(compile):
    """Only some releases of PyTorch let a function choose the types of its gradients."""

    class Chooses(Function):
        @staticmethod
        def forward(ctx, x):
            if hasattr(ctx, "set_output_grad_dtype"):
                ctx.set_output_grad_dtype(torch.float64)
            ctx.factor = getattr(ctx, "no such thing", 4)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient.float() * ctx.factor * (3 if gradient.dtype == torch.float64 else 5)

    w = leaf(1.0, 2.0)
    compile(lambda: Chooses.apply(w).sum())().backward()
    return w.grad
