"""Iterators of C's over iterators of the program's: some items are taken, then perhaps a region ends, then the rest, and
more is asked for than there is. What each asks of what it goes over, and when, is the same as in eager."""

import collections
import functools
import itertools
import operator
import re

import pytest
import torch

import oxyfuel

HELD = """
map(str, it)
map(lambda a, b: (a, b), it, [7, 8, 9, 10])
map(operator.add, it, itertools.count())
filter(None, it)
filter(lambda v: v % 2, it)
itertools.filterfalse(lambda v: v % 2, it)
zip(it, [5, 6, 7, 8])
zip([5, 6, 7], it)
zip(it, it)
zip(it, [1, 2], strict=True)
itertools.zip_longest(it, [1])
itertools.zip_longest([1], it, fillvalue=0)
enumerate(it, 5)
itertools.islice(it, 3)
itertools.islice(it, 1, None)
itertools.islice(it, 0, 5, 2)
itertools.chain([9], it)
itertools.chain.from_iterable([[1], it])
itertools.starmap(operator.add, zip(it, [1, 2, 3]))
itertools.accumulate(it)
itertools.accumulate(it, operator.mul, initial=10)
itertools.pairwise(it)
itertools.takewhile(lambda v: v < 3, it)
itertools.dropwhile(lambda v: v < 2, it)
itertools.compress(it, [1, 0, 1, 1])
itertools.cycle(it)
itertools.groupby(it)
itertools.tee(it)[0]
itertools.product(it, [1])
itertools.combinations(it, 2)
itertools.repeat(it, 2)
iter(it)
(v * 2 for v in it)
iter(lambda: next(it), 3)
reversed(list(it))
iter(dict.fromkeys(it).items())
iter(collections.deque(it))
"""
OVER = {
    "a generator": """
def give():
    for v in (1, 2, 3, 4): log.append(("give", v)); yield v
it = give()""",
    "a generator that raises": """
def give():
    yield 1; yield 2; raise ValueError("x")
it = give()""",
    "its own iterator": """
class Own:
    def __init__(self): self.n = 0
    def __iter__(self): log.append("iter"); return self
    def __next__(self):
        self.n += 1; log.append(self.n)
        if self.n > 4: raise StopIteration
        return self.n
it = Own()""",
    "its own iterator, which raises": """
class Own:
    def __init__(self): self.n = 0
    def __iter__(self): return self
    def __next__(self):
        self.n += 1
        if self.n == 3: raise KeyError(self.n)
        if self.n > 5: raise StopIteration
        return self.n
it = Own()""",
    "a list": "it = iter([1, 2, 3, 4])",
    "what is given": "it = given",
}
REST = [
    "list(itertools.islice(held, 6))",
    "(next(held, None), list(itertools.islice(it, 3)))",
    "(lambda *a: a)(*itertools.islice(held, 3))",
]


def program(held, over, taken, rest, ends):
    lines = [*OVER[over].strip().split("\n"), "out = []", "try:", f"    held = {held}"]
    lines += ["    out.append(next(held))"] * taken
    lines += ["    oxyfuel.graph_break()" if ends else "    x = x * 2", f"    out.append({rest})"]
    lines += ["except Exception as e: out.append((type(e).__name__, str(e)))"]
    for left in ("held", "it"):
        lines += [f"try: out.append(list(itertools.islice({left}, 5)))"]
        lines += ["except Exception as e: out.append((type(e).__name__, str(e)))"]
    lines += ["return x + 1, out, log"]
    return "def f(x, given, log):\n" + "\n".join("    " + line for line in lines)


def outcome(text, call):
    namespace = {**globals(), "functools": functools, "operator": operator}
    exec(compile(text, "<program>", "exec"), namespace)
    function, found = call(namespace["f"]), []
    for _ in range(2):
        try:
            found.append(repr(function(torch.ones(2), (v for v in (1, 2, 3, 4)), [])))
        except Exception as error:
            found.append(repr(error))
    return re.sub("0x[0-9a-f]+", "", "\n".join(found))


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("held", HELD.strip().split("\n"))
def test_held_iterators(held, over):
    oxyfuel.reset()
    for taken, rest, ends in itertools.product((0, 1, 4), REST, (False, True)):
        text = program(held, over, taken, rest, ends)
        assert outcome(text, oxyfuel.compile) == outcome(text, lambda function: function), text
