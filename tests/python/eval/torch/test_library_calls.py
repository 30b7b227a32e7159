"""Random calls of what the standard library and torch have, with arguments that fit and others; tests/fuzz/python_programs.py
--kind library and --kind torch run more."""

import typing

import pytest
import torch

from eager_comparison import outcome, program
import library_generator
import program_runner
import torch_call_generator

CHUNK = 100


@pytest.mark.parametrize("first", range(0, 500, CHUNK))
@pytest.mark.parametrize("generator", [library_generator, torch_call_generator], ids=lambda module: module.__name__)
@pytest.mark.filterwarnings("ignore")
def test_same_as_eager(generator, first):
    different = program_runner.differing(generator, first, CHUNK)
    assert not different, f"see one with: tests/fuzz/python_programs.py --kind KIND --seeds N:N+1 --show --shrink; {different}"


class Movie(typing.TypedDict, total=False):
    name: str
    year: int


@program()
def test_typed_dicts_are_dicts(compile):
    f = compile(lambda x: (Movie(name="a", year=3), type(Movie(name="a")) is dict, x + Movie(year=4)["year"]))
    first, second = f(torch.ones(2)), f(torch.ones(2))
    return first, second, type(first[0]) is dict, first[0] is second[0]


class Passing:
    """Hands what it is given on to object(), which refuses it unless the class defines the other of the two methods alone."""


class Maker(Passing):
    def __new__(cls, *args):
        return super().__new__(cls, *args)


class Initializer(Passing):
    def __init__(self, *args):
        super().__init__(*args)


class Both(Initializer):
    def __new__(cls, *args):
        return super().__new__(cls)


class BothWithArguments(Initializer):
    def __new__(cls, *args):
        return super().__new__(cls, *args)


@pytest.mark.parametrize("kind", [Passing, Maker, Initializer, Both, BothWithArguments, typing.Sized, type(str.join), type(None)],
                         ids=lambda kind: kind.__name__)  # fmt: skip
@pytest.mark.parametrize("args", [(), (1,)])
@program()
def test_arguments_that_object_refuses(compile, kind, args):
    f = compile(lambda x: (type(kind(*args)).__name__, x + 1))
    return outcome(f, torch.ones(2)), outcome(f, torch.ones(2))


@program()
def test_classes_named_as_builtin_ones(compile):
    class range:
        def __init__(self, v):
            self.v = v

    class slice(range):
        pass

    f = compile(lambda x: (range([1]), slice([2]), x + 1))
    first, second = f(torch.ones(2)), f(torch.ones(2))
    return first[0].v, second[1].v, first[0] is second[0], first[1] is second[1]


@program()
def test_functions_have_dicts_of_their_own(compile):
    def f(x):
        def g():
            return 1

        def h():
            return 2

        entries = h.__dict__
        entries["k"] = 4
        return g, h, getattr(g, "missing", 3), entries is h.__dict__, x + 1

    compiled = compile(f)
    first, second = compiled(torch.ones(2)), compiled(torch.ones(2))
    first[0].mark = 1
    first[1].mark = 2
    return vars(first[0]), vars(second[0]), vars(first[1]), vars(second[1]), first[2:4]
