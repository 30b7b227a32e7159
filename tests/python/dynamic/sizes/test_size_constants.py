"""What depends on sizes alone is computed once for a set of sizes: masks, positions, tables of frozen weights."""

import pytest
import torch
import torch.nn.functional as F

import oxyfuel
from size_checks import compiles, in_threads, same


def causal(x):
    n = x.size(0)
    mask = torch.arange(n)[:, None] >= torch.arange(n)[None, :]
    return (x @ x.t()).masked_fill(~mask, float("-inf")).softmax(-1)


def counted(x):
    steps = torch.ones(x.size(0), dtype=torch.int64).cumsum(0)
    return x * steps[:, None] + torch.arange(x.size(1)).flip(0).sqrt()


def returned(x):
    table = torch.arange(x.size(0)).sin()
    return x + table[:, None], table, table[1:]


def returned_twice(x):
    table = torch.arange(x.size(0)).cumsum(0)
    return table, table, x * table[:, None]


def viewed(x):
    table = torch.arange(x.size(0) * 2).cos()
    return x * table[: x.size(0), None], table.view(2, -1), table.view(2, -1)[1]


def written(x):
    table = torch.arange(x.size(0)).exp()
    y = x * table[:, None]
    table += 1
    return y, x.mul_(table[:, None])


def written_to_an_input(x):
    table = torch.arange(x.size(0)).cos()[:, None].expand(x.shape)
    x.copy_(table)
    return x * table


def of_a_size_as_a_number(x):
    return x * torch.full((3,), x.size(0)).sin().sum()


PROGRAMS = [causal, counted, returned, returned_twice, viewed, written, written_to_an_input, of_a_size_as_a_number]


@pytest.mark.parametrize("program", PROGRAMS)
def test_sizes_come_and_go(program):
    compiled = oxyfuel.compile(program, dynamic=True)
    sizes = [(5, 6), (7, 3), (5, 6), (2, 9), (7, 3), *((n, 4) for n in range(2, 20)), (5, 6), (3, 4), (19, 4), (7, 3)]
    with torch.no_grad():
        compiled(torch.randn(4, 5))

        def calls():
            for size in sizes:
                x = torch.randn(size)
                ours, expected = x.clone(), x.clone()
                same(compiled(ours), program(expected))
                same(ours, expected)

        assert compiles(calls) == 0


@pytest.mark.parametrize("program", [returned, returned_twice, viewed])
def test_results_are_the_callers(program):
    """What a caller writes to a result is not in the next one."""
    compiled = oxyfuel.compile(program, dynamic=True)
    with torch.no_grad():
        for size in [4, 5, 6, 7, 8, 4, 5, 6, 7, 8]:
            x = torch.randn(size, 3)
            expected = program(x)
            for _ in range(3):
                results = compiled(x)
                same(results, expected)
                for result in results:
                    result.fill_(-1)


def test_random_numbers_are_drawn_at_each_call():
    def program(x):
        noise = torch.rand(x.size(0)) * torch.arange(x.size(0)).sqrt()
        return x + noise[:, None], F.dropout(torch.ones(x.size(0)).cumsum(0), 0.5)

    compiled = oxyfuel.compile(program, dynamic=True)
    with torch.no_grad():
        for size in [5, 6, 5, 6, 7, 5]:
            x = torch.zeros(size, 2)
            for seed in range(3):
                torch.manual_seed(seed)
                ours = compiled(x)
                torch.manual_seed(seed)
                same(ours, program(x))


def test_uninitialised_memory_is_not_kept():
    def program(x):
        buffer = torch.empty(x.size(0))
        buffer.fill_(2.0)
        return x.t() * buffer.cumsum(0)

    compiled = oxyfuel.compile(program, dynamic=True)
    for size in [4, 5, 6, 4]:
        x = torch.randn(size, 3)
        same(compiled(x), program(x))


