"""Backends of the user's: the torch.fx.GraphModule they get, and what happens to what they give back."""

import builtins
import functools
import gc
import inspect
import keyword
import operator
import pickle
import traceback
import weakref

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import oxyfuel
from oxyfuel import _backends


@pytest.fixture(autouse=True)
def registered():
    before = dict(_backends._registered)
    yield
    _backends._registered.clear()
    _backends._registered.update(before)


def x23():
    return torch.arange(6.0).reshape(2, 3) / 4 - 0.5


class Keeper:
    """A backend that keeps what it is given and runs it as it is."""

    __name__ = "keeper"

    def __init__(self):
        self.modules, self.examples, self.runs = [], [], 0

    def __call__(self, module, examples):
        self.modules.append(module)
        self.examples.append(examples)

        def run(*inputs):
            self.runs += 1
            return module(*inputs)

        return run

    def targets(self):
        (module,) = self.modules
        return [node.target for node in module.graph.nodes if node.op.startswith("call_")]


def check(f, make_arguments, runs=3):
    """`f` gives under a backend what it gives in eager, captured whole; its arguments are changed alike."""
    keeper = Keeper()
    compiled = oxyfuel.compile(f, backend=keeper, fullgraph=True)
    for _ in range(runs):
        ours, eager = make_arguments(), make_arguments()
        torch.manual_seed(1)
        actual = compiled(*ours)
        torch.manual_seed(1)
        expected = f(*eager)
        torch.testing.assert_close(actual, expected, equal_nan=True)
        torch.testing.assert_close(ours, eager, equal_nan=True)
    assert oxyfuel.metrics()["breaks"] == []
    assert len(keeper.modules) == 1 and keeper.runs == runs
    for module in keeper.modules:
        assert isinstance(module, torch.fx.GraphModule)
        module.graph.lint()
    return keeper


# --- what a backend is given


def test_it_gets_the_calls_and_the_real_inputs():
    net = nn.Linear(3, 4)

    def f(x, y):
        return F.relu(net(x)) + y * 2

    keeper = Keeper()
    x, y = x23(), torch.ones(2, 4)
    compiled = oxyfuel.compile(f, backend=keeper)
    torch.testing.assert_close(compiled(x, y), f(x, y))
    (examples,), (module,) = keeper.examples, keeper.modules
    assert isinstance(examples, list) and {id(e) for e in examples} == {id(t) for t in (x, y, *net.parameters())}
    assert keeper.targets() == [torch._C._nn.linear, F.relu, operator.mul, operator.add]
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    assert len(names) == 4 and {"x", "y"} < set(names) and any("weight" in name for name in names)
    assert "linear(" in module.code
    compiled(x + 1, y)
    assert keeper.runs == 2 and len(keeper.modules) == 1
    compiled(torch.ones(5, 3), torch.ones(5, 4))
    assert len(keeper.modules) == 2


def swapped(items):
    first, second = items
    return {"first": second, "second": first}


@oxyfuel.allow_in_graph
def in_graph(x, options):
    return {"sum": x.sum() * options["factor"], "parts": [x, x + 1]}


def mutated_list(x):
    parts = [x, x + 1]
    joined = torch.cat(parts)
    parts.append(x * 100)
    return joined, torch.stack(parts)


def writes(x):
    y = x.clone()
    y[0] = 1.0
    y[:, 1] = x[:, 0]
    y[1, 2] += 3
    y.__setitem__((0, 2), x[1, 1])
    y += x
    y.mul_(2).sub_(1)
    return y


def accumulates(x):
    total = bias = 0
    for row in x:
        total += row
    bias -= x
    return total, bias


def grad_modes(x):
    y = x * 2
    with torch.no_grad():
        z = y + 1
        with torch.enable_grad():
            z = z * y
    return y, z


def loops(x):
    total = 0
    for row in x:
        for i, value in enumerate(row):
            total = total + value * i
    return total


