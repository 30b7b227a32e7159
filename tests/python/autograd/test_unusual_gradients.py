"""Gradients that are no plain tensors of floats: sparse, batched, complex ones."""

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import oxyfuel
from eager_comparison import outcome, program

BACKENDS = pytest.mark.parametrize("backend", ["native", "eager"])
X = torch.tensor([0.1, 0.2, 0.3])
LINEAR = nn.Linear(3, 3)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 * ctx.saved_tensors[0]


def vmapped(f, x):
    y = f(x)
    return torch.vmap(lambda v: torch.autograd.grad(y, x, v)[0])(torch.eye(3))


def batched(f, x):
    return torch.autograd.grad(f(x), x, torch.eye(3), is_grads_batched=True)[0]


def several(f, x):
    a, b = f(x), f(x + 1)
    return torch.autograd.grad((a, b), x, (torch.eye(3), 2 * torch.eye(3)), is_grads_batched=True)[0]


@BACKENDS
@pytest.mark.parametrize("f", [lambda x: x.sin() * 2, LINEAR, lambda x: F.softmax(x * x, 0), lambda x: F.dropout(x, 0.5).cos()])
@pytest.mark.parametrize("derive", [
    batched, vmapped, several,
    lambda f, x: torch.autograd.functional.jacobian(f, x, vectorize=True),
    lambda f, x: torch.autograd.functional.hessian(lambda x: f(x).sum(), x, vectorize=True),
])  # fmt: skip
def test_batched_gradients(backend, f, derive):
    def run(f):
        torch.manual_seed(3)
        return derive(f, X.clone().requires_grad_())

    assert torch.allclose(run(oxyfuel.compile(f, backend=backend)), run(f))


@BACKENDS
def test_batched_gradients_are_checked(backend):
    compiled = oxyfuel.compile(lambda x: x.sin() * 2, backend=backend)
    assert torch.autograd.gradcheck(compiled, X.double().requires_grad_(), check_batched_grad=True)


@BACKENDS
def test_batched_gradients_that_nothing_can_take(backend):
    compiled = oxyfuel.compile(lambda x: Square.apply(x) * 2, backend=backend)
    with pytest.raises(NotImplementedError, match="is_grads_batched=True.*torch.autograd.Function.*oxyfuel.disable"):
        batched(compiled, X.clone().requires_grad_())


@BACKENDS
@pytest.mark.parametrize("f, layout", [(lambda w: w * 2, torch.sparse_coo), (lambda w: w.sin(), None), (lambda w: Square.apply(w), None)])
def test_sparse_gradients(backend, f, layout):
    def run(f):
        w = torch.ones(5, 2, requires_grad=True)
        F.embedding(torch.tensor([1, 1, 3]), f(w), sparse=True).sum().backward()
        assert layout is None or w.grad.layout == layout
        return w.grad.to_dense()

    assert torch.equal(run(oxyfuel.compile(f, backend=backend)), run(f))


@BACKENDS
def test_a_backward_pass_whose_shapes_depend_on_data(backend):
    bag = nn.EmbeddingBag(10, 4, mode="mean", sparse=True, padding_idx=0)

    def run(bag):
        bag.zero_grad()
        bag(torch.tensor([[1, 2, 0]])).sum().backward()
        return bag.weight.grad.to_dense().clone()

    expected = run(bag)
    compiled = oxyfuel.compile(bag, backend=backend)
    compiled(torch.tensor([[1, 2, 0]])).sum().backward()
    assert torch.equal(bag.weight.grad.to_dense(), 2 * expected)


COMPLEX = {
    "centred": lambda z: z - z.mean(0),
    "sum of rows": lambda z: z.sum(0),
    "sum": lambda z: z.sum(),
    "kept": lambda z: z.sum(1, keepdim=True),
    "einsum": lambda z: torch.einsum("ij->j", z),
    "broadcast": lambda z: z.sum(0, keepdim=True) + z,
    "rows": lambda z: z.unbind(0)[0] + z.unbind(0)[1],
    "expanded": lambda z: z.expand(5, 3, 4) * 2,
    "expanded column": lambda z: z[:, :1].expand(3, 6),
    "expanded result": lambda z: z.sum(1, keepdim=True).expand(3, 7),
    "expanded transposed": lambda z: z.t().sum(1, keepdim=True).expand(4, 7).t(),
    "from real": lambda z: (z.real * 1j).mean() + z.sum(),
}


