"""What the tests of sizes ask of a compiled function."""

import threading

import torch

import oxyfuel


def compiles(function):
    """How often `function()` compiles a graph."""
    before = oxyfuel.metrics()["graphs"]
    function()
    return oxyfuel.metrics()["graphs"] - before


def strides(x):
    """Those that count."""
    return [stride for stride, size in zip(x.stride(), x.shape) if size > 1] if x.numel() else []


def same(a, b):
    """Equal in values, dtypes, sizes, strides and Python types, through containers."""
    if isinstance(a, torch.Tensor):
        assert a.shape == b.shape and a.dtype == b.dtype and strides(a) == strides(b), (a.stride(), b.stride())
        torch.testing.assert_close(a, b, equal_nan=True)
        return
    assert type(a) is type(b)
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
        return
    assert a == b


def check(function, calls, most, **options):
    """All calls give eager's results, in at most `most` compilations."""
    compiled = oxyfuel.compile(function, **options)

    def run():
        for arguments in calls:
            same(compiled(*arguments), function(*arguments))

    count = compiles(run)
    assert count <= most, f"{count} compilations"


def in_threads(count, work):
    """Runs ``work(seed)`` in as many threads. Raises what the first of them to fail has raised."""
    failures = []

    def run(seed):
        try:
            work(seed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
