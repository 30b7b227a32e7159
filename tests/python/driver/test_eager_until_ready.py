"""options={"wait": False}: kernels are compiled in the background, and calls run in eager until they are there."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from oxyfuel import _core

NO_WAIT = {"wait": False}


@pytest.fixture(autouse=True)
def held():
    """Nothing is compiled behind a call until finish() or release."""
    _core.hold_background()
    yield
    _core.release_background()
    _core.wait_for_background()


def finish():
    """All that was asked for so far is compiled."""
    _core.release_background()
    _core.wait_for_background()
    _core.hold_background()


def compiled(function, **arguments):
    options = {**NO_WAIT, **arguments.pop("options", {})}
    return oxyfuel.compile(function, options=options, **arguments)


def calls():
    counts = oxyfuel.metrics()
    return counts["calls_eager"], counts["calls_compiled"], counts["pending"]


def softmax(x):
    return (x * 2).softmax(-1)


def test_eager_until_the_kernels_are_there():
    runs = []

    def program(x):
        runs.append(1)
        return softmax(x)

    function, x = compiled(program), torch.randn(5, 7)
    for call in range(3):
        torch.testing.assert_close(function(x), softmax(x))
        assert calls() == (call + 1, 0, 1) and len(runs) == call + 1
    finish()
    for call in range(3):
        torch.testing.assert_close(function(x), softmax(x))
        assert calls() == (3, call + 1, 0) and len(runs) == 4 + call
    assert oxyfuel.metrics()["graphs"] == 1 and oxyfuel.metrics()["kernels"] >= 1 and oxyfuel.metrics()["recompiles"] == 0


def test_waiting_is_the_default():
    function = oxyfuel.compile(softmax)
    function(torch.randn(5, 7))
    assert calls() == (0, 1, 0)


def test_kernels_that_are_known_are_not_waited_for_twice():
    x = torch.randn(5, 11)
    compiled(softmax)(x)
    finish()
    function = compiled(softmax)
    function(x)
    finish()
    function(x)
    assert calls()[1] == 1


def test_without_kernels_the_first_call_is_compiled():
    function = compiled(lambda x, y: x @ y)
    function(torch.randn(3, 4), torch.randn(4, 5))
    assert calls() == (0, 1, 0)


def test_effects_happen_once():
    def program(x, seen):
        seen.append(x.shape)
        x.mul_(2)
        return F.dropout(x, 0.5) + torch.rand_like(x)

    function = compiled(program)
    seen, x = [], torch.ones(6, 6)
    expected = x.clone()
    for call in range(1, 6):
        if call == 3:
            finish()
        torch.manual_seed(call)
        actual = function(x, seen)
        ours = torch.random.get_rng_state()
        torch.manual_seed(call)
        torch.testing.assert_close(actual, program(expected, []))
        assert torch.equal(ours, torch.random.get_rng_state())
        torch.testing.assert_close(x, expected)
        assert len(seen) == call
    assert calls() == (2, 3, 0)


def train(step, model, optimizer, batches):
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = step(model, x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def make_model():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Dropout(0.25), torch.nn.Linear(16, 4)
    )
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def test_training():
    generator = torch.Generator().manual_seed(1)
    batches = [(torch.randn(5, 8, generator=generator), torch.randint(4, (5,), generator=generator)) for _ in range(6)]
    plain, optimizer = make_model()
    expected = train(loss_of, plain, optimizer, batches)

    model, optimizer = make_model()
    function = compiled(loss_of)
    actual = train(function, model, optimizer, batches[:3])
    assert calls()[:2] == (3, 0) and calls()[2] == 2  # the forward and the backward half
    finish()
    actual += train(function, model, optimizer, batches[3:])
    assert calls() == (3, 3, 0)
    for ours, eager in zip(actual + list(model.parameters()), expected + list(plain.parameters()), strict=True):
        torch.testing.assert_close(ours, eager)


def test_the_backward_pass_of_an_eager_call_is_eager():
    function = compiled(lambda x: softmax(x).square().sum())
    x = torch.randn(4, 4, requires_grad=True)
    loss = function(x)
    finish()
    later = function(x)
    assert type(loss.grad_fn).__name__ == "SumBackward0" and type(later.grad_fn).__name__ != "SumBackward0"
    (ours,), (others,) = torch.autograd.grad(loss, x), torch.autograd.grad(later, x)
    torch.testing.assert_close(ours, others)


def test_gradients_of_some_results():
    """A backward pass without some tangents is another graph, which calls do not wait for either."""

    def program(x, w):
        y = (x * w).tanh()
        return y.exp().sum(0), y.sin().sum(1), torch.unbind(y.cumsum(0) * 2)

    function = compiled(program)
    x, w = torch.randn(3, 4), torch.randn(3, 4, requires_grad=True)

    def gradients(f):
        a, b, (c, d, _) = f(x, w)
        return [torch.autograd.grad(part.sum(), w, retain_graph=True)[0] for part in (a, b, c, d)]

    expected = gradients(program)
    for _ in range(4):
        for ours, eager in zip(gradients(function), expected):
            torch.testing.assert_close(ours, eager)
        finish()
    assert calls()[1:] == (3, 0)


def test_recompilation():
    function = compiled(softmax, dynamic=False)
    first, second = torch.randn(3, 4), torch.randn(5, 6)
    function(first)
    finish()
    function(first)
    function(second)
    function(first)  # stays compiled meanwhile
    assert calls() == (2, 2, 1)
    finish()
    torch.testing.assert_close(function(second), softmax(second))
    assert calls() == (2, 3, 0) and oxyfuel.metrics()["recompiles"] == 1


def test_sizes_that_vary():
    function = compiled(softmax)
    for rows in (2, 3, 4, 5, 6):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(function(x), softmax(x))
        finish()
    eager, run, pending = calls()
    assert eager == 2 and run == 3 and pending == 0


def test_sizes_that_data_decide():
    def program(x):
        rows = x[x[:, 0] > 0]
        return rows.softmax(-1), rows.sum(0) * 2

    function = compiled(program)
    for call in range(4):
        x = torch.randn(6, 3)
        for ours, eager in zip(function(x), program(x)):
            torch.testing.assert_close(ours, eager)
        finish()
    assert calls() == (1, 3, 0)


def test_what_depends_on_sizes_alone():
    def program(x):
        n = x.size(0)
        mask = torch.arange(n)[:, None] >= torch.arange(n)[None, :]
        return (x @ x.t()).masked_fill(~mask, float("-inf")).softmax(-1)

    function = compiled(program, dynamic=True)
    for n in (4, 5, 6, 7, 8, 9, 10):
        x = torch.randn(n, 3)
        torch.testing.assert_close(function(x), program(x))
        finish()
    assert calls() == (1, 6, 0)


def inner(x):
    return (x + 1).sin() * 2


def with_breaks(x, log):
    y = inner(x) * x
    log.append(str(y.sum().item()))
    z = inner(y) + 1
    log.append(str(z.sum().item()))
    return z.softmax(-1)


def test_graph_breaks():
    function, x = compiled(with_breaks), torch.randn(4, 5)
    ours, eager = [], []
    for call in range(6):
        torch.testing.assert_close(function(x, ours), with_breaks(x, eager))
        assert len(ours) == len(eager) == 2 * (call + 1)
        # The rest of the frame and what it calls are left alone: one region a call is captured, no more.
        assert oxyfuel.metrics()["graphs"] == min(call + 1, 3)
        finish()
    explanation = oxyfuel.explain(function)(x, ours)
    assert not any(segment["is_pending"] for segment in explanation.segments)
    assert explanation.graph_count == 3


def test_a_generator():
    def program(x):
        for k in range(3):
            yield (x * k).softmax(-1)

    function, x = compiled(program), torch.randn(3, 4)
    for _ in range(4):
        for ours, eager in zip(function(x), program(x), strict=True):
            torch.testing.assert_close(ours, eager)
        finish()


def test_explain_says_so():
    function, x = compiled(softmax), torch.randn(5, 7)
    explanation = oxyfuel.explain(function)(x)
    assert [segment["is_pending"] for segment in explanation.segments] == [True]
    assert "being compiled" in str(explanation) and "being compiled" in explanation._repr_html_()
    assert explanation.metrics["pending"] == 1 and not explanation.breaks
    finish()
    explanation = oxyfuel.explain(function)(x)
    assert [segment["is_pending"] for segment in explanation.segments] == [False]
    assert "being compiled" not in str(explanation)


def test_a_weight_that_is_written_to_meanwhile():
    weight, bias = torch.nn.Parameter(torch.randn(4, 4)), torch.nn.Parameter(torch.randn(4))
    module = torch.nn.Linear(4, 4)
    module.weight, module.bias = weight, bias

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = module

        def forward(self, x):
            return F.linear(x, self.linear.weight * 2, self.linear.bias).relu() + 1

    model, x = Model(), torch.randn(3, 4)
    function = compiled(model)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(function(x), model(x))
            weight.add_(1)
            finish()


def test_reset_with_work_in_flight():
    x = torch.randn(5, 13)
    function = compiled(softmax)
    function(x)
    oxyfuel.reset()
    assert oxyfuel.metrics()["pending"] == 0
    finish()
    function(x)
    assert calls() == (1, 0, 1)
    finish()
    function(x)
    assert calls() == (1, 1, 0)


def test_the_callable_ends_first():
    function = compiled(softmax)
    function(torch.randn(5, 17))
    del function
    assert oxyfuel.metrics()["pending"] == 0
    finish()


def test_threads():
    function, x = compiled(softmax), torch.randn(64, 19)
    expected = softmax(x)
    start, errors = threading.Barrier(5), []

    def work():
        try:
            start.wait()
            for _ in range(300):
                torch.testing.assert_close(function(x), expected)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    start.wait()
    _core.release_background()
    for thread in threads:
        thread.join()
    assert not errors
    _core.wait_for_background()
    function(x)
    assert oxyfuel.metrics()["calls_compiled"] > 0 and oxyfuel.metrics()["pending"] == 0


@pytest.mark.parametrize("value", [1, 0, None, "no"])
def test_wrong_values(value):
    with pytest.raises(TypeError, match="option 'wait' must be of type bool"):
        oxyfuel.compile(softmax, options={"wait": value})


def test_modules_and_other_backends():
    model, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Softmax(-1)), torch.randn(3, 4)
    for backend in ("native", "eager", lambda graph, inputs: graph):
        function = compiled(model, backend=backend)
        for _ in range(3):
            torch.testing.assert_close(function(x), model(x))
            finish()


FAILING = """
import os, sys
os.environ["OXYFUEL_COMPILER"] = "system"
os.environ["OXYFUEL_CXX"] = {compiler!r}
os.environ["OXYFUEL_STRICT"] = {strict!r}
import torch, oxyfuel

