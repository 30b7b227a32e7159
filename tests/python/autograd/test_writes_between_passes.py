"""Writes to the memory of arguments and results, of which autograd hears or not, and what gradients make of them."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from eager_comparison import outcome, program

X = torch.tensor([[0.5, -1.5, 2.0], [3.0, -0.25, 1.0]])
OPERATORS = {
    "result of pointwise operators": lambda x: (x.mean(0).abs() + 0.5).rsqrt(),
    "result of one": lambda x: x.tanh(),
    "result behind a sum": lambda x: torch.sigmoid(x.sum(1) * 2 + x[:, 0].abs()),
    "argument of one": lambda x: x.abs(),
    "argument seen through a view": lambda x: x.t().abs() * 2,
    "mask of an argument": lambda x: F.leaky_relu(x, 0.5),
    "result seen through a view": lambda x: (x.abs() + 1).sqrt().view(-1),
    "softmax": lambda x: F.log_softmax(x * 2, 1),
    "softmax of a product": lambda x: F.softmax(x, 1) * 3,
}
WRITES = {
    "neither": lambda x, y: None,
    "the result's data": lambda x, y: y.data.mul_(2),
    "the argument's data": lambda x, y: x.data.mul_(-1),
    "both": lambda x, y: (y.data.add_(1), x.data.add_(1)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
@program(grad=True)
def test_gradients_read_what_eager_reads(compile, operator, write):
    """Eager's formulas read arguments and results as they are when the backward pass comes."""
    x = X.clone().requires_grad_()
    y = compile(operator)(x)
    write(x, y)
    y.backward(torch.ones_like(y))
    return x.grad


def leaf_of_part():
    """A leaf that is a view of a tensor without grad: after a write, autograd takes the histories of its views from that."""
    return torch.arange(12.0).view(3, 4)[:, 1:3].requires_grad_()


def view_is_a_result(x):
    y = x[..., None]
    x.detach().mul_(2)
    return y


def view_is_used(x):
    y = x.view(3, 2, 1)
    x.detach().mul_(2)
    return y * x[..., None]


def view_is_used_before(x):
    y = x.t() * 3
    x.detach().mul_(2)
    return y


def view_is_made_after(x):
    x.detach().mul_(2)
    return x.t() * x.t()


def argument_is_a_view(x, view):
    y = view * 3
    x.detach().mul_(2)
    return y + view


@pytest.mark.parametrize("make", [leaf_of_part, lambda: torch.arange(6.0).view(3, 2).requires_grad_()], ids=["part", "whole"])
@pytest.mark.parametrize("f", [view_is_a_result, view_is_used, view_is_used_before, view_is_made_after, argument_is_a_view])
@program(grad=True)
def test_views_of_a_leaf_that_is_written(compile, f, make):
    x = make()
    y = compile(f)(x, x[:, :1]) if f is argument_is_a_view else compile(f)(x)
    y.sum().backward()
    return x.grad, x.detach().clone()


@program(grad=True)
def test_a_leaf_that_becomes_a_part_is_noticed(compile):
    f = compile(view_is_a_result)
    gradients = []
    for x in (torch.arange(6.0).view(3, 2).clone().requires_grad_(), torch.arange(6.0).view(3, 2)[:].requires_grad_()):
        f(x).sum().backward()
        gradients.append(x.grad)
    return gradients


ROWS = {
    "first row": lambda y: y[0].mul_(3),
    "an element": lambda y: y[0, 1].add_(1),
    "assignment": lambda y: y.__setitem__(1, 2.0),
    "first row without grad": lambda y: torch.no_grad()(y[0].mul_)(3),
}
REPEATED = {
    "expanded": lambda x: (x * 2)[0].expand(2, 3),
    "expanded part": lambda x: (x * 2)[:1, :1].expand(2, 3),
    "windows": lambda x: (x * 2).view(-1).unfold(0, 3, 1),
    "broadcast": lambda x: torch.broadcast_to((x * 2).sum(0), (2, 3)),
}


