"""The public functions, compiled modules as objects, and what wrong arguments get."""

import copy
import functools
import gc
import inspect
import io
import pickle
import time
import types
import warnings
import weakref

import numpy as np
import pytest
import torch
import torch.nn as nn

import oxyfuel
from eager_comparison import Comparison, source_line


def x23():
    return torch.arange(6.0).reshape(2, 3)


class Net(nn.Module):
    """A net."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("offset", torch.ones(3))
        self.scale = 2.0

    def forward(self, x, extra=None):
        """Runs."""
        y = self.linear(x) * self.scale + self.offset
        return y if extra is None else y + extra

    def twice(self, x):
        return self(self(x))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


# --- compile


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"backend": "inductor"}, ValueError, ["backend", "'native'", "'inductor'"]),
        ({"backend": 3}, TypeError, ["backend", "3"]),
        ({"mode": "fast"}, ValueError, ["mode", "'default'", "'fast'"]),
        ({"dynamic": "yes"}, TypeError, ["dynamic", "'yes'"]),
        ({"fullgraph": 1}, TypeError, ["fullgraph", "int"]),
        ({"disable": None}, TypeError, ["disable", "NoneType"]),
        ({"options": [1]}, TypeError, ["options", "list"]),
        ({"options": {"speed": 1}}, ValueError, ["'speed'", "'freezing'"]),
        ({"options": {"fuse": True}}, ValueError, ["'fuse'", "'fusion'"]),
        ({"options": {"packing_budget": 0.1}}, ValueError, ["'packing_budget'", "'weight_copy_budget'"]),
        ({"options": {"wait_for_caches": True}}, ValueError, ["'wait_for_caches'", "'fill_caches_in_eager'"]),
        ({"options": {"freezing": 1}}, TypeError, ["'freezing'", "bool", "int"]),
        ({"options": {"recompile_limit": True}}, TypeError, ["'recompile_limit'", "int", "bool"]),
        ({"options": {"recompile_limit": 0}}, ValueError, ["'recompile_limit'", "0"]),
        ({"options": {"recompile_limit": -3}}, ValueError, ["'recompile_limit'", "-3"]),
        ({"options": {"weight_copy_budget": float("nan")}}, ValueError, ["'weight_copy_budget'", "nan"]),
        ({"options": {"weight_copy_budget": -1}}, ValueError, ["'weight_copy_budget'", "-1"]),
        ({"options": {"weight_copy_budget": -(10**400)}}, ValueError, ["'weight_copy_budget'", "-inf"]),
        ({"options": {"activation_memory_budget": 10**400}}, ValueError, ["'activation_memory_budget'", "inf"]),
        ({"mode": torch.ones(2)}, ValueError, ["mode", "tensor"]),
        ({"mode": np.array(["default", "fast"])}, ValueError, ["mode", "array"]),
        ({"dynamic": 1}, TypeError, ["dynamic", "not 1"]),
        ({"dynamic": 0.0}, TypeError, ["dynamic", "0.0"]),
        ({"dynamic": torch.ones(2)}, TypeError, ["dynamic", "tensor"]),
    ],
)
def test_wrong_arguments(arguments, error, words):
    for call in (lambda: oxyfuel.compile(abs, **arguments), lambda: oxyfuel.compile(**arguments)):
        with pytest.raises(error) as caught:
            call()
        for word in words:
            assert word in str(caught.value)


@pytest.mark.parametrize("options", [{"recompile_limit": 10**30}, {"weight_copy_budget": 10**400}, {"weight_copy_budget": float("inf")}])
def test_options_without_a_limit(options):
    with torch.no_grad():
        net = nn.Linear(64, 64)
        torch.testing.assert_close(oxyfuel.compile(net, options=options)(torch.ones(2, 64)), net(torch.ones(2, 64)))


@pytest.mark.parametrize("model", [3, "f", [1], torch.ones(1)])
def test_what_cannot_be_called(model):
    with pytest.raises(TypeError, match=type(model).__name__):
        oxyfuel.compile(model)


@pytest.mark.parametrize("taken", [3, None, classmethod(abs)])
def test_what_cannot_be_called_is_refused_at_once(taken):
    for call in (oxyfuel.explain, oxyfuel.compile(), oxyfuel.compile(disable=True)):
        with pytest.raises(TypeError, match=f"takes a callable or a torch.nn.Module, not {type(taken).__name__}"):
            call(taken)


def test_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError):
        oxyfuel.compile(abs, fast=True)
    with pytest.raises(TypeError):
        oxyfuel.compile(abs, True)


def test_dynamic_is_checked_not_ignored():
    for value in (None, False):
        assert oxyfuel.compile(lambda x: x + 1, dynamic=value)(x23()).shape == (2, 3)


def test_decorator_forms():
    @oxyfuel.compile
    def plain(x):
        return x + 1

    @oxyfuel.compile()
    def called(x):
        return x + 1

    @oxyfuel.compile(fullgraph=True, backend="eager", options={"freezing": False})
    def with_arguments(x):
        return x + 1

    for f in (plain, called, with_arguments):
        torch.testing.assert_close(f(x23()), x23() + 1)
    assert oxyfuel.metrics()["graphs"] == 3


def test_decorated_method():
    class Model:
        def __init__(self, k):
            self.k = k

        @oxyfuel.compile
        def run(self, x):
            return x * self.k

        @classmethod
        @oxyfuel.compile
        def made(cls, x):
            return cls.__name__, x + 1

        @staticmethod
        @oxyfuel.compile
        def plain(x):
            return x - 1

    for k in (2, 3, 2):
        torch.testing.assert_close(Model(k).run(x23()), x23() * k)
    assert Model.made(x23())[0] == "Model"
    torch.testing.assert_close(Model(1).plain(x23()), x23() - 1)
    torch.testing.assert_close(Model.run(Model(4), x23()), x23() * 4)


def test_decorated_forward():
    class Model(nn.Module):
        @oxyfuel.compile(fullgraph=True)
        def forward(self, x):
            return x * 2

    torch.testing.assert_close(Model()(x23()), x23() * 2)
    assert oxyfuel.metrics()["graphs"] == 1


def test_compiled_function_looks_like_the_original():
    def f(x: torch.Tensor, k: int = 2) -> torch.Tensor:
        """Multiplies."""
        return x * k

    c = oxyfuel.compile(f)
    assert c.__name__ == "f" and c.__doc__ == "Multiplies." and c.__module__ == f.__module__
    assert c.__qualname__ == f.__qualname__ and c.__wrapped__ is f

    assert inspect.signature(c) == inspect.signature(f)
    assert callable(c)
    c.note = 3
    assert c.note == 3
    assert weakref.ref(c)() is c


def test_attributes_of_the_function():
    def f(x):
        return x

    class Holder:
        def method(self, x):
            return x

        method.note = 2

    f.note = 1
    assert oxyfuel.compile(f).note == 1 and oxyfuel.compile(Holder().method).note == 2


def test_disable_returns_the_model(net):
    assert oxyfuel.compile(net, disable=True) is net
    assert oxyfuel.compile(disable=True)(abs) is abs


def test_wrong_call_arguments_raise_as_eager(net):
    def f(x, k, *, name="n"):
        return x * k

    compiled = oxyfuel.compile(f)
    for args, kwargs in (((x23(),), {}), ((x23(), 1, 2), {}), ((x23(), 1), {"z": 2}), ((x23(), 1), {"k": 2}), ((), {})):
        with pytest.raises(TypeError) as expected:
            f(*args, **kwargs)
        with pytest.raises(TypeError) as actual:
            compiled(*args, **kwargs)
        assert str(actual.value) == str(expected.value)
    with pytest.raises(TypeError) as expected:
        net()
    with pytest.raises(TypeError) as actual:
        oxyfuel.compile(net)()
    assert str(actual.value) == str(expected.value)
    torch.testing.assert_close(compiled(x23(), 2), x23() * 2)


def test_a_keyword_named_as_the_module_is():
    class Named(nn.Module):
        def forward(this, x, **options):
            return options

    class Called(nn.Module):
        def __call__(this, x, **options):
            return options

    for make in (Named, Called):
        for how in (oxyfuel.compile, oxyfuel.disable):
            module = make()
            results = []
            for call in (module, how(module)):
                for name in ("self", "this"):
                    try:
                        results.append(call(x23(), **{name: 1}))
                    except TypeError as error:
                        results.append(str(error))
            assert results[:2] == results[2:]


# --- fullgraph


@pytest.mark.parametrize("form", ["print", "item", "branch"])
def test_fullgraph_names_the_line(form):
    def f(x):
        y = x + 1
        if form == "print":
            print(y)  # print
        if form == "item":
            return y * [1, 2][y.argmax().item() % 2]  # item
        if y.sum() > 0:  # branch
            return y
        return -y

    with pytest.raises(oxyfuel.Unsupported) as caught:
        oxyfuel.compile(f, fullgraph=True)(x23())
    text = str(caught.value)
    assert f"{f.__code__.co_filename}:{source_line(f, '# ' + form)}" in text
    assert len(text.splitlines()) >= 2
    assert isinstance(caught.value, RuntimeError)


def test_fullgraph_names_the_line_of_a_callee():
    def inner(x):
        print("no")  # the line
        return x

    def f(x):
        return inner(x + 1)  # the call

    with pytest.raises(oxyfuel.Unsupported) as caught:
        oxyfuel.compile(f, fullgraph=True)(x23())
    assert f":{source_line(inner, '# the line')} in inner" in str(caught.value)
    assert f":{source_line(f, '# the call')} in f" in str(caught.value)


def test_fullgraph_raises_the_users_exception():
    def f(x):
        if x.shape[0] == 2:
            raise ValueError("two")
        return x

    with pytest.raises((ValueError, oxyfuel.Unsupported), match="two"):
        oxyfuel.compile(f, fullgraph=True)(x23())


def test_fullgraph_raises_again():
    f = oxyfuel.compile(lambda x: print(x), fullgraph=True)
    for _ in range(2):
        with pytest.raises(oxyfuel.Unsupported):
            f(x23())


# --- explain, metrics, reset


def test_explain_names_breaks_and_graphs():
    def f(x):
        y = x + 1
        print("here", end="")  # break
        return y * 2

    explanation = oxyfuel.explain(f)(x23())
    assert explanation.graph_count == 2
    assert any("print" in record["reason"] for record in explanation.breaks)
    text = str(explanation)
    assert f":{source_line(f, '# break')}" in text and "2 graph" in text
    assert "<details>" in explanation._repr_html_()


def test_explain_a_module(net):
    explanation = oxyfuel.explain(net)(x23())
    assert explanation.graph_count == 1 and not explanation.breaks
    assert "guard" in str(explanation)


def test_explain_what_is_compiled_already():
    def helper(x):
        time.perf_counter()  # innermost
        return x * 2

    def f(x, n=1):
        y = helper(x + n)  # outer
        return y + 1

    compiled = oxyfuel.compile(f)
    compiled(x23())
    before = oxyfuel.metrics()
    explanation = oxyfuel.explain(compiled)(x23())
    assert oxyfuel.metrics()["graphs"] == before["graphs"] == explanation.graph_count == 3
    (record,) = explanation.breaks
    assert "perf_counter" in record["reason"]
    lines = [f"{source_line(helper, '# innermost')} in helper", f"{source_line(f, '# outer')} in f"]
    assert record["stack"] == [f"{__file__}:{line}" for line in lines]
    assert [segment["visits"] for segment in explanation.segments] == [1] * len(explanation.segments)
    assert all(segment["file"] == __file__ and segment["line"] > 0 for segment in explanation.segments)
    assert {segment["function"].rsplit(".")[-1] for segment in explanation.segments} == {"f", "helper"}
    assert any(guard == "n == 1" for guard in explanation.segments[0]["guards"])
    text = str(explanation)
    assert "what to do: call it outside" in text and "guard n == 1" in text


def test_explain_a_compiled_module_and_its_options(net):
    compiled = oxyfuel.compile(net, backend="eager")
    explanation = oxyfuel.explain(compiled)(x23())
    assert explanation.graph_count == 1 and explanation.segments[0]["kernels"] == 0
    assert oxyfuel.explain(compiled)(x23()).segments[0]["visits"] == 1
    assert any("the compiled callable" in guard for guard in explanation.segments[0]["guards"])


def test_explain_what_runs_in_eager():
    compiled = oxyfuel.compile(lambda x, n: x + n, options={"recompile_limit": 1})
    with warnings.catch_warnings(record=True):
        for n in range(3):
            compiled(x23(), n)
    explanation = oxyfuel.explain(compiled)(x23(), 5)
    (record,) = explanation.breaks
    assert "compiled 1 times; the last reason: n: was 0, is 1" in record["reason"]
    assert explanation.graph_count == 0 and "in Python, 1 visit" in str(explanation)
    assert record["reason"] in str(explanation)


def test_explain_in_a_notebook_is_escaped():
    def f(x, text):
        print("<b>", end="")
        return x + len(text)

    shown = oxyfuel.explain(f)(x23(), "<script>&")._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;&amp;" in shown
    assert shown.count("<details>") == shown.count("</details>") > 0


def test_explain_passes_exceptions_on():
    def f(x):
        print(end="")
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        oxyfuel.explain(f)(x23())
    assert oxyfuel.explain(lambda x: x + 1)(x23()).graph_count == 1


def test_explain_does_not_forget_others():
    f = oxyfuel.compile(lambda x: x + 1)
    f(x23())
    with pytest.raises(TypeError):
        oxyfuel.explain(3)(x23())


def test_metrics_have_what_is_documented():
    f = oxyfuel.compile(lambda x: (x + 1).relu())
    f(x23())
    metrics = oxyfuel.metrics()
    for name in ("graphs", "breaks", "recompiles", "recompile_reasons", "kernels", "launches", "extern_calls", "operators", "guards",
                 "shape_fallbacks", "arena_bytes", "packed_bytes", "seconds"):
        assert name in metrics, name
    assert metrics["graphs"] == 1 and metrics["kernels"] == 1 and metrics["operators"] == 2
    assert metrics["seconds"]["capture"] > 0 and metrics["seconds"]["jit"] > 0
    metrics["graphs"] = 100
    assert oxyfuel.metrics()["graphs"] == 1


def test_reset_forgets():
    calls = oxyfuel.compile(lambda x: x + 1)
    calls(x23())
    oxyfuel.reset()
    assert oxyfuel.metrics()["graphs"] == 0 and not oxyfuel.metrics()["breaks"]
    torch.testing.assert_close(calls(x23()), x23() + 1)
    assert oxyfuel.metrics()["graphs"] == 1


def test_reset_inside_a_compiled_call():
    def f(x):
        y = x + 1
        oxyfuel.reset()
        z = y * 2
        print(end="")
        return z

    compiled = oxyfuel.compile(f)
    for _ in range(3):
        torch.testing.assert_close(compiled(x23()), (x23() + 1) * 2)


def test_is_compiling():
    assert oxyfuel.is_compiling() is False
    f = oxyfuel.compile(lambda x: x + 1 if torch.compiler.is_compiling() else x - 1)
    torch.testing.assert_close(f(x23()), x23() + 1)
    g = oxyfuel.compile(lambda x: x + 1 if oxyfuel.is_compiling() else x - 1)
    torch.testing.assert_close(g(x23()), x23() + 1)
    assert torch.compiler.is_compiling() is False


def test_disable_forms():
    @oxyfuel.disable
    def a(x):
        """A."""
        return x

    @oxyfuel.disable(reason="slow")
    def b(x):
        return x

    assert a.__doc__ == "A." and a(1) == 1 and b(2) == 2
    with pytest.raises(TypeError):
        oxyfuel.disable(3)


# --- compiled modules


def test_module_identity(net):
    compiled = oxyfuel.compile(net)
    assert compiled is not net
    assert isinstance(compiled, Net) and isinstance(compiled, nn.Module)
    assert compiled.__class__.__name__ == "Net"
    assert compiled.__doc__ == net.__doc__
    assert list(compiled.state_dict()) == list(net.state_dict()) 
    assert [n for n, _ in compiled.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert all(a is b for a, b in zip(compiled.parameters(), net.parameters()))
    assert repr(compiled) == repr(net)
    assert compiled.linear is net.linear


def test_module_attributes_are_shared_both_ways(net):
    compiled = oxyfuel.compile(net)
    compiled.scale = 5.0
    assert net.scale == 5.0
    net.extra = 1
    assert compiled.extra == 1
    del compiled.extra
    assert not hasattr(net, "extra")
    compiled.train()
    assert net.training
    compiled.new = nn.Linear(1, 1)
    assert "new" in dict(net.named_children())


def test_original_stays_eager(net):
    compiled = oxyfuel.compile(net)
    net(x23())
    assert oxyfuel.metrics()["graphs"] == 0
    compiled(x23())
    assert oxyfuel.metrics()["graphs"] == 1
    net(x23())
    assert oxyfuel.metrics()["calls_compiled"] == 1


def test_forward_and_other_methods(net):
    compiled = oxyfuel.compile(net)
    torch.testing.assert_close(compiled(x23(), extra=x23()), net(x23(), x23()))
    torch.testing.assert_close(compiled.twice(x23()), net.twice(x23()))
    torch.testing.assert_close(compiled.forward(x23()), net.forward(x23()))


def test_hooks_both_ways(net):
    compiled = oxyfuel.compile(net)
    plain = net(x23())
    handle = compiled.register_forward_hook(lambda m, a, out: out + 1)
    torch.testing.assert_close(compiled(x23()), plain + 1)
    torch.testing.assert_close(net(x23()), plain + 1)
    handle.remove()
    net.register_forward_pre_hook(lambda m, a: (a[0] * 0,))
    torch.testing.assert_close(compiled(x23()), net(x23()))


def test_pickle_and_deepcopy(net):
    compiled = oxyfuel.compile(net, options={"freezing": False})
    expected = compiled(x23())
    copied = copy.deepcopy(compiled)
    assert copied.linear.weight is not net.linear.weight and isinstance(copied, Net)
    torch.testing.assert_close(copied(x23()), expected)
    copied.linear.weight.zero_()
    torch.testing.assert_close(compiled(x23()), expected)
    loaded = pickle.loads(pickle.dumps(compiled))
    assert isinstance(loaded, Net)
    torch.testing.assert_close(loaded(x23()), expected)
    buffer = io.BytesIO()
    torch.save(compiled, buffer)
    buffer.seek(0)
    torch.testing.assert_close(torch.load(buffer, weights_only=False)(x23()), expected)
    shallow = copy.copy(compiled)
    torch.testing.assert_close(shallow(x23()), expected)


def test_deepcopy_of_a_holder(net):
    holder = nn.Sequential(oxyfuel.compile(net), nn.ReLU())
    other = copy.deepcopy(holder)
    torch.testing.assert_close(other(x23()), holder(x23()))
    assert list(other.state_dict()) == list(holder.state_dict())


def test_pickle_of_a_compiled_function():
    compiled = oxyfuel.compile(module_level)
    loaded = pickle.loads(pickle.dumps(compiled))
    torch.testing.assert_close(loaded(x23()), x23() + 3)
    torch.testing.assert_close(copy.deepcopy(compiled)(x23()), x23() + 3)


def module_level(x):
    return x + 3


def test_state_dict_round_trip(net):
    compiled = oxyfuel.compile(net)
    compiled(x23())
    state = {name: value.clone() + 1 for name, value in net.state_dict().items()}
    compiled.load_state_dict(state)
    torch.testing.assert_close(compiled(x23()), net(x23()))
    Comparison().same(dict(state), dict(compiled.state_dict()))


def test_moves(net):
    compiled = oxyfuel.compile(net)
    compiled(x23())
    moved = compiled.double()
    assert moved is compiled and net.linear.weight.dtype == torch.float64
    torch.testing.assert_close(compiled(x23().double()), net(x23().double()))


def test_methods_of_what_is_no_function():
    class Slotted:
        __slots__ = ()

        def __call__(self, x, y):
            return x + y

    for callee in (torch.add, Slotted(), functools.partial(torch.add)):
        torch.testing.assert_close(oxyfuel.compile(types.MethodType(callee, x23()))(1), x23() + 1)
    made = oxyfuel.compile(types.MethodType(torch.Size, [1]))
    assert made() == (1,) and "numel" not in vars(made)


def test_compile_of_a_compiled_module(net):
    once = oxyfuel.compile(net)
    twice = oxyfuel.compile(once)
    torch.testing.assert_close(twice(x23()), net(x23()))
    function = oxyfuel.compile(oxyfuel.compile(lambda x: x + 1))
    torch.testing.assert_close(function(x23()), x23() + 1)


def test_module_with_its_own_class_features():
    class Meta(type):
        pass

    class Odd(nn.Module, metaclass=Meta):
        __slots__ = ()

        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)

        def __len__(self):
            return 0

        def __eq__(self, other):
            return self is other

        __hash__ = nn.Module.__hash__

        def forward(self, x):
            return x + 1

    compiled = oxyfuel.compile(Odd())
    torch.testing.assert_close(compiled(x23()), x23() + 1)
    assert len(compiled) == 0


def test_sequential_and_list_behave():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    compiled = oxyfuel.compile(net)
    assert len(compiled) == 2 and compiled[1] is net[1] and [type(m).__name__ for m in compiled] == ["Linear", "ReLU"]
    torch.testing.assert_close(compiled(x23()), net(x23()))


def test_a_dropped_module_is_freed(net):
    compiled = oxyfuel.compile(net)
    compiled(x23())
    watch = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert watch() is None


# --- unusual callables


def test_callables_of_c():
    assert oxyfuel.compile(abs)(-3) == 3
    torch.testing.assert_close(oxyfuel.compile(torch.relu)(x23() - 3), torch.relu(x23() - 3))
    torch.testing.assert_close(oxyfuel.compile(x23().add)(1), x23() + 1)
    assert oxyfuel.compile(len)([1, 2]) == 2
    assert oxyfuel.compile(int)("3") == 3


def test_functions_without_tensors():
    assert oxyfuel.compile(lambda a, b: a + b)(1, 2) == 3
    assert oxyfuel.compile(lambda: "text")() == "text"
    assert oxyfuel.compile(lambda *a: a)() == ()
    sentinel = object()
    assert oxyfuel.compile(lambda a: a)(sentinel) is sentinel


def calls_of(function):
    return [type(call()).__name__ for call in (oxyfuel.compile(function), functools.partial(oxyfuel.compile(functools.partial(function))))]


def test_functions_that_look_at_the_frame_that_calls_them():
    """There is none that was compiled."""
    assert calls_of(globals) == ["dict", "dict"]
    assert calls_of(oxyfuel.is_compiling) == calls_of(torch.compiler.is_compiling) == ["bool", "bool"]
    with pytest.raises(RuntimeError, match="super|__class__"):
        oxyfuel.compile(super)()
