"""Random classes with special methods, metaclasses and descriptors; tests/fuzz/class_programs.py runs more."""

import pytest
import torch

import class_programs
from eager_comparison import program
import oxyfuel
import seeds

CHUNK = 100


@pytest.mark.parametrize("first", range(0, 800, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_same_as_eager(first):
    different = seeds.differing(class_programs.difference, first, CHUNK)
    assert not different, f"see one with: tests/fuzz/class_programs.py --seeds N:N+1 --show; {different}"


def test_programs_are_those_of_their_seeds():
    assert class_programs.program(7) == class_programs.program(7)
    assert class_programs.program(7) != class_programs.program(8)


def test_a_difference_is_found(monkeypatch):
    """A compiler that loses a call of a special method is caught."""
    monkeypatch.setattr(class_programs, "program", lambda seed: "LOG = []\nclass C:\n    def __bool__(s): LOG.append(1); return True\n"
                        "class D(C): pass\ndef f(x, a, b): return 1 if a else 2\n")
    monkeypatch.setattr(oxyfuel, "compile", lambda function: lambda x, a, b: 1)
    assert "expected ('1', [1]" in class_programs.difference(0)


class Counting(type):
    """Makes one object of each class, and counts what it is asked for."""

    made, asked = {}, 0

    def __call__(cls, *args, **kwargs):
        Counting.asked += 1
        if cls not in Counting.made:
            Counting.made[cls] = super().__call__(*args, **kwargs)
        return Counting.made[cls]


class Marking(type):
    def __call__(cls, *args):
        value = type.__call__(cls, *args)
        value.mark = len(args)
        return value


@program()
def test_classes_of_one_object(compile):
    class Settings(metaclass=Counting):
        def __init__(self, scale=2):
            self.scale = scale

    def f(x):
        return x * Settings().scale, Settings() is Settings()

    compiled = compile(f)
    return compiled(torch.ones(2)), compiled(torch.ones(2)), Counting.asked > 0


def test_a_metaclass_that_makes_objects_is_captured():
    class Point(metaclass=Marking):
        def __init__(self, x=1):
            self.x = x

    def f(x):
        point = Point(3)
        return x + point.x + point.mark

    assert torch.equal(oxyfuel.compile(f, fullgraph=True)(torch.ones(2)), f(torch.ones(2)))


def test_texts_run_no_code_of_the_program():
    """Reasons of recompiles and of breaks name objects whose classes, or their metaclasses, have a __repr__ of their own."""
    shown = []

    class Meta(type):
        def __repr__(cls):
            shown.append(cls)
            return "?"

        def __getattribute__(cls, name):
            shown.append(name)
            return type.__getattribute__(cls, name)

    class Value(metaclass=Meta):
        k = 1

        def __repr__(self):
            shown.append(self)
            return "?"

    value, other = Value(), Value()
    table = {Value: 1, (Value, 2): 3}

    def f(x, v):
        return (x + 1 if v is value else x - 1), table[Value], table[Value, 2], Value.mro()[0] is Value

    compiled = oxyfuel.compile(f)
    asked = f(torch.ones(2), value) and [*shown]
    shown.clear()
    for v in (value, other, value, 3):
        compiled(torch.ones(2), v)
    explained = str(oxyfuel.explain(f)(torch.ones(2), value))
    assert "Value" in explained
    assert shown == asked * 5
