"""What a program says of its functions, classes and modules may be said anew between two calls."""

import sys
import threading
import types
import typing
from abc import ABC

import pytest
import torch

from eager_comparison import outcome, program


class Plain:
    limit = 2


@program()
def test_fields_of_functions(compile):
    def g(x):
        return x + 1

    f = compile(lambda x: (x * (g.__defaults__ or (3,))[0], g.__name__, g.__qualname__[-1], g.__doc__, g.__kwdefaults__, g.__module__))
    answers = [f(torch.ones(2))]
    for name, value in (("__defaults__", (5,)), ("__name__", "h"), ("__qualname__", "K.h"), ("__doc__", "Adds."),
                        ("__kwdefaults__", {"a": 1}), ("__module__", "elsewhere"), ("__defaults__", None)):
        setattr(g, name, value)
        answers += [f(torch.ones(2)), f(torch.ones(2))]
    return answers


@program()
def test_what_a_function_closes_over(compile):
    def make(k):
        def g(x):
            nonlocal k
            k += 1
            return x + k

        return g

    g = make(1)
    f = compile(lambda x: x * g.__closure__[0].cell_contents)
    answers = []
    for _ in range(3):
        answers += [f(torch.ones(2)), g(torch.ones(2))]
    return answers


@program()
def test_fields_of_functions_made_in_the_region(compile):
    @compile
    def f(x):
        def g(a, b=3, *, c=4):
            """Adds."""
            return a + b + c + x

        return g.__name__, g.__defaults__, g.__kwdefaults__, g.__doc__, g.__closure__[0].cell_contents is x, g(1)

    return f(torch.ones(2)), f(torch.zeros(2))


@program()
def test_names_and_bases_of_classes(compile):
    class A:
        pass

    class B:
        pass

    class C(A):
        pass

    f = compile(lambda x, c: (x + len(c.__bases__), c.__name__, c.__qualname__[-3:], [base.__name__ for base in c.__bases__]))
    answers = [f(torch.ones(2), C)]
    C.__name__ = "D"
    answers.append(f(torch.ones(2), C))
    C.__qualname__ = "E.F"
    answers.append(f(torch.ones(2), C))
    C.__bases__ = (A, B)
    answers.append(f(torch.ones(2), C))
    return answers


@program()
def test_looking_into_the_dict_of_a_class(compile):
    class K:
        a = 1
        items = [1.0]

    def names(x):
        return x + 1, [name for name in K.__dict__ if not name.startswith("_")], len(vars(K)["items"])

    def value(x):
        return x * K.__dict__["a"]

    f, g = compile(names), compile(value)
    answers = [f(torch.ones(2)), g(torch.ones(2))]
    K.b = 2
    K.a = 3
    K.items.append(2.0)
    answers += [f(torch.ones(2)), g(torch.ones(2))]
    return answers, outcome(compile(lambda x: vars(3)), torch.ones(1))


@program()
def test_classes_registered_with_an_abstract_one(compile):
    class Shape(ABC):
        pass

    class Square:
        pass

    class Circle:
        pass

    f = compile(lambda x, shape: x + 1 if isinstance(shape, Shape) else x - 1)
    g = compile(lambda x, kind: x + 1 if issubclass(kind, (int, Shape)) else x - 1)
    answers = [f(torch.ones(2), Square()), g(torch.ones(2), Square), f(torch.ones(2), Circle())]
    Shape.register(Square)
    answers += [f(torch.ones(2), Square()), g(torch.ones(2), Square), f(torch.ones(2), Circle())]
    return answers


@program()
def test_bases_given_later(compile):
    class A:
        pass

    class B:
        pass

    class C(A):
        pass

    class Child(C):
        pass

    class Error(ValueError):
        pass

    def caught(x):
        try:
            raise Error("text")
        except KeyError:
            return x + 1
        except ValueError:
            return x + 2
        except Exception:
            return x + 3

    thing = C()
    f = compile(lambda x: x + 1 if isinstance(thing, A) else x - 1)
    g = compile(lambda x, value: (x + 1, isinstance(value, (A, int)), issubclass(type(value), B), type(value).__mro__[2:]))
    caught = compile(caught)
    x, answers = torch.ones(2), []
    for bases, error in (((A,), ValueError), ((B,), RuntimeError), ((B, A), KeyError), ((A,), ValueError)):
        C.__bases__, Error.__bases__ = bases, (error,)
        answers += [(f(x), g(x, thing), g(x, Child()), caught(x)) for _ in range(2)]
    return repr(answers)


@program()
def test_protocols(compile):
    @typing.runtime_checkable
    class Closes(typing.Protocol):
        def close(self): ...

    class Thing:
        pass

    f = compile(lambda x, thing: x + 1 if isinstance(thing, Closes) else x - 1)
    thing = Thing()
    answers = [f(torch.ones(2), thing), f(torch.ones(2), 3)]
    thing.close = lambda: None
    answers += [f(torch.ones(2), thing)]
    return answers


@program()
def test_modules_imported_in_a_function(compile):
    first, second = types.ModuleType("oxyfuel_imported"), types.ModuleType("oxyfuel_imported")
    first.value, second.value = 1.0, 2.0

    @compile
    def f(x):
        import oxyfuel_imported

        return x + oxyfuel_imported.value

    @compile
    def g(x):
        from oxyfuel_imported import value
        import os.path

        return x * value, os.path.join("a", "b")

    answers = []
    try:
        for module in (first, second, first):
            sys.modules["oxyfuel_imported"] = module
            answers += [f(torch.ones(2)), g(torch.ones(2))]
    finally:
        del sys.modules["oxyfuel_imported"]
    return answers, outcome(f, torch.ones(2))


