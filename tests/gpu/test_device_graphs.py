"""Calls that replay CUDA graphs: nothing of it shows, but that they are faster."""

import threading

import pytest
import torch
import torch.nn.functional as F
from comparison import check_close, in_float64, tensors_of
from torch import nn
from torch.utils._pytree import tree_map

import oxyfuel

CUDA = torch.device("cuda")
CALLS = 6


def tensor(*sizes, dtype=torch.float32):
    return torch.randn(sizes, device=CUDA).to(dtype)


def device_graphs(compiled, *arguments):
    """How many CUDA graphs calls replay, and why some steps are in none."""
    segments = oxyfuel.explain(compiled)(*arguments).segments
    return sum(s["device_graphs"] for s in segments), [reason for s in segments for reason in s["not_replayed"]]


def check_calls(function, make, count=None, calls=CALLS, **options):
    """Each call with new arguments gives eager's answer, also after the calls behind it. `count`: CUDA graphs at the end."""
    compiled = oxyfuel.compile(function, fullgraph=True, **options)
    all_arguments = [make() for _ in range(calls)]
    with torch.no_grad():
        results = [compiled(*arguments) for arguments in all_arguments]
        for arguments, result in zip(all_arguments, results, strict=True):
            check_close(result, function(*arguments), function(*tree_map(in_float64, arguments)))
        found, reasons = device_graphs(compiled, *make())
    assert count is None or (found, reasons) == (count, [])
    return compiled


def layers(x, w, v):
    return F.gelu(x @ w).softmax(-1) @ v + x.mean()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("rows", [1, 7, 64, 512])
def test_products(rows, dtype):
    check_calls(layers, lambda: (tensor(rows, 256, dtype=dtype), tensor(256, 512, dtype=dtype), tensor(512, 64, dtype=dtype)), 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_operators_whose_results_leave(dtype):
    def function(x, w, q):
        c = F.conv2d(x, w, padding=1)
        a = F.scaled_dot_product_attention(q, q, q)
        m = torch.mm(q[0, 0], q[0, 1].t())
        return c, a, m, c.relu(), torch.cumsum(q, 2), torch.sort(m)[0]

    check_calls(function, lambda: (tensor(2, 16, 14, 14, dtype=dtype), tensor(32, 16, 3, 3, dtype=dtype), tensor(2, 4, 64, 32, dtype=dtype)))


def test_results_are_new_tensors():
    compiled = oxyfuel.compile(lambda a, b: (a @ b, (a @ b).relu() @ b))
    with torch.no_grad():
        a, b = tensor(64, 64), tensor(64, 64)
        results = [tensors_of(compiled(a, b)) for _ in range(CALLS)]
    assert len({result.data_ptr() for pair in results for result in pair}) == 2 * CALLS


def test_inputs_that_overlap_and_lie_anywhere():
    def function(a, b):
        return a @ b + b.sum()

    for offset in (0, 64, 4, 1):
        def make(offset=offset):
            block = tensor(64 * 64 + offset)[offset:]
            return block.view(64, 64), block.view(64, 64).t()

        check_calls(function, make, calls=8)
    compiled = oxyfuel.compile(function)
    with torch.no_grad():
        for call in range(16):
            offset = (0, 64, 1, 0, 3, 128)[call % 6]
            a, b = tensor(64 * 64 + offset)[offset:].view(64, 64), tensor(64, 64)
            torch.testing.assert_close(compiled(a, b), function(a, b), atol=1e-4, rtol=1e-4)


def test_weights_that_are_written_and_weights_that_move():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.LayerNorm(128), nn.Linear(128, 8)).to(CUDA).eval()
    compiled = oxyfuel.compile(model)
    x = tensor(16, 64)
    with torch.no_grad():
        for call in range(24):
            if call % 8 == 5:
                model[0].weight.mul_(1.5)
            if call % 8 == 7:
                model[3].weight.data = tensor(8, 128)
            torch.testing.assert_close(compiled(x), model(x))


def test_sizes_that_change():
    compiled = oxyfuel.compile(layers)
    with torch.no_grad():
        for call in range(40):
            rows = (3, 9, 64, 33)[call % 4]
            arguments = tensor(rows, 256), tensor(256, 512), tensor(512, 64)
            torch.testing.assert_close(compiled(*arguments), layers(*arguments), atol=1e-4, rtol=1e-4)


