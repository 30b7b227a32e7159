"""PyTorch notes the stack of each torch.manual_seed(), once for each kind of device that has not been used, and looks for a test around
each sample input of its tables of operators. That takes milliseconds a call. Nothing in these tests reads it."""

import sys
from types import SimpleNamespace


def leave_out_stacks():
    """Has the modules of PyTorch that are there take no stacks."""
    for name in ("torch.cuda", "torch.xpu", "torch.mtia"):
        if name in sys.modules:
            sys.modules[name].traceback = SimpleNamespace(format_stack=list)
    for name in ("torch.testing._internal.common_utils", "torch.testing._internal.opinfo.core"):
        if name in sys.modules:
            sys.modules[name].extract_test_fn = lambda: None
