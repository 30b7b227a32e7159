"""Operators of the program's own: torch.library and libraries in C++. Each is an extern call of a whole graph."""

import gc
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from custom_operators import called, check, doubled, library, name, numbers, of, reasons  # noqa: F401
from torch import Tensor

import oxyfuel


@pytest.mark.parametrize("form", ["object", "packet", "overload"])
def test_each_form_of_a_call(name, form):
    op, seen = doubled(name)
    packet = getattr(torch.ops.oxycustom, name.split("::")[1])
    callable_ = {"object": op, "packet": packet, "overload": packet.default}[form]
    x = torch.randn(3, 4)
    check(lambda x: callable_(x + 1) - 1, x)
    # Once a call, and with nothing but the program's tensors.
    assert len(seen) == 6 and all(torch.equal(given, x + 1) for given in seen)
    assert called(name) == 1


def test_the_kernel_is_given_tensors_as_they_lie(name):
    strides = []

    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor) -> Tensor:
        strides.append(x.stride())
        return x.clone(memory_format=torch.contiguous_format)

    op.register_fake(lambda x: torch.empty(x.shape, dtype=x.dtype, device=x.device))
    for layout in (lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[:, :1].expand(4, 6), lambda x: x[1:, 1:]):
        strides.clear()
        oxyfuel.reset()
        check(lambda x: op(layout(x + 1)), torch.randn(4, 6), calls=1)
        assert strides[0] == strides[1]


def test_arguments_of_every_kind(name):
    @torch.library.custom_op(name, mutates_args=())
    def op(xs: list[Tensor], maybe: Tensor | None, n: int, f: float, text: str, flag: bool, sizes: list[int],
           dtype: torch.dtype, *, device: torch.device | None = None) -> list[Tensor]:
        assert (n, f, text, flag, list(sizes)) == (2, 1.5, "hi", True, [1, 2])
        return [(x * n + f).to(dtype) for x in xs] + ([] if maybe is None else [maybe.clone()])

    @op.register_fake
    def _(xs, maybe, n, f, text, flag, sizes, dtype, *, device=None):
        made = [torch.empty_like(x, dtype=dtype) for x in xs]
        return made + ([] if maybe is None else [torch.empty_like(maybe)])

    x = torch.randn(3)
    check(lambda x: op([x, x * 2], None, 2, 1.5, "hi", True, [1, 2], torch.float64), x)
    oxyfuel.reset()
    check(lambda x: op([x], x + 1, 2, 1.5, "hi", True, [1, 2], torch.bfloat16, device=torch.device("cpu")), x)


def test_several_results_of_which_some_are_read(name):
    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x + 1, x.sum(), x.to(torch.int32)

    op.register_fake(lambda x: (torch.empty_like(x), x.new_empty(()), x.new_empty(x.shape, dtype=torch.int32)))
    check(lambda x: op(x)[1] * 2, torch.randn(3, 2))
    oxyfuel.reset()
    check(lambda x: op(x), torch.randn(3, 2))


def test_triton_op_on_the_cpu(name):
    @torch.library.triton_op(name, mutates_args=())
    def op(x: Tensor) -> Tensor:
        return x.sin() + 1

    check(lambda x: op(x) * 2, torch.randn(5))
    assert called(name) == 1


# --- fake functions


def test_a_fake_function_runs_once_a_shape(name):
    shapes = []

    def fake(x):
        shapes.append(tuple(x.shape))
        return torch.empty_like(x)

    op, seen = doubled(name, fake)
    f = oxyfuel.compile(lambda x: op(op(x) + 1) + op(x * 3), fullgraph=True)
    for shape in [(2, 3), (2, 3), (4,), (2, 3), (4,)]:
        x = torch.randn(shape)
        torch.testing.assert_close(f(x), ((x * 2) + 1) * 2 + x * 6)
    assert shapes == [(2, 3), (4,)]
    assert len(seen) == 15
    assert oxyfuel.metrics()["shape_fallback_names"] == {name: 2}


def test_a_fake_function_sees_what_the_kernel_would(name):
    def fake(x):
        assert x.device.type == "cpu" and x.dtype == torch.float32 and x.is_contiguous()
        y = torch.zeros(2, 3) @ x.new_ones(3, 3)  # of the same kind as what it is given
        return torch.cat([y, x.view(2, 3)]).view(4, 3)[:2].clone()

    op, _ = doubled(name, fake)
    check(lambda x: op(x) + 1, torch.randn(2, 3))


def test_a_fake_function_that_makes_tensors_without_data(name):
    op, _ = doubled(name, lambda x: torch.empty(x.shape, dtype=x.dtype, device="meta"))
    check(lambda x: op(x) + 1, torch.randn(2, 3))


