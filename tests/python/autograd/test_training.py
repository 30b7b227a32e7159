"""The corners of autograd: outputs, gradients, writes, versions and errors of compiled functions as eager's."""

import contextlib

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import oxyfuel
from training_checks import CONSTANT, X, Y, check, result_of, tensor, weighted


@pytest.fixture(autouse=True)
def fresh():
    oxyfuel.reset()
    yield
    oxyfuel.reset()


OUTPUTS = {
    "a detached copy": (lambda a, b: (a * b, (a * b).detach(), a.detach() * 2), X, Y),
    "a tensor and itself detached": (lambda a: ((t := a * 2), t.detach()), X),
    "itself detached first": (lambda a: ((t := a * 2).detach(), t), X),
    "a view": (lambda a: (a * 2).view(-1), X),
    "chunks": (lambda a: (a * 2).chunk(2, 1), X),
    "rows": (lambda a: (a * 2).unbind(0), X),
    "a base and its view": (lambda a: ((t := a * 2), t.t()), X),
    "a view of an input": (lambda a: (a.t(), a * 2), X),
    "only a view of an input": (lambda a: a[1:], X),
    "an input": (lambda a: (a, a * 2), X),
    "an input detached": (lambda a: (a.detach(), a * 2), X),
    "integers": (lambda a: (a.argmax(1), a.exp()), X),
    "a constant": (lambda a: (torch.ones(3), a * 1), X),
    "an unused input": (lambda a, b: a * 3, X, Y),
    "no scalar": (lambda a, b: a @ b.t(), X, Y),
    "the same twice": (lambda a: ((t := a.sin()), t), X),
    "writes to a temporary": (lambda a: (a * 2).add_(1).mul_(a), X),
    "data": (lambda a: a.data * 2 + a, X),
    "an extreme": (lambda a: a.max(1).values, X),
    "an order": (lambda a: a.sort(1).values, X),
    "an index": (lambda a, b: torch.zeros(4, 6).index_put((torch.tensor([0, 1]),), a[:2]) + b, X, Y),
    "bfloat16": (lambda a: (a.bfloat16() @ a.bfloat16().t()).float(), X),
    "a choice": (lambda a, b: torch.where(a > 0, a, b), X, Y),
    "dropout": (lambda a: F.dropout(a, 0.5) * 2, X),
    "random numbers": (lambda a: a * torch.rand(4, 6), X),
    "parts of other layouts": (lambda a: F.layer_norm(a.view(2, 2, 6).permute(0, 2, 1), (2,)).permute(0, 2, 1), X),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_and_gradients(name):
    function, *inputs = OUTPUTS[name]
    check(function, *inputs, graphs=1)


def without_grad(a, b):
    with torch.no_grad():
        c = b * 2
    return a * c


def test_a_part_without_grad():
    check(without_grad, X, Y, graphs=1)


def write_constant(a, b):
    b.add_(a.detach())
    return a * b


def write_with_history(a, b):
    b.add_(a)
    return b * 2


def write_leaf(a):
    a.mul_(2)
    return a * 3


def write_leaf_without_grad(a):
    with torch.no_grad():
        a.mul_(2)
    return a * 3


def write_only(a, b):
    b.add_(a)
    return b.shape[0] * torch.ones(1)


def set_data(a, b):
    b.data = a.detach()
    return a * b


def write_out(a, b):
    return torch.add(a.detach(), 1, out=b) * a


@pytest.mark.parametrize(
    "function",
    [write_constant, write_with_history, write_only, set_data, write_out],
    ids=lambda function: function.__name__,
)
def test_writes_to_an_argument(function):
    check(function, X, CONSTANT)


@pytest.mark.parametrize("function", [write_leaf, write_leaf_without_grad], ids=lambda function: function.__name__)
def test_writes_to_a_leaf(function):
    check(function, X)


def of_a_result(function, inputs):
    """The argument has a history of its own."""
    middle = inputs[0] * 2
    output = function(middle)
    output.sum().backward()
    return [output.detach(), inputs[0].grad, middle.detach(), middle._version]


@pytest.mark.parametrize("function", [lambda a: a.sin() * 2, write_leaf], ids=["read", "written"])
def test_an_argument_with_history(function):
    check(function, X, run=of_a_result)


def twice(function, inputs, retain_graph):
    output = function(*inputs).sum()
    output.backward(retain_graph=retain_graph)
    output.backward()
    return inputs[0].grad


@pytest.mark.parametrize("retain_graph", [True, False])
def test_backward_twice(retain_graph):
    check(lambda a: a.exp() * a, X, run=lambda function, inputs: twice(function, inputs, retain_graph), graphs=1)


def write_a_part(a):
    made = a + 1
    made[1:] = a[:-1]
    return made


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a + 1,
        lambda a: a * 2,
        lambda a: a.exp(),
        lambda a: a.t() - a.sum(),
        lambda a: torch.zeros_like(a).copy_(a),
        lambda a: torch.zeros(2, *a.shape).copy_(a),
        lambda a: (a * 1.5).copy_(a),
        lambda a: torch.zeros_like(a).double().copy_(a),
        lambda a: (a + 1).fill_(a.sum()),
        lambda a: (a + 1).masked_fill_(a > 0, 0.0),
        lambda a: torch.cat([a, a]).index_select(0, torch.tensor([0])),
        write_a_part,
        lambda a: torch.where(a > 0, a, 0.0),
        lambda a: a.expand(2, *a.shape).clone(),
        lambda a: a.amax(0),
        lambda a: a.cumsum(0).to(torch.float64),
    ],
)
def test_backward_twice_through_what_may_keep_nothing(function):
    """Going through a node again is an error where eager's node keeps tensors, and nowhere else."""
    check(function, X, run=lambda function, inputs: twice(function, inputs, False), graphs=1)


