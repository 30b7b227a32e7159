"""Finds oxyfuel_frame_testing, which CMake builds for the Python it was configured with."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = [os.environ.get("OXYFUEL_FRAME_TESTING"), os.path.join(HERE, "..", "..", "build", "frame_testing")]
sys.path[:0] = [place for place in PLACES if place and os.path.isdir(place)] + [HERE]
layer = pytest.importorskip(
    "oxyfuel_frame_testing", reason="not built for this Python; OXYFUEL_FRAME_TESTING names the folder that holds it")
