"""Oxyfuel: a native compiler for PyTorch programs. ``oxyfuel.compile(model)`` is a drop-in for ``torch.compile``."""

from oxyfuel import _torch_release  # isort: skip (before the extension is loaded)

import torch  # the extension links against its libraries

from oxyfuel import _core
from oxyfuel._api import Unsupported, compile, dynamo_backend, explain, metrics, reset
from oxyfuel._backends import list_backends, register_backend
from oxyfuel._controls import (
    allow_in_graph,
    assume_constant_result,
    disable,
    graph_break,
    is_compiling,
    set_stance,
)
from oxyfuel._marks import mark_dynamic, mark_static, mark_unbacked, maybe_mark_dynamic
from oxyfuel._triton import use_triton

__all__ = [
    "Unsupported",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "disable",
    "dynamo_backend",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "metrics",
    "register_backend",
    "reset",
    "set_stance",
]

_core.set_unsupported_class(Unsupported)
_core.start_logging()
use_triton()
