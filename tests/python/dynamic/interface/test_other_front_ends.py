"""Sizes in graphs that another front end hands over, and in those that are handed to a backend of the user's."""

import pytest
import torch

import oxyfuel


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x, n=3):
        y = self.linear(x).reshape(-1, 2)
        return y[: x.size(0)] * n, x.size(0) * 2, x.sum() / x.size(0)


def graphs(work):
    before = oxyfuel.metrics()["graphs"]
    work()
    return oxyfuel.metrics()["graphs"] - before


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dynamic, most", [(True, 1), (None, 2)])
def test_graphs_of_torch_compile(dynamic, most, grad):
    model = Model()
    compiled = torch.compile(model, backend="oxyfuel", dynamic=dynamic)

    def calls():
        with torch.set_grad_enabled(grad):
            for n in (6, 8, 3, 7, 30):
                x = torch.randn(n, 4)
                torch.testing.assert_close(compiled(x), model(x))

    assert graphs(calls) == most


def test_ints_of_torch_compile():
    model = Model()
    compiled = torch.compile(model, backend="oxyfuel", dynamic=True)

    def calls():
        with torch.no_grad():
            for n in (6, 8, 3):
                x = torch.randn(n, 4)
                torch.testing.assert_close(compiled(x, n + 1), model(x, n + 1))

    assert graphs(calls) == 1


def test_sizes_that_torch_compile_relates():
    def function(x, y):
        return torch.cat([x, y]) * x.size(0) + (x.T @ y).sum()

    compiled = torch.compile(function, backend="oxyfuel", dynamic=True)

    def calls():
        for n in (4, 5, 9):
            x, y = torch.randn(n, 3), torch.randn(n, 3)
            torch.testing.assert_close(compiled(x, y), function(x, y))

    assert graphs(calls) == 1


class Backend:
    """Runs the graph, and notes what it was given."""

    def __init__(self):
        self.modules, self.examples, self.calls = [], [], []

    def __call__(self, module, examples):
        self.modules.append(module)
        self.examples.append(examples)

        def run(*arguments):
            self.calls.append(arguments)
            return module.forward(*arguments)

        return run


def handed(function, *calls, **settings):
    backend = Backend()
    compiled = oxyfuel.compile(function, backend=backend, **settings)
    for arguments in calls:
        torch.testing.assert_close(compiled(*arguments), function(*arguments))
    return backend


def placeholders(module):
    return [node.name for node in module.graph.nodes if node.op == "placeholder"]


def test_a_backend_is_given_symbols():
    def function(x):
        return x.reshape(x.size(0) * 2, -1)[1 : x.size(0)] + torch.ones(x.size(0) - 1, 1)

    backend = handed(function, *[(torch.randn(n, 4),) for n in (5, 3, 8, 2)], dynamic=True)
    assert len(backend.modules) == 1
    assert len(placeholders(backend.modules[0])) == 2
    assert [type(example) for example in backend.examples[0]] == [int, torch.Tensor]
    assert [arguments[0] for arguments in backend.calls] == [5, 3, 8, 2]


def test_a_backend_is_given_numbers_first():
    def function(x):
        return x.view(x.size(0) // 2, -1)

    backend = handed(function, *[(torch.randn(n, 3),) for n in (4, 6, 8, 10)])
    assert [len(placeholders(module)) for module in backend.modules] == [1, 2]


def test_a_backend_with_marks_and_specifications():
    x = torch.randn(4, 3)
    oxyfuel.mark_dynamic(x, 0)
    assert len(placeholders(handed(lambda x: x.repeat(x.size(0), 1), (x,)).modules[0])) == 2
    specification = {"x": {0: torch.export.Dim("n")}, "y": {0: torch.export.Dim("n")}}
    backend = Backend()
    compiled = oxyfuel.compile(
        lambda x, y: x.expand(x.size(0), 3) + y.view(y.size(0), 3), backend=backend, dynamic_shapes=specification
    )
    for n in (3, 4, 5):
        compiled(torch.randn(n, 3), torch.randn(n, 3))
    assert len(backend.modules) == 1
    assert len(placeholders(backend.modules[0])) == 3  # one symbol for both


def test_data_is_left_to_eager_with_a_backend():
    def function(x):
        return x[x > 0] * 2

    handed(function, *[(torch.randn(n),) for n in (4, 6, 8)], dynamic=True)


def test_a_backend_without_sizes_in_its_calls():
    backend = handed(lambda x: (x * 2).relu(), *[(torch.randn(n, 3),) for n in (4, 1, 0)], dynamic=True)
    assert [placeholders(module) for module in backend.modules] == [["x"]]


def test_all_kinds_of_arithmetic():
    def function(x, y):
        n, m = x.size(0), y.size(0)
        sizes = [n + m, n * m, n // 2 + 1, n % 3 + 1, min(n, m), max(n, m), n - 1, 2 * n - m + 9]
        return [torch.ones(size) + x.sum() for size in sizes]

    calls = [(torch.randn(n, 3), torch.randn(m, 2)) for n, m in ((5, 4), (6, 3), (7, 5))]
    backend = handed(function, *calls, dynamic=True)
    assert len(backend.modules) <= 2
