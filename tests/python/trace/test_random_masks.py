"""Random masks of attention that are made of sizes: whatever the compiler knows of their elements is so."""

import random

import pytest
import torch
from torch.nn import functional as F

import oxyfuel

PROGRAMS = 120
LENGTHS = (6, 7, 3, 1)


def positions(r, depth):
    """The text of an expression of `n` integers, as many as there are rows."""
    if depth == 0 or r.random() < 0.3:
        return r.choice(["torch.arange(n)", "torch.arange(0, n)", "torch.arange(1, n + 1)", "torch.arange(0, 2 * n, 2)", "torch.arange(n - 1, -1, -1)"])
    x, y = positions(r, depth - 1), positions(r, depth - 1)
    return r.choice([
        f"({x} + {r.randint(-2, 2)})", f"({x} - {r.randint(-2, 2)})", f"({x} - {y})", f"({x} + {y})",
        f"torch.cat([{x}[:1] - {r.randint(0, 1)}, {y}])[{r.choice(['1:', ':-1', '1:n + 1'])}]",
        f"torch.cat([{x}, {y}])[{r.choice([':n', 'n:', '1:n + 1'])}]",
        f"torch.arange(n)[torch.arange(n)]", f"{x}[torch.arange(n)]", f"{x}.flip(0)",
        f"({x} != {y}).cumsum(0)", f"torch.ones(n, dtype=torch.int64).cumsum(0)", f"{x}.clone()", f"{x}.view(n, 1).expand(n, 2)[:, 1]",
        f"torch.where({x} > {r.randint(-1, 2)}, {x}, {y})", f"{x}.clamp(min=0)", f"({x} >= {r.randint(-1, 1)}).long()",
    ])  # fmt: skip


def masks(r, depth):
    """The text of an expression of n x n truth values."""
    if depth == 0 or r.random() < 0.25:
        x, y = positions(r, 2), positions(r, 2)
        compare = r.choice(["<=", ">=", "<", ">", "==", "!="])
        return r.choice([
            f"({x}[:, None] {compare} {y}[None, :])", f"({x}.unsqueeze(0) {compare} {y}.unsqueeze(1))",
            "(torch.arange(n)[:, None] >= torch.arange(n)[None, :])", "torch.ones(n, n, dtype=torch.bool)",
            f"({x}[:, None] {compare} {r.randint(-1, 3)}).expand(n, n)", f"(torch.ones(n, n).tril({r.randint(-1, 1)}) {compare} {r.randint(0, 1)})",
        ])  # fmt: skip
    a, b = masks(r, depth - 1), masks(r, depth - 1)
    return r.choice([
        f"({a} & {b})", f"({a} | {b})", f"~{a}", f"{a}.t()", f"torch.logical_not({a})", f"torch.tril({a}, {r.randint(-1, 1)})",
        f"{a}.triu({r.randint(-1, 1)})", f"torch.logical_and({a}, {b})", f"{a}.view(1, n, n)[0]", f"torch.where({a}, {b}, {a})",
        f"(({a}).float() != 0)", f"{a}[torch.arange(n)]", f"torch.cat([{a}, {b}])[{r.choice([':n', 'n:', '1:n + 1'])}]", f"{a}.roll(1, 0)",
        f"({a} == {r.choice(['True', 'False'])})", f"{a}[:, torch.arange(n)]", f"{a}.reshape(-1).reshape(n, n)",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_random_masks(seed):
    r = random.Random(seed)
    for _ in range(PROGRAMS):
        text = masks(r, 3)
        make = eval(f"lambda n: {text}", {"torch": torch})  # noqa: S307

        def function(q, make=make):
            return F.scaled_dot_product_attention(q, q, q, make(q.shape[2]))

        compiled = oxyfuel.compile(function, dynamic=r.choice([None, True]))
        for length in LENGTHS:
            q = torch.randn(2, 1, length, 8)
            torch.testing.assert_close(compiled(q), function(q), equal_nan=True, msg=lambda m, text=text, n=length: f"seed {seed}, {n} rows: {text}\n{m}")