PROGRAMS = {
    "arithmetic": lambda x: (1 - x) / (x + 2) * -x - x % 3 + x**2 // 2,
    "matrix product": lambda x: x @ x.T,
    "comparisons": lambda x: ((x > 0) & ~(x < 1)) | (x == 0) ^ (x != 2),
    "where": lambda x: torch.where(x >= 0, x, 0.0),
    "methods": lambda x: x.view(3, 2).sum(dim=1, keepdim=True).transpose(0, 1).contiguous(),
    "named results": lambda x: (x.max(dim=1).values, x.sort(1)[1], torch.topk(x, 2).indices),
    "several results": lambda x: swapped(x.split([1, 1])),
    "unpacked": lambda x: torch.cat([part * i for i, part in enumerate(x.chunk(3, dim=1))], 1),
    "loops": loops,
    "slices": lambda x: (x[:, 1:], x[None, ..., -1], x[0], x[:, ::2], x[torch.tensor([1, 0])], x[x.long().abs() % 2]),
    "attributes": lambda x: (x.T, x.mT, x.data + 1, x.real, x.H),
    "factories": lambda x: torch.zeros(x.shape) + torch.arange(3) + torch.full((2, 3), float("-inf")).exp() + x,
    "special numbers": lambda x: (x * float("inf"), x + float("nan"), x * 1e-300, torch.finfo(x.dtype).min * x),
    "literals": lambda x: x * torch.tensor(2.0) + torch.tensor([1, 2, 3]),
    "keywords": lambda x: torch.sum(input=x, dim=(0, 1)) + torch.ones_like(x, dtype=torch.float64, device="cpu"),
    "dtypes": lambda x: (x.to(torch.float64), x.double(), x.type_as(torch.ones(1).half()), x.to("cpu", torch.int32)),
    "functional": lambda x: F.layer_norm(F.gelu(x, approximate="tanh"), (3,)).softmax(-1),
    "padding": lambda x: F.pad(x, (1, 2, 0, 1), mode="constant", value=7),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "lists that change": mutated_list,
    "writes": writes,
    "augmented numbers": accumulates,
    "unbound methods": lambda x: torch.Tensor.add(x, torch.Tensor.__mul__(x, 2)) + torch.Tensor.split(x, 1)[0],
    "operator": lambda x: operator.neg(operator.add(x, abs(x))),
    "powers": lambda x: (2**x, pow(x, 2), x.pow(3)),
    "random": lambda x: F.dropout(x, 0.5) + torch.rand_like(x) + torch.randn(3),
    "grad modes": grad_modes,
    "allowed in the graph": lambda x: (in_graph(x * 2, {"factor": 3})["parts"][1], in_graph(x, {"factor": 2})["sum"]),
    "nothing computed": lambda x: (x, [x, x.shape], None),
    "the same twice": lambda x: (lambda y: (y, y, [y]))(x + 1),
    "unused results": lambda x: (x.sin(), x + 1)[1],
    "no inputs": lambda x: torch.ones(3) * 2,
}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "nothing computed"])
@pytest.mark.parametrize("grad", [False, True], ids=["", "grad"])
def test_programs(name, grad):
    with torch.set_grad_enabled(grad):
        check(PROGRAMS[name], lambda: (x23(),))


def test_a_region_without_operators():
    keeper = Keeper()
    x = x23()
    result = oxyfuel.compile(PROGRAMS["nothing computed"], backend=keeper)(x)
    assert result[0] is x and result[1][0] is x and keeper.modules == []


def test_identity_of_results():
    keeper = Keeper()
    compiled = oxyfuel.compile(lambda x: (x.add_(1), x, [x * 2] * 2), backend=keeper)
    x = x23()
    a, b, (c, d) = compiled(x)
    assert a is x and b is x and c is d
    torch.testing.assert_close(x, x23() + 1)
    torch.testing.assert_close(c, (x23() + 1) * 2)


def test_views_share_memory():
    def f(x):
        y = x.view(-1)
        return y, y[2:], (x + 1).t()

    compiled = oxyfuel.compile(f, backend=Keeper())
    x = x23()
    flat, tail, _ = compiled(x)
    flat[3] = 100
    assert x[1, 0] == 100 and tail[1] == 100


def test_writes_to_arguments_that_share_memory():
    def f(x, y):
        x.add_(1)
        return y * 2

    def arguments():
        x = x23()
        return x, x[0]

    check(f, arguments)


def test_writes_of_all_kinds_reach_the_arguments():
    def f(x, y, items):
        x += 1
        y[0] = x[1]
        torch.add(x, y, out=y)
        items["z"].copy_(y).clamp_(max=2)
        torch._foreach_add_([x, y], 3)
        return None

    check(f, lambda: (x23(), x23(), {"z": x23()}))


# --- training and modules


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm1d(4)
        self.attention = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        hidden = self.norm(self.conv(x)).relu()
        return self.last(self.attention(hidden.transpose(1, 2))), hidden.detach().mean()