@pytest.mark.parametrize("write", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("make", REPEATED.values(), ids=REPEATED)
@program(grad=True)
def test_a_part_of_a_result_with_repeated_elements_is_written(compile, make, write):
    """Such a result is a view of a tensor that autograd can write to."""

    def run():
        x = X.clone().requires_grad_()
        y = f(x)
        write(y)
        y.sum().backward()
        return x.grad, y.detach().clone()

    f = compile(make)
    return outcome(run)[:2]


@program(grad=True)
def test_views_of_a_size_that_changes(compile):
    f = compile(lambda x: ((x * 2)[0].expand(2, -1), (x * 3).t()))
    gradients = []
    for size in range(2, 7):
        x = torch.arange(3.0 * size).view(3, size).requires_grad_()
        repeated, turned = f(x)
        repeated[0].mul_(3), turned.mul_(2)
        (repeated.sum() + turned.sum()).backward()
        gradients.append(x.grad)
    return gradients


def gradients_or_refusal(results, inputs):
    """Which tensor was written to is up to who has saved it."""
    try:
        return torch.autograd.grad(results, inputs, [torch.ones_like(r) for r in results], allow_unused=True)
    except RuntimeError as error:
        return str(error).split(":")[0]


def two_results(x):
    y = torch.fmax(x, x.detach().abs() - 1)
    return y[-1], F.mish(y)


def result_and_saved_result(x):
    y = x.exp()
    return y, y.sin()


def saved_by_one(x, w):
    return w * 2, (w * x).sigmoid()


PAIRS = {"a view of what is saved": two_results, "what is saved": result_and_saved_result}


@pytest.mark.parametrize("asked", [[0], [1], [0, 1]], ids=str)
@pytest.mark.parametrize("written", [0, 1])
@pytest.mark.parametrize("function", PAIRS.values(), ids=PAIRS)
@program(grad=True)
def test_only_what_the_gradients_read_is_checked(compile, function, written, asked):
    """Of two results that share a backward pass, one is written to, and gradients come to one or to both."""
    x = X.clone().requires_grad_()
    results = compile(function)(x)
    results[written].detach().add_(1)
    return gradients_or_refusal([results[i] for i in asked], [x])


def many_results(x, c):
    h = x.exp()
    return h * 2, h / c, h.sin(), h.cos(), h.tanh(), h.sigmoid()


@pytest.mark.parametrize("wait", [True, False])
@program(grad=True)
def test_what_no_gradient_reads_is_not_read(compile, wait):
    """More sets of gradients than backward passes are compiled for; the divisor becomes 0 before the last pass."""
    x, c = X.clone().requires_grad_(), torch.ones(3)
    function = compile(many_results, options={"wait": wait})
    found = []
    for asked in (1, 2, 3, 4, 5, 0, 1):
        results = function(x, c)
        if asked < 2:
            c.zero_()
        found.append(gradients_or_refusal([results[asked]], [x]))
        c.fill_(1)
    return found


@pytest.mark.parametrize("asked", [[0], [1], [0, 1]], ids=str)
@pytest.mark.parametrize("which", [0, 1])
@program(grad=True)
def test_arguments_that_one_gradient_reads(compile, which, asked):
    x, w = X.clone().requires_grad_(), (X + 1).requires_grad_()
    results = compile(saved_by_one)(x, w)
    (x, w)[which].detach().add_(1)
    return gradients_or_refusal([results[i] for i in asked], (x, w))


class Logits(torch.nn.Module):
    """A model that returns its loss and the logits, of which the gradient of the loss reads the narrow ones."""

    CLASSES = 8192

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.last = torch.nn.Linear(16, self.CLASSES)

    def forward(self, x, labels):
        logits = self.last(x).view(4, 32, self.CLASSES)
        return F.cross_entropy(logits.float().view(-1, self.CLASSES), labels), logits


WRITES_TO_LOGITS = {
    "nothing": lambda logits: None,
    "a detached alias": lambda logits: logits.detach().add_(1),
    "the data": lambda logits: logits.data.zero_(),
    "a part": lambda logits: logits.detach()[0].fill_(3),
    "through numpy": lambda logits: logits.detach().view(torch.int16).numpy().fill(0),
    "all but the first": lambda logits: logits.detach().view(-1)[5:].copy_(torch.ones(())),
}


@pytest.mark.parametrize("write", WRITES_TO_LOGITS)
@program(whole=True, grad=True)
def test_a_result_that_is_saved_and_written_to(compile, write):
    """Eager saves something else, so that the write is no error, and gradients are those without it."""
    model = Logits()
    compiled = compile(model)
    x, labels = torch.randn(128, 16), torch.arange(128) * 7
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16):
            loss, logits = compiled(x, labels)
        kept = logits.detach().clone()
        WRITES_TO_LOGITS[write](logits)
        loss.backward(retain_graph=True)
        loss.backward()
    return loss, kept, logits, model.last.weight.grad, model.last.bias.grad


