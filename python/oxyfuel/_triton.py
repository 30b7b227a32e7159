"""Tells the compiler where Triton is, which makes kernels for NVIDIA GPUs. Triton itself is not imported here."""

import importlib.metadata
import sys
from pathlib import Path

import torch

from oxyfuel import _core


def use_triton():
    """Does nothing where PyTorch is built without CUDA, or no Triton is installed."""
    if torch.version.cuda is None:
        return
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return
    _core.use_triton(sys.executable, str(Path(__file__).with_name("_triton_worker.py")), version)