def write_between(which):
    def run(function, inputs):
        output = function(*inputs)
        with torch.no_grad():
            (inputs[0] if which == "input" else output).add_(1)
        output.sum().backward()
        return inputs[0].grad

    return run


@pytest.mark.parametrize("which", ["input", "output"])
@pytest.mark.parametrize(
    "function",
    [lambda a: a.exp() * a, lambda a: (a + 1).exp().sin(), lambda a: a.exp(), lambda a: a.sigmoid() + a],
    ids=["product", "chain", "exp", "sum"],
)
def test_writes_between_the_passes(function, which):
    """An error where eager's autograd needs what was overwritten, and nowhere else."""
    check(function, X, run=write_between(which), graphs=1)


def write_output_with_history(function, inputs):
    output = function(*inputs)
    output.mul_(2)
    output.sum().backward()
    return inputs[0].grad


@pytest.mark.parametrize(
    "function", [lambda a: a.sin(), lambda a: a.sin().view(-1), lambda a: (a * 1).view(-1)], ids=["own", "view", "copy"]
)
def test_writes_to_an_output_with_history(function):
    check(function, X, run=write_output_with_history, graphs=1)


def test_the_same_tensor_twice():
    def run(function, inputs):
        output = function(inputs[0], inputs[0])
        output.sum().backward()
        return output.detach(), inputs[0].grad

    check(lambda a, b: a * b, X, run=run)


def test_torch_autograd_grad():
    def run(function, inputs):
        first = torch.autograd.grad(function(*inputs).sum(), inputs)
        unused = torch.autograd.grad(function(*inputs).sum(), [inputs[0], Y], allow_unused=True)
        return first, unused[0], unused[1] is None

    check(lambda a: a.sin() * a, X, run=run, graphs=1)


TANGENTS = {
    "expanded": lambda o: torch.ones(1, 1).expand(o.shape),
    "transposed": lambda o: weighted(torch.ones(o.shape[::-1])) * torch.ones(o.shape[::-1]).t(),
    "strided": lambda o: torch.ones(o.shape[0], o.shape[1] * 2)[:, ::2],
}


