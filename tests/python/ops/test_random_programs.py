"""Random tensor programs do the same compiled as in eager; tests/fuzz/graphs.py runs as many as one likes."""

import pytest
import torch
from observation import difference, observe

import graphs

CHUNK = 20


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 300, CHUNK))
def test_random_programs(first):
    for seed in range(first, first + CHUNK):
        result = graphs.run_seed(seed)
        if result:
            pytest.fail(f"seed {seed}: {result[0]}\n{graphs.brief(result[1])}", pytrace=False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 200, CHUNK))
def test_random_programs_with_gradients(first):
    for seed in range(first, first + CHUNK):
        result = graphs.run_seed(seed, gradients=True)
        if result:
            pytest.fail(f"seed {seed}: {result[0]}\n{graphs.brief(result[1])}", pytrace=False)


def test_a_wrong_answer_is_found_and_shrunk(monkeypatch):
    """The harness itself: a compiler that forgets an addition is caught, and little of the program is left."""
    seed, program = next((s, p) for s in range(100) if (p := graphs.generate(s)) and len(p.lines) > 8 and ".sum(" in p.source())
    compile = graphs.oxyfuel.compile

    def wrong(module, **settings):
        right = compile(module, **settings)
        return lambda *args: tuple(t + 1 if t.dtype.is_floating_point else t for t in right(*args))

    monkeypatch.setattr(graphs.oxyfuel, "compile", wrong)
    found, smaller = graphs.run_seed(seed)
    assert "differ" in found and len(smaller.lines) < len(program.lines)


def test_gradients_may_share_memory_in_eager_alone():
    """One-element gradients of a concatenation are views in eager, and not compiled; results and values are compared."""
    leaves = [torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)]

    def gradients(join):
        joined = join(leaves)
        return (joined, *torch.autograd.grad(joined, leaves, torch.ones_like(joined)))

    expected, actual = observe(lambda: gradients(torch.cat), []), observe(lambda: gradients(graphs.oxyfuel.compile(torch.cat)), [])
    assert difference(expected, actual, with_layout=1) is None
    assert "shares memory" in difference(expected, actual)
