"""What users say about parts of their program: keep this in eager, call that as it is, compile nothing now."""

import functools
import inspect
import types

import torch

from oxyfuel import _core
from oxyfuel._backends import printable
from oxyfuel._module import wrap_module


def _check_callable(name, fn):
    if not callable(fn) and not isinstance(fn, classmethod):
        raise TypeError(f"oxyfuel.{name}() takes a callable, not {type(fn).__name__}")


def _check_reason(reason):
    if reason is not None and not isinstance(reason, str):
        raise TypeError(f"reason must be a str or None, not {type(reason).__name__}")


def _function_of(fn):
    return fn.__func__ if isinstance(fn, (types.MethodType, staticmethod, classmethod)) else fn


def disable(fn=None, *, recursive=True, reason=None):
    """Keep a function, method, module or class of callables out of compiled regions. Also a decorator.

    Args:
        fn: what is to run in eager. A function, method or module gives a new one, a class is changed.
        recursive: ``True``: with all that it calls. ``False``: only the Python function itself runs in eager, which
            is returned as it is; what it calls may be compiled.
        reason: shown where a captured region ends because of it.

    Functions are to be marked before they are captured for the first time.
    """
    if not isinstance(recursive, bool):
        raise TypeError(f"recursive must be a bool, not {type(recursive).__name__}")
    _check_reason(reason)
    if fn is None:
        return lambda target: _disable(target, recursive, reason)
    return _disable(fn, recursive, reason)


def _disable(fn, recursive, reason):
    _check_callable("disable", fn)
    if not recursive:
        function = _function_of(fn)
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"disable(recursive=False) takes a Python function or method, not {type(fn).__name__}")
        _core.mark(function.__code__, "skipped", printable(reason or ""))
        return fn
    if isinstance(fn, type):
        fn.__call__ = _disable(_call_of_instances(fn), recursive, reason)
        return fn
    if isinstance(fn, (staticmethod, classmethod)):
        return type(fn)(_disable(fn.__func__, recursive, reason))
    if isinstance(fn, torch.nn.Module):
        return _disable_module(fn, reason)
    return _disable_callable(fn, reason)


def _call_of_instances(cls):
    call = next((vars(base)["__call__"] for base in cls.__mro__ if "__call__" in vars(base)), None)
    if call is None:
        raise TypeError(f"oxyfuel.disable() takes a class of callables, and objects of {cls.__name__} cannot be called")
    return call if isinstance(call, (staticmethod, classmethod)) else cls.__call__


def _disable_callable(fn, reason):
    @functools.wraps(fn)
    def disabled(*args, **kwargs):
        return _core.call_disabled(fn, *args, **kwargs)

    _core.mark(disabled, "disabled", printable(reason or ""))
    return disabled


def _disable_module(module, reason):
    return wrap_module(module, lambda original: _disable_callable(original.__call__, reason), _disable_module, reason)


def allow_in_graph(fn):
    """Call ``fn`` as it is while capturing, as an operator of torch is called: its body is not evaluated.

    It is given tensors without data; what it does beside calling operators happens once, at capture. It takes and
    returns tensors, constants, and tuples, lists and dicts of these. Also a decorator; a list or tuple of callables
    is marked one by one. Returns ``fn``.
    """
    if isinstance(fn, (list, tuple)):
        for each in fn:
            _check_callable("allow_in_graph", each)
        return [allow_in_graph(each) for each in fn]
    _check_callable("allow_in_graph", fn)
    _core.mark(_function_of(fn), "in_graph")
    return fn


def assume_constant_result(fn):
    """Call ``fn`` once, at capture, and take its result for the same at every run. Also a decorator; returns ``fn``.

    Its arguments must not be tensors that a captured region computes.
    """
    _check_callable("assume_constant_result", fn)
    _core.mark(_function_of(fn), "constant")
    return fn


def _runs_after_its_call(fn):
    while isinstance(fn, functools.partial):
        fn = fn.func
    return any(
        inspect.isgeneratorfunction(code) or inspect.iscoroutinefunction(code) or inspect.isasyncgenfunction(code)
        for code in (fn, type(fn).__call__)
    )


class set_stance:
    """Set whether calls of compiled functions may compile, in the whole process.

    ``"default"``: they do. ``"force_eager"``: everything runs in eager. ``"eager_on_recompile"``: what is compiled
    is used, everything else runs in eager. ``"fail_on_recompile"``: what would have to be compiled raises
    ``RuntimeError``.

    A plain call sets it for good; in a ``with`` statement, or as a decorator of a function, for that time.
    """

    def __init__(self, stance="default"):
        if not isinstance(stance, str):
            raise TypeError(f"stance must be a str, not {type(stance).__name__}")
        self._before = _core.set_stance(printable(stance))
        self.stance = stance

    def __enter__(self):
        _core.set_stance(self.stance)
        return self

    def __exit__(self, *error):
        _core.set_stance(self._before)

    def __call__(self, fn):
        _core.set_stance(self._before)
        _check_callable("set_stance", fn)
        if isinstance(fn, (staticmethod, classmethod)):
            return type(fn)(self(fn.__func__))
        if isinstance(fn, type) or _runs_after_its_call(fn):
            raise TypeError("as a decorator, set_stance() takes a plain function; use it in a with statement instead")

        @functools.wraps(fn)
        def with_stance(*args, **kwargs):
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return with_stance


def graph_break():
    """End the captured region here; does nothing in eager."""


def is_compiling():
    """True while the code that asks is being captured, False in eager."""
    return _core.is_compiling()
