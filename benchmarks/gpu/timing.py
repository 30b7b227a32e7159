"""Times of calls on a GPU."""

import time

import torch


def seconds(function, count):
    """Of one call, host and device together, over so many calls back to back."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count
