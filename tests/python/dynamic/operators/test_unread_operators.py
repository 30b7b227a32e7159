"""Operators that nobody reads raise for the sizes for which eager does; tests/fuzz/unread_operators.py runs more samples."""

import pytest

import unread_operators

PARTS = 24


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore")
def test_operators_that_nobody_reads_raise_as_in_eager(part):
    found = [difference for operator in unread_operators.operators()[part::PARTS] for difference in unread_operators.differences(operator, 2)]
    assert not found, found[0]