@BACKENDS
@pytest.mark.parametrize("f", COMPLEX.values(), ids=COMPLEX.keys())
def test_complex_gradients(backend, f):
    z = torch.randn(3, 4, dtype=torch.complex64)

    def run(f):
        leaf = z.clone().requires_grad_()
        result = f(leaf)
        result.abs().sum().backward()
        return result, result.stride(), leaf.grad, leaf.grad.stride()

    actual, expected = run(oxyfuel.compile(f, backend=backend)), run(f)
    assert torch.allclose(actual[0], expected[0]) and actual[1] == expected[1]
    assert torch.allclose(actual[2], expected[2]) and actual[3] == expected[3]


@BACKENDS
@pytest.mark.parametrize("move", [lambda x: x.transpose(0, 1), lambda x: x.permute(2, 0, 1), lambda x: x.transpose(0, 1)[1:], lambda x: x[:, ::2]])
def test_dropout_draws_in_the_order_of_memory(backend, move):
    def f(x):
        return F.dropout(move(x), 0.4) * 2

    def run(f):
        torch.manual_seed(5)
        return f(torch.ones(4, 6, 3)), torch.rand(1)

    compiled, expected = run(oxyfuel.compile(f, backend=backend)), run(f)
    assert all(map(torch.equal, compiled, expected)) and compiled[0].stride() == expected[0].stride()


@BACKENDS
def test_statistics_change_behind_autograds_back(backend):
    """Eager's kernels do not count as writes to the running statistics."""

    def run(compile):
        norm = nn.BatchNorm1d(5)
        call = compile(norm)
        x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
        norm.eval()
        before = call(x)
        norm.train()
        (call(x).sin().sum() + call(x * 2).sum() + before.sum()).backward()
        return x.grad, [buffer._version for buffer in norm.buffers()], norm.running_var

    expected, actual = run(lambda norm: norm), run(lambda norm: oxyfuel.compile(norm, backend=backend))
    assert actual[1] == expected[1]
    torch.testing.assert_close(actual[0], expected[0])
    torch.testing.assert_close(actual[2], expected[2])


def exp_scaled(x):
    result = x.exp()
    result.data.mul_(2)
    return result


def straight_through(x):
    result = x.softmax(0)
    result.data.copy_((result == result.max()).to(result.dtype))
    return result


def first_replaced(x):
    result = x.exp()
    scaled = result * x
    result.data[0] = 5.0
    return scaled, result


def rounded_part(x):
    result = x.sigmoid()
    result.data[1:].round_()
    return result * x


def argument_written(x):
    x.data[0] = 7.0
    return x * x


def argument_written_late(x):
    y = x * 1
    x.data.add_(1)
    return y


def parts_of_data(x):
    y = x.exp()
    return y, y.data, y.data[1:]


class Assign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, target, value, index):
        ctx.index = index
        target.data[index] = value
        return target

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient[ctx.index], None


def assigned_twice(x):
    whole = Assign.apply(torch.zeros(3), x[0] * 1, 0)
    part = whole[0]
    whole = Assign.apply(whole, x[0] * 2, 1)
    return whole.sum() + part


def assigned_and_used(x):
    whole = Assign.apply(torch.zeros(3), x[0] * 1, 0)
    part = whole[:1] * x[1]
    whole = Assign.apply(whole, x[0] * 2, 1)
    return whole.sum() + part.sum()


class Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, target, value):
        target[0] = value
        ctx.mark_dirty(target)
        return target

    @staticmethod
    def backward(ctx, gradient):
        rest = gradient.clone()
        rest[0] = 0
        return rest, gradient[0]


def marked_view(x):
    value = x[0] * 1
    whole = torch.zeros(3)
    part = Marked.apply(whole[:2], value)
    return part.sum() + whole.sum()


@BACKENDS
@pytest.mark.parametrize("f", [
    exp_scaled, straight_through, first_replaced, rounded_part, argument_written, argument_written_late, parts_of_data, assigned_twice,
    assigned_and_used, marked_view,
])  # fmt: skip
def test_writes_through_data(backend, f):
    def run(f):
        x = torch.tensor([0.1, 2.0, -0.7], requires_grad=True)
        results = f(x)
        results = results if isinstance(results, tuple) else (results,)
        for result in results:
            if not result.requires_grad:
                result.mul_(3)
        gradient = torch.autograd.grad(sum(result.sum() for result in results if result.requires_grad), x)
        return [result.detach() for result in results], gradient, [result._version for result in (*results, x)], x.detach()

    expected, actual = (outcome(lambda f=f: run(f)) for f in (f, oxyfuel.compile(f, backend=backend)))
    assert str(actual) == str(expected)


