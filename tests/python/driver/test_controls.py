"""What users say about parts of their program: disable, allow_in_graph, assume_constant_result, set_stance."""

import copy
import functools
import pickle
import threading

import pytest
import torch
import torch.nn as nn

import oxyfuel


@pytest.fixture(autouse=True)
def default_stance():
    yield
    oxyfuel.set_stance("default")


def x23():
    return torch.arange(6.0).reshape(2, 3)


def reasons():
    return " | ".join(record["reason"] for record in oxyfuel.metrics()["breaks"])


# --- is_compiling


def test_is_compiling_and_what_libraries_ask():
    import torch._dynamo

    def f(x):
        probes = (
            oxyfuel.is_compiling(),
            torch.compiler.is_compiling(),
            torch.compiler.is_dynamo_compiling(),
            torch._dynamo.is_compiling(),
            torch._dynamo.external_utils.is_compiling(),
        )
        return x + 1, probes, (torch.jit.is_tracing(), torch.jit.is_scripting(), torch.compiler.is_exporting())

    _, probes, others = oxyfuel.compile(f, fullgraph=True)(x23())
    assert probes == (True,) * 5 and others == (False,) * 3
    assert f(x23())[1] == (False,) * 5


def test_is_compiling_inside_a_function_that_is_called_for_real():
    seen = []

    @oxyfuel.allow_in_graph
    def f(x):
        seen.append(oxyfuel.is_compiling())
        return x + 1

    oxyfuel.compile(lambda x: f(x) * 2, fullgraph=True)(x23())
    f(x23())
    assert seen == [True, False]


# --- disable


def test_disable_with_a_reason():
    calls = []

    @oxyfuel.disable(reason="it writes a file")
    def write(x):
        calls.append(oxyfuel.is_compiling())
        return x * 2

    compiled = oxyfuel.compile(lambda x: write(x + 1) - 1)
    for _ in range(3):
        torch.testing.assert_close(compiled(x23()), (x23() + 1) * 2 - 1)
    assert calls == [False] * 3
    assert "write" in reasons() and "it writes a file" in reasons()


def test_what_a_disabled_function_calls_is_not_captured():
    def inner(x):
        return x.sin()

    @oxyfuel.disable
    def outer(x):
        return inner(x).cos()

    compiled = oxyfuel.compile(lambda x: outer(x))
    torch.testing.assert_close(compiled(x23()), x23().sin().cos())
    assert oxyfuel.metrics()["operators"] == 0


@pytest.mark.parametrize("how", ["decorator", "call", "method"])
def test_disable_of_the_frame_alone(how):
    seen = []

    def inner(x):
        seen.append(oxyfuel.is_compiling())
        return x.sin()

    class Holder:
        def outer(self, x):
            seen.append(oxyfuel.is_compiling())
            return inner(x).cos()

    holder = Holder()
    if how == "decorator":
        Holder.outer = oxyfuel.disable(recursive=False, reason="odd")(Holder.outer)
    elif how == "call":
        assert oxyfuel.disable(Holder.outer, recursive=False, reason="odd") is Holder.outer
    else:
        oxyfuel.disable(holder.outer, recursive=False, reason="odd")
    compiled = oxyfuel.compile(lambda x: holder.outer(x) + 1)
    for _ in range(2):
        torch.testing.assert_close(compiled(x23()), x23().sin().cos() + 1)
    # `outer` runs in eager at each call, `inner` is captured: its append changes a list made before, and breaks.
    assert seen[0] is False and len(seen) == 4
    assert "odd" in reasons()
    oxyfuel.reset()
    assert oxyfuel.metrics()["operators"] == 0
    compiled(x23())
    assert oxyfuel.metrics()["operators"] == 2  # sin and + 1; cos belongs to the eager frame


def test_compile_of_a_function_whose_frame_is_disabled():
    def inner(x):
        return x.sin()

    @oxyfuel.disable(recursive=False)
    def outer(x):
        return inner(x).cos()

    torch.testing.assert_close(oxyfuel.compile(outer)(x23()), x23().sin().cos())
    assert oxyfuel.metrics()["operators"] == 1
    with pytest.raises(oxyfuel.Unsupported, match="outer"):
        oxyfuel.compile(outer, fullgraph=True)(x23())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x).relu()


