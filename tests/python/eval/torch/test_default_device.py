"""`with torch.device(...)` around and inside of programs, and torch.set_default_device(): factories have the device as in eager."""

import pytest
import torch

import oxyfuel


def modes():
    return [str(mode.device) for mode in torch.overrides._get_current_function_mode_stack()]


@pytest.fixture(autouse=True)
def no_default_device():
    yield
    torch.set_default_device(None)
    assert modes() == []


def factories(x):
    places = torch.zeros(2), torch.arange(x.size(0)), torch.tensor([1.0]), torch.rand(2, 2), torch.full((2,), 3.0, device=None)
    given = torch.ones(3, device="cpu"), torch.zeros_like(x), x.new_zeros(2), torch.normal(0.0, 1.0, (2,)), torch.eye(2, device=x.device)
    return x + 1, [t.device for t in (*places, *given)]


def agree(program, *arguments):
    compiled = oxyfuel.compile(program)
    for _ in range(3):
        got, expected = compiled(*arguments), program(*arguments)
        assert repr(got) == repr(expected)
    return compiled


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_around_the_call(device):
    x = torch.randn(3)
    compiled = oxyfuel.compile(factories)
    for _ in range(2):
        assert repr(compiled(x)) == repr(factories(x))
        with torch.device(device):
            assert repr(compiled(x)) == repr(factories(x))
    torch.set_default_device(device)
    assert repr(compiled(x)) == repr(factories(x))
    torch.set_default_device(None)
    assert repr(compiled(x)) == repr(factories(x))
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_a_call_under_a_default_device_is_compiled():
    x = torch.randn(3)
    compiled = oxyfuel.compile(lambda x: x * 2 + torch.ones(3), fullgraph=True)
    with torch.device("cpu"):
        compiled(x)
        graphs = oxyfuel.metrics()["graphs"]
        compiled(x)
    assert graphs == 1 and oxyfuel.metrics()["graphs"] == 1 and oxyfuel.metrics()["calls_eager"] == 0
    compiled(x)
    assert oxyfuel.metrics()["recompile_reasons"][0].endswith("the default device changed")


def test_inside_of_the_program():
    def program(x):
        with torch.device("cpu") as device:
            y = x + torch.ones(3)
            with torch.device("meta"):
                inner = torch.empty(2).device
            outer = torch.empty(2).device
        return y, inner, outer, str(device), torch.zeros(1).device, torch.get_default_device()

    x = torch.randn(3)
    agree(program, x)
    with torch.device("meta"):
        agree(program, x)


def test_one_graph_inside_of_the_program():
    def program(x):
        with torch.device("cpu"):
            return x + torch.ones(3), torch.get_default_device()

    assert oxyfuel.compile(program, fullgraph=True)(torch.zeros(3))[0].tolist() == [1.0, 1.0, 1.0]


def test_a_break_inside_of_the_context():
    def program(x, texts):
        with torch.device("meta"):
            y = x * 2
            texts.append(eval("torch.empty(1).device", {"torch": torch}))  # runs in eager, under the context
            place = torch.empty(2).device
        return y, place, torch.empty(2).device, texts

    x, compiled = torch.randn(3), oxyfuel.compile(program)
    for _ in range(3):
        assert repr(compiled(x, [])) == repr(program(x, []))
        assert modes() == []


def test_what_a_program_leaves_entered_and_left():
    def enters(x):
        torch.device("meta").__enter__()
        return x + 1

    def leaves(x):
        torch.device("meta").__exit__(None, None, None)
        return x + 1, torch.empty(1).device

    for _ in range(2):
        for way in (oxyfuel.compile, lambda f: f):
            way(enters)(torch.zeros(1))
            assert modes() == ["meta"]
            assert way(leaves)(torch.zeros(1))[1].type == "cpu"
            assert modes() == []


def test_an_exception_leaves_the_context():
    def program(x):
        with torch.device("meta"):
            raise ValueError(str(torch.empty(1).device))

    for way in (program, oxyfuel.compile(program)):
        with pytest.raises(ValueError, match="meta"):
            way(torch.zeros(1))
        assert modes() == []


def test_sizes_that_vary():
    def program(x):
        with torch.device("cpu"):
            n = x.size(0)
            return torch.linspace(0, 1, n) + x, torch.tensor([n, 2]), torch.nn.functional.one_hot(torch.arange(n), n + 1)

    compiled = oxyfuel.compile(program, dynamic=True)
    for n in (3, 5, 1, 8):
        x = torch.randn(n)
        for a, b in zip(compiled(x), program(x)):
            assert torch.equal(a, b)


def test_other_modes_run_in_eager():
    class Mode(torch.overrides.TorchFunctionMode):
        seen = 0

        def __torch_function__(self, function, types, args=(), kwargs=None):
            Mode.seen += 1
            return function(*args, **(kwargs or {}))

    compiled = oxyfuel.compile(lambda x: x + torch.ones(3))
    with torch.device("cpu"), Mode():
        compiled(torch.zeros(3))
        assert Mode.seen > 0
        assert "a mode of __torch_function__ is active" in str(oxyfuel.explain(compiled)(torch.zeros(3)))


@oxyfuel.assume_constant_result
def constant_place():
    return str(torch.zeros(2).device)


@oxyfuel.allow_in_graph
def made_in_graph(x):
    return torch.zeros(2, dtype=x.dtype)


def test_code_that_runs_for_real_while_a_program_is_captured():
    def inside(x):
        with torch.device("meta"):
            return constant_place(), made_in_graph(x).device

    def around(x):
        return constant_place(), made_in_graph(x).device

    x = torch.zeros(3)
    assert oxyfuel.compile(inside)(x) == inside(x) == ("meta", torch.device("meta"))
    with torch.device("meta"):
        assert oxyfuel.compile(around)(x) == ("meta", torch.device("meta"))
    assert oxyfuel.compile(around)(x) == ("cpu", torch.device("cpu"))