@pytest.mark.parametrize("training", [True, False])
def test_a_module(training):
    torch.manual_seed(0)
    ours, eager = Net().train(training), Net().train(training)
    eager.load_state_dict(ours.state_dict())
    keeper = Keeper()
    compiled = oxyfuel.compile(ours, backend=keeper, fullgraph=True)
    for seed in range(3):
        x = torch.randn(3, 2, 5)
        losses = []
        for net in (compiled, eager):
            torch.manual_seed(seed)
            net.zero_grad()
            out, mean = net(x)
            assert out.requires_grad and not mean.requires_grad
            losses.append(out.square().mean() + mean)
            losses[-1].backward()
        torch.testing.assert_close(*losses)
        for (name, a), b in zip(ours.named_parameters(), eager.parameters()):
            torch.testing.assert_close(a.grad, b.grad, msg=lambda text, name=name: f"{name}: {text}")
        torch.testing.assert_close(ours.state_dict(), eager.state_dict())
    assert len(keeper.modules) == 1 and keeper.runs == 3
    assert not list(keeper.modules[0].parameters())  # they are inputs like any other


def test_gradients_of_inputs_and_of_gradients():
    compiled = oxyfuel.compile(lambda x: (x**3).sum(), backend=Keeper())
    x = x23().requires_grad_()
    (first,) = torch.autograd.grad(compiled(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, 6 * x)


def test_grad_mode_is_what_the_program_leaves():
    def leaves_it_off(x):
        torch.set_grad_enabled(False)
        return x + 1

    compiled = oxyfuel.compile(leaves_it_off, backend=Keeper())
    with torch.enable_grad():
        assert compiled(x23().requires_grad_()).requires_grad is False
        assert torch.is_grad_enabled() is False


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.MultiheadAttention])
def test_modules_with_calls_of_many_arguments(kind):
    torch.manual_seed(0)
    net = kind(4, 4) if kind is not nn.MultiheadAttention else kind(4, 2)
    arguments = (torch.randn(3, 2, 4),) * (3 if kind is nn.MultiheadAttention else 1)
    keeper = Keeper()
    compiled = oxyfuel.compile(net, backend=keeper)
    torch.testing.assert_close(compiled(*arguments), net(*arguments))
    regions_left = [r for r in oxyfuel.metrics()["breaks"] if "keeper" in r["reason"]]
    assert not regions_left and keeper.runs > 0


def test_regions_between_breaks():
    def f(x):
        y = x + 1
        oxyfuel.graph_break()
        z = y * 2
        print(end="")
        return z.relu()

    keeper = Keeper()
    compiled = oxyfuel.compile(f, backend=keeper)
    for _ in range(2):
        torch.testing.assert_close(compiled(x23()), f(x23()))
    assert len(keeper.modules) == 3 and keeper.runs == 6


def test_a_backend_may_change_the_graph():
    def backend(module, examples):
        for node in module.graph.nodes:
            if node.target is operator.add:
                node.target = operator.sub
        module.recompile()
        return module

    assert oxyfuel.compile(lambda x: x + 1, backend=backend)(x23()).equal(x23() - 1)


