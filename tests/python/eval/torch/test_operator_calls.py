"""Calls of torch.ops and of what the user registered there; kernels are only given what the program gives them."""

import gc
import weakref

import pytest
import torch

import oxyfuel


@pytest.fixture
def custom():
    """Defines an operator whose kernel notes what it is called with; it counts on the sizes that it is told."""
    with torch.library._scoped_library("oxysweep", "DEF") as library:
        seen = []

        def kernel(x, width):
            seen.append((tuple(x.shape), x.sum().item()))
            assert x.shape[-1] == width
            return x * 2

        library.define("widened(Tensor x, int width) -> Tensor")
        library.impl("widened", kernel, "CPU")
        library.impl("widened", lambda x, width: torch.empty_like(x), "Meta")
        yield seen


def run(f, *arguments):
    compiled = oxyfuel.compile(f)
    with torch.no_grad():
        return [(compiled(*arguments), f(*arguments)) for _ in range(3)]


@pytest.mark.parametrize("of", [lambda: torch.ops.oxysweep.widened, lambda: torch.ops.oxysweep.widened.default])
def test_a_custom_operator_is_recorded(custom, of):
    operator = of()
    x = torch.ones(2, 4)

    def f(x):
        return operator(x + 1, 4) - 1

    for actual, expected in run(f, x):
        assert torch.equal(actual, expected)
    assert oxyfuel.metrics()["graphs"] == 1 and not oxyfuel.metrics()["breaks"]
    # Three calls of each: none while capturing, and none with anything but the program's tensors.
    assert custom == [((2, 4), 16.0)] * 6


def test_a_custom_operator_that_nobody_reads_is_called(custom):
    def f(x):
        torch.ops.oxysweep.widened(x, 4)
        return x + 1

    run(f, torch.ones(2, 4))
    assert len(custom) == 6


def test_an_attribute_that_a_module_makes_when_asked():
    import types

    class Lazy(types.ModuleType):
        def __getattr__(self, name):
            if name != "scale":
                raise AttributeError(name)
            self.scale = 3
            return self.scale

    lazy = Lazy("lazy")
    assert oxyfuel.compile(lambda x: x * lazy.scale)(torch.ones(2)).tolist() == [3, 3]


@pytest.mark.parametrize("names", [("turning", "turned"), ("again", "again")])
def test_operators_come_and_go(names):
    """Another operator may lie where one was that is gone; one of the same name may have another signature."""
    for turn in range(20):
        with torch.library._scoped_library("oxysweep", "DEF") as library:
            name = names[turn % 2]
            if turn % 2:
                library.define(f"{name}(Tensor x, int n, int m) -> Tensor")
                kernel, arguments = (lambda x, n, m: x * n + m), (2, turn)
                library.impl(name, lambda x, n, m: torch.empty_like(x), "Meta")
            else:
                library.define(f"{name}(Tensor x) -> (Tensor, Tensor)")
                kernel, arguments = (lambda x: (x + 1, x + 2)), ()
                library.impl(name, lambda x: (torch.empty_like(x), torch.empty_like(x)), "Meta")
            library.impl(name, kernel, "CPU")
            oxyfuel.reset()
            operator = getattr(torch.ops.oxysweep, name)
            for actual, expected in run(lambda x: operator(x, *arguments), torch.ones(turn + 1)):
                torch.testing.assert_close(actual, expected)
            if names[0] != names[1]:
                assert oxyfuel.metrics()["graphs"] == 1 and not oxyfuel.metrics()["breaks"]


def test_a_custom_operator_without_a_meta_kernel_runs_in_eager():
    with torch.library._scoped_library("oxysweep", "DEF") as library:
        library.define("opaque(Tensor x) -> Tensor")
        library.impl("opaque", lambda x: x[x > 0], "CPU")
        for actual, expected in run(lambda x: torch.ops.oxysweep.opaque(x * 1.5) + 1, torch.tensor([1.0, -1.0, 2.0])):
            assert torch.equal(actual, expected)


def test_python_behind_a_composite_operator_runs_every_time():
    calls = []
    with torch.library._scoped_library("oxysweep", "DEF") as library:
        library.define("composed(Tensor x) -> Tensor")
        library.impl("composed", lambda x: (calls.append(1), x + 1)[1], "CompositeImplicitAutograd")
        compiled = oxyfuel.compile(lambda x: torch.ops.oxysweep.composed(x) * 2)
        with torch.no_grad():
            for _ in range(3):
                assert compiled(torch.ones(2)).tolist() == [4, 4]
    assert len(calls) == 3


def test_a_custom_operator_with_a_gradient_of_its_own():
    with torch.library._scoped_library("oxysweep", "DEF") as library:
        library.define("doubled(Tensor x) -> Tensor")
        library.impl("doubled", lambda x: x * 2, "CPU")
        library.impl("doubled", torch.empty_like, "Meta")
        torch.library.register_autograd("oxysweep::doubled", lambda ctx, grad: grad * 5, lib=library)
        x = torch.ones(3, requires_grad=True)
        oxyfuel.compile(lambda x: (torch.ops.oxysweep.doubled(x + 0) * 3).sum())(x).backward()
        assert x.grad.tolist() == [15.0] * 3


