"""Modules called in another way: objects of a subclass of the module's class that share its ``__dict__``.

The plain module may be given another class or ``__dict__``, as torch's parametrizations, lazy modules and FSDP do. What
is given to the object goes to the plain module; what is given to that one is taken over by ``_settle()``, wherever
parameters and submodules are looked up, an attribute is not found, or the class is asked for. Until then a method that
both classes have is the earlier one's; a call is always the plain module's.
"""

import abc
import copy
import functools
import types

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from oxyfuel._backends import compile_target
from oxyfuel._module_hooks import HookOf, hook_itself

_MODULE = "_oxyfuel_module"  # the plain one
_ORIGINAL = "_oxyfuel_original"  # what was wrapped: the plain one, or one that is called in yet another way
_CALLABLE = "_oxyfuel_callable"
_REMADE = "_oxyfuel_remade"  # how wrap_module() made it
_SLOTS = (_MODULE, _ORIGINAL, _CALLABLE, _REMADE)
_CLASS = "_oxyfuel_class"  # of a class that was derived here: from which

_set_class = object.__dict__["__class__"].__set__


def _slot(module, name):
    """None: it is a module like others, if perhaps of a class that was derived here."""
    slot = getattr(type(module), name, None)
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


def _remake(module, duplicate):
    """How to make another of ``module`` from a copy: a function and its arguments. ``duplicate`` makes the copy."""
    if _slot(module, _REMADE) is None:
        return _itself, (duplicate(_as_original(module, getattr(type(module), _CLASS))),)
    make, argument = getattr(module, _REMADE)
    return make, (duplicate(getattr(module, _ORIGINAL)), argument)


def _settle(wrapped):
    """Take over the plain module's ``__dict__`` and class. Whether the class is another one."""
    try:
        module = wrapped._oxyfuel_module
    except AttributeError:
        return False
    if wrapped.__dict__ is not module.__dict__:
        object.__setattr__(wrapped, "__dict__", module.__dict__)
    if type(module) is wrapped._oxyfuel_class:
        return False
    try:
        _set_class(wrapped, _wrapped_class(type(module)))
    except TypeError:  # it has slots
        return False
    return True


class _Called:
    """What objects that are called in another way have of their own."""

    __slots__ = ()

    def __call__(self, /, *args, **kwargs):
        try:
            compiled = self._oxyfuel_callable
        except AttributeError:
            return super().__call__(*args, **kwargs)
        return compiled(*args, **kwargs)

    def __getattr__(self, name):
        if name in _SLOTS:  # it is no wrapped one
            return super().__getattr__(name)
        return getattr(self, name) if _settle(self) else super().__getattr__(name)

    def __setattr__(self, name, value):
        module = getattr(self, _MODULE, None) if name == "__dict__" else None
        if module is None:
            return super().__setattr__(name, value)
        module.__dict__ = value
        _settle(self)

    def __reduce_ex__(self, protocol):
        return _remake(self, _itself)

    def __copy__(self):
        make, arguments = _remake(self, copy.copy)
        return make(*arguments)

    def __deepcopy__(self, memo):
        make, arguments = _remake(self, lambda module: copy.deepcopy(module, memo))
        if id(self) not in memo:  # its hooks may have led here already
            memo[id(self)] = make(*arguments)
        _settle(memo[id(self)])
        return memo[id(self)]


def _registration(name):
    @functools.wraps(getattr(torch.nn.Module, name))
    def method(self, hook, *args, **kwargs):
        if getattr(self, _MODULE, None) is not None:
            hook = HookOf(hook_itself(hook), self)
        return getattr(super(_Called, self), name)(hook, *args, **kwargs)

    return method


for _name in (  # those that a call of the module runs
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
):
    setattr(_Called, _name, _registration(_name))


class _Wrapped(_Called, torch.nn.Module):
    # In one class that all have in common: objects of classes with slots of their own cannot change their class.
    __slots__ = _SLOTS


def _class_of(self):
    module = getattr(self, _MODULE, None)
    if module is None:
        return vars(type(self)).get(_CLASS, type(self))
    _settle(self)
    return module.__class__


