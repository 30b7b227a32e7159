"""Modules called in another way: objects of a subclass of the module's class that share its ``__dict__``."""

import copy

from oxyfuel._backends import compile_target

_ORIGINAL = "_oxyfuel_original"
_CALLABLE = "_oxyfuel_callable"
_REMADE = "_oxyfuel_remade"
_classes = {}


def _call(self, *args, **kwargs):
    return self._oxyfuel_callable(*args, **kwargs)


def _reduce(self, protocol=None):
    make, argument = self._oxyfuel_remade
    return make, (self._oxyfuel_original, argument)


def _deepcopy(self, memo):
    make, argument = self._oxyfuel_remade
    return make(copy.deepcopy(self._oxyfuel_original, memo), argument)


def _wrapped_class(cls):
    if cls not in _classes:
        namespace = {
            "__slots__": (_ORIGINAL, _CALLABLE, _REMADE),
            "__call__": _call,
            "__reduce_ex__": _reduce,
            "__deepcopy__": _deepcopy,
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
        }
        _classes[cls] = type(cls)(cls.__name__, (cls,), namespace)
    return _classes[cls]


def wrap_module(module, make_callable, remake, argument):
    """A new object that is the module, but calls ``make_callable(module)``: same attributes (shared), same class and
    subclasses' checks. ``remake(module, argument)`` makes the same of a copy."""
    original = module
    if getattr(module, _REMADE, (None,))[0] is remake:
        original = getattr(module, _ORIGINAL)
    cls = _wrapped_class(type(original))
    wrapped = object.__new__(cls)
    object.__setattr__(wrapped, "__dict__", original.__dict__)
    for name, value in ((_ORIGINAL, original), (_CALLABLE, make_callable(original)), (_REMADE, (remake, argument))):
        cls.__dict__[name].__set__(wrapped, value)
    return wrapped


def compile_module(module, settings):
    return wrap_module(module, lambda original: compile_target(original, settings), compile_module, settings)