class Block(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.dropout(self.attention(y, y, y, need_weights=False)[0])
        return x + self.dropout(self.down(F.gelu(self.up(self.norm(x)))))


def train(model, run, steps=12):
    torch.manual_seed(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        x = tensor(4, 16, 64)
        loss = run(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_training(dropout):
    torch.manual_seed(1)
    ours, theirs = Block(dropout).to(CUDA), Block(dropout).to(CUDA)
    theirs.load_state_dict(ours.state_dict())
    compiled = oxyfuel.compile(ours)
    assert train(ours, compiled) == pytest.approx(train(theirs, theirs), rel=1e-4)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-4, rtol=1e-3)
    found, reasons = device_graphs(compiled, tensor(4, 16, 64))
    assert (found, reasons) == (2, [])


def test_two_forward_passes_before_their_backward_passes():
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64)).to(CUDA)
    compiled = oxyfuel.compile(model)
    for _ in range(CALLS):
        inputs = [tensor(8, 64).requires_grad_() for _ in range(3)]
        outputs = [compiled(x) for x in inputs]
        for x, out in reversed(list(zip(inputs, outputs, strict=True))):
            (mine,) = torch.autograd.grad(out.square().sum(), x)
            (other,) = torch.autograd.grad(model(x).square().sum(), x)
            torch.testing.assert_close(mine, other)


def test_batch_norm_in_training():
    torch.manual_seed(1)
    make = lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)).to(CUDA)  # noqa: E731
    ours, theirs = make(), make()
    theirs.load_state_dict(ours.state_dict())
    compiled = oxyfuel.compile(ours)
    for _ in range(CALLS):
        x = tensor(4, 3, 16, 16)
        torch.testing.assert_close(compiled(x), theirs(x), atol=1e-2, rtol=1e-2)  # of TF32
    for mine, other in zip(ours.buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-3, rtol=1e-3)


def test_writes_to_inputs():
    def function(a, w):
        a.add_(a @ w)
        return a * 2

    compiled = oxyfuel.compile(function, fullgraph=True)
    with torch.no_grad():
        mine, w = tensor(32, 32), tensor(32, 32) / 8
        theirs = mine.clone()
        for _ in range(CALLS):
            torch.testing.assert_close(compiled(mine, w), function(theirs, w))
        torch.testing.assert_close(mine, theirs)


