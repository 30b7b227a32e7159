"""The release of PyTorch that the extension was built against is the one that runs: its C++ interface changes with each."""

import torch

from oxyfuel._build import TORCH_RELEASE

_built_for, _running = (".".join(release.split(".")[:2]) for release in (TORCH_RELEASE, torch.__version__))
if _built_for != _running:
    raise ImportError(f"this oxyfuel was built for PyTorch {_built_for} and cannot run on PyTorch {torch.__version__}: install "
                      f"torch=={_built_for}.*, or build oxyfuel again with 'pip install --no-build-isolation .'")
