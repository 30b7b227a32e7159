"""Hooks that are registered through a module called in another way, and given that one as the module."""


class HookOf:
    """A hook and the object that it was registered on. What a call runs hooks for is the plain module; the hook is given
    the object instead. To whom looks at it, it is the hook: it has its class, its attributes and its equals."""

    __slots__ = ("_oxyfuel_hook", "_oxyfuel_owner", "__weakref__")

    def __init__(self, hook, owner):
        self.__setstate__((hook, owner))

    def __call__(self, module, *args, **kwargs):
        owner = self._oxyfuel_owner
        return self._oxyfuel_hook(owner if module is owner._oxyfuel_module else module, *args, **kwargs)

    def __getattr__(self, name):
        if name in HookOf.__slots__:  # it is being made
            raise AttributeError(name)
        return getattr(self._oxyfuel_hook, name)

    def __setattr__(self, name, value):
        setattr(self._oxyfuel_hook, name, value)

    def __delattr__(self, name):
        delattr(self._oxyfuel_hook, name)

    def __eq__(self, other):
        return self._oxyfuel_hook == hook_itself(other)

    def __hash__(self):
        return hash(self._oxyfuel_hook)

    def __repr__(self):
        return repr(self._oxyfuel_hook)

    def __bool__(self):
        return bool(self._oxyfuel_hook)

    def __len__(self):
        return len(self._oxyfuel_hook)

    def __iter__(self):
        return iter(self._oxyfuel_hook)

    def __contains__(self, item):
        return item in self._oxyfuel_hook

    def __getitem__(self, key):
        return self._oxyfuel_hook[key]

    # The owner holds its hooks: a copy is made before what it holds.
    def __reduce_ex__(self, protocol):
        return _empty, (), (self._oxyfuel_hook, self._oxyfuel_owner)

    def __setstate__(self, state):
        for name, value in zip(HookOf.__slots__, state):
            object.__setattr__(self, name, value)

    __doc__ = property(lambda self: self._oxyfuel_hook.__doc__)
    __class__ = property(lambda self: self._oxyfuel_hook.__class__)


def _empty():
    return object.__new__(HookOf)


def hook_itself(hook):
    return hook._oxyfuel_hook if type(hook) is HookOf else hook
