"""The public functions: they check their arguments and hand over to the compiler."""

import copyreg
import functools
import math
import sys
import types

import torch
import torch.fx

from oxyfuel import _core
from oxyfuel._backends import check_backend, compile_target
from oxyfuel._explanation import Explanation
from oxyfuel._module import compile_module
from oxyfuel._symbolic_inputs import symbolic_inputs

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_OPTIONS = {
    "freezing": (bool, True),
    "fusion": (bool, True),
    "recompile_limit": (int, 8),
    "fill_caches_in_eager": (bool, True),
    "weight_copy_budget": (float, 0.15),
    "activation_memory_budget": (float, 1.0),
    "rng": (str, "eager"),
    "graphs": (bool, True),
    "static_variants": (int, False),
    "wait": (bool, True),
}
_RENAMED = {"fuse": "fusion", "packing_budget": "weight_copy_budget", "wait_for_caches": "fill_caches_in_eager"}
_MOST = {"recompile_limit": 2**31 - 1, "static_variants": 2**31 - 1, "weight_copy_budget": 1e6}  # as good as no limit
_SWITCHES = ("static_variants",)  # True, False, or a number


class Unsupported(RuntimeError):
    """Raised under ``fullgraph=True`` when a function cannot be captured whole: the reason, the line, what to do."""


def compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend="native",
    mode="default",
    options=None,
    disable=False,
    dynamic_shapes=None,
):
    """Compile a function or a module, as ``torch.compile`` does; also a decorator, with and without arguments.

    Args:
        model: a callable or a ``torch.nn.Module``. A compiled module is a new object that shares the original's
            attributes; the original stays eager.
        fullgraph: raise ``Unsupported`` at the first construct that cannot be captured.
        dynamic: ``None``: a size or int that was another one at a later call becomes a symbol, so that one compilation
            serves all its values. ``True``: sizes and ints of the arguments are symbols from the first call on.
            ``False``: each new size is compiled anew.
        backend: ``"native"`` (fused kernels), ``"eager"`` (the captured graph, operator by operator), the name of a
            registered backend, or a backend itself: a callable, see :func:`register_backend`.
        mode: ``"default"``; ``"reduce-overhead"``: on a GPU the first call records its work already, see ``graphs``;
            ``"max-autotune"``: on a GPU, several block shapes of each generated kernel are compiled and timed when it is
            first compiled, and the fastest is used, also by later processes; ``"max-autotune-no-cudagraphs"``: the same,
            and nothing is recorded.
        options: ``freezing`` (bool), ``weight_copy_budget`` (float: bytes that copies of frozen weights may take, as a
            share of the weights), ``fusion`` (bool), ``recompile_limit`` (int), ``fill_caches_in_eager`` (bool: a
            call that fills the cache of a ``functools.lru_cache`` runs in eager, and the next one is compiled; without
            it the call is a break), ``activation_memory_budget`` (float, 0 to 1: what training may keep between the
            passes, as a share of what it keeps by default; the rest is computed again), ``rng`` (``"eager"``, the only
            one: random numbers are eager's), ``graphs`` (bool: on a GPU, calls whose sizes were there twice before are
            recorded as CUDA graphs and replayed; inputs are not copied, and results are new tensors as ever),
            ``static_variants`` (bool or int: sizes that recur are compiled once more with numbers in the place of symbols,
            in the background, and the result is used where it is faster; an int: after so many calls with them),
            ``wait`` (bool: without it no call waits for kernels; they are compiled in the background, and until all kernels
            of a function or region are there, it runs in eager).
        disable: return ``model`` as it is.
        dynamic_shapes: what the sizes of the arguments are, in the form of ``torch.export``'s argument of this name: a
            dict by parameter, or a tuple or list in their order; for a tensor a dict by dimension, or a tuple or list of
            all dimensions. A dimension is a ``torch.export.Dim``, ``Dim.DYNAMIC`` or ``Dim.AUTO`` (a symbol), an int (this
            number), ``Dim.STATIC`` or ``None`` (a number: each is compiled for itself). What is not named is as
            ``dynamic`` says.

    Raises:
        TypeError, ValueError: for arguments of another type or value. At a call: if ``dynamic_shapes`` does not fit its
            arguments.
        RuntimeError: at a call, if sizes or the function contradict ``dynamic_shapes``.
    """
    check_backend(backend)
    if mode is not None and not (isinstance(mode, str) and mode in _MODES):
        raise ValueError(f"mode must be one of {', '.join(map(repr, _MODES))}, not {mode!r}")
    if dynamic is not None and not isinstance(dynamic, bool):
        raise TypeError(f"dynamic must be None, True or False, not {dynamic!r}")
    if dynamic_shapes is not None and not isinstance(dynamic_shapes, (dict, tuple, list)):
        raise TypeError(
            f"dynamic_shapes must be a dict by parameter, a tuple or a list, not {type(dynamic_shapes).__name__}"
        )
    for name, value in (("fullgraph", fullgraph), ("disable", disable)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    settings = _settings(options)
    settings.update(
        backend=backend, fullgraph=fullgraph, dynamic=dynamic, mode=mode or "default", dynamic_shapes=dynamic_shapes
    )
    if model is None:
        return lambda target: compile(
            _checked("compile", target),
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            dynamic_shapes=dynamic_shapes,
        )
    _checked("compile", model)
    if disable:
        return model
    if isinstance(model, torch.nn.Module):
        return compile_module(model, settings)
    return _compile_callable(model, settings)


def _checked(name, model):
    if not callable(model):
        raise TypeError(f"oxyfuel.{name}() takes a callable or a torch.nn.Module, not {type(model).__name__}")
    return model


def _compile_callable(target, settings):
    compiled = compile_target(target, settings)
    if isinstance(target, (types.FunctionType, types.MethodType)):
        attributes = getattr(target, "__dict__", None)  # a method has those of what it binds: of anything
        if isinstance(attributes, dict):
            compiled.__dict__.update(attributes)
    for name in functools.WRAPPER_ASSIGNMENTS:
        if hasattr(target, name):
            setattr(compiled, name, getattr(target, name))
    compiled._oxyfuel_settings = settings
    return compiled


def _reduce_callable(compiled):
    # The name that a decorated function is found by; otherwise what it was made from.
    found = sys.modules.get(getattr(compiled, "__module__", None))
    for name in getattr(compiled, "__qualname__", "<locals>").split("."):
        found = getattr(found, name, None)
    if found is compiled:
        return compiled.__qualname__
    return _compile_callable, (compiled.__wrapped__, compiled._oxyfuel_settings)


copyreg.pickle(_core.CompiledFunction, _reduce_callable)


def _settings(options):
    settings = {name: default for name, (_, default) in _OPTIONS.items()}
    if options is None:
        return settings
    if not isinstance(options, dict):
        raise TypeError(f"options must be a dict, not {type(options).__name__}")
    for name, value in options.items():
        if name in _RENAMED:
            raise ValueError(f"option {name!r} is called {_RENAMED[name]!r} now")
        if name not in _OPTIONS:
            raise ValueError(f"unknown option {name!r}; the options are {', '.join(map(repr, _OPTIONS))}")
        expected = _OPTIONS[name][0]
        if expected is float and isinstance(value, int) and not isinstance(value, bool):
            value = _as_float(value)
        is_switch = isinstance(value, bool) and name in _SWITCHES
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool) and not is_switch):
            kinds = "bool or int" if name in _SWITCHES else expected.__name__
            raise TypeError(f"option {name!r} must be of type {kinds}, not {type(value).__name__}")
        if expected is int and not is_switch and value < 1:
            raise ValueError(f"option {name!r} must be at least 1, not {value}")
        if name == "weight_copy_budget" and not value >= 0:
            raise ValueError(f"option 'weight_copy_budget' must be at least 0, not {value}")
        if name == "activation_memory_budget" and not 0 <= value <= 1:
            raise ValueError(f"option 'activation_memory_budget' must lie between 0 and 1, not {value}")
        if name == "rng" and value != "eager":
            raise ValueError(f"option 'rng' must be 'eager', not {value!r}")
        settings[name] = min(value, _MOST.get(name, value))
    return settings


