"""A trial of two ways: which of them wins, and after how many calls."""

import os
import sys

import pytest

sys.path[:0] = [path for path in (os.environ.get("OXYFUEL_RUNTIME_TESTING"),) if path]
rt = pytest.importorskip("oxyfuel_runtime_testing", reason="OXYFUEL_RUNTIME_TESTING names the folder of the module")


@pytest.mark.parametrize(
    "before, now, wins",
    [
        ([1.0], [0.9], True),
        ([1.0], [0.98], False),  # within the margin
        ([1.0], [1.0], False),
        ([1.0], [1.1], False),
        ([1.0], [50.0, 50.0, 0.9], True),  # the first calls of the new way do not count
        ([1.0, 9.0, 1.0], [0.9, 0.9, 7.0, 0.9], True),  # neither do calls that something disturbed
        ([1.0], [1.0, 1.0, 0.1, 1.0], False),  # one fast call is chance
        ([1.0, 0.5, 1.0], [0.9], False),  # and so is one slow kind of calls
    ],
)
def test_who_wins(before, now, wins):
    won, calls = rt.trial(before, now)
    assert won == wins and calls <= 38