def test_disable_of_a_module():
    net = Net().eval()
    disabled = oxyfuel.disable(net, reason="slow to compile")
    assert isinstance(disabled, Net) and disabled.linear is net.linear
    outer = oxyfuel.compile(nn.Sequential(disabled, nn.ReLU()))
    with torch.no_grad():
        torch.testing.assert_close(outer(x23()), net(x23()).relu())
        assert "slow to compile" in reasons()
        oxyfuel.reset()
        torch.testing.assert_close(oxyfuel.compile(disabled)(x23()), net(x23()))
        assert oxyfuel.metrics()["operators"] == 0
        for again in (copy.deepcopy(disabled), pickle.loads(pickle.dumps(disabled))):
            torch.testing.assert_close(again(x23()), net(x23()))
            assert again.linear is not net.linear


def test_disable_of_a_class():
    @oxyfuel.disable
    class Add:
        def __call__(self, x):
            return x + 1

    assert isinstance(Add, type)
    add = Add()
    torch.testing.assert_close(oxyfuel.compile(lambda x: add(x) * 2)(x23()), (x23() + 1) * 2)
    assert "disable()" in reasons()


def test_disable_of_a_class_whose_call_is_no_method():
    @oxyfuel.disable
    class Static:
        @staticmethod
        def __call__(x):
            return x + 1

    @oxyfuel.disable
    class OfClass:
        amount = 2

        @classmethod
        def __call__(cls, x):
            return x + cls.amount

    static, of_class = Static(), OfClass()
    torch.testing.assert_close(oxyfuel.compile(lambda x: of_class(static(x)) * 2)(x23()), (x23() + 3) * 2)
    assert static(1) == 2 and of_class(1) == 3


def test_controls_of_static_and_class_methods():
    seen = []

    class Model:
        scale = 2.0

        @oxyfuel.disable
        @staticmethod
        def disabled_static(x):
            seen.append(oxyfuel.is_compiling())
            return x + 1

        @oxyfuel.disable(reason="of the class")
        @classmethod
        def disabled(cls, x):
            seen.append(oxyfuel.is_compiling())
            return x * cls.scale

        @oxyfuel.disable(recursive=False)
        @classmethod
        def skipped(cls, x):
            seen.append(oxyfuel.is_compiling())
            return x * cls.scale

        @oxyfuel.allow_in_graph
        @classmethod
        def in_graph(cls, x):
            seen.append("in graph")
            return x * cls.scale

        @oxyfuel.assume_constant_result
        @classmethod
        def constant(cls):
            seen.append("constant")
            return cls.scale

        @oxyfuel.set_stance("force_eager")
        @classmethod
        def eagerly(cls, x):
            return compiled(x)

        @oxyfuel.set_stance("force_eager")
        @staticmethod
        def eagerly_static(x):
            return compiled(x)

    compiled = oxyfuel.compile(lambda x: oxyfuel.is_compiling())
    model = Model()
    for holder in (model, Model):
        for name, expected in (("disabled_static", x23() + 1), ("disabled", x23() * 2), ("skipped", x23() * 2)):
            assert getattr(holder, name)(x23()).equal(expected)
            assert oxyfuel.compile(lambda x: getattr(holder, name)(x))(x23()).equal(expected)
        assert holder.eagerly(x23()) is False and holder.eagerly_static(x23()) is False
    assert compiled(x23()) is True
    assert seen == [False] * 12 and "of the class" in reasons()
    seen.clear()
    both = oxyfuel.compile(lambda x: model.in_graph(x) + Model.constant(), fullgraph=True)
    for _ in range(2):
        assert both(x23()).equal(x23() * 2 + 2)
    assert seen == ["in graph", "constant"]


def test_a_reason_of_any_text():
    disabled = oxyfuel.disable(lambda x: x + 1, reason="\ud800 odd")
    assert oxyfuel.compile(lambda x: disabled(x) * 2)(x23()).equal((x23() + 1) * 2)
    assert "\\ud800 odd" in reasons()


def generator():
    yield 1


async def async_generator():
    yield 1


class Generates:
    def __call__(self):
        yield 1


class Plain: ...


class Uncallable(Net):
    __call__ = None


