"""Random expressions with breaks in all places of them, numbers that vary and containers that hold them: programs as those of
program_generator.py, for the same runner."""

import random

from program_generator import Program

PRELUDE = """
import functools, oxyfuel
P = oxyfuel.disable(lambda value: value)
def F(a=0, *c, q=1, **kw): return (a, c, q, kw)
class O:
    def __init__(self, v, u=0): self.v = v; self.u = u
    def m(self, a=1): return (self.v, a)
def both(v):
    def made(a=v): yield a; yield P(a)
    return list(made())
"""

CALLS = [f"(torch.arange(4.0), {k}, [{k}, 2, 3], ({k}, 'q'), {{'m': {k}}}, O({k}))" for k in (1, 2, 5, 0, 3, 2)]

SIMPLE = ["k", "x", "y", "3", "l", "'s'", "P(k)", "P(x)", "P(2)", "P(l)", "t", "d", "k + 1", "len(l)", "x.shape[0]"]
SEQUENCES = ["l", "t", "[k, P(k)]", "(P(k), k)", "range(P(3))", "P([k, 2])", "[x, P(k)]", "list(d)"]
NUMBERS = ["k", "P(k)", "k + 1", "len(l)", "P(1)", "2", "x.shape[0]", "int(P(k))"]
# $e: any expression, $p: a plain one, $s: something to go through, $n: a number.
FORMS = [
    "[$e, $e]", "($e, $e)", "($e,)", "{'a': $e, 'b': $e}", "[*$s, $e]", "(*$s, $e)", "{**d, 'z': $e}", 'f"{$p}|{F($p, q=$p)}"', 'f"{[$p, P(k)]!r:>{$n + 9}}"', "'%s %s' % ($e, $e)",
    "(lambda a, b=$e, *c, q=$e: (a, b, c, q))($e)", "F($e, $e)", "F($e, q=$e)", "F(*$s)", "F(*$s, **{'q': $e})", "F(**{'a': $e, 'q': $e})",
    "($e if P(k) > 1 else $e)", "($e, [i for i in $s], $e)", "[($e, i) for i in $s]", "{str(i): $e for i in $s}", "list($s[$n:$n])", "$s[$n]",
    "(P(k) < $n < P(5))", "($n + $n * $n)", "x * $n + $n", "x[$n:$n]", "torch.full(($n + 1,), $n)", "O($e, $e).v", "O($e, $e).m($e)",
    "sorted($s, key=str)", "dict(a=$e, b=$e)", "(w := $e, w, $e)", "max($n, $n, P($n))", "($n or $e, $n and $e, not $n)", "slice($n, P($n))",
    "range($n, P(4))", "type($e).__name__", "str($e)[:P(3)]", "divmod($n + 1, P(2))", "'{}-{}'.format($e, $e)", "','.join([str($n), P('u')])",
    "functools.partial(F, $e)($e)", "(both($e), $e)", "next(iter([$e, $e]))", "list(zip($s, P([1, 2])))", "list(map(lambda i, b=$e: (i, b), $s))",
    "$n in (P(k), $n)", "l.append($e)", "d.update(n=$e)", "setattr(o, 'v', $e)", "o.v",
]  # fmt: skip


def expression(draw, depth):
    if depth <= 0:
        return draw.choice(SIMPLE)
    first, *rest = draw.choice(FORMS).split("$")
    for part in rest:
        filling = expression(draw, depth - 1) if part[0] == "e" else draw.choice({"p": SIMPLE, "s": SEQUENCES, "n": NUMBERS}[part[0]])
        first += filling + part[1:]
    return first


def statement(draw, i):
    def simple():
        return expression(draw, 1)

    kind = draw.random()
    if kind < 0.7:
        return f"    r{i} = {expression(draw, draw.randint(1, 3))}\n"
    if kind < 0.8:
        return f"    r{i}, *s{i} = {simple()}, {simple()}, {simple()}\n"
    if kind < 0.9:
        return f"    def r{i}(a={simple()}, *, b={simple()}): return (a, b, k)\n    r{i} = r{i}()\n"
    return f"    l[{draw.choice(NUMBERS)} % len(l)] = {simple()}; r{i} = d['r'] = {simple()}\n"


def generate(seed):
    """The program of a seed."""
    draw = random.Random(seed)
    source = PRELUDE + "@compile\ndef f(x, k, l, t, d, o):\n    y = x + k; w = 0\n"
    count = draw.randint(1, 4)
    for i in range(count):
        source += statement(draw, i)
    return Program(seed, source + f"    return y, {', '.join(f'r{i}' for i in range(count))}\n", CALLS)
