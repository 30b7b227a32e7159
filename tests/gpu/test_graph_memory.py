"""What memory CUDA graphs hold, and for how long."""

import gc

import torch
from torch import nn

import oxyfuel

CUDA = torch.device("cuda")
CALLS = 6
MIB = 1 << 20


def tensor(*sizes):
    return torch.randn(sizes, device=CUDA)


def test_memory_of_a_model_is_kept_once():
    """Graphs of one stream share what they write to on the way."""
    torch.cuda.empty_cache()
    models = [nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).to(CUDA).eval() for _ in range(4)]
    x = tensor(4096, 1024)
    with torch.no_grad():
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        for model in models:
            compiled = oxyfuel.compile(model)
            for _ in range(CALLS):
                compiled(x)
            model.compiled = [compiled]
        assert torch.cuda.memory_allocated() - before < 2.5 * 4096 * 4096 * 4


def test_explain_has_the_memory():
    """Two functions of one stream work in the same memory, which is as large as the larger one needs."""
    functions = [oxyfuel.compile(lambda x, n=n: (x @ x).relu().sum(0) * n + (x @ x).mean()) for n in (1, 2)]
    sizes = []
    with torch.no_grad():
        for function, size in zip(functions, (256, 1024)):
            x = tensor(size, size)
            for _ in range(CALLS):
                function(x)
            [segment] = oxyfuel.explain(function)(x).segments
            assert segment["device_graphs"] == 1 and "CUDA graph in" in str(oxyfuel.explain(function)(x))
            sizes.append(segment["device_graph_bytes"])
    assert sizes[1] >= 1024 * 1024 * 4 and sizes[0] > 0


def test_memory_that_a_backward_pass_frees():
    """It is free before the pass ends, also while graphs are recorded: a pass that saves much is several graphs."""
    torch.manual_seed(1)
    layers_of = lambda: nn.Sequential(*(nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Tanh()) for _ in range(10)))  # noqa: E731
    ours, theirs = layers_of().to(CUDA), layers_of().to(CUDA)
    theirs.load_state_dict(ours.state_dict())
    compiled = oxyfuel.compile(ours)
    x = tensor(16, 16, 192, 192)  # 36 MiB, and as much for each convolution and each norm
    peaks = []
    torch.cuda.empty_cache()
    for _ in range(CALLS):
        for model in (compiled, theirs):
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            model(x).square().mean().backward()
            peaks.append(torch.cuda.max_memory_allocated())
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, other.grad, atol=1e-3, rtol=2e-2)  # of TF32
            mine.grad = other.grad = None
    assert max(peaks[::2]) < 1.2 * max(peaks[1::2])


def pools():
    """Bytes of each part of the allocator's memory that belongs to graphs."""
    result = {}
    for segment in torch.cuda.memory_snapshot():
        name = tuple(segment["segment_pool_id"])
        if name != (0, 0):
            result[name] = result.get(name, 0) + segment["total_size"]
    return result


def test_memory_of_graphs_goes_with_them():
    """What a recording alone needed is given back, and the arena goes with the last graph. Workspaces of cuBLAS stay."""
    workspaces = 72 * MIB

    def products(x, w):
        return ((x @ w).sin() @ w).sort(-1).values.sum(-1)  # sort() returns 64 and 128 MiB

    gc.collect()
    torch.cuda.empty_cache()
    known = pools()
    x, w = tensor(4096, 4096), tensor(4096, 4096)
    compiled = oxyfuel.compile(products)
    with torch.no_grad():
        before = torch.cuda.memory_allocated()
        for _ in range(CALLS):
            torch.testing.assert_close(compiled(x, w), products(x, w), atol=1e-2, rtol=1e-2)
        during = torch.cuda.memory_allocated()
    assert len([name for name, size in pools().items() if size > known.get(name, 0)]) <= 1
    assert during - before >= 64 * MIB
    del compiled
    oxyfuel.reset()
    gc.collect()
    assert torch.cuda.memory_allocated() - before <= 2 * workspaces  # of the stream and of the recorded work


def test_temporaries_lie_in_the_arena():
    """What kernels and products write to on the way is in no pool."""

    def program(x, w):
        with torch.no_grad():
            scale = (x @ w).softmax(-1).amax(-1, keepdim=True)  # a product of 64 MiB that nothing saves
        for _ in range(3):
            x = (x @ w).sin()
        return x * scale

    gc.collect()
    torch.cuda.empty_cache()
    before = sum(pools().values())
    x, w = tensor(4096, 4096).requires_grad_(), tensor(4096, 4096).requires_grad_()
    compiled = oxyfuel.compile(program)
    for _ in range(CALLS):
        compiled(x, w).square().mean().backward()
        x.grad = w.grad = None
    assert sum(pools().values()) - before <= 72 * MIB  # workspaces of cuBLAS


def test_the_larger_arena_serves_both():
    """Of two plans that were called twice, the first one that is recorded makes the arena of the larger one."""

    def products(x, w):
        return (((x @ w).sin() @ w).sin() @ w).sum(-1)

    large, small = (tensor(4096, 4096), tensor(4096, 4096)), (tensor(2048, 2048), tensor(2048, 2048))
    compiled = [oxyfuel.compile(products, dynamic=False) for _ in range(2)]
    with torch.no_grad():
        for _ in range(2):
            compiled[0](*large)
        held = []
        for function, arguments in zip(compiled[::-1], (small, large), strict=True):
            for _ in range(CALLS):
                torch.testing.assert_close(function(*arguments), products(*arguments), atol=1e-2, rtol=1e-2)
            torch.cuda.synchronize()
            held.append(torch.cuda.memory_allocated())
    assert abs(held[1] - held[0]) < 16 * MIB


def test_what_the_last_kernel_reads_is_memory_of_the_graph():
    """It is freed behind all work of the plan, and is not allocated at each call."""

    def program(x, w):
        return (x @ w)[:, :100].sin()

    x, w = tensor(4096, 4096), tensor(4096, 4096)  # the product takes 64 MiB, the result 2
    compiled = oxyfuel.compile(program)
    with torch.no_grad():
        for _ in range(CALLS):
            torch.testing.assert_close(compiled(x, w), program(x, w), atol=1e-2, rtol=1e-2)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        compiled(x, w)
    assert torch.cuda.max_memory_allocated() - before <= 4 * MIB