@program()
def test_methods_of_tensors_that_are_replaced(compile):
    f = compile(lambda x: x.relu() + x.shape[0])
    x = torch.tensor([-1.0, 2.0])
    answers = [f(x)]
    original = torch.Tensor.relu
    try:
        torch.Tensor.relu = lambda self: self * 100
        answers.append(f(x))
    finally:
        torch.Tensor.relu = original
    return answers, f(x)


@program()
def test_what_a_thread_keeps_for_itself(compile):
    local = threading.local()
    local.scale = 1.0

    class Own(threading.local):
        scale = 3.0

    own = Own()
    f = compile(lambda x: (x * local.scale, x + own.scale))
    answers = [f(torch.ones(2))]

    def in_thread():
        local.scale = 5.0
        own.scale = 7.0
        answers.append(f(torch.ones(2)))

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    return answers, f(torch.ones(2))


@program()
def test_objects_that_name_their_own_class(compile):
    class Stand:
        def __init__(self):
            self.kind = Plain

        @property
        def __class__(self):
            return self.kind

    stand = Stand()
    f = compile(lambda x: (x + 1, isinstance(stand, Plain), stand.__class__.__name__))
    answers = [f(torch.ones(2))]
    stand.kind = int
    return answers, f(torch.ones(2))


@program(grad=True)
def test_gradients_that_are_kept(compile):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    f = compile(lambda y: (y + 1, y.retains_grad))
    answers = [f(y)[1]]
    y.retain_grad()
    return answers, f(y)[1]


@program()
def test_methods_of_enumerations(compile):
    import enum

    class Colour(enum.Enum):
        RED = 1

        def weight(self):
            return 2.0

    f = compile(lambda x: x * Colour.RED.weight())
    answers = [f(torch.ones(2))]
    Colour.weight = lambda self: 5.0
    return answers, f(torch.ones(2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int32, torch.float32])
@program()
def test_numbers_that_a_type_cannot_hold(compile, dtype):
    x = torch.ones(3).to(dtype)
    programs = (
        lambda x, v: torch.full_like(x, v), lambda x, v: x.clone().fill_(v), lambda x, v: torch.full((2,), v, dtype=x.dtype),
        lambda x, v: x.masked_fill(x > 0, v), lambda x, v: x.clamp(max=v), lambda x, v: x.new_full((2,), v), lambda x, v: x + v,
        lambda x, v: x.clamp(min=v), lambda x, v: x.clamp(-1, v),
    )
    # Each of a code of its own: a number that varies is known only when the graph runs.
    alone = lambda f: compile(types.FunctionType(f.__code__.replace(), globals()))
    return [outcome(alone(f), x, v) for f in programs for v in (1, 100, 1000, 1e6, 1e30, 1e300, -1e6, float("inf"), 2**40)]


@program()
def test_metaclasses_that_are_given_checks(compile):
    class Meta(type):
        pass

    class Number(metaclass=Meta):
        pass

    f = compile(lambda x: (x + 1 if isinstance(3, Number) else x - 1, issubclass(int, (Number, str))))
    answers = [f(torch.ones(2)), f(torch.ones(2))]
    Meta.__instancecheck__ = lambda cls, value: True
    answers += [f(torch.ones(2)), f(torch.ones(2))]
    Meta.__subclasscheck__ = lambda cls, other: other is int
    answers += [f(torch.ones(2)), f(torch.ones(2))]
    del Meta.__instancecheck__, Meta.__subclasscheck__
    return [*answers, f(torch.ones(2))]


@pytest.mark.parametrize("name", ["__get__", "__set__", "__delete__"])
@program()
def test_descriptors_that_are_given_methods(compile, name):
    class Descriptor:
        pass

    class Meta(type):
        pass

    class Owner(metaclass=Meta):
        both = 4

    Owner.field = Descriptor()
    Meta.both = Descriptor()
    owner = Owner()
    owner.__dict__["field"] = 5
    if name != "__get__":
        Descriptor.__get__ = lambda self, owner, kind: 3
    f = compile(lambda x: (x + owner.field, x * Owner.both))
    answers = [f(torch.ones(2)), f(torch.ones(2))]
    setattr(Descriptor, name, lambda self, *rest: 7)
    answers += [f(torch.ones(2)), f(torch.ones(2))]
    delattr(Descriptor, name)
    return [*answers, f(torch.ones(2))]


@program()
def test_classes_that_become_abstract(compile):
    class Owner(ABC):
        k = 2

    f = compile(lambda x: x + Owner().k)
    answers = [f(torch.ones(2)), f(torch.ones(2))]
    Owner.__abstractmethods__ = frozenset({"g"})
    answers += [outcome(f, torch.ones(2)), outcome(f, torch.ones(2))]
    Owner.__abstractmethods__ = frozenset()
    return [*answers, f(torch.ones(2))]


@program()
def test_imports_that_are_replaced(compile):
    import builtins

    def f(x):
        import math

        return x * math.floor(2.5)

    compiled, own = compile(f), builtins.__import__
    answers = [compiled(torch.ones(2)), compiled(torch.ones(2))]

    def other(name, *rest):
        return types.SimpleNamespace(floor=lambda v: 9) if name == "math" else own(name, *rest)

    builtins.__import__ = other
    try:
        answers += [compiled(torch.ones(2)), compiled(torch.ones(2))]
    finally:
        builtins.__import__ = own
    return [*answers, compiled(torch.ones(2))]
