"""torch.device contexts of GPUs, around calls and inside of programs."""

import torch

import oxyfuel


def test_a_default_device():
    """Factories are given it, around the call and inside of the program."""

    def program(x):
        with torch.device("cuda"):
            return x.cuda() + torch.ones(3), torch.arange(2)

    compiled = oxyfuel.compile(program, fullgraph=True)
    for _ in range(4):
        y, i = compiled(torch.zeros(3, device="cuda"))
        assert y.tolist() == [1.0, 1.0, 1.0] and i.is_cuda
    compiled = oxyfuel.compile(lambda: torch.ones(3) * 2, fullgraph=True)
    with torch.device("cuda"):
        for _ in range(4):
            assert compiled().is_cuda and torch.get_default_device() == torch.device("cuda", 0)
    assert not compiled().is_cuda