@pytest.mark.parametrize("name", TANGENTS)
def test_gradients_that_come_in(name):
    def run(function, inputs):
        output = function(*inputs)
        given = TANGENTS[name](output)
        output.backward(given)
        inputs[0].grad.add_(1)  # must be no one else's
        return inputs[0].grad, inputs[0].grad.stride(), given

    check(lambda a: a.sin(), X, run=run, graphs=1)
    check(lambda a: a + 1, X, run=run)


def test_gradients_of_some_outputs_only():
    def run(function, inputs):
        function(*inputs)[0].sum().backward()
        return inputs[0].grad

    check(lambda a: (a.sin(), a.cos()), X, run=run, graphs=1)


def test_inputs_that_a_gradient_does_not_reach_get_none():
    """As in eager: an optimizer then leaves them alone."""

    def run(function, inputs):
        function(*inputs)[0].sum().backward(retain_graph=True)
        return inputs[0].grad, inputs[1].grad is None

    check(lambda a, b: (a.sin(), b.cos() * a), X, Y, run=run, graphs=1)


def test_gradients_that_are_not_asked_for_are_not_computed():
    """A gradient of zero would not do: times infinity it is not a number."""

    def run(function, inputs):
        first, _, third = function(*inputs)
        third.sum().backward(retain_graph=True)
        (first + third).sum().backward()
        return inputs[0].grad, inputs[1].grad

    def function(a, b):
        c = a.relu() * b
        return c.sin(), (c.relu() * 0).log() / c, c * a.t().mean()

    check(function, X, Y, run=run, graphs=1)


def test_a_function_before_whose_results_get_no_gradient():
    def run(function, inputs):
        middle, _ = Tripled.apply(inputs[1]), None
        function(inputs[0], middle).sum().backward()
        return inputs[0].grad, inputs[1].grad is None

    check(lambda a, b: a.sin() + b.detach(), X, Y, run=run)


def without_history(a):
    with torch.no_grad():
        return a.view(-1), (a * 2).view(-1)


def view_without_grad_of_a_result(a):
    b = a * 2
    with torch.no_grad():
        c = b.view(-1)
    return c


@pytest.mark.parametrize("function", [without_history, view_without_grad_of_a_result], ids=lambda function: function.__name__)
def test_views_made_without_grad(function):
    check(function, X)

    def write(function, inputs):
        output = function(*inputs)
        output = output[0] if isinstance(output, tuple) else output
        output.mul_(2)

    check(function, X, run=write)

    def backward(function, inputs):
        function(*inputs)[0].sum().backward()

    check(function, X, run=backward)


def not_differentiable(a, b):
    return a // b, a.sin()


def written_though_needed(a, b):
    c = a.sin()
    d = c * b
    c.mul_(2)
    return d, a.cos()


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("function", [not_differentiable, written_though_needed], ids=lambda function: function.__name__)
def test_backward_passes_that_raise(function, which):
    """They raise if that gradient is asked for, and only then."""

    def run(function, inputs):
        function(*inputs)[which].sum().backward()
        return inputs[0].grad

    check(function, X, Y, run=run)


def test_gradients_that_are_zeros_without_memory():
    check(lambda a, b: (a.sgn(), a * b), X, Y, graphs=1)
    check(lambda a: a.sgn() * a, X)


def setting(method, *arguments):
    def function(a):
        getattr(a, method)(*arguments)
        return a.detach() * 2

    return function


def test_settings_of_an_argument_made_inside():
    def run(function, inputs):
        function(inputs[0])
        return inputs[0].requires_grad

    check(setting("requires_grad_", False), X, run=run)
    check(setting("requires_grad_"), X.detach(), run=run)

    def hooked(function, inputs):
        middle = inputs[0] * 2
        function(middle)
        middle.sum().backward()
        return middle.grad

    check(setting("retain_grad"), X, run=hooked)


