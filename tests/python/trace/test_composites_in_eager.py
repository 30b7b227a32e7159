"""Operators that get kernels of ours above PyTorch's decomposition (trace/composites): whoever listens below autograd, a
mode of Python or torch.compile, sees the parts of the decomposition and never the operator, as without oxyfuel."""

import subprocess
import sys

SCRIPT = """
import sys
import torch, torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
device, compiles_first = sys.argv[1], sys.argv[2] == "ours"

if compiles_first:
    import oxyfuel
    oxyfuel.compile(lambda x: (x * 2).sum())(torch.ones(2, device=device, requires_grad=True)).backward()

LSTM = torch.nn.LSTM(4, 4).to(device)
PROGRAMS = {
    "attention": (F.scaled_dot_product_attention, (2, 2, 8, 16), (2, 2, 8, 16), (2, 2, 8, 16)),
    "masked attention": (F.scaled_dot_product_attention, (2, 2, 8, 16), (2, 2, 8, 16), (2, 2, 8, 16), (8, 8)),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), (2, 3, 4), (2, 4, 5)),
    "matmul": (torch.matmul, (2, 3, 4), (4, 5)),
    "kron": (torch.kron, (2, 2), (2, 2)),
    "multi_dot": (lambda *matrices: torch.linalg.multi_dot(matrices), (2, 3), (3, 4), (4, 5)),
    "cov": (torch.cov, (3, 4)),
    "matrix_norm": (torch.linalg.matrix_norm, (3, 4)),
    "quantile": (lambda x: torch.quantile(x, 0.5), (5,)),
    "lstm": (lambda x: LSTM(x)[0], (3, 2, 4)),
    "stft": (lambda x: torch.stft(x, 16, return_complex=True).abs(), (64,)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), (1, 2, 4, 4)),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (1, 2, 4, 4)),
    "nearest to a size": (lambda x, y: F.interpolate(x, size=y.shape[-2:]), (1, 2, 4, 4), (2, 6, 8)),
    "bicubic to a size": (lambda x, y: F.interpolate(x, size=y.shape[-2:], mode="bicubic"), (1, 2, 4, 4), (2, 6, 8)),
    "antialiased": (lambda x, y: F.interpolate(x, size=y.shape[-2:], mode="bilinear", antialias=True), (1, 2, 4, 4), (2, 6, 8)),
    "one_hot": (lambda x: F.one_hot(torch.arange(4, device=device), 5).float() * x, (5,)),
    "take_along_dim": (lambda x: torch.take_along_dim(x, torch.zeros(3, 1, dtype=torch.long, device=device), 1), (3, 4)),
    "combinations": (torch.combinations, (4,)),
}

def given(shapes):
    return [torch.ones(shape, device=device, requires_grad=True) for shape in shapes]

class Listener(TorchDispatchMode):
    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        if operator != torch.ops.prim.device.default:  # our kernels ask for the device of a fake tensor
            self.seen.append(str(operator).replace("_unsafe_view", "view"))  # PyTorch's own decompositions say either
        return operator(*arguments, **(named or {}))

for name, (function, *shapes) in PROGRAMS.items():
    for grad in (True, False):
        listener = Listener()
        listener.seen = []
        with listener, torch.set_grad_enabled(grad):
            result = function(*given(shapes))
            if grad:
                result.sum().backward()
        print(name, grad, listener.seen)

# Tensors that torch.compile traces with, whose sizes are symbols of its own.
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

for name, (function, *shapes) in PROGRAMS.items():
    environment = ShapeEnv()
    with FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True) as mode:
        def fake(tensor):
            return mode.from_tensor(tensor, symbolic_context=StatelessSymbolicContext([DimDynamic.DYNAMIC] * tensor.dim()))

        listener = Listener()
        listener.seen = []
        try:
            with enable_python_dispatcher(), listener:
                result = function(*map(fake, given(shapes)))
            print(name, listener.seen, result.shape, [guard.expr for guard in environment.guards])
        except Exception as error:
            print(name, listener.seen, type(error).__name__)
"""


def listen(device, way):
    process = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT, device, way], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_modes_see_what_they_see_without_us():
    before, after = listen("cpu", "eager"), listen("cpu", "ours")
    assert len(before) == len(after) >= 55
    for with_ours, without in zip(after, before):
        assert with_ours == without