def f(x):
    return (x * 2).softmax(-1)

def call():
    try:
        return torch.equal(function(x), f(x))
    except Exception as error:
        return type(error).__name__ + ": " + str(error).splitlines()[0]

x = torch.randn(3, 4)
function = oxyfuel.compile(f, fullgraph={fullgraph}, options={{"wait": {wait}}})
oxyfuel._core.hold_background()
first = call()
if not {wait}:
    assert first is True, first
    oxyfuel._core.release_background()
    oxyfuel._core.wait_for_background()
    first = call()
print(first)
print(call())
print([record["reason"].splitlines()[0] for record in oxyfuel.metrics()["breaks"]])
"""


@pytest.mark.parametrize("compiles", [None, False], ids=["no compiler", "an error"])
@pytest.mark.parametrize("strict", ["0", "1"])
@pytest.mark.parametrize("fullgraph", [False, True])
def test_errors_of_compilation_are_the_same(fullgraph, strict, compiles, tmp_path):
    compiler = tmp_path / "compiler"
    if compiles is not None:
        compiler.write_text("#!/bin/sh\nexit 1\n")
        compiler.chmod(0o755)

    def run(wait):
        program = FAILING.format(wait=wait, fullgraph=fullgraph, strict=strict, compiler=str(compiler))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout, [line for line in done.stderr.splitlines() if line.startswith("oxyfuel")]

    assert run(False) == run(True)


PROCESS = """
import os, sys, torch, oxyfuel

def f(x):
    for k in range({layers}):
        x = (x * k + 1).softmax(-1) if k % 2 else x.sin().sum(0, keepdim=True) + x
    return x

x = torch.randn(5, 7)
function = oxyfuel.compile(f, options={{"wait": False}})
def check():
    torch.testing.assert_close(function(x), f(x))
check()
{after}
"""

ENDS = {
    "plainly": "",
    "with an error": "sys.exit(3)",
    "at once": "os._exit(0)",
    "after more": "check(); oxyfuel.reset(); check()",
    "in a child": """
child = os.fork()
if child == 0:
    torch.set_num_threads(1)
    check()
    oxyfuel._core.wait_for_background()
    check()
    assert oxyfuel.metrics()["calls_compiled"] >= 1
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
oxyfuel._core.wait_for_background()
check()
assert oxyfuel.metrics()["calls_compiled"] >= 1
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_process_goes_on_and_ends(end):
    program = PROCESS.format(layers=40, after=textwrap.dedent(ENDS[end]))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == (3 if "exit(3)" in ENDS[end] else 0) and not done.stderr, done.stderr