@BACKENDS
@pytest.mark.parametrize("f", [torch.cos, torch.sqrt, lambda z: z * z.conj().abs(), lambda z: (z.imag * 2).sum() + z.abs(), lambda z: z @ z.mT,
                               lambda z: torch.view_as_real(z * z.flip(0)), lambda z: torch.fft.ifft(torch.fft.fft(z) * z)])  # fmt: skip
def test_conjugates_in_backward_passes(backend, f):
    z = torch.randn(3, 3, dtype=torch.complex64)

    def run(f):
        leaf = z.clone().requires_grad_()
        f(leaf).abs().sum().backward()
        return leaf.grad

    torch.testing.assert_close(run(oxyfuel.compile(f, backend=backend)), run(f))


def scaled_sign(x):
    return (x * 3).sgn() * 2


ZERO_TENSORS = {
    "of the argument": lambda x: x.sgn(),
    "behind a product": scaled_sign,
    "behind a view": lambda x: x.view(-1)[1:].sgn(),
    "added to another": lambda x: x.sgn() + x * 2,
    "of one result of two": lambda x: (x.sgn(), x * 2)[0],
    "of a sum": lambda x: (x + 1).sgn() * x.detach(),
}


@pytest.mark.parametrize("f", ZERO_TENSORS.values(), ids=ZERO_TENSORS)
@program(grad=True)
def test_gradients_that_are_zeros_without_memory(compile, f):
    """Eager's gradient of sgn() is a ZeroTensor, which may not be written to."""
    x = torch.tensor([0.5, -2.0, 0.0]).requires_grad_()
    compile(f)(x).sum().backward()
    written = outcome(lambda: x.grad.add_(1))[:3]
    return x.grad._is_zerotensor(), x.grad.clone(), written[1] if written[0] == "raised" else None


@program(grad=True)
def test_zeros_without_memory_are_given(compile):
    double = compile(lambda x: x * 2 + 1)
    return [double(x).detach().clone() for x in (torch.ones(3), torch._efficientzerotensor(3), torch.ones(3))]


@program(grad=True)
def test_zeros_without_memory_inside(compile):
    def gradient_of_sign(x):
        x.sgn().sum().backward()
        return x.grad + 1

    def written(x):
        x.sgn().sum().backward()
        x.grad.add_(1)

    x = torch.ones(3, requires_grad=True)
    return compile(gradient_of_sign)(x), x.grad._is_zerotensor(), outcome(compile(written), torch.ones(3, requires_grad=True))[1]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("reduce", ["amin", "amax", "mean", "sum"])
def test_formulas_that_raise(reduce, dynamic):
    """Eager's gradients of these want indices for all rows. Without a backward pass nobody notices."""

    def function(x, index):
        return x.sigmoid().scatter_reduce(1, index, x, reduce, include_self=False)

    x, index = torch.randn(8, 5, requires_grad=True), torch.tensor([[0, 1, 1, 4, 3]] * 2)
    expected, actual = function(x, index), oxyfuel.compile(function, dynamic=dynamic)(x, index)
    assert torch.equal(expected, actual) and actual.requires_grad
    outcomes = []
    for result in (expected, actual):
        try:
            outcomes.append(torch.autograd.grad(result.sum(), x)[0])
        except RuntimeError as error:
            outcomes.append(str(error))
    assert type(outcomes[0]) is type(outcomes[1])
    assert torch.allclose(*outcomes) if isinstance(outcomes[0], torch.Tensor) else outcomes[0] == outcomes[1]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_group_norm_of_data_without_grad(layout, dynamic):
    """Eager's kernel reads invalid memory where only parameters require grad and the batch is channels-last."""
    batches = [torch.randn(size) for size in ((2, 4, 5, 3), (3, 4, 6, 2))]
    parameters = [torch.randn(4, requires_grad=True) for _ in range(2)]

    def gradients(function, batch):
        return torch.autograd.grad(function(batch, *parameters).square().sum(), parameters)

    def function(batch, weight, bias):
        return F.group_norm(batch * 2, 2, weight, bias)

    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for batch in batches:
        for expected, actual in zip(gradients(function, batch), gradients(compiled, batch.to(memory_format=layout))):
            torch.testing.assert_close(actual, expected)