def test_a_backend_may_trace_on_and_compile_with_us():
    def backend(module, examples):
        assert torch.fx.symbolic_trace(module)(*examples) is not None
        return oxyfuel.compile(module.forward)

    compiled = oxyfuel.compile(lambda x: F.gelu(x + 1) * 2, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(compiled(x23()), F.gelu(x23() + 1) * 2)
    assert oxyfuel.metrics()["kernels"] == 1


def test_the_code_of_a_backend_is_not_captured():
    seen = []

    def backend(module, examples):
        seen.append(oxyfuel.is_compiling())

        def run(*inputs):
            seen.append(oxyfuel.is_compiling())
            return module(*inputs)

        return run

    inner = oxyfuel.compile(lambda x: x * 2, backend=backend)

    @oxyfuel.compile
    def outer(x):
        y = x + 1
        oxyfuel.graph_break()
        return functools.partial(oxyfuel.disable(inner))(y)

    for _ in range(2):
        torch.testing.assert_close(outer(x23()), (x23() + 1) * 2)
    assert seen == [False] * 3


# --- names of the inputs


def scaled_by(factor):
    return lambda x: x * factor


def parameter_names(keeper):
    (module,) = keeper.modules
    nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
    names = list(inspect.signature(module.forward).parameters)
    assert [node.target for node in nodes] == [node.name for node in nodes] == names and len(set(names)) == len(names)
    assert all(name.isidentifier() and not keyword.iskeyword(name) and not hasattr(builtins, name) for name in names)
    copied = pickle.loads(pickle.dumps(module))
    for again in (copied, torch.fx.symbolic_trace(module)):
        torch.testing.assert_close(again(*keeper.examples[0]), module(*keeper.examples[0]))
    return names


def self_and_torch(self, torch, input, add, operator_add, getattr_1, print, self_):
    return self + torch * input.T.sum() + add - operator_add * getattr_1 / print + self_


def two_cells(x):
    return CELLS[0](x) + CELLS[1](x)


CELLS = scaled_by(torch.ones(3)), scaled_by(torch.full((3,), 2.0))


class NamesOfModules(nn.Module):
    def __init__(self):
        super().__init__()
        self.a_b, self.a = nn.Linear(3, 3), nn.Module()
        self.a.b = nn.Linear(3, 3)
        self.add_module("class", nn.Linear(3, 3))
        self.add_module("0", nn.Linear(3, 3))
        self.register_buffer("self", torch.ones(3))

    def forward(self, x):
        return getattr(self, "class")(self.a_b(x) + self.a.b(x)) + getattr(self, "0")(x) + getattr(self, "self")


AWKWARD = ["class", "lambda", "print", "torch", "add", "mul", "0", "1x", "a b", "a_b", "a.b", "inf", "device", "self", "x", "x_1", "None", "größe", "", "_", "__"]


def entries(d):
    total = 0
    for name in AWKWARD:
        total = total + d[name] * 2
    return total


@pytest.mark.parametrize(
    ("f", "count"),
    [(two_cells, 1), (lambda self: self + 1, 1), (self_and_torch, 8), (NamesOfModules(), 1), (entries, 0), (lambda d, e: d["x"] + e[0] + d["y"] + e[1], -1)],
)
def test_names_are_unique_identifiers(f, count):
    def arguments():
        if count == 0:
            return ({name: torch.full((3,), float(i)) for i, name in enumerate(AWKWARD)},)
        if count < 0:
            return {"x": x23(), "y": x23()}, [x23(), x23()]
        return tuple(x23() + i + 1 for i in range(count))

    names = []
    for _ in range(2):  # and the same in another run
        oxyfuel.reset()
        with torch.no_grad():
            names.append(parameter_names(check(f, arguments)))
    assert names[0] == names[1]


# --- what cannot be written as a graph


@oxyfuel.allow_in_graph
def takes_anything(x, anything):
    return x * 2


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: takes_anything(x, {1, 2}), "takes_anything is given an argument of type set"),
    ],
)
@pytest.mark.parametrize("grad", [False, True])
def test_such_a_region_runs_one_operator_at_a_time(f, words, grad):
    keeper = Keeper()
    compiled = oxyfuel.compile(f, backend=keeper, fullgraph=True)
    with torch.set_grad_enabled(grad):
        for _ in range(2):
            x = x23().requires_grad_(grad)
            result = compiled(x)
            torch.testing.assert_close(result, f(x))
            assert result.requires_grad == f(x).requires_grad
    assert keeper.modules == []
    assert oxyfuel.metrics()["graphs"] == 1
    (record,) = oxyfuel.metrics()["breaks"]
    assert "backend 'keeper'" in record["reason"] and words in record["reason"]


def test_what_torch_fx_refuses_runs_in_eager():
    def f(x):
        rows = [x[0]]
        rows += x
        return torch.stack(rows)

    keeper = Keeper()
    torch.testing.assert_close(oxyfuel.compile(f, backend=keeper)(x23()), f(x23()))
    assert keeper.runs == 0 or not oxyfuel.metrics()["breaks"]


@oxyfuel.allow_in_graph
def takes_keywords(x, **keywords):
    return x * len(keywords)


@pytest.mark.parametrize("name", ["a b", "class", ""])
def test_keywords_that_no_code_can_write(name):
    keeper = Keeper()
    compiled = oxyfuel.compile(lambda x: takes_keywords(x, **{name: 1}), backend=keeper)
    assert compiled(x23()).equal(x23()) and keeper.modules == []
    assert any("keyword argument whose name no Python code can write" in b["reason"] for b in oxyfuel.metrics()["breaks"])


# --- backends that fail


def named_backend(module, examples):
    raise LookupError("no such device")