def check_random(function, *arguments, graphs=1):
    """Each call has eager's numbers, wherever the generator stands and whatever draws in between. `graphs`: that calls replay."""
    compiled = oxyfuel.compile(function, fullgraph=True)
    with torch.no_grad():
        for call in range(CALLS):
            torch.manual_seed(call // 2)
            if call % 2:
                torch.rand(5, device=CUDA)
            state = torch.cuda.get_rng_state()
            mine = compiled(*arguments)
            after = torch.cuda.get_rng_state()
            torch.cuda.set_rng_state(state)
            torch.testing.assert_close(mine, function(*arguments), rtol=1e-3, atol=1e-3)
            assert torch.equal(after, torch.cuda.get_rng_state())
        found = device_graphs(compiled, *arguments)
    assert graphs is None or found == (graphs, []), found
    return compiled


def attention(q, dropout=0.2):
    return F.scaled_dot_product_attention(q, q, q, dropout_p=dropout)


RANDOM = {
    "rand_like": lambda x, w: (x @ w) + torch.rand_like(x),
    "randn": lambda x, w: torch.randn(7, 5, device=CUDA) @ torch.randn(5, 3, device=CUDA),
    "bernoulli": lambda x, w: torch.bernoulli(torch.sigmoid(x)) @ w,
    "normal": lambda x, w: torch.normal(x, 0.5) @ w,
    "randint": lambda x, w: torch.randint_like(x, 3) @ w,
    "exponential": lambda x, w: x.clone().exponential_() @ w,
    "dropouts": lambda x, w: F.dropout(F.dropout(x @ w, 0.5) @ w, 0.1),
    "dropouts and others": lambda x, w: F.dropout(F.dropout(x, 0.3) @ w + torch.rand_like(x), 0.5) @ w + torch.randn_like(x),
    "the host's first": lambda x, w: (F.dropout(x, 0.3) @ w, torch.rand_like(x)),
    "the host's last": lambda x, w: (torch.rand_like(x) @ w, F.dropout(x, 0.3)),
    "nothing": lambda x, w: (torch.rand(0, 4, device=CUDA), x @ w, torch.rand(3, device=CUDA)),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_eagers(name):
    check_random(RANDOM[name], tensor(64, 64), tensor(64, 64))


@pytest.mark.parametrize("shape", [(2, 4, 64, 32), (1, 2, 17, 64), (3, 8, 128, 64)], ids=str)
def test_attention_with_dropout(shape):
    """In the graph together with what draws before and behind it."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def function(q):
        return attention(F.dropout(attention(F.dropout(q, 0.1) * 2), 0.3))

    q = tensor(*shape, dtype=torch.bfloat16)
    check_random(function, q)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        check_random(function, q)
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        check_random(function, q, graphs=None)


def test_random_numbers_beside_a_graph_of_the_program():
    """Both draw from one generator, in turn."""
    x, w = tensor(64, 64), tensor(64, 64)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.rand_like(x)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        noise = torch.rand_like(x)
    function = RANDOM["dropouts and others"]
    compiled = oxyfuel.compile(function, fullgraph=True)
    with torch.no_grad():
        for call in range(CALLS):
            results = []
            for run in (compiled, function):
                torch.manual_seed(call)
                graph.replay()
                first = noise.clone()
                result = run(x, w)
                graph.replay()
                results.append([first, result, noise.clone()])
            torch.testing.assert_close(*results)
        assert device_graphs(compiled, x, w) == (1, [])


def test_random_numbers_of_other_threads():
    """Others draw while calls are recorded: nobody fails."""
    failures, stop = [], threading.Event()

    def draw():
        try:
            while not stop.is_set():
                torch.rand(100, device=CUDA)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=draw) for _ in range(2)]
    for thread in threads:
        thread.start()
    x, w = tensor(64, 64), tensor(64, 64)
    with torch.no_grad():
        for name in RANDOM:
            oxyfuel.reset()
            compiled = oxyfuel.compile(RANDOM[name], fullgraph=True)
            for _ in range(CALLS):
                compiled(x, w)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_that_draw():
    """Calls of one function on several threads and streams, which draw and record at the same time."""
    compiled = oxyfuel.compile(RANDOM["dropouts and others"], fullgraph=True)
    failures = []

    def work():
        try:
            x, w = tensor(64, 64), tensor(64, 64)
            with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(20):
                    assert compiled(x, w).isfinite().all()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    torch.rand(5, device=CUDA)


def test_streams():
    compiled = oxyfuel.compile(layers)
    arguments = tensor(64, 256), tensor(256, 512), tensor(512, 64)
    streams = [torch.cuda.Stream() for _ in range(3)]
    with torch.no_grad():
        expected = layers(*arguments)
        torch.cuda.synchronize()
        results = []
        for call in range(36):
            with torch.cuda.stream(streams[call % 3]):
                results.append(compiled(*arguments))
        torch.cuda.synchronize()
    for result in results:
        torch.testing.assert_close(result, expected)


def test_threads():
    compiled = oxyfuel.compile(layers)
    failures = []

    def work(seed):
        try:
            generator = torch.Generator(CUDA).manual_seed(seed)
            with torch.no_grad():
                for _ in range(30):
                    arguments = [torch.randn(sizes, device=CUDA, generator=generator) for sizes in ((64, 256), (256, 512), (512, 64))]
                    torch.testing.assert_close(compiled(*arguments), layers(*arguments))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_program_that_records_the_call_itself():
    compiled = oxyfuel.compile(layers)
    arguments = tensor(64, 256), tensor(256, 512), tensor(512, 64)
    with torch.no_grad():
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(4):
                compiled(*arguments)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = compiled(*arguments)
        for argument in arguments:
            argument.normal_()
        graph.replay()
        torch.testing.assert_close(result, layers(*arguments))


calls_of_operator = []


@torch.library.custom_op("oxyfuel_gpu_tests::noted", mutates_args=())
def noted(x: torch.Tensor) -> torch.Tensor:
    calls_of_operator.append(x.shape)
    return x * 2


@noted.register_fake
def _(x):
    return torch.empty_like(x)


def test_operators_of_the_program_are_called_each_time():
    compiled = oxyfuel.compile(lambda a, b: noted(a @ b) @ b)
    calls_of_operator.clear()
    with torch.no_grad():
        for _ in range(CALLS):
            a, b = tensor(32, 32), tensor(32, 32)
            torch.testing.assert_close(compiled(a, b), (a @ b * 2) @ b)
    assert len(calls_of_operator) == CALLS


def test_options():
    make = lambda: (tensor(64, 256), tensor(256, 512), tensor(512, 64))  # noqa: E731
    check_calls(layers, make, 0, options={"graphs": False})
    check_calls(layers, make, 1, calls=1, mode="reduce-overhead")
    check_calls(layers, make, 0, mode="max-autotune-no-cudagraphs")


def test_results_that_operators_return_and_later_ones_read():
    """Sorts return memory of their own, which some later graph reads."""

    def many(x, w):
        a = torch.sort(x @ w, dim=-1).values
        b = torch.cumsum(a, 0)
        noise = noted(b) * 0  # cuts the plan into several graphs
        c = torch.sort(b + noise, dim=0).indices
        return a, c, torch.sort(a @ w.t() + noise.sum(), dim=-1).values, b.sum()

    check_calls(many, lambda: (tensor(64, 32), tensor(32, 48)))