@pytest.mark.parametrize(
    ("call", "error", "word"),
    [
        (lambda: oxyfuel.disable(3), TypeError, "int"),
        (lambda: oxyfuel.disable(abs, recursive=False), TypeError, "Python function"),
        (lambda: oxyfuel.disable(Net(), recursive=False), TypeError, "Net"),
        (lambda: oxyfuel.disable(recursive=1), TypeError, "recursive"),
        (lambda: oxyfuel.disable(abs, reason=3), TypeError, "reason"),
        (lambda: oxyfuel.allow_in_graph(x23().__getattribute__), TypeError, "wrap it in a function"),
        (lambda: oxyfuel.allow_in_graph(3), TypeError, "int"),
        (lambda: oxyfuel.allow_in_graph([abs, 3]), TypeError, "int"),
        (lambda: oxyfuel.assume_constant_result(None), TypeError, "NoneType"),
        (lambda: oxyfuel.set_stance("fast"), ValueError, "'fast'"),
        (lambda: oxyfuel.set_stance(3), TypeError, "int"),
        (lambda: oxyfuel.set_stance("force_eager")(3), TypeError, "int"),
        (lambda: oxyfuel.set_stance("force_eager")(Net), TypeError, "plain function"),
        (lambda: oxyfuel.set_stance("force_eager")(generator), TypeError, "plain function"),
        (lambda: oxyfuel.set_stance("force_eager")(functools.partial(generator)), TypeError, "plain function"),
        (lambda: oxyfuel.set_stance("force_eager")(staticmethod(generator)), TypeError, "plain function"),
        (lambda: oxyfuel.set_stance("force_eager")(async_generator), TypeError, "plain function"),
        (lambda: oxyfuel.set_stance("force_eager")(functools.partial(async_generator)), TypeError, "plain function"),
        (lambda: oxyfuel.set_stance("force_eager")(Generates()), TypeError, "plain function"),
        (lambda: oxyfuel.set_stance("force_eager")(functools.partial(Generates())), TypeError, "plain function"),
        (lambda: oxyfuel.set_stance("\ud800"), ValueError, "ud800"),
        (lambda: oxyfuel.disable()(None), TypeError, "NoneType"),
        (lambda: oxyfuel.disable(Plain), TypeError, "objects of Plain cannot be called"),
        (lambda: oxyfuel.disable(Uncallable), TypeError, "objects of Uncallable cannot be called"),
    ],
)
def test_wrong_arguments(call, error, word):
    with pytest.raises(error, match=word):
        call()
    compiled = oxyfuel.compile(lambda x: x + 1)
    compiled(x23())
    assert oxyfuel.metrics()["graphs"] == 1  # the stance is what it was


# --- allow_in_graph


def test_allow_in_graph_calls_for_real():
    calls = []

    @oxyfuel.allow_in_graph
    def scaled(x, factors, *, mode="sum"):
        calls.append(type(x))
        # Not evaluated: this would break.
        print(end="")
        return {"out": x * factors[0], "all": [x + f for f in factors]}, mode

    def f(x):
        result, mode = scaled(x, [2.0, 3.0], mode="mean")
        result["all"].append(x)
        return result, mode

    compiled = oxyfuel.compile(f, fullgraph=True)
    for _ in range(3):
        (actual, mode), (expected, _) = compiled(x23()), f(x23())
        torch.testing.assert_close(actual, expected)
        assert mode == "mean"
    assert len(calls) == 1 + 3


def test_allow_in_graph_keeps_no_container():
    kept = []

    @oxyfuel.allow_in_graph
    def f(x):
        return kept

    compiled = oxyfuel.compile(lambda x: (f(x).append(1), x + 1)[1], fullgraph=True)
    compiled(x23())
    assert kept == []


def test_allow_in_graph_trains():
    @oxyfuel.allow_in_graph
    def square(x):
        return x * x

    a, b = (torch.ones(3, requires_grad=True) for _ in range(2))
    oxyfuel.compile(lambda x: square(x).sum(), fullgraph=True)(a).backward()
    square(b).sum().backward()
    torch.testing.assert_close(a.grad, b.grad)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda x: 1 / 0, "ZeroDivisionError"),
        (lambda x: object(), "object of type object"),
        (lambda x: bool(x.sum() > 0), "data"),
        (lambda x: {object(): x}, "dict of objects"),
    ],
)
def test_allow_in_graph_of_what_cannot_be(body, words):
    def f(x):
        return body(x)

    oxyfuel.allow_in_graph(f)
    with pytest.raises(oxyfuel.Unsupported, match=words):
        oxyfuel.compile(lambda x: (f(x), x + 1)[1], fullgraph=True)(x23())


