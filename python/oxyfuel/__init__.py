"""Oxyfuel: a native compiler for PyTorch programs. ``oxyfuel.compile(model)`` is a drop-in for ``torch.compile``."""

import torch  # the extension links against its libraries

from oxyfuel import _core
from oxyfuel._api import (
    Unsupported,
    compile,
    disable,
    explain,
    graph_break,
    is_compiling,
    metrics,
    reset,
)

__all__ = ["Unsupported", "compile", "disable", "explain", "graph_break", "is_compiling", "metrics", "reset"]

_core.set_unsupported_class(Unsupported)
_core.start_logging()
