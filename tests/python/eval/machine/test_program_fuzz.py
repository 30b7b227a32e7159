"""Some thousand random Python programs, in eager and compiled; tests/fuzz/python_programs.py runs more."""

import gc

import pytest

import program_generator
import program_runner
import program_shrinker

CHUNK = 100


@pytest.mark.parametrize("first", range(0, 900, CHUNK))
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_same_as_eager(first):
    different = program_runner.differing(program_generator, first, CHUNK)
    assert not different, f"see one with: tests/fuzz/python_programs.py --seeds N:N+1 --show --shrink; {different}"


def test_programs_are_those_of_their_seeds():
    assert program_generator.generate(7) == program_generator.generate(7)
    assert program_generator.generate(7).source != program_generator.generate(8).source


def test_a_difference_is_found_and_shrunk():
    """A compiler that loses what is printed is caught, and the program shrinks to the print."""
    source = "@compile\ndef f(a, b, x):\n    y = a + 1\n    if a:\n        print('seen', y)\n    return y\n"
    program = program_generator.Program(1, source, ["(1, [], torch.ones(3),)", "(0, [], torch.ones(3),)"])

    def silent(function):
        def call(*args):
            import contextlib
            import io

            with contextlib.redirect_stdout(io.StringIO()):
                return function(*args)

        return call

    def differs(candidate):
        expected = program_runner.run(candidate, lambda target: target, "<program>")
        actual = program_runner.run(candidate, silent, "<program>")
        return bool(program_runner.first_difference(expected, actual))

    gc.freeze()  # run() collects after each call: the program's objects alone
    assert differs(program)
    smallest = program_shrinker.shrink(program, differs)
    gc.unfreeze()
    assert differs(smallest)
    assert "print" in smallest.source and len(smallest.source.splitlines()) <= 4 and len(smallest.calls) == 1
