"""Sizes that recur get a variant with numbers, which is made in the background and kept if it is faster."""

import gc
import subprocess
import sys
import textwrap
import time
import warnings

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from oxyfuel import _core
from size_checks import compiles, in_threads, same
from size_programs import PROGRAMS as OPERATORS

TRIAL = 40  # calls after which a trial is over
AT_ONCE = {"static_variants": 2}


@pytest.fixture(autouse=True)
def kept():
    """Every variant wins its trial."""
    _core.judge_static_variants(True)
    yield
    _core.judge_static_variants(None)


def counts():
    found = oxyfuel.metrics()["static_variants"]
    return tuple(found[name] for name in ("made", "kept", "dropped", "let_go"))


def compiled(function, **options):
    return oxyfuel.compile(function, dynamic=True, options={**AT_ONCE, **options})


def settle(call):
    """Calls until there is a variant, and it has been judged."""
    for _ in range(2):
        call()
    _core.wait_for_background()
    for _ in range(TRIAL):
        call()


def softmax(x):
    return x.softmax(-1)


def several(x):
    y = F.layer_norm(x, (x.size(-1),)) * 2
    return y, y.sum(0), x.t().contiguous()


def aliases(x):
    y = (x * x.size(0)).cumsum(1)
    return y, y[1:], x[:, 1:], y.t()


def writes(x):
    x.mul_(2)
    x[1:] += x[:1].exp()
    return x.softmax(-1), x


def masks(x):
    n = x.size(0)
    mask = torch.arange(n)[:, None] >= torch.arange(n)[None, :]
    return (x @ x.t()).masked_fill(~mask, float("-inf")).softmax(-1)


def draws(x):
    return F.dropout(x, 0.5) + torch.rand_like(x) * x.sum(-1, keepdim=True)


def depends_on_data(x):
    rows = x[x[:, 0] > 0]
    return rows.softmax(-1), rows.sum(0)


PROGRAMS = [softmax, several, aliases, writes, masks, draws, depends_on_data]


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_answers(program, grows):
    function = compiled(program)
    inputs = torch.randn(9, 7, generator=torch.Generator().manual_seed(1))

    def call(x=inputs):
        torch.manual_seed(0)
        actual = function(x.clone())
        torch.manual_seed(0)
        same(program(x.clone()), actual)

    assert compiles(lambda: settle(call)) == 1
    made, is_kept, dropped, _ = counts()
    assert made == is_kept >= 1 and dropped == 0
    for rows, columns in [(5, 6), (9, 7), (2, 33), (9, 6)] if grows else [(9, 7)]:
        call(torch.randn(rows, columns))
    assert counts()[:2] == (made, is_kept)


def test_the_variant_runs():
    # A trial that finds it slower, and one that finds it faster.
    for verdict, expected in ((False, (1, 0, 1, 0)), (True, (1, 1, 0, 0))):
        oxyfuel.reset()
        _core.judge_static_variants(verdict)
        function = compiled(softmax)
        x = torch.randn(64, 5)
        settle(lambda: function(x))
        assert counts() == expected
        settle(lambda: function(x))
        assert counts() == expected
        same(softmax(x), function(x))


def test_times_decide():
    _core.judge_static_variants(None)
    function = compiled(softmax)
    x = torch.randn(4096, 5)
    settle(lambda: function(x))
    made, is_kept, dropped, _ = counts()
    assert made == 1 and is_kept + dropped == 1


def test_none_without_the_option():
    function = oxyfuel.compile(softmax, dynamic=True)
    x = torch.randn(8, 5)
    settle(lambda: function(x))
    assert counts() == (0, 0, 0, 0)


def test_none_for_a_short_run():
    function = oxyfuel.compile(softmax, dynamic=True, options={"static_variants": True})
    x = torch.randn(8, 5)
    for _ in range(200):
        function(x)
    _core.wait_for_background()
    function(x)
    assert counts() == (0, 0, 0, 0)


def test_one_for_a_long_run():
    function = oxyfuel.compile(softmax, dynamic=True, options={"static_variants": True})
    x = torch.randn(4096, 200)
    begin = time.perf_counter()
    while counts()[1] == 0 and time.perf_counter() - begin < 60:
        function(x)
        if time.perf_counter() - begin > 1:
            _core.wait_for_background()
    assert counts() == (1, 1, 0, 0)
    same(softmax(x), function(x))


def test_none_where_no_kernel_is_given_a_size():
    layer = torch.nn.Linear(8, 8)
    function = compiled(lambda x: layer(x @ x.t() @ x))
    x = torch.randn(4, 8)
    settle(lambda: function(x))
    assert counts() == (0, 0, 0, 0)