def test_allow_in_graph_marks_all_or_none():
    calls = []

    def marked(x):
        calls.append(x)
        return x + 1

    with pytest.raises(TypeError):
        oxyfuel.allow_in_graph([marked, 3])
    compiled = oxyfuel.compile(lambda x: marked(x) * 2)
    compiled(x23())
    compiled(x23())
    assert len(calls) == 2


def test_allow_in_graph_of_a_method_and_of_several():
    class Model:
        @oxyfuel.allow_in_graph
        @staticmethod
        def double(x):
            return x * 2

    def plus(x):
        return x + 1

    assert oxyfuel.allow_in_graph([plus]) == [plus]
    assert oxyfuel.compile(lambda x: plus(Model.double(x)), fullgraph=True)(x23()).equal(x23() * 2 + 1)


# --- assume_constant_result


def test_assume_constant_result_is_called_once():
    calls = []

    class Settings:
        scale = 3.0

        @oxyfuel.assume_constant_result
        def read(self, name, default=1.0):
            calls.append(name)
            return getattr(self, name, default)

    settings = Settings()
    compiled = oxyfuel.compile(lambda x: x * settings.read("scale"), fullgraph=True)
    torch.testing.assert_close(compiled(x23()), x23() * 3)
    settings.scale = 4.0
    torch.testing.assert_close(compiled(x23()), x23() * 3)  # by contract
    assert calls == ["scale"]
    assert settings.read("scale") == 4.0  # in eager it is a function like any other


def test_constant_results_of_all_kinds():
    table = torch.ones(3)
    items = [1.0, 2.0]

    @oxyfuel.assume_constant_result
    def tensor():
        return table

    @oxyfuel.assume_constant_result
    def fresh():
        return torch.full((3,), 2.0)

    @oxyfuel.assume_constant_result
    def numbers():
        return items

    compiled = oxyfuel.compile(lambda x: x * tensor() + fresh() + sum(numbers()), fullgraph=True)
    torch.testing.assert_close(compiled(x23()), x23() + 2 + 3)
    table.fill_(2)
    torch.testing.assert_close(compiled(x23()), x23() * 2 + 2 + 3)  # the same tensor, as it is now
    items.append(3.0)
    torch.testing.assert_close(compiled(x23()), x23() * 2 + 2 + 6)  # what is read of a result is guarded


def test_a_constant_result_must_not_depend_on_tensors():
    @oxyfuel.assume_constant_result
    def size(x):
        return len(x)

    with pytest.raises(oxyfuel.Unsupported, match="given a tensor"):
        oxyfuel.compile(lambda x: x * size([x + 1]), fullgraph=True)(x23())
    torch.testing.assert_close(oxyfuel.compile(lambda x: x * size([x + 1]))(x23()), x23())


def test_a_constant_result_after_a_write():
    class Holder:
        n = 1

        @oxyfuel.assume_constant_result
        def read(self):
            return self.n

    def f(holder, x):
        holder.n = 5
        return x * holder.read()

    torch.testing.assert_close(oxyfuel.compile(f)(Holder(), x23()), x23() * 5)


def test_a_constant_function_that_raises():
    @oxyfuel.assume_constant_result
    def fail():
        raise LookupError("none there")

    def f(x):
        try:
            return x * fail()
        except LookupError:
            return x - 1

    torch.testing.assert_close(oxyfuel.compile(f)(x23()), x23() - 1)
    assert "none there" in reasons()


# --- set_stance


def test_force_eager():
    compiled = oxyfuel.compile(lambda x: (x + 1, oxyfuel.is_compiling()))
    with oxyfuel.set_stance("force_eager"):
        assert compiled(x23())[1] is False
        assert oxyfuel.metrics()["graphs"] == 0
    assert compiled(x23())[1] is True
    with oxyfuel.set_stance("force_eager"):
        assert compiled(x23())[1] is False


