"""Regions with tensors on several GPUs: model parallel programs, other devices than the current one, contexts of devices."""

import pytest
import torch
import torch.nn.functional as F
from comparison import check_close

import oxyfuel

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")

FIRST, SECOND = torch.device("cuda", 0), torch.device("cuda", 1)
CALLS = 5


def run(program, *arguments, calls=CALLS, graphs=1):
    """The program is compiled whole, and every call of it gives eager's results on eager's devices."""
    compiled = oxyfuel.compile(program, fullgraph=True)
    for _ in range(calls):
        before = torch.cuda.current_device()
        for ours, eager in zip(results_of(compiled(*arguments)), results_of(program(*arguments)), strict=True):
            assert ours.device == eager.device and ours.stride() == eager.stride()
            torch.testing.assert_close(ours, eager)
        assert torch.cuda.current_device() == before
    metrics = oxyfuel.metrics()
    assert metrics["calls_eager"] == 0 and metrics["calls_compiled"] == calls and metrics["graphs"] == graphs, metrics
    return compiled


def results_of(value):
    return value if isinstance(value, (tuple, list)) else (value,)


def two_halves(x, a, b):
    y = torch.relu(x @ a) * 2
    return (y.to(SECOND) @ b).softmax(-1)


def there_and_back(x, a, b):
    y = (x.sin() * 2).to(SECOND)
    z = (y @ b).exp() + y
    return z.to(FIRST) * x + 1, z.sum(0)


def both_at_once(x, a, b):
    return (x.sin() + 1).sum(-1), (b.sin() + 1).sum(-1), x.cos(), b.cos()


def numbers_of_the_host(x, a, b):
    n = torch.tensor(2.5)
    return x * n, b * n


def made_there(x, a, b):
    y = torch.arange(4.0, device="cuda:1") * b
    return y, torch.zeros_like(y).to(x.device) + torch.ones(4, 4, device="cuda:0")


def written(x, a, b):
    y = torch.zeros(3, 4, device=SECOND)
    y[0].copy_(x[0])
    y[1] = b[0]
    y += b[1]
    return y


PROGRAMS = [two_halves, there_and_back, both_at_once, numbers_of_the_host, made_there, written]


@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program, current):
    x, a, b = torch.randn(3, 4, device=FIRST), torch.randn(4, 4, device=FIRST), torch.randn(4, 4, device=SECOND)
    with torch.cuda.device(current):
        run(program, x, a, b)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_symbols(program):
    compiled = oxyfuel.compile(program, fullgraph=True, dynamic=True)
    a, b = torch.randn(4, 4, device=FIRST), torch.randn(4, 4, device=SECOND)
    for rows in (3, 3, 5, 6) if program is not made_there and program is not written else (3, 3):
        x = torch.randn(rows, 4, device=FIRST)
        for ours, eager in zip(results_of(compiled(x, a, b)), results_of(program(x, a, b)), strict=True):
            torch.testing.assert_close(ours, eager)
    assert oxyfuel.metrics()["calls_eager"] == 0


class Parallel(torch.nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.first = torch.nn.Sequential(
            torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Dropout(dropout)
        ).to(FIRST)
        self.second = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).to(SECOND)

    def forward(self, x):
        return self.second(self.first(x).to(SECOND))


@pytest.mark.parametrize("current", [0, 1])
def test_inference_of_a_parallel_model(current):
    model, x = Parallel().eval(), torch.randn(5, 16, device=FIRST)
    with torch.cuda.device(current), torch.no_grad():
        run(model, x)


@pytest.mark.parametrize("dropout", [0.0, 0.25])
@pytest.mark.parametrize("current", [0, 1])
def test_training_of_a_parallel_model(current, dropout):
    def step(model, x, y):
        return F.cross_entropy(model(x), y)

    outcomes = []
    with torch.cuda.device(current):
        for function in (step, oxyfuel.compile(step, fullgraph=True)):
            torch.manual_seed(0)
            model = Parallel(dropout)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            losses = []
            for _ in range(CALLS):
                x, y = torch.randn(5, 16, device=FIRST), torch.randint(8, (5,), device=SECOND)
                optimizer.zero_grad()
                loss = function(model, x, y)
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
            outcomes.append([*losses, *(p.detach() for p in model.parameters())])
    for eager, ours in zip(*outcomes, strict=True):
        assert ours.device == eager.device
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)
    metrics = oxyfuel.metrics()
    assert metrics["calls_eager"] == 0 and metrics["calls_compiled"] == CALLS, metrics["breaks"]


