"""Plans built by hand and run: memory, launches, extern calls, aliases, mutations, symbols, errors."""

import os
import sys
import threading

import pytest
import torch

sys.path[:0] = [path for path in (os.environ.get("OXYFUEL_RUNTIME_TESTING"),) if path]
rt = pytest.importorskip("oxyfuel_runtime_testing", reason="OXYFUEL_RUNTIME_TESTING names the folder of the module")

ADD = """
extern "C" int add(void* const* buffers, const long* sizes, void*, long begin, long end) {
  const float* a = (const float*)buffers[0]; const float* b = (const float*)buffers[1];
  float* out = (float*)buffers[2];
  for (long i = begin; i < end; ++i) for (long j = 0; j < sizes[0]; ++j) {
    const long at = i * sizes[0] + j; out[at] = a[at] + b[at]; }
  return 0;
}"""
FAIL = """
extern "C" int fail(void* const* buffers, const long*, void*, long begin, long end) {
  return ((const float*)buffers[0])[0] > 0; }"""
SCRATCH = """
extern "C" int total(void* const* buffers, const long* sizes, void* scratch, long begin, long end) {
  float* s = (float*)scratch; const float* a = (const float*)buffers[0];
  for (long i = begin; i < end; ++i) { s[0] = 0; for (long j = 0; j < sizes[0]; ++j) s[0] += a[i * sizes[0] + j];
    ((float*)buffers[1])[i] = s[0]; }
  return ((unsigned long)scratch % 64) != 0 ? 7 : 0; }"""


