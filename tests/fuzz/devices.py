"""The device of the tensors in tests that are the same for all: `pytest --device cuda` (tests/python/conftest.py)."""

import os


def device():
    return os.environ.get("OXYFUEL_TEST_DEVICE", "cpu")
