"""Convolutions that are tried out in the background while the program is compiled: nothing of it shows."""

import copy
import os
import subprocess
import sys
import threading

import pytest
import torch
import torch.nn.functional as F
from comparison import check_close, in_float64
from torch import nn
from torch.utils._pytree import tree_map

import oxyfuel

CUDA = torch.device("cuda")


def tensor(*sizes, dtype=torch.float32):
    return torch.randn(sizes, device=CUDA).to(dtype)


def check(function, make, calls=4, **options):
    compiled = oxyfuel.compile(function, **options)
    with torch.no_grad():
        for k in range(calls):
            arguments = make(k)
            check_close(compiled(*arguments), function(*arguments), function(*tree_map(in_float64, arguments)))
    return compiled


SYMBOLIC = {
    "padding": (lambda x, w, p: F.conv2d(x, w, padding=p), lambda k: (tensor(2, 8, 12, 12), tensor(8, 8, 3, 3), 1 + k)),
    "stride": (lambda x, w, s: F.conv2d(x, w, stride=s), lambda k: (tensor(2, 8, 24, 24), tensor(8, 8, 3, 3), 1 + k)),
    "groups": (lambda x, w: F.conv2d(x, w, groups=x.shape[1] // 2), lambda k: (tensor(2, 2 * (2 + k), 9, 9), tensor(2 * (2 + k), 2, 3, 3))),
    "channels": (lambda x, w: F.conv2d(x, w).relu(), lambda k: (tensor(2 + k, 8, 9, 9), tensor(4 + k, 8, 3, 3))),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", SYMBOLIC)
def test_arguments_that_are_symbols(name, dynamic):
    function, make = SYMBOLIC[name]
    check(function, make, dynamic=dynamic)


def test_channels_that_change_in_training():
    def program(x, w, b):
        return F.conv2d(x, w, b, padding=1).sin().sum()

    compiled = oxyfuel.compile(program, dynamic=True)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for channels in (4, 6, 9):
            arguments = [tensor(*sizes).requires_grad_() for sizes in ((2, 8, 16, 16), (channels, 8, 3, 3), (channels,))]
            compiled(*arguments).backward()
            twins = [t.detach().double().requires_grad_() for t in arguments]
            program(*twins).backward()
            for argument, twin in zip(arguments, twins, strict=True):
                torch.testing.assert_close(argument.grad.double(), twin.grad, atol=5e-3, rtol=1e-3)


@pytest.mark.parametrize("timed", [False, True])
def test_flags_of_cudnn(timed):
    with torch.backends.cudnn.flags(enabled=True, benchmark=timed):
        check(lambda x, w: F.conv2d(x, w, padding=2).sigmoid(), lambda k: (tensor(3, 16, 20, 20), tensor(24, 16, 5, 5)))


def test_another_stream():
    """Nothing is enqueued on a stream of the program's but what the program asks for, so that it may be captured."""
    x, w = tensor(3, 16, 21, 21), tensor(8, 16, 3, 3)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        compiled = check(lambda x, w: F.conv2d(x, w).tanh(), lambda k: (x, w), options={"graphs": False})
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream), torch.no_grad():
            result = compiled(x, w)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(result, F.conv2d(x, w).tanh(), atol=1e-2, rtol=1e-2)


def test_captures_on_other_threads():
    """Another thread of the program captures a stream again and again, while convolutions are compiled. No random number is
    drawn meanwhile: eager refuses that, whichever thread draws it."""
    x = tensor(1 << 16)
    image = tensor(2, 4, 19, 19)
    models = [nn.Sequential(nn.Conv2d(4, channels, 3), nn.ReLU(), nn.Conv2d(channels, 4, 5)).to(CUDA).eval() for channels in (5, 7, 11)]
    doubles = [copy.deepcopy(model).double() for model in models]
    ends = threading.Event()
    problems = []

    def capture():
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                while not ends.is_set():
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                        y = x * 2
                    graph.replay()
                    torch.testing.assert_close(y, x * 2)
        except Exception as error:  # noqa: BLE001
            problems.append(error)

    thread = threading.Thread(target=capture)
    thread.start()
    try:
        for model, double in zip(models, doubles, strict=True):
            compiled = oxyfuel.compile(model, options={"graphs": False})
            with torch.no_grad():
                for _ in range(2):
                    check_close(compiled(image), model(image), double(image.double()))
    finally:
        ends.set()
        thread.join()
    assert not problems


def test_gradients_are_rehearsed():
    """The log tells: nothing else shows it."""
    program = """
import torch, oxyfuel
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 3)).cuda()
oxyfuel.compile(model)(torch.randn(2, 3, 20, 20, device="cuda")).sum().backward()
"""
    run = subprocess.run([sys.executable, "-c", program], env=dict(os.environ, OXYFUEL_LOGS="timing"), check=True, capture_output=True, text=True)
    assert [line.split()[1] for line in run.stderr.splitlines() if line.endswith("convolutions are rehearsed")] == ["2", "2"]