def test_none_for_numbers():
    function = oxyfuel.compile(softmax, dynamic=False, options=AT_ONCE)
    x = torch.randn(8, 5)
    settle(lambda: function(x))
    assert counts() == (0, 0, 0, 0)


def test_sizes_that_change_each_time():
    function = compiled(softmax)
    for n in range(2, 60):
        function(torch.randn(n, 5))
    _core.wait_for_background()
    assert counts() == (0, 0, 0, 0)


def test_the_least_recently_used_goes():
    function = compiled(softmax)
    for n in range(2, 8):
        x = torch.randn(n, 5)
        settle(lambda: function(x))
        same(softmax(x), function(x))
    assert counts() == (6, 6, 0, 2)
    for n in range(2, 8):
        x = torch.randn(n, 5)
        same(softmax(x), function(x))


def test_one_that_is_not_used_goes():
    function = compiled(softmax)
    x, other = torch.randn(3, 5), torch.randn(4, 5)
    settle(lambda: function(x))
    assert counts() == (1, 1, 0, 0)
    settle(lambda: function(other))
    for _ in range(1400):
        function(other)
    assert counts() == (2, 2, 0, 1)


def test_sizes_that_go_while_the_variant_is_made():
    function = compiled(softmax)
    x = torch.randn(3, 5)
    for _ in range(2):
        function(x)
    for _ in range(1400):
        function(torch.randn(4, 5))
    settle(lambda: function(x))
    same(softmax(x), function(x))


def test_it_is_bounded():
    function = compiled(softmax)
    for n in range(2, 20):
        x = torch.randn(n, 5)
        settle(lambda: function(x))
    assert counts() == (12, 12, 0, 8)


def test_gradients():
    model = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.LayerNorm(12), torch.nn.GELU(), torch.nn.Linear(12, 3))

    def loss(x, y):
        return F.cross_entropy(model(x).softmax(-1) * x.sum(1, keepdim=True), y) + x.softmax(0).sum() / x.size(0)

    function = compiled(loss)
    x, y = torch.randn(10, 6), torch.randint(0, 3, (10,))

    def gradients(target):
        leaf = x.clone().requires_grad_()
        value = target(leaf, y)
        value.backward()
        found = [leaf.grad, *(p.grad for p in model.parameters())]
        model.zero_grad()
        return [value.detach(), *found]

    expected = gradients(loss)
    settle(lambda: same(expected, gradients(function)))
    assert counts()[1] >= 2  # of both halves
    same(expected, gradients(function))


@pytest.mark.parametrize("number", range(len(OPERATORS)))
def test_operators(number):
    program, rest = OPERATORS[number]
    function = compiled(program)
    x = torch.rand(5, *rest) + 0.1

    def result(target):
        leaf = x.clone().requires_grad_()
        value = target(leaf)
        return value.detach(), torch.autograd.grad((value * value).sum(), leaf)[0]

    expected = result(program)
    settle(lambda: same(expected, result(function)))
    same(expected, result(function))


def test_gradients_of_gradients():
    def program(x):
        return (x.softmax(-1) ** 3).sum(0)

    function = compiled(program)
    x = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    settle(lambda: function(x).sum().backward())
    x.grad = None
    assert counts()[1] >= 1
    assert torch.autograd.gradgradcheck(function, (x,))


def test_frozen_weights():
    layer, norm = torch.nn.Linear(16, 16), torch.nn.LayerNorm(16)
    model = torch.nn.Sequential(layer, norm)

    def program(x):
        return model(x).softmax(-1) * x.softmax(0)

    function = compiled(program)
    x = torch.randn(32, 16)
    with torch.no_grad():
        settle(lambda: function(x))
        same(program(x), function(x))
        layer.weight.mul_(-1)
        same(program(x), function(x))
        settle(lambda: function(x))
        norm.weight.fill_(2)
        same(program(x), function(x))
        settle(lambda: function(x))
        same(program(x), function(x))


def test_packed_weights_are_shared():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(512, 512)

        def forward(self, x):
            y = self.layer(x)
            return y.softmax(0), y.t().contiguous()

    model = oxyfuel.compile(Model(), dynamic=True, options={**AT_ONCE, "weight_copy_budget": 4.0})
    x = torch.randn(8, 512)
    with torch.no_grad():
        settle(lambda: model(x))
    assert counts()[1] == 1
    packed = oxyfuel.metrics()["packed_bytes"]
    with torch.no_grad():
        other = torch.randn(9, 512)
        settle(lambda: model(other))
    assert counts()[1] == 2 and oxyfuel.metrics()["packed_bytes"] == packed