def test_without_a_fake_function(name):
    op, seen = doubled(name, fake=None)
    x = torch.randn(3)
    check(lambda x: op(x * 1.5) + 1, x, whole=False)
    assert len(seen) == 6
    assert f"{name} has no fake function" in reasons() and f'register_fake("{name}")' in reasons()
    assert "Meta" not in reasons() and "FakeTensor" not in reasons()
    with pytest.raises(oxyfuel.Unsupported, match="has no fake function"):
        oxyfuel.compile(lambda x: op(x), fullgraph=True)(x)
    op.register_fake(torch.empty_like)
    oxyfuel.reset()
    check(lambda x: op(x * 1.5) + 1, x)


def test_a_size_that_depends_on_data(name):
    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor) -> Tensor:
        return x[x > 0].clone()

    op.register_fake(lambda x: x.new_empty(torch.library.get_ctx().new_dynamic_size()))
    check(lambda x: op(x) * 2, torch.tensor([1.0, -1.0, 3.0]), whole=False)
    assert f"the shape of a result of {name} depends on data" in reasons()


def test_a_fake_function_that_raises(name):
    def fake(x):
        torch._check(x.dim() == 2, lambda: "two dimensions, please")
        return torch.empty_like(x)

    op, _ = doubled(name, fake)
    check(lambda x: op(x) + 1, torch.randn(3), whole=False)
    assert f"the fake function of {name} raises" in reasons() and "two dimensions, please" in reasons()


@pytest.mark.parametrize("wrong", [lambda x: torch.empty_like(x, dtype=torch.float64), lambda x: x.new_empty(7),
                                   lambda x: x.new_empty(3, 3)])
def test_a_fake_function_that_is_wrong(name, wrong):
    op, _ = doubled(name, wrong)
    check(lambda x: op(x), torch.randn(3), whole=False)


def test_what_a_formula_or_fake_function_is_replaced_by(name):
    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor, wide: bool) -> Tensor:
        return x.double() if wide else x * 2

    op.register_fake(lambda x, wide: torch.empty_like(x))
    op.register_autograd(lambda ctx, grad: (grad * 2, None))
    f = oxyfuel.compile(lambda x, wide: op(x, wide))
    x = torch.randn(3, requires_grad=True)
    f(x, False).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    op.register_fake(lambda x, wide: torch.empty_like(x, dtype=torch.float64 if wide else x.dtype))
    op.register_autograd(lambda ctx, grad: (grad.float() * 5, None))
    x.grad = None
    result = f(x, True)
    assert result.dtype == torch.float64
    result.sum().backward()
    assert x.grad.tolist() == [5.0] * 3


# --- writes and aliases


def test_effects_keep_their_order(library):
    log = []
    library.define("note(Tensor x, str text) -> ()")
    library.impl("note", lambda x, text: log.append((text, x.sum().item())), "CPU")
    library.define("tick() -> ()")
    library.impl("tick", lambda: log.append("tick"), "CompositeExplicitAutograd")
    note, tick = of(library, "note"), of(library, "tick")

    def f(x):
        tick()
        note(x, "before")
        y = x * 2
        tick()
        note(x, "before")  # the same call is another one
        note(y, "after")
        return y + 1

    f(torch.ones(3))
    expected = log[:]
    compiled = oxyfuel.compile(f, fullgraph=True)
    for _ in range(3):
        log.clear()
        assert compiled(torch.ones(3)).tolist() == [3.0] * 3
        assert log == expected


def test_calls_are_neither_merged_nor_dropped_nor_folded(name):
    calls = []

    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor) -> Tensor:
        calls.append(len(calls))
        return x + len(calls)

    op.register_fake(torch.empty_like)
    frozen = torch.nn.Linear(3, 3).eval()

    def f(x):
        op(x)
        op(frozen.weight)
        op(torch.ones(3))
        return op(x), op(x)

    compiled = oxyfuel.compile(f, fullgraph=True)
    with torch.no_grad():
        for turn in range(1, 4):
            first, second = compiled(torch.zeros(2))
            assert first.tolist() == [5 * turn - 1] * 2 and second.tolist() == [5 * turn] * 2
    assert calls == list(range(15))


def test_known_elements_are_not_calculated_by_a_kernel(name):
    op, seen = doubled(name)

    def f(x, n):
        return x * 2 if op(n).sum().item() > 3 else x

    check(f, torch.ones(2), torch.tensor([1, 2]), whole=False)
    assert len(seen) == 6


