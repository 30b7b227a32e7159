"""Random tensor programs do the same compiled as in eager; tests/fuzz/graphs.py runs as many as one likes."""

import pytest

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