ACTIVATIONS = ("hardswish", "hardsigmoid", "hardtanh", "relu6", "relu", "elu", "celu", "selu", "softshrink", "hardshrink", "leaky_relu", "softplus",
               "threshold", "silu", "mish", "gelu", "logsigmoid", "softsign", "tanhshrink", "rrelu", "sigmoid", "tanh")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_where_activations_have_corners(name, dtype):
    function = getattr(F, name)
    function = (lambda a: F.threshold(a, 0.5, 2)) if name == "threshold" else function

    def run(function, inputs):
        output = function(*inputs)
        output.backward(torch.linspace(1, 2, output.numel(), dtype=dtype))
        return output.detach().float(), inputs[0].grad.float()

    expected = result_of(run, function, [torch.arange(-64, 65).to(dtype).div(8).requires_grad_()])
    found = result_of(run, oxyfuel.compile(function), [torch.arange(-64, 65).to(dtype).div(8).requires_grad_()])
    tolerance = 2e-2 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_gradients_of_two_inputs_share_no_memory():
    def run(function, inputs):
        function(*inputs).sum().backward()
        inputs[0].grad.add_(1)
        return inputs[0].grad, inputs[1].grad

    check(lambda a, b: a + b, X, Y, run=run, graphs=1)
    check(lambda a, b: (a.view(-1) + b.view(-1)).view(2, 12), X, Y, run=run)


def test_anomaly_mode():
    def run(function, inputs):
        with pytest.warns(UserWarning), torch.autograd.detect_anomaly():
            function(*inputs).sum().backward()
        return inputs[0].grad

    check(lambda a: a.abs().sqrt(), X, run=run)


def test_backward_inside():
    def inside(a):
        loss = (a * a).sum()
        loss.backward()
        return loss * 2

    def run(function, inputs):
        return function(*inputs).detach(), inputs[0].grad

    check(inside, X, run=run)


def test_grad_inside():
    def inside(a):
        (gradient,) = torch.autograd.grad((a * a).sum(), a)
        return gradient * 2

    check(inside, X, run=lambda function, inputs: function(*inputs))


def test_requires_grad_inside():
    check(lambda a: a.detach().requires_grad_() * 2, X)


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx, gradient):
        (a,) = ctx.saved_tensors
        return gradient * a * 3


def test_a_function_with_its_own_gradient():
    check(lambda a: Tripled.apply(a) + 1, X)


def test_a_break_between():
    def breaks(a):
        b = a.sin() * a
        print("break", end="")
        return b.cos() * a

    check(breaks, X)
    assert oxyfuel.metrics()["graphs"] == 2


def test_gradient_check():
    compiled = oxyfuel.compile(lambda a, b: F.gelu(a @ b).softmax(-1) * a.sum())
    a = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    b = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(compiled, (a, b))


def test_the_backward_pass_is_compiled_when_it_is_needed():
    compiled = oxyfuel.compile(lambda a: a.sin().cos())
    output = compiled(tensor(8))
    kernels = oxyfuel.metrics()["kernels"]
    output.sum().backward()
    assert oxyfuel.metrics()["kernels"] > kernels