@pytest.mark.parametrize("with_break", [False, True])
def test_a_backend_that_raises(with_break):
    def f(x):
        if with_break:
            oxyfuel.graph_break()
        return x + 1

    compiled = oxyfuel.compile(f, backend=named_backend)
    for _ in range(2):  # nothing is kept of the failure
        with pytest.raises(RuntimeError, match="backend 'named_backend' .*f: LookupError: no such device") as caught:
            compiled(x23())
        assert isinstance(caught.value.__cause__, LookupError)
    assert oxyfuel.is_compiling() is False
    with pytest.raises(KeyboardInterrupt):

        def interrupted(module, examples):
            raise KeyboardInterrupt

        oxyfuel.compile(f, backend=interrupted)(x23())


class Refused(Exception):
    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


class WithoutText(Exception):
    def __str__(self):
        raise ValueError


def calls_a_function_that_breaks(x):
    def inner(y):
        oxyfuel.graph_break()
        return y * 3

    return inner(x + 1) * 2


def breaks_between(x):
    y = x + 1
    oxyfuel.graph_break()
    return y * 2


ERRORS = [
    Refused("no", 3), WithoutText("no"), ValueError(), RuntimeError("no"), StopIteration(4), oxyfuel.Unsupported("no"), MemoryError(), AssertionError(),
    ExceptionGroup("several", [ValueError(1)]), UserWarning("no"), torch.OutOfMemoryError("no"), ImportError("no", name="it"),
]  # fmt: skip


@pytest.mark.parametrize("error", [*ERRORS, KeyboardInterrupt("no"), SystemExit(3), GeneratorExit(), BaseExceptionGroup("several", [KeyboardInterrupt()])])
@pytest.mark.parametrize("f", [lambda x: x + 1, breaks_between, calls_a_function_that_breaks])
@pytest.mark.parametrize("when", ["compiling", "running"])
def test_errors_keep_what_they_are(error, f, when):
    def odd(module, examples):
        def run(*inputs):
            raise error

        return run if when == "running" else run()

    with pytest.raises(BaseException) as caught:
        oxyfuel.compile(f, backend=odd)(x23())
    seen = caught.value
    if when == "compiling" and isinstance(error, Exception):
        assert type(seen) is RuntimeError and f"backend 'odd' failed for a region of {f.__name__}" in str(seen) or f is calls_a_function_that_breaks
        seen = seen.__cause__
    assert seen is error and "run" in [frame.name for frame in traceback.extract_tb(seen.__traceback__)]
    assert oxyfuel.is_compiling() is False


class RaisesBackwards(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise Refused("backwards", 7)


@pytest.mark.parametrize("inside", [False, True])
def test_errors_of_a_backward_pass(inside):
    def f(x):
        loss = (x + 1).sum()
        if inside:
            loss.backward()
        return loss

    compiled = oxyfuel.compile(f, backend=lambda module, _: lambda *inputs: tuple(RaisesBackwards.apply(o) for o in module(*inputs)))
    with pytest.raises(Refused, match="backwards") as caught:
        compiled(x23().requires_grad_()).backward()
    assert caught.value.code == 7


def test_errors_of_a_backend_below_a_backend():
    def inner(module, examples):
        raise Refused("deep", 5)

    def outer(module, examples):
        compiled = oxyfuel.compile(module.forward, backend=inner)
        compiled(*examples)

    with pytest.raises(RuntimeError, match="backend 'outer' failed.*backend 'inner' failed.*Refused: deep") as caught:
        oxyfuel.compile(lambda x: x + 1, backend=outer)(x23())
    assert caught.value.__cause__.__cause__.code == 5


@pytest.mark.parametrize("made", [None, 3, "run"])
def test_a_backend_that_returns_no_callable(made):
    def odd(module, examples):
        return made

    with pytest.raises(TypeError, match=f"backend 'odd' must return a callable.*{type(made).__name__}"):
        oxyfuel.compile(lambda x: x + 1, backend=odd)(x23())


@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        (lambda y: y, TypeError, "tuple of 1 tensors, not an object of type Tensor"),
        (lambda y: None, TypeError, "NoneType"),
        (lambda y: (), ValueError, "not 0 values"),
        (lambda y: (y, y), ValueError, "not 2 values"),
        (lambda y: (3,), TypeError, "type int as value 0"),
    ],
)
def test_a_callable_that_returns_something_else(result, error, words):
    def odd(module, examples):
        return lambda *inputs: result(*module(*inputs))

    compiled = oxyfuel.compile(lambda x: x + 1, backend=odd)
    for _ in range(2):
        with pytest.raises(error, match="backend 'odd'.*" + words):
            compiled(x23())


