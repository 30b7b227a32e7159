"""Tests that need an NVIDIA GPU: `./oxy test --gpu` runs them. Nothing here is skipped: without a GPU all of it fails."""

import os

os.environ.setdefault("OXYFUEL_STRICT", "1")  # before oxyfuel is imported

import pytest  # noqa: E402
import torch  # noqa: E402

import oxyfuel  # noqa: E402


@pytest.fixture(autouse=True)
def nothing_compiled():
    oxyfuel.reset()
    torch.manual_seed(0)
    yield
    torch.cuda.synchronize()