def test_eager_on_recompile():
    compiled = oxyfuel.compile(lambda x: (x + 1, oxyfuel.is_compiling()))
    compiled(x23())
    with oxyfuel.set_stance("eager_on_recompile"):
        assert compiled(x23())[1] is True
        assert compiled(torch.ones(5))[1] is False
        assert oxyfuel.compile(lambda x: oxyfuel.is_compiling())(x23()) is False
    assert oxyfuel.metrics()["graphs"] == 1
    assert compiled(torch.ones(5))[1] is True


def test_fail_on_recompile():
    def f(x):
        return x + 1

    compiled = oxyfuel.compile(f)
    with oxyfuel.set_stance("fail_on_recompile"):
        with pytest.raises(RuntimeError, match="not compiled before"):
            compiled(x23())
    compiled(x23())
    with oxyfuel.set_stance("fail_on_recompile"):
        torch.testing.assert_close(compiled(x23()), x23() + 1)
        with pytest.raises(RuntimeError, match=r"f would be compiled under the stance 'fail_on_recompile': .*x"):
            compiled(torch.ones(5))
    torch.testing.assert_close(compiled(torch.ones(5)), torch.ones(5) + 1)


def test_stances_and_segments():
    def f(x):
        y = x + 1
        oxyfuel.graph_break()
        return y * 2, oxyfuel.is_compiling()

    compiled = oxyfuel.compile(f)
    assert compiled(x23())[1] is True
    with oxyfuel.set_stance("force_eager"):
        assert compiled(x23())[1] is False
    with oxyfuel.set_stance("eager_on_recompile"):
        assert compiled(x23())[1] is True
        assert compiled(torch.ones(5))[1] is False
    with oxyfuel.set_stance("fail_on_recompile"):
        assert compiled(x23())[1] is True
        with pytest.raises(RuntimeError, match="a region of .*f would be compiled"):
            compiled(torch.ones(5))


def test_set_stance_as_a_statement_a_context_and_a_decorator():
    compiled = oxyfuel.compile(lambda x: oxyfuel.is_compiling())
    assert compiled(1) is True

    @oxyfuel.set_stance("force_eager")
    def eagerly(x, *, again=False):
        """Doc."""
        return compiled(x), again

    assert compiled(1) is True  # decorating sets nothing
    assert eagerly(1, again=True) == (False, True) and eagerly.__doc__ == "Doc."
    assert compiled(1) is True
    with pytest.raises(ZeroDivisionError):
        with oxyfuel.set_stance("force_eager"):
            1 / 0
    assert compiled(1) is True
    with oxyfuel.set_stance("force_eager"), oxyfuel.set_stance("default"):
        assert compiled(1) is True
    oxyfuel.set_stance("force_eager")
    assert compiled(1) is False
    oxyfuel.set_stance()
    assert compiled(1) is True


def test_a_stance_holds_for_all_threads():
    compiled = oxyfuel.compile(lambda x: oxyfuel.is_compiling())
    answers = []
    with oxyfuel.set_stance("force_eager"):
        thread = threading.Thread(target=lambda: answers.append(compiled(1)))
        thread.start()
        thread.join()
    assert answers == [False]


def test_set_stance_inside_compiled_code():
    inner = oxyfuel.compile(lambda x: oxyfuel.is_compiling())

    def f(x):
        with oxyfuel.set_stance("force_eager"):
            return inner(x), x + 1

    assert oxyfuel.compile(f)(x23())[0] is False
    assert inner(1) is True


def test_marks_follow_objects_not_addresses():
    for _ in range(200):  # functions die and others get their addresses
        oxyfuel.allow_in_graph(lambda x: x)
        f = functools.partial(lambda x: oxyfuel.is_compiling())
        assert oxyfuel.compile(f)(1) is True


@pytest.mark.parametrize("is_closure", [False, True])
def test_a_function_that_only_asks_answers_for_its_caller(is_closure):
    answer_itself = True
    if is_closure:

        def asks():
            return oxyfuel.is_compiling() is answer_itself

    else:

        def asks():
            return oxyfuel.is_compiling()

    @oxyfuel.disable(recursive=False)
    def in_eager(x):
        return (x.sin(), asks())

    @oxyfuel.compile
    def f(x):
        return in_eager(x + 1), asks()

    for _ in range(2):
        (_, answer), own = f(torch.ones(3))
        assert answer is False and own is True
    assert oxyfuel.compile(asks)() is True