def test_random_operators(library):
    library.define("noise(Tensor x) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
    library.impl("noise", lambda x: torch.rand_like(x), "CPU")
    library.impl("noise", torch.empty_like, "Meta")
    noise = of(library, "noise")

    def f(x):
        return torch.rand(2), noise(x) - noise(x), torch.rand(2), noise(x)

    compiled = oxyfuel.compile(f, fullgraph=True)
    for turn in range(3):
        torch.manual_seed(turn)
        actual = compiled(torch.ones(4))
        torch.manual_seed(turn)
        for a, e in zip(actual, f(torch.ones(4))):
            assert torch.equal(a, e)


def test_a_kernel_for_all_devices_is_its_own_fake_function(library):
    devices = []
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: (devices.append(x.device.type), x * 2)[1], "CompositeExplicitAutograd")
    check(lambda x: of(library, "twice")(x) + 1, torch.randn(3))
    assert devices == ["cpu"] * 7


def test_an_operator_that_is_marked_as_having_effects(library):
    calls = []
    library.define("count(Tensor x) -> Tensor")
    library.impl("count", lambda x: (calls.append(1), x * 1)[1], "CompositeExplicitAutograd")
    torch.library._register_effectful_op(f"{library.ns}::count", torch._library.effects.EffectType.ORDERED, lib=library)
    check(lambda x: of(library, "count")(x) + 1, torch.randn(3), whole=False)
    assert len(calls) == 6 and "has no fake function" in reasons()
    torch.library.register_fake(f"{library.ns}::count", torch.empty_like, lib=library)
    oxyfuel.reset()
    check(lambda x: of(library, "count")(x) + 1, torch.randn(3))
    assert len(calls) == 12


def test_a_number_as_a_result(library):
    library.define("count(Tensor x) -> int")
    library.impl("count", lambda x: int((x > 0).sum()), "CPU")
    check(lambda x: x * of(library, "count")(x), torch.tensor([1.0, -1.0, 2.0]), whole=False)
    assert f"{library.ns}::count" in reasons()


def test_the_error_of_a_kernel(name):
    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor) -> Tensor:
        if x.sum() > 100:
            raise ValueError("too much")
        return x.clone()

    op.register_fake(torch.empty_like)
    f = oxyfuel.compile(lambda x: op(x) + 1, fullgraph=True)
    assert f(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(ValueError, match="too much"):
        f(torch.full((2,), 100.0))
    assert f(torch.ones(2)).tolist() == [2, 2]


def test_a_kernel_that_keeps_what_it_is_given(name):
    kept = []

    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor) -> Tensor:
        kept.append(x)
        return x + 1

    op.register_fake(torch.empty_like)
    f = oxyfuel.compile(lambda x: op(op(x * 2) * 3) * 5, fullgraph=True)
    for _ in range(2):
        f(torch.ones(64))
    assert [x[0].item() for x in kept] == [2, 9] * 2 and all((x == x[0]).all() for x in kept)


# --- registrations that change


def test_kernels_that_are_replaced(name):
    op, _ = doubled(name)
    f, x = oxyfuel.compile(lambda x: op(x) + 1, fullgraph=True), torch.ones(2)
    assert f(x).tolist() == [3, 3]
    op.register_kernel("cpu")(lambda x: x * 10)
    assert f(x).tolist() == [11, 11]
    with op.set_kernel_enabled("cpu", enabled=False):
        assert f(x).tolist() == [3, 3]
    assert f(x).tolist() == [11, 11]


def test_operators_that_are_defined_anew(name):
    def define(factor):
        @torch.library.custom_op(name, mutates_args=())
        def op(x: Tensor) -> Tensor:
            return x * factor

        op.register_fake(torch.empty_like)
        return op

    op = define(2)
    of_object = oxyfuel.compile(lambda x: op(x), fullgraph=True)
    of_name = oxyfuel.compile(lambda x: getattr(torch.ops.oxycustom, name.split("::")[1])(x), fullgraph=True)
    for factor in (2, 3, 4):
        op = define(factor)
        gc.collect()
        assert of_object(torch.ones(1)).item() == factor and of_name(torch.ones(1)).item() == factor


def test_another_signature_under_the_same_name():
    namespace = f"oxycustom{next(numbers)}"
    f = oxyfuel.compile(lambda x: getattr(torch.ops, namespace).op(x) + 1, fullgraph=True)
    for extra, factor in (("", 2), (", int n=7", 3), (", float n=0.5", 5), ("", 7)):
        with torch.library._scoped_library(namespace, "DEF") as library:
            library.define(f"op(Tensor x{extra}) -> Tensor")
            library.impl("op", lambda x, n=0: x * factor, "CPU")
            library.impl("op", lambda x, n=0: torch.empty_like(x), "Meta")
            assert f(torch.ones(1)).item() == factor + 1


# --- under autocast