def _as_float(number):
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, 1 if number > 0 else -1)


def reset():
    """Forget everything that was compiled, and start the metrics anew."""
    _core.reset()


def metrics():
    """What was compiled since the last ``reset()``, as a dict.

    ``graphs``, ``breaks`` (each with ``reason``, ``hint``, ``stack`` and ``count``), ``recompiles`` and
    ``recompile_reasons``, ``kernels``, ``launches``, ``extern_calls``, ``operators``, ``guards``,
    ``shape_fallbacks``, ``calls_compiled`` and ``calls_eager``, ``pending`` (how many graphs run in eager now while their
    kernels are compiled, see ``wait``), ``arena_bytes``, ``packed_bytes``, ``static_variants`` (how many were ``made``, ``kept``, ``dropped``
    and ``let_go`` again), and ``seconds`` a stage.
    """
    return _core.metrics()


def dynamo_backend(graph_module, example_inputs, *, mode=None, options=None):
    """What ``torch.compile(model, backend="oxyfuel")`` calls: compiles a graph of torch.compile's, for inference and
    training. ``mode`` and ``options`` are those of :func:`compile`. Inputs that are symbols there, and sizes that are made
    of symbols, are symbols here; other sizes come from the calls, not from the examples.
    """
    if not isinstance(graph_module, torch.fx.GraphModule):
        raise TypeError(f"dynamo_backend() takes a torch.fx.GraphModule, not {type(graph_module).__name__}")
    graph_module.code  # its forward() may be written only when somebody asks for it
    return compile(
        graph_module.forward, mode=mode, options=options, dynamic_shapes=symbolic_inputs(graph_module, example_inputs)
    )


def explain(fn):
    """``explain(f)(*args)`` calls ``f`` compiled and returns an :class:`Explanation` of the regions that the call went
    through. What is compiled already is explained as it is, with its own options; anything else is compiled anew, after a
    ``reset()``."""
    _checked("explain", fn)

    def run(*args, **kwargs):
        compiled = fn
        if not isinstance(getattr(fn, "_oxyfuel_callable", fn), _core.CompiledFunction):
            reset()
            compiled = compile(fn)
        segments = _core.watch(lambda: compiled(*args, **kwargs))
        return Explanation(metrics(), segments)

    return run
