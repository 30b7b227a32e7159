"""What a user sees of symbols: in explain(), in logs, in the reasons of recompiles."""

import os
import subprocess
import sys

import torch

import oxyfuel


def test_explain_has_the_symbols():
    def f(x, y):
        return x @ y if x.size(0) > 2 else x

    compiled = oxyfuel.compile(f, dynamic=True)
    explanation = oxyfuel.explain(compiled)(torch.ones(4, 3), torch.ones(3, 5))
    [segment] = explanation.segments
    symbols = {symbol["source"]: symbol for symbol in segment["symbols"]}
    assert symbols["x.size(0)"]["hint"] == 4 and symbols["x.size(0)"]["range"] == f"3 <= {symbols['x.size(0)']['name']}"
    assert symbols["y.size(1)"]["range"] == ""
    # The two inner sizes are one symbol.
    assert ("x.size(1)" in symbols) != ("y.size(0)" in symbols)
    assert any(guard.startswith("2 < x.size(0) (test_seeing.py:") or "3 <= x.size(0)" in guard for guard in segment["guards"])
    assert "symbol " in str(explanation) and "symbol" in explanation._repr_html_()


def test_a_recompile_says_what_failed():
    @oxyfuel.compile
    def f(x):
        return x + 1 if x.size(0) < 10 else x - 1

    for n in (4, 5, 12):
        f(torch.ones(n))
    reasons = oxyfuel.metrics()["recompile_reasons"]
    assert "size of dimension 0: was 4, is 5 (dynamic=True or a mark of dimension 0 may avoid this)" in reasons[0]
    assert "x.size(0)" in reasons[1] and "test_seeing.py" in reasons[1] and "was 5, is 12 (what is asked of symbols is compiled once for each answer)" in reasons[1]


def test_a_recompile_says_what_avoids_it():
    compiled = oxyfuel.compile(lambda x, k: x + k)
    for k in (1, 2):
        compiled(torch.ones(3), k)
    assert oxyfuel.metrics()["recompile_reasons"][-1].endswith("k: was 1, is 2 (dynamic=True may avoid this)")
    compiled = oxyfuel.compile(lambda x: x + 1, dynamic=False)
    for n in (4, 5):
        compiled(torch.ones(n))
    assert oxyfuel.metrics()["recompile_reasons"][-1].endswith("was 4, is 5 (dynamic=False: each one is compiled)")


def test_a_recompile_says_why_numbers_are_used():
    @oxyfuel.compile
    def f(x):
        return torch.vander(x, x.size(0)) + 1  # has no rule for symbols

    for n in (4, 5, 6):
        f(torch.rand(n))
    reason = oxyfuel.metrics()["recompile_reasons"][-1]
    assert "was 5, is 6 (each one is compiled, as symbols were given up: " in reason and "test_seeing.py:" in reason, reason


def test_guards_of_a_backward_pass_have_the_lines_of_their_operators():
    def f(x, n):
        y = x.sin()
        y = y.repeat(n, 1)
        return y.cos()

    compiled = oxyfuel.compile(f, dynamic=True)
    explanation = oxyfuel.explain(compiled)(torch.ones(3, 4, requires_grad=True), 2)
    line = f"gradient of test_seeing.py:{f.__code__.co_firstlineno + 2} in f"
    [segment] = explanation.segments
    # That the gradient of the result has the result's sizes is no question.
    assert [guard for guard in segment["guards"] if "!=" in guard or "<=" in guard] == [f"2 <= n ({line})"]


def test_the_log():
    program = (
        "import torch, oxyfuel\n"
        "def f(x): return x.reshape(2, -1)\n"
        "g = oxyfuel.compile(f, dynamic=True)\n"
        "g(torch.ones(8))\n"
    )
    environment = {**os.environ, "OXYFUEL_LOGS": "dynamic"}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    assert "[dynamic] s0 = x.size(0), 8 at this call: dynamic=True" in result.stderr
    assert "[dynamic] guard x.size(0) % 2 == 0" in result.stderr
