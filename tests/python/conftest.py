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

from not_on_gpus import REASONS  # noqa: E402
from torch_stacks import leave_out_stacks  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", choices=("cpu", "cuda"), help="of the tensors in tests that are the same for all")
    parser.addoption("--default-device", default=None, help="torch.set_default_device() around the tests")


def pytest_ignore_collect(collection_path, config):
    """Modules that are named alone run all the same."""
    by_default = config.getoption("--default-device")
    is_named = str(collection_path) in {str(Path(argument.split("::")[0]).resolve()) for argument in config.args}
    if by_default and by_default != "cpu" and not is_named and collection_path.is_relative_to(FOLDER):
        return str(collection_path.relative_to(FOLDER)) in REASONS or None
    return None


def pytest_configure(config):
    by_default = config.getoption("--default-device")
    os.environ["OXYFUEL_TEST_DEVICE"] = by_default or config.getoption("--device")
    if by_default:
        use_by_default(by_default)


def use_by_default(device):
    """Modules make tensors while they are imported, and generators are made for the CPU where nobody says otherwise."""
    import torch

    torch.set_default_device(device)

    class Generator(torch.Generator):
        def __new__(cls, device=device):
            return super().__new__(cls, device=device)

    torch.Generator = Generator


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
    end_if_lost(torch)


def end_if_lost(torch):
    """After an assertion in a kernel a process can do nothing more on a GPU: pytest-xdist goes on in another one."""
    if not torch.cuda.is_initialized():
        return
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        print(f"the GPU is lost: {error}", file=sys.stderr)
        os._exit(1)
