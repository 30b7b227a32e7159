"""Every test of the Python package starts from nothing compiled and from one seed, and an internal error is a failure."""

import os
import random
import sys
from pathlib import Path

os.environ.setdefault("OXYFUEL_STRICT", "1")  # before oxyfuel is imported
FOLDER = Path(__file__).resolve().parent
if str(FOLDER) not in sys.path:
    sys.path.insert(0, str(FOLDER))

import pytest  # noqa: E402

from torch_stacks import leave_out_stacks  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", choices=("cpu", "cuda"), help="of the tensors in tests that are the same for all")
    parser.addoption("--default-device", default=None, help="torch.set_default_device() around each test")


def pytest_configure(config):
    os.environ["OXYFUEL_TEST_DEVICE"] = config.getoption("--device")


def seed():
    """The random numbers of a module and of a test do not depend on what ran before them in the same process."""
    random.seed(0)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)


def pytest_collectstart(collector):
    seed()


@pytest.fixture(autouse=True)
def start_afresh(request):
    leave_out_stacks()
    seed()
    oxyfuel = sys.modules.get("oxyfuel")
    if oxyfuel is not None:
        oxyfuel.reset()
    device = request.config.getoption("--default-device")
    if device is None:
        yield
        return
    import torch

    torch.set_default_device(device)
    yield
    torch.set_default_device(None)
