"""Tests that need an NVIDIA GPU: `./oxy test --gpu` runs them. Without a GPU all of it fails; what needs two
of them is skipped where there is one."""

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