def test_a_saved_result_is_no_copy():
    compiled = oxyfuel.compile(Logits())
    x, labels = torch.randn(128, 16), torch.arange(128) * 7
    with torch.autocast("cpu", torch.bfloat16):
        loss, logits = compiled(x, labels)
    assert torch._C._is_cow_tensor(logits)
    loss.backward()
    logits.detach().add_(1)
    assert not torch._C._is_cow_tensor(logits)


# In some of these formulas the gradient is written into zeros.
PARTS = {
    "take": lambda y: y.take(torch.tensor([0, 0, 4])),
    "index": lambda y: y[:, torch.tensor([0, 2, 2])],
    "mask": lambda y: y[torch.tensor([True, False])],
    "masked_select": lambda y: torch.masked_select(y, y > 0.5),
    "select": lambda y: y.select(0, 1),
    "slice": lambda y: y[:, 1:],
    "diagonal": lambda y: y.diagonal(),
    "gather": lambda y: y.gather(1, torch.zeros(2, 1, dtype=torch.long)),
    "index_select": lambda y: y.index_select(0, torch.tensor([1, 1])),
    "unfold": lambda y: y.unfold(1, 2, 1),
    "largest": lambda y: y.max(1)[0],
    "sorted": lambda y: y.sort(1)[0],
    "scatter": lambda y: y.scatter(1, torch.zeros(2, 1, dtype=torch.long), 2.0),
    "pooled": lambda y: F.max_pool1d(y[None], 2)[0],
    "as_strided": lambda y: y.as_strided((2,), (1,)),
    "masked_fill": lambda y: y.masked_fill(y > 0, 1.0),
    "prod": lambda y: y.prod(1),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("asked", [0, 1])
@program(grad=True)
def test_a_write_matters_to_the_gradients_alone_that_read_the_tensor(compile, part, asked):
    """The first result is what the second one's gradient reads, not its own."""

    def region(x):
        first = x.sin()
        return first, part(first * first)

    x = X.clone().requires_grad_()
    results = compile(region)(x)
    results[0].view(-1).mul_(3)
    raised = outcome(results[asked].backward, torch.ones_like(results[asked]))
    return raised[:2], x.grad


@pytest.mark.parametrize("written", ["self", "mask", "nothing"])
@pytest.mark.parametrize("dynamic", [None, True])
def test_masked_select_holds_what_eager_holds(dynamic, written):
    def region(x):
        y = x * 2
        mask = y > 1
        result = torch.masked_select(y, mask)
        if written == "self":
            y.relu_()
        if written == "mask":
            mask.fill_(True)
        return result.square().sum()

    compiled = oxyfuel.compile(region, dynamic=dynamic)
    for columns in (3, 2, 1):
        found = []
        for way in (region, compiled):
            x = X[:, :columns].clone().requires_grad_()
            found.append((outcome(way(x).backward)[:2], x.grad))
        assert found[0][0] == found[1][0] and (found[0][0][0] == "raised") == (written != "nothing")
        if written == "nothing":
            assert torch.equal(found[0][1], found[1][1])