def test_a_whole_training_step():
    def step(model, optimizer, x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    outcomes = []
    for function in (step, oxyfuel.compile(step)):
        torch.manual_seed(0)
        model = Parallel()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        losses = []
        for _ in range(CALLS):
            x, y = torch.randn(5, 16, device=FIRST), torch.randint(8, (5,), device=SECOND)
            losses.append(function(model, optimizer, x, y))
        outcomes.append([*losses, *(p.detach() for p in model.parameters())])
    for eager, ours in zip(*outcomes, strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)


def seven(x, w):
    y = F.layer_norm((x @ w).relu() + x, (16,))
    return y.softmax(-1), F.dropout(y, 0.5, training=False).sum(0)


def test_all_on_the_other_device():
    """The current device is the first one. CUDA graphs are recorded on the second."""
    x, w = torch.randn(8, 16, device=SECOND), torch.randn(16, 16, device=SECOND)
    compiled = run(seven, x, w)
    explanation = oxyfuel.explain(compiled)(x, w)
    assert sum(segment["device_graphs"] for segment in explanation.segments) >= 1, explanation
    for _ in range(3):
        x, w = torch.randn(8, 16, device=SECOND), torch.randn(16, 16, device=SECOND)
        check_close(compiled(x, w), seven(x, w), seven(x.double(), w.double()))


def test_dropout_on_the_other_device():
    def program(x):
        return F.dropout(x.sin(), 0.5) * 2

    compiled = oxyfuel.compile(program, fullgraph=True)
    x = torch.randn(64, 65, device=SECOND)
    for seed in range(CALLS):
        results = []
        for function in (compiled, program):
            torch.cuda.manual_seed_all(seed)
            results.append((function(x), torch.cuda.get_rng_state(0), torch.cuda.get_rng_state(1)))
        for ours, eager in zip(*results):
            assert torch.equal(ours, eager)
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_training_on_the_other_device():
    def program(x, w):
        return (x @ w).tanh().square().sum()

    compiled = oxyfuel.compile(program, fullgraph=True)
    for _ in range(CALLS):
        x, gradients = torch.randn(8, 16, device=SECOND), []
        data = torch.randn(16, 16, device=SECOND)
        for function in (compiled, program):
            w = data.clone().requires_grad_()
            function(x, w).backward()
            gradients.append(w.grad)
        torch.testing.assert_close(*gradients)
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_the_device_is_guarded():
    def program(x):
        return (x.sin() + 1).sum(-1)

    compiled = oxyfuel.compile(program, fullgraph=True)
    for _ in range(CALLS):
        for device in (FIRST, SECOND):
            x = torch.randn(6, 7, device=device)
            result = compiled(x)
            assert result.device == device
            torch.testing.assert_close(result, program(x))
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] == 2 and metrics["recompiles"] == 1 and "device" in metrics["recompile_reasons"][0]


def test_the_current_device_is_guarded():
    def program(x):
        return torch.ones(3, device="cuda") + x.to("cuda")

    compiled = oxyfuel.compile(program, fullgraph=True)
    for _ in range(3):
        for current in (0, 1):
            with torch.cuda.device(current):
                result = compiled(torch.zeros(3))
                assert result.device.index == current and torch.equal(result, torch.ones_like(result))


def test_contexts_of_devices():
    def program(x):
        y = torch.ones(4, device="cuda")
        with torch.cuda.device(1):
            z = torch.ones(4, device="cuda") * 2
            inside = torch.cuda.current_device()
            w = x.to("cuda") + z
        return y + x, w, torch.full((2,), inside, device="cuda"), torch.zeros(2, device="cuda") + torch.cuda.current_device()

    run(program, torch.randn(4, device=FIRST))


def test_a_break_within_a_context():
    seen = []

    def program(x):
        with torch.cuda.device(1):
            y = torch.ones(4, device="cuda") * 2
            seen.append(str(y.sum().item()))
            z = torch.ones(4, device="cuda") + x.to("cuda") * y
            seen.append(torch.cuda.current_device())
        return y, z, torch.ones(4, device="cuda") + x

    compiled, x = oxyfuel.compile(program), torch.randn(4, device=FIRST)
    for _ in range(CALLS):
        for ours, eager in zip(compiled(x), program(x), strict=True):
            assert ours.device == eager.device
            torch.testing.assert_close(ours, eager)
        assert seen == ["8.0", 1, "8.0", 1]
        seen.clear()
        assert torch.cuda.current_device() == 0