def test_a_list_of_results_will_do():
    compiled = oxyfuel.compile(lambda x: (x + 1, x * 2), backend=lambda module, _: lambda *inputs: list(module(*inputs)))
    torch.testing.assert_close(compiled(x23()), (x23() + 1, x23() * 2))


@pytest.mark.parametrize("with_break", [False, True])
def test_a_callable_that_raises(with_break):
    def odd(module, examples):
        def run(*inputs):
            torch.set_grad_enabled(False)
            raise IndexError("too far")

        return run

    def f(x):
        if with_break:
            oxyfuel.graph_break()
        return x + 1

    compiled = oxyfuel.compile(f, backend=odd)
    with torch.enable_grad():
        for _ in range(2):
            with pytest.raises(IndexError, match="too far") as caught:
                compiled(x23())
            assert any("backend 'odd'" in note and "f" in note for note in caught.value.__notes__)
            assert torch.is_grad_enabled()


def test_errors_of_the_program_are_eager_s():
    compiled = oxyfuel.compile(lambda table, index: table[index], backend=Keeper())
    compiled(x23(), torch.tensor([1]))
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(x23(), torch.tensor([7]))


# --- names


def test_registered_backends():
    keeper = Keeper()
    assert oxyfuel.list_backends() == ["eager", "native"]

    @oxyfuel.register_backend
    def first(module, examples):
        return keeper(module, examples)

    @oxyfuel.register_backend("second")
    def whatever(module, examples):
        return keeper(module, examples)

    assert oxyfuel.register_backend(keeper, name="third") is keeper
    assert oxyfuel.register_backend(Keeper()) and oxyfuel.register_backend(first) is first
    assert oxyfuel.list_backends() == ["eager", "first", "keeper", "native", "second", "third"]
    for name in ("first", "second", "third"):
        assert oxyfuel.compile(lambda x: x + 1, backend=name)(x23()).equal(x23() + 1)
    assert len(keeper.modules) == 3


@pytest.mark.parametrize("name", ["\ud800", 3])
def test_names_of_any_text(name):
    keeper = Keeper()
    keeper.__name__ = name
    assert oxyfuel.compile(lambda x: x + 1, backend=keeper)(x23()).equal(x23() + 1) and len(keeper.modules) == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: oxyfuel.register_backend(3), TypeError, "int"),
        (lambda: oxyfuel.register_backend("x", name="y"), TypeError, "one name"),
        (lambda: oxyfuel.register_backend(abs, name=3), TypeError, "int"),
        (lambda: oxyfuel.register_backend(functools.partial(abs)), TypeError, "__name__"),
        (lambda: oxyfuel.register_backend("native"), ValueError, "'native'"),
        (lambda: oxyfuel.register_backend(abs, name=""), ValueError, "''"),
        (lambda: (oxyfuel.register_backend(abs), oxyfuel.register_backend(len, name="abs")), ValueError, "'abs'"),
        (lambda: oxyfuel.compile(abs, backend="third"), ValueError, "'eager', 'native', not 'third'"),
        (lambda: oxyfuel.compile(abs, backend=3), TypeError, "name or a callable, not 3"),
        (lambda: oxyfuel.compile(abs, backend=None), TypeError, "name or a callable, not None"),
    ],
)
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


def a_backend(module, examples):
    return module


def test_pickles_of_modules_keep_their_backend():
    oxyfuel.register_backend(a_backend)
    for backend in ("a_backend", a_backend):
        compiled = pickle.loads(pickle.dumps(oxyfuel.compile(nn.Linear(3, 3), backend=backend)))
        oxyfuel.reset()
        compiled(x23())
        assert oxyfuel.metrics()["graphs"] == 1 and oxyfuel.metrics()["kernels"] == 0


def test_a_dropped_callable_is_freed_with_its_backend():
    class Backend:
        def __call__(self, module, examples):
            return module

    def make():
        backend = Backend()
        compiled = oxyfuel.compile(lambda x: x + 1, backend=backend)
        compiled(x23())
        backend.compiled = compiled  # a cycle
        return weakref.ref(backend)

    watch = make()
    gc.collect()
    assert watch() is None
