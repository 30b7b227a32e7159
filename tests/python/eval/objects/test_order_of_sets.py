"""The order of sets, and their order after more changes: what their tables are comes of all that was done to them."""

import copy
import random

import oxyfuel
import pytest


class Marked(set):
    pass


ITEMS = [
    "('a', 1)", "'abc'", "'x'", "'yy'", "b'abc'", "('q', ('z', 2))", "frozenset({1, 2})", "None", "int", "len", "1.5",
    "-1", "-2", "3", "5", "6", "7", "8", "11", "16", "19", "24", "27", "32", "40",
]  # fmt: skip
FRESH = [
    "s = set({a})", "s = frozenset({a})", "s = {{*a, *b}}", "s = Marked(a)", "s = {{x for x in a}}", "s = set(a)",
    "s = frozenset(a)", "s = set(dict.fromkeys(a))", "s = a.copy()", "s = copy.copy(a)", "s = copy.deepcopy(a)",
    "s = set(); s.update(a)", "s = a", "s = a", "s = a",
]  # fmt: skip
READS = ["symmetric_difference", "union", "difference", "intersection"]
CHANGES = [f"{name}_update" for name in ("symmetric_difference", "difference", "intersection")] + ["update"]
OTHERS = ["b", "set(b)", "frozenset(b)", "dict.fromkeys(b)", "dict.fromkeys(b).keys()", "(x for x in b)", "s"]


def some_set(r):
    """An expression of a set that has had more items than it has, or a table larger than it needs."""
    pool = ITEMS if r.random() < 0.1 else [*(str(i) for i in range(40)), "'abc'", "'x'", "'yy'", "b'abc'", "1.5", "None"]
    items = r.sample(pool, r.randint(0, 9))
    if r.random() < 0.5:
        return f"{{{', '.join(items)}}}" if items else "set()"
    return f"without([{', '.join(items + r.sample(pool, 4))}], {r.randint(0, 6)})"


def without(items, count):
    result = set()
    for item in items:
        result.add(item)
    for item in items[:count]:
        result.discard(item)
    return result


def program(r):
    lines = ["def f(a, b):", f"  {r.choice(FRESH).format(a=r.sample(range(40), r.randint(0, 9)))}"]
    for _ in range(r.randint(1, 5)):
        item, other = r.choice(ITEMS), r.choice(OTHERS)
        lines.append(
            "  "
            + r.choice([
                f"s.add({item})", f"s.discard({item})", f"s.{r.choice(CHANGES)}({other})",
                f"s {r.choice('|&-^')}= {r.choice(['set(b)', 'frozenset(b)', 'a'])}",
                f"s = s {r.choice('|&-^')} {r.choice(['set(b)', 'frozenset(b)', 'a'])}",
                f"s = s.{r.choice(READS)}({other})", "s = set(s)", "s = type(s)(s)", "s.pop()", "s = s.copy()",
            ])
        )  # fmt: skip
    return "\n".join([*lines, r.choice(["  return s, list(s)", "  return s", "  return (s, {1: s}), [*s]"])])


def seen(function, make, more):
    """The items in order of what comes of a call, and of the argument, now and after more changes."""
    first, second = make()
    try:
        result = function(first, second)
    except Exception as error:
        result = repr(error)
    found, sets = [], [first]

    def look(value):
        found.append(type(value).__name__)
        if isinstance(value, (set, frozenset, list)):
            found.append([repr(item) for item in value])
        elif isinstance(value, tuple):
            for item in value:
                look(item)
        elif isinstance(value, str):
            found.append(value)
        if isinstance(value, set):
            sets.append(value)

    look(result)
    look(first)
    for value in tuple(sets):
        for change in more:
            change(value)
        look(value)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_order_of_sets(seed):
    r = random.Random(seed)
    for number in range(200):
        text, a, b = program(r), some_set(r), f"[{', '.join(r.sample(ITEMS, r.randint(0, 7)))}]"
        namespace = {"copy": copy, "Marked": Marked, "without": without}
        exec(text, namespace)
        numbers = [r.randrange(60) for _ in range(6)]
        more = [lambda s, n=n: (s.discard if n % 3 == 0 else s.add)(n) for n in numbers]

        def make(a=a, b=b, namespace=namespace):
            return eval(a, namespace), eval(b, namespace)

        oxyfuel.reset()
        compiled = oxyfuel.compile(namespace["f"], backend="eager")
        for _ in range(2):
            wanted = seen(namespace["f"], make, more)
            assert seen(compiled, make, more) == wanted, f"seed {seed}, program {number}, a = {a}, b = {b}\n{text}"
