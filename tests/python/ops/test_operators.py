"""Every operator in PyTorch's table of samples, compiled and in eager; tests/fuzz/operators.py has the whole of it."""

import pytest
import torch
from devices import device

operators = pytest.importorskip("operators", reason="torch.testing's operators need expecttest")

LETTERS = 12


def names():
    return [op for op in operators.operators() if op.name not in operators.UNDEFINED]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(LETTERS))
def test_operators(part):
    wrong = []
    for op in names()[part::LETTERS]:
        if torch.float32 in op.supported_dtypes(device()):
            try:
                wrong += [f"{op.name}: {text}" for text in operators.check_operator(op, torch.float32, 2).wrong]
                if device() != "cpu":
                    torch.accelerator.synchronize()  # so that an error of the device is this operator's
            except Exception as error:
                raise AssertionError("\n".join([*wrong, f"{op.name} ends the comparison: {error}"])) from error
    assert not wrong, "\n".join(wrong)