def _give_class(self, cls):
    module = getattr(self, _MODULE, None)
    if module is None:
        return _set_class(self, cls)
    module.__class__ = cls
    _settle(self)


def _call_and_settle(self, /, *args, **kwargs):
    try:
        return _Called.__call__(self, *args, **kwargs)
    finally:
        _settle(self)


class _ClassMethod:
    """A class method is given the program's class, not ``derived``, which was derived from it here."""

    def __init__(self, cls, name):
        self.cls, self.name, self.derived = cls, name, None

    def __get__(self, instance, owner):
        found = getattr(super(self.derived, owner if instance is None else instance), self.name)
        return getattr(self.cls, self.name) if getattr(found, "__self__", None) is self.derived else found


def _forward(name, slot):
    """A slot of the plain module's: attributes outside of ``__dict__`` are not shared otherwise."""

    def delegate(of_slot, of_object):
        def access(self, *value):
            module = getattr(self, _MODULE, None)
            return of_slot(self, *value) if module is None else of_object(module, name, *value)

        return access

    return property(
        delegate(slot.__get__, object.__getattribute__),
        delegate(slot.__set__, object.__setattr__),
        delegate(slot.__delete__, object.__delattr__),
    )


def _has_slots(cls):
    return any(isinstance(member, types.MemberDescriptorType) for base in cls.__mro__ for member in vars(base).values())


def _runs_code_when_derived(cls):
    own = any("__init_subclass__" in vars(base) for base in cls.__mro__ if base is not object)
    return own or type(cls) not in (type, abc.ABCMeta)


def _derive(cls, bases, namespace):
    """A class derived from ``bases``. What the program does of each class that it derives is not done."""
    if _runs_code_when_derived(cls):
        maker = abc.ABCMeta if issubclass(type(cls), abc.ABCMeta) else type
        derived = maker.__new__(type(cls), cls.__name__, (_Wrapped,), namespace)
        try:
            derived.__bases__ = bases
            return derived
        except TypeError:  # it has slots
            pass
    return type(cls)(cls.__name__, bases, namespace)


def _wrapped_class(cls):
    # The class knows its subclasses as long as they live: a table of them would keep alive what their modules hold.
    for derived in type.__subclasses__(cls):
        if vars(derived).get(_CLASS) is cls:
            return derived
    members = {}
    for base in reversed(cls.__mro__):
        members.update(vars(base))
    slots = {
        name: _forward(name, member)
        for name, member in members.items()
        if isinstance(member, types.MemberDescriptorType) and name not in _SLOTS
    }
    class_methods = {
        name: _ClassMethod(cls, name)
        for name, member in members.items()
        if isinstance(member, (classmethod, _ClassMethod)) and name not in ("__init_subclass__", "__class_getitem__")
    }
    if issubclass(cls, _Called):
        bases = (cls,)
    else:
        bases = (_Called if _has_slots(cls) else _Wrapped, cls)
    namespace = {
        "__slots__": _SLOTS if bases[0] is _Called else (),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__class__": property(_class_of, _give_class),
        _CLASS: cls,
    }
    if issubclass(cls, LazyModuleMixin):
        namespace["__call__"] = _call_and_settle
    derived = _derive(cls, bases, namespace | slots | class_methods)
    for method in class_methods.values():
        method.derived = derived
    return derived


def wrap_module(module, make_callable, remake, argument):
    """A new object that is the module, but calls ``make_callable(module)``: same attributes (shared), same class and
    subclasses' checks. ``remake(module, argument)`` makes the same of a copy."""
    original = module
    if (_slot(module, _REMADE) or (None,))[0] is remake:
        original = getattr(module, _ORIGINAL)
    plain = _slot(original, _MODULE)
    if plain is None:
        plain = original
    wrapped = object.__new__(_wrapped_class(type(plain)))
    object.__setattr__(wrapped, "__dict__", plain.__dict__)
    for name, value in zip(_SLOTS, (plain, original, make_callable(original), (remake, argument))):
        object.__setattr__(wrapped, name, value)
    return wrapped


def compile_module(module, settings):
    return wrap_module(module, lambda original: compile_target(original, settings), compile_module, settings)
