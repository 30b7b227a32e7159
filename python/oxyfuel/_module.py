"""Compiled modules: objects of a subclass of the module's class that share its ``__dict__``."""

import copy

from oxyfuel import _core

_ORIGINAL = "_oxyfuel_original"
_CALLABLE = "_oxyfuel_callable"
_SETTINGS = "_oxyfuel_settings"
_classes = {}


def _call(self, *args, **kwargs):
    return self._oxyfuel_callable(*args, **kwargs)


def _reduce(self, protocol=None):
    return compile_module, (self._oxyfuel_original, self._oxyfuel_settings)


def _deepcopy(self, memo):
    return compile_module(copy.deepcopy(self._oxyfuel_original, memo), self._oxyfuel_settings)


def _compiled_class(cls):
    if cls not in _classes:
        namespace = {
            "__slots__": (_ORIGINAL, _CALLABLE, _SETTINGS),
            "__call__": _call,
            "__reduce_ex__": _reduce,
            "__deepcopy__": _deepcopy,
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
        }
        _classes[cls] = type(cls)(cls.__name__, (cls,), namespace)
    return _classes[cls]


def compile_module(module, settings):
    """A new object that is the module, compiled: same attributes (shared), same class and subclasses' checks."""
    original = getattr(module, _ORIGINAL, module)
    cls = _compiled_class(type(original))
    compiled = object.__new__(cls)
    object.__setattr__(compiled, "__dict__", original.__dict__)
    for name, value in (
        (_ORIGINAL, original),
        (_CALLABLE, _core.compile(original, **settings)),
        (_SETTINGS, settings),
    ):
        cls.__dict__[name].__set__(compiled, value)
    return compiled