def test_set_device():
    def program(x):
        torch.cuda.set_device(1)
        return x.to("cuda") + torch.ones(4, device="cuda")

    compiled, x = oxyfuel.compile(program, fullgraph=True), torch.randn(4)
    for _ in range(3):
        try:
            torch.cuda.set_device(0)
            result = compiled(x)
            assert result.device == SECOND and torch.cuda.current_device() == 1
            torch.testing.assert_close(result.cpu(), x + 1)
        finally:
            torch.cuda.set_device(0)
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_why_there_is_no_cuda_graph():
    x, a, b = torch.randn(3, 4, device=FIRST), torch.randn(4, 4, device=FIRST), torch.randn(4, 4, device=SECOND)
    compiled = run(two_halves, x, a, b)
    explanation = oxyfuel.explain(compiled)(x, a, b)
    assert sum(segment["device_graphs"] for segment in explanation.segments) == 0
    assert "cuda:0 and cuda:1" in str(explanation)


def test_streams():
    """Work goes to the current stream of each device, in inference."""
    x, a, b = torch.randn(512, 512, device=FIRST), torch.randn(512, 512, device=FIRST), torch.randn(512, 512, device=SECOND)
    compiled = oxyfuel.compile(two_halves, fullgraph=True)
    streams = torch.cuda.Stream(FIRST), torch.cuda.Stream(SECOND)
    for _ in range(CALLS):
        torch.cuda.synchronize(FIRST), torch.cuda.synchronize(SECOND)
        with torch.cuda.stream(streams[0]), torch.cuda.stream(streams[1]):
            ours = compiled(x, a, b)
        for stream in streams:
            stream.synchronize()
        torch.testing.assert_close(ours, two_halves(x, a, b))
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_training_on_other_streams_is_left_to_eager():
    compiled = oxyfuel.compile(lambda x, a, b: two_halves(x, a, b).sum(), fullgraph=True)
    x, a = torch.randn(3, 4, device=FIRST), torch.randn(4, 4, device=FIRST, requires_grad=True)
    b = torch.randn(4, 4, device=SECOND)
    (expected,) = torch.autograd.grad(two_halves(x, a, b).square().sum(), a)
    stream = torch.cuda.Stream(SECOND)
    compiled_squares = oxyfuel.compile(lambda x, a, b: two_halves(x, a, b).square().sum(), fullgraph=True)
    with torch.cuda.stream(stream):
        (ours,) = torch.autograd.grad(compiled_squares(x, a, b), a)
    torch.cuda.synchronize(SECOND)
    torch.testing.assert_close(ours, expected)


def test_tensors_that_do_not_match_raise_as_in_eager():
    def program(x, y):
        return x.sin() + y

    compiled = oxyfuel.compile(program)
    x, y = torch.randn(3, 4, device=FIRST), torch.randn(3, 4, device=SECOND)
    with pytest.raises(RuntimeError) as eager:
        program(x, y)
    with pytest.raises(RuntimeError) as ours:
        compiled(x, y)
    assert str(ours.value) == str(eager.value)


def test_writes_to_arguments_on_both():
    def program(x, y):
        x.mul_(2)
        y.add_(x.to(SECOND))
        return x.sum(), y.sum()

    compiled = oxyfuel.compile(program, fullgraph=True)
    x, y = torch.randn(3, 4, device=FIRST), torch.randn(3, 4, device=SECOND)
    for _ in range(CALLS):
        ours, eager = (x.clone(), y.clone()), (x.clone(), y.clone())
        torch.testing.assert_close(compiled(*ours), program(*eager))
        torch.testing.assert_close(ours, eager)
    assert oxyfuel.metrics()["calls_eager"] == 0


def test_threads_with_other_current_devices():
    import threading

    compiled = oxyfuel.compile(two_halves, fullgraph=True)
    x, a, b = torch.randn(3, 4, device=FIRST), torch.randn(4, 4, device=FIRST), torch.randn(4, 4, device=SECOND)
    expected, errors = two_halves(x, a, b), []

    def work(index):
        try:
            torch.cuda.set_device(index)
            for _ in range(50):
                torch.testing.assert_close(compiled(x, a, b), expected)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k % 2,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
