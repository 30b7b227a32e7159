"""Names of backends, and what the compiler is told of one."""

from oxyfuel import _core

_BUILT_IN = ("native", "eager")
_registered = {}


def register_backend(name_or_fn, *, name=None):
    """Give a backend a name for ``compile(backend=...)``. Also a decorator, with and without a name.

    A backend is called with a ``torch.fx.GraphModule``, the calls of torch's functions and methods in a captured
    region, and a list of its inputs at that call, and returns a callable that takes the inputs and returns a tuple
    of the outputs. Sizes that vary and that the calls use are inputs: ints, before the tensors.

    Args:
        name_or_fn: the backend, or its name: then a decorator is returned.
        name: the name of the backend ``name_or_fn``; its ``__name__`` if there is none.
    """
    if isinstance(name_or_fn, str):
        if name is not None:
            raise TypeError("register_backend() takes one name")
        _check_name(name_or_fn)
        return lambda fn: register_backend(fn, name=name_or_fn)
    if not callable(name_or_fn):
        raise TypeError(f"register_backend() takes a callable or a name, not {type(name_or_fn).__name__}")
    if name is None:
        name = getattr(name_or_fn, "__name__", None)
        if name is None:
            raise TypeError(f"a backend of type {type(name_or_fn).__name__} has no __name__: give it a name")
    _check_name(name)
    known = _registered.get(name, name_or_fn)
    if _place(known) != _place(name_or_fn):
        raise ValueError(f"there is another backend named {name!r}")
    _registered[name] = name_or_fn
    return name_or_fn


def _check_name(name):
    if not isinstance(name, str):
        raise TypeError(f"the name of a backend must be a str, not {type(name).__name__}")
    if not name or name in _BUILT_IN:
        raise ValueError(f"a backend cannot be named {name!r}")


def _place(fn):
    # A function that is defined again, as notebooks do, replaces the earlier one.
    place = getattr(fn, "__module__", None), getattr(fn, "__qualname__", None)
    return place if all(place) and "<" not in place[1] else fn


def list_backends():
    """The names that ``compile(backend=...)`` takes."""
    return sorted((*_BUILT_IN, *_registered))


def printable(text):
    """As C++ takes it: without surrogates that stand for nothing."""
    return text.encode(errors="backslashreplace").decode()


def check_backend(backend):
    if isinstance(backend, str):
        if backend not in _BUILT_IN and backend not in _registered:
            raise ValueError(f"backend must be one of {', '.join(map(repr, list_backends()))}, not {backend!r}")
    elif not callable(backend):
        raise TypeError(f"backend must be a name or a callable, not {backend!r}")


def compile_target(target, settings):
    """A CompiledFunction for the target; ``settings``: what :func:`oxyfuel.compile` was given."""
    backend = settings["backend"]
    if isinstance(backend, str) and backend in _BUILT_IN:
        return _core.compile(target, custom_backend=None, **settings)
    check_backend(backend)
    if isinstance(backend, str):
        name, function = backend, _registered[backend]
    else:
        name, function = getattr(backend, "__name__", type(backend).__name__), backend
    return _core.compile(target, custom_backend=function, **{**settings, "backend": printable(str(name))})