def test_a_call_that_fails():
    def look_up(table, index):
        return table[index].softmax(-1) * 2

    function = compiled(look_up)
    table, index = torch.randn(6, 5), torch.tensor([0, 5, 2])
    wrong = torch.tensor([0, 6, 2])

    def call():
        same(look_up(table, index), function(table, index))
        with pytest.raises(IndexError):
            function(table, wrong)

    settle(call)
    assert counts()[1:3] == (1, 0)
    call()


def test_a_new_compilation():
    def scaled(x, flag):
        return x.softmax(-1) * (2 if flag else 3)

    function = compiled(scaled)
    x = torch.randn(7, 5)
    for flag in (True, False, True):
        settle(lambda: function(x, flag))
        same(scaled(x, flag), function(x, flag))
    assert counts()[:2] == (2, 2)
    oxyfuel.reset()
    settle(lambda: function(x, True))
    assert counts()[:2] == (1, 1)


def test_threads_at_once():
    function = compiled(several)
    shapes = [(8, 5), (9, 5), (8, 33), (5, 8)]

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for i in range(150):
            x = torch.randn(*shapes[(i // 10 + seed) % len(shapes)], generator=generator)
            same(several(x), function(x))

    in_threads(4, work)
    _core.wait_for_background()
    in_threads(4, work)
    assert counts()[0] >= 1


def test_threads_that_train():
    def program(x, w):
        return (F.layer_norm(x @ w, (w.size(1),)).softmax(0) * x.sum(1, keepdim=True)).sum()

    function = compiled(program)
    w = torch.randn(6, 7)

    def work(seed):
        for i in range(60):
            x = torch.randn(5 + (i + seed) % 2, 6)
            a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
            program(a, w).backward()
            function(b, w).backward()
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)

    in_threads(3, work)
    _core.wait_for_background()
    in_threads(3, work)


def test_functions_that_go_while_their_variants_are_made():
    for n in range(3, 9):
        function = compiled(lambda x, n=n: x.softmax(-1) * n)
        x = torch.randn(6, 5)
        for _ in range(2):
            function(x)
        del function
        gc.collect()
    oxyfuel.reset()
    _core.wait_for_background()


def test_in_and_out_of_inference_mode():
    function = compiled(softmax)
    x = torch.randn(6, 5)
    with torch.inference_mode():
        settle(lambda: function(x))
        same(softmax(x), function(x))
    settle(lambda: function(x))
    same(softmax(x), function(x))


def test_what_the_log_says(capfd):
    _core.enable_logs("dynamic")
    try:
        function = compiled(softmax)
        x = torch.randn(7, 5)
        settle(lambda: function(x))
    finally:
        _core.enable_logs("")
    log = capfd.readouterr().err
    assert "softmax" in log and "a variant with these numbers was made in" in log
    assert "the variant is kept" in log and "us with numbers" in log


PROCESS = """
    import os, sys, torch, oxyfuel
    {before}
    def program(x, y):
        return [F(x * n).softmax(-1) + y.t().contiguous() for n, F in enumerate((torch.exp, torch.sin, torch.tanh, torch.erf))]
    function = oxyfuel.compile(program, dynamic=True, options={{"static_variants": 1}})
    x, y = torch.randn(9, 5), torch.randn(5, 9)
    expected = program(x, y)
    def check():
        assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(expected, function(x, y)))
    check()
    {after}
"""
ENDS = {
    "at once": "",
    "with an error": "sys.exit(3)",
    "without a word": "os._exit(3)",
    "in another way": "import ctypes; ctypes.CDLL(None).exit(3)",
    "behind its threads": "import threading; threading.Thread(target=lambda: [check() for _ in range(100)]).start()",
}


def run_process(after, before=""):
    program = textwrap.dedent(PROCESS).format(before=before, after=textwrap.dedent(after))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert not done.stderr, done.stderr
    return done


@pytest.mark.parametrize("end", ENDS)
def test_the_process_ends(end):
    assert run_process(ENDS[end]).returncode == (3 if "exit(3)" in ENDS[end] else 0)


def test_a_child_of_a_fork():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = run_process("""
for _ in range(3):
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        for _ in range(40):
            check()
        oxyfuel._core.wait_for_background()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    check()
oxyfuel._core.wait_for_background()
check()
assert oxyfuel.metrics()["static_variants"]["made"] == 1
""", before="torch.set_num_threads(1)")
    assert done.returncode == 0


@pytest.mark.parametrize("value, error", [("yes", TypeError), (1.5, TypeError), (None, TypeError), (0, ValueError), (-1, ValueError)])
def test_wrong_values(value, error):
    with pytest.raises(error, match="static_variants"):
        oxyfuel.compile(softmax, options={"static_variants": value})


def test_values():
    for value in (True, False, 1, 10**30):
        same(softmax(torch.ones(3, 4)), oxyfuel.compile(softmax, options={"static_variants": value})(torch.ones(3, 4)))