def test_operators_of_torch_itself():
    def f(x):
        return torch.ops.aten.add.Tensor(x, x) + torch.ops.aten.mul(x, 3)

    for actual, expected in run(f, torch.randn(3)):
        assert torch.equal(actual, expected)
    assert not oxyfuel.metrics()["breaks"]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_layers(kind, bidirectional):
    torch.manual_seed(0)
    model = getattr(torch.nn, kind)(48, 32, num_layers=2, bidirectional=bidirectional, batch_first=True).eval()
    for actual, expected in run(model, torch.randn(3, 7, 48)):
        torch.testing.assert_close(actual, expected)
    assert not oxyfuel.metrics()["breaks"], oxyfuel.metrics()["breaks"]
    # Weights that are replaced: the layer notices by its weak references.
    other = torch.nn.Parameter(torch.randn_like(model.weight_ih_l0))
    compiled, x = oxyfuel.compile(model), torch.randn(3, 7, 48)
    with torch.no_grad():
        compiled(x)
        model.weight_ih_l0 = other
        torch.testing.assert_close(compiled(x), model(x))


def test_what_a_weak_reference_refers_to_is_guarded():
    class Thing:
        def __init__(self, scale):
            self.scale = scale

    class Holder:
        reference = None

    first, second, holder = Thing(2.0), Thing(3.0), Holder()

    @oxyfuel.compile
    def f(x):
        thing = holder.reference()
        return x + 1 if thing is None else x * thing.scale

    x = torch.ones(2)
    holder.reference = weakref.ref(first)
    assert f(x).tolist() == [2, 2]
    first.scale = 4.0
    assert f(x).tolist() == [4, 4]
    holder.reference = weakref.ref(second)
    assert f(x).tolist() == [3, 3]
    assert not oxyfuel.metrics()["breaks"]
    oxyfuel.reset()  # entries may hold what they read
    del second
    gc.collect()
    assert holder.reference() is None and f(x).tolist() == [2, 2]


def test_regular_expressions_that_make_strings():
    import re

    pattern = re.compile(r"\d+")

    def f(x):
        return x * len(pattern.split("a1b22c")) + (pattern.sub("", "a1b22c") == "abc")

    for actual, expected in run(f, torch.ones(2)):
        assert torch.equal(actual, expected)
    assert not oxyfuel.metrics()["breaks"]


def test_histograms():
    for actual, expected in run(lambda x: torch.histc(x, bins=5, min=0, max=4) + 1, torch.tensor([0.0, 1, 1, 3, 4])):
        assert torch.equal(actual, expected)
    assert not oxyfuel.metrics()["shape_fallbacks"]


@pytest.mark.parametrize("grad, requires_grad", [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("pool", [torch.max_pool1d, torch.nn.functional.max_pool1d, torch.nn.MaxPool1d(3, 2, 1)])
def test_functions_that_read_data_without_an_operator(pool, grad, requires_grad):
    x = torch.randn(2, 5, 12).transpose(0, 1).requires_grad_(requires_grad)

    def f(x):
        return pool(x * 2) if isinstance(pool, torch.nn.Module) else pool(x * 2, 3, 2, 1)

    with torch.set_grad_enabled(grad):
        actual, expected = oxyfuel.compile(f)(x), f(x)
    assert torch.equal(actual, expected) and actual.stride() == expected.stride()
    assert actual.requires_grad == requires_grad
    assert not oxyfuel.metrics()["breaks"]


def test_pooling_that_returns_indices():
    for actual, expected in run(lambda x: torch.nn.functional.max_pool1d(x, 2, return_indices=True), torch.randn(1, 2, 6)):
        assert all(map(torch.equal, actual, expected))


def test_a_program_that_raises_because_it_is_compiled_runs_in_eager():
    def inner(x, mask):
        if mask is None and not torch.compiler.is_compiling():
            mask = torch.ones(2)
        y = x * 2
        return y * mask.shape[0]

    for actual, expected in run(lambda x: inner(x + 1, None) + 1, torch.ones(2)):
        assert torch.equal(actual, expected)

    def caught(x):
        try:
            return inner(x, None)
        except AttributeError:
            return x - 1

    oxyfuel.compile(caught)(torch.ones(2))  # the program handles what being compiled led to


def test_pivots_that_eager_does_not_check():
    """LAPACK writes to the rows that they name: numbers that were made up would name none of the matrix."""
    matrix = torch.randn(64, 64, dtype=torch.float64)
    factors, pivots = torch.linalg.ldl_factor(matrix @ matrix.mT)
    right = torch.randn(64, 8, dtype=torch.float64)
    f = oxyfuel.compile(lambda *a: torch.linalg.ldl_solve(*a) * 2, fullgraph=True)
    for _ in range(2):
        torch.testing.assert_close(f(factors, pivots, right), torch.linalg.ldl_solve(factors, pivots, right) * 2)
