"""Modules called in another way: objects of a subclass of the module's class that share its ``__dict__``."""

import abc
import copy
import functools
import types
import weakref

import torch

from oxyfuel._backends import compile_target

_ORIGINAL = "_oxyfuel_original"
_CALLABLE = "_oxyfuel_callable"
_REMADE = "_oxyfuel_remade"
_classes = weakref.WeakValueDictionary()  # alive as long as their objects


def _remade(module):
    """How wrap_module() made it. None: it is a module like others, if perhaps of a class that was derived here."""
    slot = getattr(type(module), _REMADE, None)
    try:
        return slot and slot.__get__(module)
    except AttributeError:
        return None


def _as_original(module, cls):
    original = object.__new__(cls)
    object.__setattr__(original, "__dict__", module.__dict__)
    return original


def _itself(module):
    return module


def _remake(module, cls, duplicate):
    """How to make another of ``module`` from a copy: a function and its arguments. ``duplicate`` makes the copy."""
    if _remade(module) is None:
        return _itself, (duplicate(_as_original(module, cls)),)
    make, argument = getattr(module, _REMADE)
    return make, (duplicate(getattr(module, _ORIGINAL)), argument)


class _HookOf:
    """A hook that was registered through the compiled object, which it is given as the module: what it runs for is the
    original."""

    def __init__(self, hook, owner):
        self.hook, self.owner = hook, owner

    def __call__(self, module, *args, **kwargs):
        return self.hook(self.owner, *args, **kwargs)


# Those that a call of the module runs.
_REGISTERS_HOOK = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
)


def _registration(cls, name):
    register = getattr(cls, name)

    @functools.wraps(register)
    def method(self, hook, *args, **kwargs):
        return register(self, _HookOf(hook, self), *args, **kwargs)

    return method


def _forward(name, slot):
    """A slot of the original's: attributes outside of ``__dict__`` are not shared otherwise."""

    def delegate(of_slot, of_object):
        def access(self, *value):
            original = getattr(self, _ORIGINAL, None)
            return of_slot(self, *value) if original is None else of_object(original, name, *value)

        return access

    return property(
        delegate(slot.__get__, object.__getattribute__),
        delegate(slot.__set__, object.__setattr__),
        delegate(slot.__delete__, object.__delattr__),
    )


def _methods(cls):
    def __call__(self, *args, **kwargs):
        try:
            compiled = self._oxyfuel_callable
        except AttributeError:
            return cls.__call__(self, *args, **kwargs)
        return compiled(*args, **kwargs)

    def __reduce_ex__(self, protocol):
        return _remake(self, cls, _itself)

    def __copy__(self):
        make, arguments = _remake(self, cls, copy.copy)
        return make(*arguments)

    def __deepcopy__(self, memo):
        make, arguments = _remake(self, cls, lambda module: copy.deepcopy(module, memo))
        if id(self) not in memo:  # its hooks may have led here already
            memo[id(self)] = make(*arguments)
        return memo[id(self)]

    methods = {function.__name__: function for function in (__call__, __reduce_ex__, __copy__, __deepcopy__)}
    slots = {
        name: _forward(name, member)
        for base in reversed(cls.__mro__)
        for name, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType) and name not in (_ORIGINAL, _CALLABLE, _REMADE)
    }
    return slots | methods | {name: _registration(cls, name) for name in _REGISTERS_HOOK}


def _runs_code_when_derived(cls):
    own = any("__init_subclass__" in vars(base) for base in cls.__mro__ if base is not object)
    return own or type(cls) not in (type, abc.ABCMeta)


def _derive(cls, namespace):
    """A class derived from ``cls``. What the program does of each class that it derives is not done."""
    if _runs_code_when_derived(cls):
        maker = abc.ABCMeta if issubclass(type(cls), abc.ABCMeta) else type
        derived = maker.__new__(type(cls), cls.__name__, (torch.nn.Module,), namespace)
        try:
            derived.__bases__ = (cls,)
            return derived
        except TypeError:  # it has slots
            pass
    return type(cls)(cls.__name__, (cls,), namespace)


def _wrapped_class(cls):
    derived = _classes.get(cls)
    if derived is None:
        namespace = {
            "__slots__": (_ORIGINAL, _CALLABLE, _REMADE),
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            **_methods(cls),
        }
        derived = _classes[cls] = _derive(cls, namespace)
    return derived


def wrap_module(module, make_callable, remake, argument):
    """A new object that is the module, but calls ``make_callable(module)``: same attributes (shared), same class and
    subclasses' checks. ``remake(module, argument)`` makes the same of a copy."""
    original = module
    if (_remade(module) or (None,))[0] is remake:
        original = getattr(module, _ORIGINAL)
    cls = _wrapped_class(type(original))
    wrapped = object.__new__(cls)
    object.__setattr__(wrapped, "__dict__", original.__dict__)
    for name, value in ((_ORIGINAL, original), (_CALLABLE, make_callable(original)), (_REMADE, (remake, argument))):
        cls.__dict__[name].__set__(wrapped, value)
    return wrapped


def compile_module(module, settings):
    return wrap_module(module, lambda original: compile_target(original, settings), compile_module, settings)
