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

def given(*shape):
    return torch.ones(shape, device=device, requires_grad=True)

LSTM = torch.nn.LSTM(4, 4).to(device)
PROGRAMS = {
    "attention": lambda: F.scaled_dot_product_attention(given(2, 2, 8, 16), given(2, 2, 8, 16), given(2, 2, 8, 16)),
    "masked attention": lambda: F.scaled_dot_product_attention(given(2, 2, 8, 16), given(2, 2, 8, 16), given(2, 2, 8, 16), given(8, 8)),
    "einsum": lambda: torch.einsum("bij,bjk->bik", given(2, 3, 4), given(2, 4, 5)),
    "matmul": lambda: given(2, 3, 4) @ given(4, 5),
    "kron": lambda: torch.kron(given(2, 2), given(2, 2)),
    "multi_dot": lambda: torch.linalg.multi_dot([given(2, 3), given(3, 4), given(4, 5)]),
    "cov": lambda: torch.cov(given(3, 4)),
    "matrix_norm": lambda: torch.linalg.matrix_norm(given(3, 4)),
    "quantile": lambda: torch.quantile(given(5), 0.5),
    "lstm": lambda: LSTM(given(3, 2, 4))[0],
    "stft": lambda: torch.stft(given(64), 16, return_complex=True).abs(),
    "nearest": lambda: F.interpolate(given(1, 2, 4, 4), scale_factor=2),
    "bilinear": lambda: F.interpolate(given(1, 2, 4, 4), scale_factor=2, mode="bilinear"),
    "one_hot": lambda: F.one_hot(torch.arange(4, device=device), 5).float() * given(5),
    "take_along_dim": lambda: torch.take_along_dim(given(3, 4), torch.zeros(3, 1, dtype=torch.long, device=device), 1),
    "combinations": lambda: torch.combinations(given(4)),
}

class Listener(TorchDispatchMode):
    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        self.seen.append(str(operator))
        return operator(*arguments, **(named or {}))

for name, function in PROGRAMS.items():
    for grad in (True, False):
        listener = Listener()
        listener.seen = []
        with listener, torch.set_grad_enabled(grad):
            result = function()
            if grad:
                result.sum().backward()
        print(name, grad, listener.seen)
"""


def listen(device, way):
    process = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT, device, way], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_modes_see_what_they_see_without_us():
    before, after = listen("cpu", "eager"), listen("cpu", "ours")
    assert len(before) == len(after) >= 30
    for with_ours, without in zip(after, before):
        assert with_ours == without