def test_kernels_see_autocast(name):
    @torch.library.custom_op(name, mutates_args=())
    def op(x: Tensor, y: Tensor) -> Tensor:
        return x @ y

    op.register_fake(lambda x, y: x @ y)
    x, y = torch.randn(4, 4), torch.randn(4, 4)

    def inside(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return op(x, y)

    check(inside, x, y)
    oxyfuel.reset()
    with torch.autocast("cpu", dtype=torch.float16):
        check(lambda x, y: op(x, y), x, y)
    op.register_autocast("cpu", torch.float64)
    oxyfuel.reset()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        check(lambda x, y: op(x @ y, y), x, y)


# --- other ways in and out


def test_backends(name):
    op, _ = doubled(name)
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module

    x = torch.randn(3)
    expected = (x + 1) * 2
    torch.testing.assert_close(oxyfuel.compile(lambda x: op(x + 1), backend=backend)(x), expected)
    targets = [node.target for node in graphs[0].graph.nodes if node.op == "call_function"]
    assert getattr(torch.ops.oxycustom, name.split("::")[1]).default in targets
    torch.testing.assert_close(oxyfuel.compile(lambda x: op(x + 1), backend="eager")(x), expected)


def test_behind_torch_compile(name):
    op, _ = doubled(name)
    x = torch.randn(3)
    compiled = torch.compile(lambda x: op(x + 1) * 2, backend="oxyfuel", fullgraph=True)
    torch.testing.assert_close(compiled(x), (x + 1) * 4)
    assert called(name) == 1


# --- C++

SOURCE = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

static at::Tensor scale_cpu(const at::Tensor& x, double factor) { return x.contiguous().mul(factor); }
static at::Tensor scale_meta(const at::Tensor& x, double factor) { return at::empty_like(x); }
struct Scale : torch::autograd::Function<Scale> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, double factor) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->saved_data["factor"] = factor;
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("oxycustomcpp::scale", "")
                               .typed<at::Tensor(const at::Tensor&, double)>();
    return op.call(x, factor);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list gradients) {
    return {gradients[0].mul(ctx->saved_data["factor"].toDouble()), at::Tensor()};
  }
};
static at::Tensor scale_autograd(const at::Tensor& x, double factor) { return Scale::apply(x, factor); }
static void bump(at::Tensor& x) { x.add_(1); }
static at::Tensor copy(const at::Tensor& x) { return x.clone(); }
TORCH_LIBRARY(oxycustomcpp, m) {
  m.def("scale(Tensor x, float factor) -> Tensor");
  m.def("bump(Tensor(a!) x) -> ()");
  m.def("copy(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(oxycustomcpp, CPU, m) {
  m.impl("scale", scale_cpu);
  m.impl("bump", bump);
  m.impl("copy", copy);
}
TORCH_LIBRARY_IMPL(oxycustomcpp, Meta, m) { m.impl("scale", scale_meta); }
TORCH_LIBRARY_IMPL(oxycustomcpp, Autograd, m) { m.impl("scale", scale_autograd); }
"""


def test_a_library_in_cpp(tmp_path):
    compiler = shutil.which("c++")
    if not compiler:
        pytest.skip("there is no compiler")
    (tmp_path / "library.cpp").write_text(SOURCE)
    torch_folder = Path(torch.__file__).parent
    subprocess.run(
        [compiler, "-std=c++20", "-O0", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
         f"-I{torch_folder}/include", f"-I{torch_folder}/include/torch/csrc/api/include", "library.cpp", "-o", "library.so",
         f"-L{torch_folder}/lib", "-ltorch_cpu", "-lc10"], cwd=tmp_path, check=True)
    torch.ops.load_library(str(tmp_path / "library.so"))
    ops, x = torch.ops.oxycustomcpp, torch.randn(3, 4)
    check(lambda x: ops.scale(x + 1, 2.0) * 3, x)
    oxyfuel.reset()
    check(lambda x: ops.scale(x + 1, 2.0) * 3, x.clone().requires_grad_(), backward=True)
    assert called("oxycustomcpp::scale") == 1

    def bumped(x):
        ops.bump(x)
        return x * 2

    oxyfuel.reset()
    check(bumped, x)
    oxyfuel.reset()
    check(lambda x: ops.copy(x) * 2, x, whole=False)
    assert "oxycustomcpp::copy has no fake function" in reasons()
    torch.library.register_fake("oxycustomcpp::copy", torch.empty_like)
    oxyfuel.reset()
    check(lambda x: ops.copy(x) * 2, x)


def test_nothing_of_torchs_compiler_is_loaded():
    program = """
        import sys, torch, oxyfuel
        with torch.library._scoped_library("oxycustomfresh", "DEF") as library:
            library.define("op(Tensor x) -> Tensor")
            library.impl("op", lambda x: x * 2, "CPU")
            library.impl("op", torch.empty_like, "Meta")
            before = set(sys.modules)
            f = oxyfuel.compile(lambda x: torch.ops.oxycustomfresh.op(x) + 1, fullgraph=True)
            assert f(torch.ones(2)).tolist() == [3, 3]
            loaded = [m for m in set(sys.modules) - before if m.startswith(("torch._dynamo", "torch._inductor"))]
            assert not loaded, loaded
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)
