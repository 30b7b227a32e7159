"""Programs that must do the same compiled as in eager.

A program is a function of one argument, ``compile``: it is run once with a ``compile`` that does nothing and once
with oxyfuel's, and everything that can be observed of the two runs must be equal: what it returns (types, values,
dtypes, strides, which tensors share memory), what it prints, and the exceptions that ``outcome`` caught.
"""

import dataclasses
import enum
import functools
import inspect
import linecache
import math
import os
import re
import traceback
import types

import pytest
import torch

import oxyfuel

LIBRARIES = tuple(os.path.join(os.path.dirname(library.__file__), "") for library in (torch, oxyfuel))

INTERNAL_WORDS = re.compile(r"DispatchKey|Fake|PrivateUse|INTERNAL|Meta\b|meta kernel|[Tt]race.?[Tt]ensor|VaryingNumber|CannotTrace|InternalTrace|oxyfuel::|[.]cpp")


def assert_reasons_are_readable(context=None):
    """No reason of a break has words of torch's or our own insides."""
    for record in oxyfuel.metrics()["breaks"]:
        assert record["reason"] and not INTERNAL_WORDS.search(record["reason"]), (context, record)


def outcome(function, *args, **kwargs):
    """What a call gives: its value, or the exception with the lines of the user's code that it went through."""
    try:
        return ("returned", function(*args, **kwargs))
    except Exception as error:
        frames = [
            (frame.name, frame.lineno)
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.name != "outcome"
            and not frame.filename.startswith(LIBRARIES)
            and not frame.filename.endswith("eager_comparison.py")
        ]
        return ("raised", type(error), str(error), frames, type(error.__cause__), type(error.__context__))


class Comparison:
    """A walk over two object graphs at once that also maps the storages and objects of one to those of the other."""

    def __init__(self):
        self.storages, self.objects, self.kept = {}, {}, []

    def same(self, expected, actual, where="result"):
        if isinstance(expected, type) or isinstance(expected, (types.FunctionType, types.ModuleType, enum.Enum)):
            if isinstance(expected, type):
                assert expected.__qualname__ == actual.__qualname__, where
            elif isinstance(expected, types.FunctionType):
                assert expected.__code__ == actual.__code__, where
            else:
                assert expected == actual, where
            return
        assert type(expected).__qualname__ == type(actual).__qualname__, (where, expected, actual)
        if isinstance(expected, torch.Tensor):
            return self.same_tensor(expected, actual, where)
        if expected is None or isinstance(expected, (bool, int, float, complex, str, bytes)) and not vars_of(expected):
            if isinstance(expected, float):
                assert math.isclose(expected, actual, rel_tol=1e-4) or expected != expected and actual != actual, where
                assert math.copysign(1, expected) == math.copysign(1, actual), where
            else:
                assert expected == actual, (where, expected, actual)
            return
        self.kept.append((expected, actual))
        if id(expected) in self.objects:
            assert self.objects[id(expected)] == id(actual), f"{where}: another object"
            return
        if isinstance(expected, (list, dict, set)):
            self.objects[id(expected)] = id(actual)
        if isinstance(expected, (list, tuple)):
            assert len(expected) == len(actual), (where, expected, actual)
            for i, (a, b) in enumerate(zip(expected, actual)):
                self.same(a, b, f"{where}[{i}]")
        elif isinstance(expected, dict):
            assert list(expected) == list(actual), (where, list(expected), list(actual))
            for key in expected:
                self.same(expected[key], actual[key], f"{where}[{key!r}]")
        elif isinstance(expected, (set, frozenset, range, slice, torch.Size, torch.dtype, torch.device)):
            assert expected == actual, (where, expected, actual)
        elif dataclasses.is_dataclass(expected):
            for field in dataclasses.fields(expected):
                self.same(getattr(expected, field.name), getattr(actual, field.name), f"{where}.{field.name}")
            return
        if vars_of(expected):
            self.same(vars_of(expected), vars_of(actual), f"{where}.__dict__")

    def same_tensor(self, expected, actual, where):
        for name in ("dtype", "shape", "device", "requires_grad", "is_leaf"):
            assert getattr(expected, name) == getattr(actual, name), (where, name, getattr(expected, name), getattr(actual, name))
        assert expected.is_inference() == actual.is_inference(), (where, "is_inference")
        if expected.layout == torch.strided:
            assert expected.stride() == actual.stride(), (where, expected.stride(), actual.stride())
            assert expected.storage_offset() == actual.storage_offset(), where
            a, b = expected.untyped_storage()._cdata, actual.untyped_storage()._cdata
            self.kept.append((expected, actual))
            if expected.numel():
                assert self.storages.setdefault(("expected", a), b) == b, f"{where}: shares no memory with its alias"
                assert self.storages.setdefault(("actual", b), a) == a, f"{where}: shares memory with another tensor"
        loose = {"rtol": 1e-3, "atol": 1e-4} if expected.dtype == torch.float32 else {}
        expected, actual = (t.detach().as_subclass(torch.Tensor) for t in (expected, actual))
        torch.testing.assert_close(actual, expected, equal_nan=True, msg=lambda text: f"{where}: {text}", **loose)


def vars_of(value):
    return getattr(value, "__dict__", None) or None


def program(whole=None, backends=("native", "eager"), grad=False, **settings):
    """Makes a test of a program. ``whole=True``: it must be captured without a break; ``False``: it must break.

    What the program takes after ``compile`` is parameters of the test.
    """

    def decorate(scenario):
        @pytest.mark.parametrize("backend", backends)
        def test(backend, capsys, **parameters):
            def compile(target=None, **more):
                if target is None:
                    return functools.partial(compile, **more)
                return oxyfuel.compile(target, backend=backend, **{**settings, **more})

            def eager(target=None, **more):
                return eager if target is None else target

            def run(compile):
                torch.manual_seed(0)
                with torch.set_grad_enabled(grad):
                    result = scenario(compile, **parameters)
                return result, capsys.readouterr().out

            expected, printed = run(eager)
            actual, printed_too = run(compile)
            assert printed == printed_too
            Comparison().same(expected, actual)
            metrics = oxyfuel.metrics()
            if whole:
                assert not metrics["breaks"], metrics["breaks"]
                assert metrics["graphs"] >= 1
            elif whole is not None:
                assert metrics["breaks"]

        own = (inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("backend", "capsys"))
        further = list(inspect.signature(scenario).parameters.values())[1:]
        test.__signature__ = inspect.Signature([*further, *own])
        test.__name__ = scenario.__name__
        test.__qualname__ = scenario.__qualname__
        test.__doc__ = scenario.__doc__
        test.__module__ = scenario.__module__
        return test

    return decorate


def source_line(function, text):
    """The number of the line of ``function`` that holds ``text``."""
    code = function.__code__
    number = code.co_firstlineno
    while text not in linecache.getline(code.co_filename, number):
        number += 1
        assert number < code.co_firstlineno + 200
    return number


def is_close(a, b, relative, absolute):
    """Whether two results are equal, floats up to a tolerance."""
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(is_close(x, y, relative, absolute) for x, y in zip(a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=relative, abs_tol=absolute)
    return a == b