@pytest.mark.parametrize("autocast", [False, True])
def test_accumulation_over_steps(autocast):
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))

    def run(function, inputs):
        with torch.no_grad():
            for module in model.modules():
                if hasattr(module, "reset_parameters"):
                    torch.manual_seed(0)
                    module.reset_parameters()
        model.zero_grad()
        for _ in range(3):
            with torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext():
                output = function(*inputs)
            output.float().square().mean().backward()
        return [p.grad for p in model.parameters()], [b.clone() for b in model.buffers()], output.detach()

    expected = result_of(run, model, [X])
    found = result_of(run, oxyfuel.compile(model), [X])
    tolerance = 2e-2 if autocast else 1e-5
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_threads_train_one_model():
    import threading

    model = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.GELU(), torch.nn.Linear(32, 2))
    compiled = oxyfuel.compile(model)
    expected = torch.autograd.grad(model(X).sum(), list(model.parameters()))
    failures = []

    def work():
        try:
            for _ in range(20):
                found = torch.autograd.grad(compiled(X).sum(), list(model.parameters()))
                torch.testing.assert_close(found, expected)
        except BaseException as error:  # noqa: BLE001: a thread's failure must reach the test
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("padding", [None, 3])
def test_gradients_of_embeddings(padding, dtype):
    indices = torch.tensor([[3, 1, 3, 0], [7, 3, 1, 1]])
    upstream = tensor(2, 4, 5, requires_grad=False, seed=1).to(dtype)

    def f(weight):
        return F.embedding(indices, weight, padding_idx=padding) * upstream

    check(f, tensor(9, 5).detach().to(dtype).requires_grad_(), graphs=1)


def test_what_is_saved_is_freed_on_the_way():
    """Many small saved tensors share blocks of memory, which go when the backward pass is through with them."""

    def f(x):
        for i in range(40):
            x = (x * 1.01).sin()
        return x

    check(f, tensor(300, 100), graphs=1)
    compiled = oxyfuel.compile(f)
    x = tensor(300, 100)
    first = compiled(x).sum()
    second = compiled(x).sum()  # its blocks are others
    (a,) = torch.autograd.grad(second, x)
    (b,) = torch.autograd.grad(first, x)
    torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize("asked", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
def test_gradients_that_are_passed_on_may_be_absent(asked):
    def f(x, y):
        return x + y, x * 2, y + 1

    def run(function, inputs):
        outputs = function(*inputs)
        sum(outputs[i].sum() * (i + 1) for i in asked).backward()
        return [i.grad for i in inputs]

    check(f, tensor(3), tensor(3, seed=1), run=run, graphs=1)


def gradients_of_a_mean(function, inputs):
    function(*inputs).square().mean().backward()
    return [i.grad for i in inputs]


@pytest.mark.parametrize("trains_input", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_that_a_convolution_leaves_out(bias, trains_input):
    weight = tensor(16, 8, 3, 3, seed=1)
    shift = tensor(16, seed=2).detach().requires_grad_(bias)

    def f(x, weight, shift):
        return F.conv2d(F.conv2d(x, weight, shift, padding=1).tanh()[:, :8], weight, shift, stride=2)

    check(f, tensor(2, 8, 40, 40, requires_grad=trains_input), weight, shift, run=gradients_of_a_mean, graphs=1)
    assert oxyfuel.metrics()["shape_fallbacks"] == 0


@pytest.mark.parametrize("budget", [1, 0.5, 0.0])
def test_a_memory_budget_changes_no_gradient(budget):
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(32, 32), nn.LayerNorm(32), nn.Dropout(0.5), nn.GELU()) for _ in range(4)]
    model = nn.Sequential(*layers)
    x = torch.randn(64, 32, requires_grad=True)

    def gradients(run):
        torch.manual_seed(1)
        x.grad = None
        model.zero_grad()
        run(x).square().mean().backward()
        return [x.grad, *(p.grad for p in model.parameters())]

    expected = gradients(model)
    compiled = oxyfuel.compile(model, options={"activation_memory_budget": budget, "rng": "eager"})
    torch.testing.assert_close(gradients(compiled), expected, rtol=1e-4, atol=1e-6)
    metrics = oxyfuel.metrics()
    products = sum(metrics["extern_names"].get(f"aten::{name}", 0) for name in ("mm", "addmm"))
    assert (products > 12) == (budget < 1), metrics["extern_names"]


@pytest.mark.parametrize("options", [{"activation_memory_budget": 1.5}, {"activation_memory_budget": -1}, {"rng": "fast"}])
def test_budgets_and_generators_that_make_no_sense(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        oxyfuel.compile(torch.sin, options=options)