class Rotary(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", torch.rand(4))

    def forward(self, x):
        angles = torch.arange(x.size(1))[:, None] * self.frequencies
        return torch.cat([x[..., :4] * angles.cos(), x[..., 4:] * angles.sin()], -1)


def test_a_table_of_a_frozen_weight():
    model = Rotary()
    compiled = oxyfuel.compile(model, dynamic=True)
    with torch.no_grad():
        for length in [5, 6, 7, 8, 9, 5, 6]:
            x = torch.randn(2, length, 8)
            same(compiled(x), model(x))
        model.frequencies.mul_(2)  # it is no constant any more
        for length in [5, 6, 10]:
            x = torch.randn(2, length, 8)
            same(compiled(x), model(x))


def test_weights_that_are_trained():
    model = torch.nn.Sequential(Rotary(), torch.nn.Linear(8, 8))
    model.register_parameter("scale", torch.nn.Parameter(torch.rand(64)))

    def program(x):
        table = torch.arange(x.size(1)).sin() * model.scale[: x.size(1)]
        return (model(x) * table[:, None]).square().mean()

    compiled = oxyfuel.compile(program, dynamic=True)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    for length in [5, 6, 7, 8, 9, 5, 6]:
        x = torch.randn(2, length, 8)
        for run in (program, compiled):
            model.zero_grad()
            loss = run(x)
            loss.backward()
            found = [loss.detach(), *(p.grad.clone() for p in model.parameters())]
            if run is program:
                expected = found
        same(found, expected)
        optimiser.step()


def test_masks_that_a_backward_pass_needs():
    def program(x):
        return causal(x).square().sum()

    compiled = oxyfuel.compile(program, dynamic=True)
    for size in [4, 5, 6, 7, 8, 4, 6]:
        x = torch.randn(size, 3)
        gradients = []
        for run in (program, compiled):
            given = x.clone().requires_grad_()
            run(given).backward()
            gradients.append(given.grad)
        same(*gradients)


def test_in_and_out_of_inference_mode():
    compiled = oxyfuel.compile(counted, dynamic=True)
    for size in [4, 5, 6, 7, 8, 4, 5]:
        x = torch.randn(size, 3)
        with torch.inference_mode(size % 2 == 0), torch.no_grad():
            ours = compiled(x.clone())
        same(ours, counted(x))
        given = torch.randn(size, 3, requires_grad=True)
        compiled(given).sum().backward()
        same(given.grad, counted(torch.ones(size, 3, dtype=torch.float32)) - torch.arange(3).flip(0).sqrt())


def test_in_threads():
    compiled = oxyfuel.compile(counted, dynamic=True)
    compiled(torch.randn(3, 4))

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for k in range(60):
            x = torch.randn((k * (seed + 3)) % 23 + 1, 4, generator=generator)
            with torch.no_grad():
                same(compiled(x), counted(x))

    in_threads(4, work)


def test_sizes_that_data_decide():
    def program(x):
        kept = x[x > 0]
        return kept * torch.arange(kept.size(0)).sin()

    compiled = oxyfuel.compile(program, fullgraph=True)
    for size in [4, 9, 5, 16, 4, 9, 30]:
        x = torch.randn(size)
        same(compiled(x), program(x))


def test_an_index_that_a_table_does_not_have():
    table = torch.nn.Embedding(8, 3)
    compiled = oxyfuel.compile(lambda x: x + table(torch.arange(x.size(0))), dynamic=True)
    with torch.no_grad():
        for size in [4, 5, 6, 7, 8, 9, 6]:
            x = torch.randn(size, 3)
            if size > 8:
                with pytest.raises(IndexError):
                    compiled(x)
            else:
                same(compiled(x), x + table(torch.arange(size)))


def test_a_first_call_waits_for_no_kernel_of_a_mask():
    def program(x):
        return x * 2 + torch.arange(x.size(0)).cumsum(0)[:, None].sin()

    compiled = oxyfuel.compile(program, dynamic=True)
    with torch.no_grad():
        counts = []
        for size in [3, 3, 4, 5, 6, 7]:
            before = oxyfuel.metrics()["kernels"]
            compiled(torch.randn(size, 2))
            counts.append(oxyfuel.metrics()["kernels"] - before)
    assert counts[:3] == [1, 0, 0]
    assert counts[3] > 0 and counts[4:] == [0, 0]  # sizes that go on changing get kernels
