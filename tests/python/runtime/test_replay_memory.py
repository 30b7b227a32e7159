"""Where temporaries of recorded work lie: behind the plan's own arena, apart from those that exist at the same time."""

import os
import random
import sys

import pytest

sys.path[:0] = [path for path in (os.environ.get("OXYFUEL_RUNTIME_TESTING"),) if path]
rt = pytest.importorskip("oxyfuel_runtime_testing", reason="OXYFUEL_RUNTIME_TESTING names the folder of the module")

FLOAT = 4


def chain_of_products(arena, temporaries):
    """Matrices of `temporaries` rows each: number k is multiplied as soon as k - 1 is there, and freed behind k + 1."""
    plan = rt.Plan(1, arena)
    x = plan.buffer("float32", [8, 8], [8, 1], "input", 0, 0)
    made = []
    for rows in temporaries:
        made.append(plan.buffer("float32", [rows, 8], [8, 1], "temporary", -1, 0))
        left = plan.window(x, [rows, 8], [0, 1], 0)
        plan.call("aten::mm", [left, plan.view(x)], [made[-1]])
        if len(made) > 1:
            plan.free(made[-2])
    out = plan.buffer("float32", [temporaries[-1], 8], [8, 1], "output", -1, 0)
    plan.call("aten::mm", [plan.view(made[-1]), plan.view(x)], [out])
    plan.free(made[-1])
    plan.output(plan.view(out), "value", -1)
    return plan, made


@pytest.mark.parametrize("arena", [0, 64, 1000])
@pytest.mark.parametrize("seed", range(8))
def test_places(seed, arena):
    rows = [random.Random(seed).randint(1, 300) for _ in range(12)]
    plan, made = chain_of_products(arena, rows)
    bytes_of_arena, places = plan.replay_memory()
    spans = [(places[buffer], places[buffer] + 8 * FLOAT * count) for buffer, count in zip(made, rows, strict=True)]
    for first, last in spans:
        assert first % 512 == 0 and arena <= first and last <= bytes_of_arena
    for before, after in zip(spans, spans[1:]):
        assert before[1] <= after[0] or after[1] <= before[0]
    assert [place for buffer, place in enumerate(places) if buffer not in made] == [None] * (len(places) - len(made))
    most_at_once = max(a + b for a, b in zip(rows, rows[1:])) * 8 * FLOAT
    assert bytes_of_arena <= arena + 2 * most_at_once + 4 * 512


def test_without_temporaries():
    plan = rt.Plan(1, 128)
    x = plan.buffer("float32", [8, 8], [8, 1], "input", 0, 0)
    out = plan.buffer("float32", [8, 8], [8, 1], "output", -1, 0)
    plan.call("aten::mm", [plan.view(x), plan.view(x)], [out])
    plan.output(plan.view(out), "value", -1)
    assert plan.replay_memory() == (128, [None, None])
