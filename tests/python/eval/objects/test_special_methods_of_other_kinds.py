"""Special methods that are no plain functions: what stands in a class under their names is called like any other."""

import enum
import functools
import types

import pytest
import torch

from eager_comparison import outcome, program

LOG = []


def told(self, name="", other=None, *more):
    LOG.append(name)
    return 1


class Callable:
    def __call__(self, *args):
        LOG.append(args[0] if args else None)
        return 7


KINDS = {
    "partialmethod": lambda: functools.partialmethod(told, "op"),
    "partial": lambda: functools.partial(told, None, "op"),
    "an instance": Callable,
    "a bound method": lambda: types.MethodType(told, 5),
    "a property": lambda: property(lambda self: LOG.append("read") or (lambda *args: 5)),
    "a static method": lambda: staticmethod(lambda *args: LOG.append("static") or 5),
    "a class method": lambda: classmethod(lambda cls, *args: LOG.append("class") or 5),
    "a class": lambda: int,
}
USES = {
    "__add__": "o + 1",
    "__getitem__": "o[1]",
    "__len__": "len(o)",
    "__bool__": "bool(o)",
    "__neg__": "-o",
    "__contains__": "1 in o",
    "__eq__": "o == 1",
    "__lt__": "o < 3",
    "__setattr__": "setattr(o, 'q', 1)",
    "__delattr__": "delattr(o, 'q')",
    "__str__": "str(o)",
    "__repr__": "repr(o)",
    "__index__": "[1, 2][o]",
    "__int__": "int(o)",
    "__hash__": "hash(o)",
    "__call__": "o()",
    "__iter__": "list(o)",
    "__reversed__": "reversed(o)",
    "__getattr__": "o.missing",
    "__enter__": "o.__enter__()",
    "__instancecheck__": "isinstance(3, o)",
    "__subclasscheck__": "issubclass(int, o)",
}


@pytest.mark.parametrize("metaclass", [False, True])
@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("kind", KINDS)
@program(backends=("native",))
def test_called_as_in_eager(compile, kind, name, metaclass):
    names, results = {}, []
    exec(f"def f(x, made, o=None):\n    o = o if o is not None else made()\n    return x + 1, {USES[name]}", names)
    owner = type("Owner", (type,) if metaclass else (), {name: KINDS[kind]()})
    make = (lambda: owner("Made", (), {})) if metaclass else owner
    for inside in (False,) if metaclass else (False, True):
        f = compile(names["f"])
        given = None if inside else make()
        for _ in range(3):
            LOG.clear()
            result = outcome(f, torch.ones(2), make, given)
            results.append([repr(part).split(" at 0x")[0] for part in (*result[:3], *LOG)])
    return results


@program()
def test_members_by_value(compile):
    class Color(enum.Enum):
        RED = 1
        BLUE = 2

    f, results = compile(lambda x, v: (x + 1, Color(v), Color(2))), []
    for now in (Color.BLUE, Color.RED, Color.BLUE):
        Color._value2member_map_[2] = now
        results.append([member.name for member in f(torch.ones(1), 2)[1:]])
    return results