def contiguous(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return strides


def buffer(plan, sizes, place, slot=-1, offset=0, dtype="float32", strides=None):
    return plan.buffer(dtype, list(sizes), list(strides or contiguous(sizes)), place, slot, offset)


def add_plan(rows, columns, grain=1 << 30):
    plan = rt.Plan(2, 0)
    a, b = buffer(plan, [rows, columns], "input", 0), buffer(plan, [rows, columns], "input", 1)
    out = buffer(plan, [rows, columns], "output")
    plan.launch(plan.kernel("add", ADD), [a, b, out], [columns], rows, grain, 0)
    plan.output(plan.view(out), "value", -1)
    return plan


@pytest.mark.parametrize("grain", [1, 7, 1 << 30])
def test_launch_over_slices(grain):
    run = add_plan(64, 48, grain).executable([])
    a, b = torch.randn(64, 48), torch.randn(64, 48)
    for _ in range(3):
        assert torch.equal(run.run([a, b])[0], a + b)


def test_outputs_are_fresh_and_dropped():
    run = add_plan(8, 8).executable([])
    a = torch.randn(8, 8)
    first, second = run.run([a, a])[0], run.run([a, -a])[0]
    assert first.data_ptr() != second.data_ptr() and torch.equal(first, a + a) and not second.any()
    assert sys.getrefcount(first) == 2
    with torch.inference_mode():
        assert run.run([a, a])[0].is_inference()
    assert not run.run([a, a])[0].is_inference()


def test_scratch_is_aligned_and_private_to_a_thread():
    plan = rt.Plan(1, 0)
    a, out = buffer(plan, [64, 32], "input", 0), buffer(plan, [64], "output")
    plan.launch(plan.kernel("total", SCRATCH), [a, out], [32], 64, 1, 100)
    plan.output(plan.view(out), "value", -1)
    x = torch.randn(64, 32)
    torch.testing.assert_close(plan.executable([]).run([x])[0], x.sum(1))


def linear_plan(rows, inputs, outputs, place, with_bias=True):
    plan = rt.Plan(3, 1 << 20)
    x, w, b = buffer(plan, [rows, inputs], "input", 0), buffer(plan, [outputs, inputs], "input", 1), buffer(plan, [outputs], "input", 2)
    y = buffer(plan, [rows, outputs], "arena", offset=64) if place == "arena" else buffer(plan, [rows, outputs], place)
    transposed = plan.window(w, [inputs, outputs], [1, inputs], 0)
    if with_bias:
        plan.call("aten::addmm", [plan.view(b), plan.view(x), transposed, 1, 1], [y])
    else:
        plan.call("aten::mm", [plan.view(x), transposed], [y])
    z = buffer(plan, [rows, outputs], "output")
    plan.launch(plan.kernel("add", ADD), [y, y, z], [outputs], rows, 1, 0)
    if place in ("temporary", "extern"):
        plan.free(y)
    plan.output(plan.view(z), "value", -1)
    if place == "output":
        plan.output(plan.view(y), "value", -1)
    return plan


@pytest.mark.parametrize("place", ["arena", "temporary", "output", "extern"])
@pytest.mark.parametrize("shape", [(3, 5, 7), (64, 256, 256)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_matrix_products(place, shape, with_bias):
    rows, inputs, outputs = shape
    x, w, b = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.randn(outputs)
    run = linear_plan(rows, inputs, outputs, place, with_bias).executable([])
    expected = x.double() @ w.t().double() + (b.double() if with_bias else 0)
    for _ in range(2):
        results = run.run([x, w, b])
        torch.testing.assert_close(results[0], (2 * expected).float(), rtol=1e-4, atol=1e-3)
        if place == "output":
            torch.testing.assert_close(results[1], expected.float(), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("sizes", [(4, 8, 6, 5), (12, 128, 64, 128)])
@pytest.mark.parametrize("scale", [(1, 1), (0.5, 2.0), (0, 1)])
def test_batched_products(sizes, scale):
    batch, m, k, n = sizes
    plan = rt.Plan(3, 0)
    a, b = buffer(plan, [batch, m, k], "input", 0), buffer(plan, [batch, n, k], "input", 1)
    c = buffer(plan, [batch, 1, n], "input", 2)
    out, sum_ = buffer(plan, [batch, m, n], "output"), buffer(plan, [batch, m, n], "output")
    b_t = plan.window(b, [batch, k, n], [n * k, 1, k], 0)
    plan.call("aten::bmm", [plan.view(a), b_t], [out])
    plan.call("aten::baddbmm", [plan.view(c), plan.view(a), b_t, *scale], [sum_])
    plan.output(plan.view(out), "value", -1)
    plan.output(plan.view(sum_), "value", -1)
    x, y, z = torch.randn(batch, m, k), torch.randn(batch, n, k), torch.randn(batch, 1, n)
    got = plan.executable([]).run([x, y, z])
    product = x.double() @ y.double().transpose(1, 2)
    torch.testing.assert_close(got[0], product.float(), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(got[1], (scale[0] * z.double() + scale[1] * product).float(), rtol=1e-4, atol=1e-3)


def test_integer_products():
    plan = rt.Plan(3, 0)
    c, a, b = (buffer(plan, [4, 4], "input", i, dtype="int64") for i in range(3))
    out = buffer(plan, [4, 4], "output", dtype="int64")
    plan.call("aten::addmm", [plan.view(c), plan.view(a), plan.view(b), 2, 3], [out])
    plan.output(plan.view(out), "value", -1)
    x = torch.arange(16).reshape(4, 4)
    assert torch.equal(plan.executable([]).run([x, x, x])[0], 2 * x + 3 * (x @ x))


CONVOLUTIONS = [  # batch, channels, size, outputs, kernel, stride, padding, groups
    (2, 3, 16, 8, 3, 2, 1, 1),
    (2, 64, 28, 96, 1, 1, 0, 1),
    (1, 64, 28, 96, 1, 2, 0, 1),
    (1, 64, 28, 64, 3, 1, 1, 64),
    (1, 32, 1, 64, 1, 1, 0, 1),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("place", ["output", "extern"])
def test_convolutions(case, channels_last, with_bias, place):
    batch, channels, size, outputs, kernel, stride, padding, groups = case
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(batch, channels, size, size).contiguous(memory_format=memory_format)
    w, b = torch.randn(outputs, channels // groups, kernel, kernel), torch.randn(outputs)
    expected = torch.conv2d(x.double(), w.double(), b.double() if with_bias else None, stride, padding, 1, groups).float()
    expected = expected.contiguous(memory_format=memory_format)
    plan = rt.Plan(3, 0)
    ids = [buffer(plan, t.shape, "input", i, strides=t.stride()) for i, t in enumerate((x, w, b))]
    y = buffer(plan, expected.shape, place, strides=expected.stride())
    views = [plan.view(i) for i in ids]
    plan.call("aten::convolution", [views[0], views[1], views[2] if with_bias else None, [stride] * 2, [padding] * 2,
                                    [1, 1], False, [0, 0], groups], [y])
    plan.output(plan.view(y), "value", -1)
    got = plan.executable([]).run([x, w, b])[0]
    assert got.stride() == expected.stride()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-3)


def test_operators_through_the_dispatcher():
    plan = rt.Plan(2, 4096)
    x, index = buffer(plan, [6, 8], "input", 0), buffer(plan, [3], "input", 1, dtype="int64")
    top, where = buffer(plan, [6, 2], "output"), buffer(plan, [6, 2], "output", dtype="int64")
    rows = buffer(plan, [3, 8], "arena", offset=0)
    joined = buffer(plan, [9, 8], "extern")
    scaled = buffer(plan, [9, 8], "output")
    plan.call("aten::topk", [plan.view(x), 2, -1, True, True], [top, where])
    plan.call("aten::index_select", [plan.view(x), 0, plan.view(index)], [rows])
    plan.call("aten::cat", [[plan.view(x), plan.view(rows)], 0], [joined])
    plan.call("aten::mul.Scalar", [plan.view(joined), 2.5], [scaled])
    plan.free(joined)
    for b in (top, where, scaled):
        plan.output(plan.view(b), "value", -1)
    a, i = torch.randn(6, 8), torch.tensor([5, 0, 3])
    for _ in range(2):
        got = plan.executable([]).run([a, i])
        assert torch.equal(got[0], a.topk(2).values) and torch.equal(got[1], a.topk(2).indices)
        assert torch.equal(got[2], torch.cat([a, a[i]]) * 2.5)


def test_a_result_that_is_an_argument_is_copied():
    plan = rt.Plan(1, 0)
    x, same = buffer(plan, [4], "input", 0), buffer(plan, [4], "extern")
    plan.call("aten::alias", [plan.view(x)], [same])
    plan.output(plan.view(same), "value", -1)
    a = torch.randn(4)
    got = plan.executable([]).run([a])[0]
    assert torch.equal(got, a) and got.data_ptr() != a.data_ptr()


def test_custom_operators_may_keep_their_arguments():
    kept = []
    with torch.library._scoped_library("oxyruntime", "DEF") as library:
        library.define("keep(Tensor x) -> Tensor")
        library.impl("keep", lambda x: (kept.append(x), x + 1)[1], "CPU")
        plan = rt.Plan(2, 1024)
        a, b = buffer(plan, [4, 4], "input", 0), buffer(plan, [4, 4], "input", 1)
        c, d = buffer(plan, [4, 4], "arena"), buffer(plan, [4, 4], "output")
        plan.launch(plan.kernel("add", ADD), [a, b, c], [4], 4, 1 << 20, 0)
        plan.call("oxyruntime::keep", [plan.view(c)], [d])
        plan.output(plan.view(d), "value", -1)
        run = plan.executable([])
        x = torch.ones(4, 4)
        assert torch.equal(run.run([x, x])[0], x * 3)
        run.run([x, -x])
        assert torch.equal(kept[0], x * 2) and not kept[1].any()


def test_random_numbers_are_those_of_eager():
    plan = rt.Plan(1, 1024)
    x = buffer(plan, [64], "input", 0)
    a, b = buffer(plan, [64], "output"), buffer(plan, [64], "extern")
    plan.call("aten::bernoulli.p", [plan.view(x), 0.5, None], [a])
    plan.call("aten::rand_like", [plan.view(x), None, None, None, None, None], [b])
    plan.output(plan.view(a), "value", -1)
    plan.output(plan.view(b), "value", -1)
    run, t = plan.executable([]), torch.zeros(64)
    torch.manual_seed(5)
    got = run.run([t])
    after = torch.rand(3)
    torch.manual_seed(5)
    expected = [torch.bernoulli(t, 0.5), torch.rand_like(t)]
    assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1]) and torch.equal(after, torch.rand(3))


def test_an_index_error_changes_nothing():
    plan = rt.Plan(2, 1024)
    x, state = buffer(plan, [4], "input", 0), buffer(plan, [4], "input", 1)
    noise = buffer(plan, [4], "arena")
    plan.call("aten::bernoulli.p", [plan.view(x), 0.5, None], [noise])
    plan.launch(plan.kernel("fail", FAIL), [x], [], 1, 1, 0)
    plan.mutation(1, plan.view(noise))
    run = plan.executable([])
    state_tensor = torch.full((4,), 9.0)
    torch.manual_seed(1)
    with pytest.raises(IndexError):
        run.run([torch.ones(4), state_tensor])
    version = state_tensor._version
    after = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(after, torch.rand(1)) and (state_tensor == 9).all() and version == 0
    run.run([torch.zeros(4), state_tensor])
    assert not (state_tensor == 9).any() and state_tensor._version == 1


def test_an_error_of_an_operator_reaches_the_caller_and_the_frame_is_good_again():
    plan = rt.Plan(2, 0)
    x, index, out = buffer(plan, [4, 2], "input", 0), buffer(plan, [1], "input", 1, dtype="int64"), buffer(plan, [1, 2], "output")
    plan.call("aten::index_select", [plan.view(x), 0, plan.view(index)], [out])
    plan.output(plan.view(out), "value", -1)
    run, a = plan.executable([]), torch.randn(4, 2)
    with pytest.raises((IndexError, RuntimeError)):
        run.run([a, torch.tensor([9])])
    assert torch.equal(run.run([a, torch.tensor([3])])[0], a[3:])


def test_aliases_and_mutations():
    plan = rt.Plan(2, 1024)
    a, b = buffer(plan, [4, 6], "input", 0), buffer(plan, [4, 6], "input", 1)
    total = buffer(plan, [4, 6], "output")
    plan.launch(plan.kernel("add", ADD), [a, b, total], [6], 4, 100, 0)
    plan.output(plan.view(total), "value", -1)
    plan.output(plan.window(total, [6, 4], [1, 6], 0), "output", 0)
    plan.output(plan.view(a), "input", 0)
    plan.output(plan.window(a, [2, 6], [12, 1], 6), "input", 0)
    plan.mutation(0, plan.view(b))
    plan.mutation(1, plan.view(a))
    run = plan.executable([])
    base = torch.randn(5, 6)
    x, y = base[1:], torch.randn(4, 6)
    x0, y0, version = x.clone(), y.clone(), x._version
    got = run.run([x, y])
    assert torch.equal(x, y0) and torch.equal(y, x0) and x._version == version + 1
    assert torch.equal(got[0], x0 + y0) and got[1]._base is got[0] and torch.equal(got[1], got[0].t())
    assert got[2] is not x and got[2].data_ptr() == x.data_ptr()
    assert got[3]._base is base and torch.equal(got[3], x[1::2])


def test_values_never_share_memory_with_inputs_or_constants():
    plan = rt.Plan(1, 0)
    a, c = buffer(plan, [4], "input", 0), buffer(plan, [4], "constant", 0)
    for b in (a, c):
        plan.output(plan.view(b), "value", -1)
    constant, x = torch.arange(4.0), torch.randn(4)
    run = plan.executable([constant])
    first = run.run([x])
    first[0].zero_(), first[1].zero_()
    second = run.run([x])
    assert torch.equal(second[0], x) and torch.equal(second[1], torch.arange(4.0)) and x.any()


def test_views_of_inputs_that_require_grad():
    plan = rt.Plan(1, 0)
    a = buffer(plan, [4], "input", 0)
    plan.output(plan.window(a, [2], [1], 2), "input", 0)
    w = torch.nn.Parameter(torch.randn(4))
    run = plan.executable([])
    with torch.no_grad():
        assert not run.run([w])[0].requires_grad
    assert not run.run([w])[0].requires_grad  # who knows of gradients makes the view that has them


def test_symbolic_sizes():
    plan = rt.Plan(2, 0)
    a, b = buffer(plan, ["s0", 8], "input", 0, strides=[8, 1]), buffer(plan, ["s0", 8], "input", 1, strides=[8, 1])
    out = buffer(plan, ["s0", 8], "output", strides=[8, 1])
    plan.launch(plan.kernel("add", ADD), [a, b, out], [8], "s0", 2, 0)
    plan.output(plan.view(out), "value", -1)
    run = plan.executable([])
    for rows in (3, 5, 3, *range(2, 20)):
        x, y = torch.randn(rows, 8), torch.randn(rows, 8)
        assert torch.equal(run.run([x, y], [rows])[0], x + y)


def test_threads():
    """Calls at the same time have an arena each; plans of all sizes use the same ones one after the other."""
    wrong = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        w, b = torch.randn(64, 64, generator=generator), torch.randn(64, generator=generator)
        for call in range(50):
            rows = (32, 4, 50)[(call + seed) % 3]
            x = torch.full((rows, 64), float(seed))
            if not torch.allclose(runs[rows].run([x, w, b])[0], 2 * (x @ w.t() + b), rtol=1e-4, atol=1e-3):
                wrong.append(seed)
            if call == 40:
                linear_plan(90 + seed, 64, 64, "arena").executable([]).run([torch.ones(90 + seed, 64), w, b])

    runs = {rows: linear_plan(rows, 64, 64, "arena").executable([]) for rows in (4, 32, 50)}

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong


def test_verifier_names_the_broken_rule():
    plan = rt.Plan(1, 64)
    buffer(plan, [64], "arena", offset=0)
    with pytest.raises(RuntimeError, match="past the end of the arena"):
        plan.verify()
    plan = rt.Plan(1, 64)
    out = buffer(plan, [4], "output")
    plan.output(plan.view(out), "value", -1)
    with pytest.raises(RuntimeError, match="read before anything writes it"):
        plan.verify()


def test_text():
    text = linear_plan(3, 5, 7, "arena").text()
    assert "addmm" in text and "launch add(%b3, %b3, %b4; [7]) extent 3 grain 1" in text and "at 64" in text
