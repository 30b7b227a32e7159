"""Records a function on trace tensors."""

import os
import sys

sys.path.insert(0, os.environ["OXYFUEL_TRACE_TESTING"])

from oxyfuel_trace_testing import *  # noqa: E402, F403
from oxyfuel_trace_testing import Recorder  # noqa: E402


def record(function, *tensors, strict_shapes=True):
    recorder = Recorder(strict_shapes)
    try:
        result = function(*[recorder.add_input(t) for t in tensors])
        return recorder.finish(list(result) if isinstance(result, (list, tuple)) else [result])
    finally:
        recorder.close()
