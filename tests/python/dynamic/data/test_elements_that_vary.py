"""Elements of small integer tensors that change from call to call, where the program needs to know about them: they are
symbols, read when the call begins. And small tensors that are made of sizes."""

import pytest
import torch
from size_checks import same

import oxyfuel


def compared(function, calls, compilations=None, whole=True, **options):
    """All calls give eager's answer."""
    oxyfuel.reset()
    before = oxyfuel.metrics()
    compiled = oxyfuel.compile(function, **options)
    for make in calls:
        expected = result_of(function, make())
        same(result_of(compiled, make()), expected)
    metrics = oxyfuel.metrics()
    breaks = [record["reason"] for record in metrics["breaks"][len(before["breaks"]) :]]
    assert not (whole and breaks), breaks
    if compilations is not None:
        assert metrics["graphs"] - before["graphs"] == compilations, metrics["recompile_reasons"]


def result_of(function, arguments):
    torch.manual_seed(3)
    try:
        return function(*arguments), arguments
    except Exception as error:
        return type(error), str(error).splitlines()[0]


def images(*grids):
    grid = torch.tensor(grids)
    return torch.randn(int(grid.prod(-1).sum()), 6, generator=torch.Generator().manual_seed(0)), grid


def positions(grid, merge=2):
    """As vision models number patches, in blocks of neighbours."""
    parts = []
    for t, h, w in grid.tolist():
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        blocks = (h // merge, merge, w // merge, merge)
        both = [each.reshape(blocks).transpose(1, 2).flatten() for each in (rows, columns)]
        parts.append(torch.stack(both, -1).repeat(t, 1))
    return torch.cat(parts)


def attention(x, grid):
    """Each frame for itself."""
    x = x + positions(grid).sum(-1, keepdim=True)
    lengths = torch.repeat_interleave(grid[:, 1] * grid[:, 2], grid[:, 0])
    bounds = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0), value=0)
    parts = x.split((bounds[1:] - bounds[:-1]).tolist())
    return torch.cat([torch.softmax(part @ part.T, -1) @ part for part in parts]), bounds


def test_one_graph_for_all_grids():
    grids = [(4, 4), (6, 8), (10, 4), (4, 12), (12, 12)]
    calls = [lambda h=h, w=w: images((1, h, w)) for h, w in grids]
    compared(attention, calls, compilations=2, fullgraph=True)


def test_another_number_of_images_or_frames_is_another_graph():
    grids = [[(1, 4, 4)] * 2, [(1, 6, 8), (1, 4, 4)], [(1, 4, 6)] * 3, [(2, 4, 6), (1, 4, 4)], [(2, 8, 6), (1, 6, 6)]]
    compared(attention, [lambda grid=grid: images(*grid) for grid in grids], compilations=4)


def test_gradients():
    weight = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)

    def step(x, grid):
        return attention(x @ weight, grid)[0].square().mean()

    compiled = oxyfuel.compile(step)
    for grid in [(1, 4, 4)], [(1, 6, 4)], [(1, 8, 10)], [(1, 4, 6)]:
        gradients = []
        for function in (step, compiled):
            x, sizes = images(*grid)
            function(x.double(), sizes).backward()
            gradients.append(weight.grad)
            weight.grad = None
        torch.testing.assert_close(*gradients)


def branch(x, n):
    first, last = n.tolist()
    if first * 2 > last:
        return x[:first] * last, n + 1
    return x[:last] + first, n - 1


def test_branches_are_guards():
    values = [(1, 2), (3, 4), (4, 5), (5, 7), (1, 9), (2, 8), (3, 6), (7, 8)]
    calls = [lambda v=v: (torch.arange(12.0), torch.tensor(v)) for v in values]
    compared(branch, calls)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_types(dtype):
    def f(x, n):
        a, b = (n * n + n).tolist()
        if a > b:
            return x * a
        return x + (n.sum().item() // 3) - (n % 5).amax().item()

    values = [(1, 2), (3, 4), (11, 9), (12, 15), (7, 15), (15, 3)]  # 15 * 16 does not fit in int8
    compared(f, [lambda v=v: (torch.arange(4.0), torch.tensor(v, dtype=dtype)) for v in values])


def test_layouts_of_what_is_read():
    def f(x, n):
        a, b, c = n[:, 1].tolist()
        return x[a:b] * c if b > c else x[:c]

    def make(values):
        whole = torch.tensor([[9, v] for v in values]).repeat_interleave(2, 0)
        return torch.arange(20.0), whole[::2]

    compared(f, [lambda v=v: make(v) for v in [(1, 5, 2), (2, 6, 3), (3, 8, 4), (1, 2, 9)]])


NEGATIVE = {
    "floor division": lambda n, m: n // m,
    "floor division of tensors": lambda n, m: torch.div(n, m, rounding_mode="floor"),
    "division towards zero": lambda n, m: torch.div(n, m, rounding_mode="trunc"),
    "remainder": lambda n, m: n % m,
    "negation": lambda n, m: -n + m,
    "reversed": lambda n, m: 10 - n * m,
    "extremes": lambda n, m: torch.maximum(n, m) - torch.minimum(n, m) + torch.cat([n, m]).amax(),
    "sums": lambda n, m: torch.stack([n, m]).sum(0) - torch.stack([n, m]).prod(0),
    "rounded quotients": lambda n, m: torch.ceil((n + m) / 3 + 1).long() + torch.floor(n / 4).int() + (n.double() / 7).ceil().long(),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_calculations(name):
    def f(x, n, m):
        return [x * v if v > 3 else x + v for v in NEGATIVE[name](n, m).tolist()]

    values = [((7, 9), (2, 3)), ((8, 9), (2, 5)), ((-7, 5), (2, -3)), ((-8, -5), (-2, 3)), ((1, 0), (4, 4)), ((12, 7), (3, 2))]
    calls = [lambda v=v: (torch.ones(2), torch.tensor(v[0]), torch.tensor(v[1])) for v in values]
    compared(f, calls)


COMPARISONS = {
    "of elements": lambda n: n[0] < n[1],
    "of numbers": lambda n: n[0] >= 4,
    "of all": lambda n: (n > 2).all(),
    "of any": lambda n: (n == 4).any().item(),
    "any of integers": lambda n: (n - 3).clamp(max=0).any(),
    "each": lambda n: all((n != 3).tolist()),
    "with floats": lambda n: n[0] * 2 <= 7.5,
    "sums of truths": lambda n: (n > 2).sum() == 2,
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name):
    def f(x, n):
        return x[: n.tolist()[0]] + 1 if COMPARISONS[name](n) else x - n

    values = [(1, 2), (3, 4), (5, 4), (4, 4), (2, 1), (3, 9), (0, 7)]
    whole = name not in ("any of integers", "with floats")
    compared(f, [lambda v=v: (torch.ones(2), torch.tensor(v)) for v in values], whole=whole)


def test_results_that_do_not_fit():
    def f(x, n):
        return x + 1 if (n * n).sum().item() > 0 else x - 1

    values = [3, 5, 46341, 65536, 1 << 30, -(1 << 31)]
    compared(f, [lambda v=v: (torch.ones(2), torch.tensor([v], dtype=torch.int32)) for v in values], whole=False)
    values = [3, 5, 1 << 31, 1 << 32, (1 << 63) - 1, -(1 << 63)]
    compared(f, [lambda v=v: (torch.ones(2), torch.tensor([v])) for v in values], whole=False)


def test_what_is_written_before_it_is_read():
    def own(x, n):
        n.add_(1)
        return x[: n.item()] if n > 3 else x

    def other(x, n, m):
        m.mul_(2)
        return x[: n.item()] if n.item() > 3 else x * m

    def later(x, n):
        first = n.item()
        n.add_(first)
        return (x[:first] if first > 3 else x), n.item()

    values = [2, 3, 4, 5, 6]
    compared(own, [lambda v=v: (torch.arange(20.0), torch.tensor(v)) for v in values], whole=False)
    compared(later, [lambda v=v: (torch.arange(20.0), torch.tensor(v)) for v in values], whole=False)

    def aliased(v):
        n = torch.tensor([v])
        return torch.arange(20.0), n[0], n

    compared(other, [lambda v=v: aliased(v) for v in values], whole=False)


def test_behind_a_break():
    def f(x, n):
        x = x + 1
        n = n * 2
        print(end="")
        return x[: n.tolist()[0]] * 2 if n.sum() > 4 else x

    compared(f, [lambda v=v: (torch.arange(20.0), torch.tensor(v)) for v in [(1, 1), (2, 3), (4, 2), (3, 3), (1, 0)]], whole=False)


def test_many_answers_end_in_breaks():
    def f(x, n):
        return [x * v for v in range(n.item())]

    compared(f, [lambda v=v: (torch.ones(2), torch.tensor(v)) for v in [*range(12), 3, 11, 2]], whole=False)


def test_never_dynamic():
    def f(x, n):
        return x[: n.item()] if n.item() > 3 else x * 2

    compared(f, [lambda v=v: (torch.arange(20.0), torch.tensor(v)) for v in [2, 4, 5, 2]], whole=False, dynamic=False)


class Padded(torch.nn.Module):
    """Sounds are padded so that whole frames fill them: how much is calculated with tensors."""

    def __init__(self, kernel, stride, reflects):
        super().__init__()
        self.reflects = reflects
        self.convolution = torch.nn.Conv1d(1, 2, kernel, stride)
        self.register_buffer("kernel", torch.tensor(kernel), persistent=False)
        self.register_buffer("stride", torch.tensor(stride), persistent=False)

    def forward(self, x):
        total = self.kernel - self.stride
        frames = torch.ceil((x.shape[-1] - self.kernel + total) / self.stride + 1).to(torch.int64) - 1
        extra = frames * self.stride + self.kernel - total - x.shape[-1]
        if self.reflects and x.shape[-1] > max(total, extra):
            return self.convolution(torch.nn.functional.pad(x, (total, extra), mode="reflect"))
        return self.convolution(torch.nn.functional.pad(x, (total, extra)))


@pytest.mark.parametrize("reflects", [False, True])
@pytest.mark.parametrize("kernel,stride", [(4, 3), (7, 1), (1, 1), (5, 5)])
def test_padding_to_whole_frames(kernel, stride, reflects):
    model = Padded(kernel, stride, reflects)
    with torch.no_grad():
        calls = [lambda n=n: (torch.arange(2.0 * n).view(2, 1, n),) for n in (21, 22, 23, 24, 40, 41, 999)]
        compared(model, calls, compilations=None if reflects else 2)


def test_sizes_from_tensors_of_sizes():
    def f(x):
        rows = torch.div(x.size(1), 4, rounding_mode="trunc")
        count = torch.div(torch.div(x.size(1), 2, rounding_mode="floor"), 2, rounding_mode="trunc") * 2 - 1
        return x.view(x.size(0), rows, 4) * 2, x.new_zeros(x.size(0), count)

    compared(f, [lambda n=n: (torch.ones(3, n),) for n in (8, 12, 16, 40)], compilations=2, fullgraph=True)


def test_padding_by_data():
    convolution = torch.nn.Conv1d(1, 2, 3)

    def f(x, n):
        return convolution(torch.nn.functional.pad(x, (0, (x > n).sum().item())))

    with torch.no_grad():
        compared(f, [lambda n=n: (torch.arange(2.0 * n).view(2, 1, n), torch.tensor(5.5)) for n in (6, 8, 11, 20)])


def test_sizes_of_images_that_only_data_tell():
    def f(x, mask):
        h, w = mask.sum(0).amax(), mask.sum(1).amax()
        x = torch.nn.functional.interpolate(x, size=(h, w), mode="bilinear", align_corners=True)
        return torch.nn.functional.pad(x, (0, mask.size(1) - w, 0, mask.size(0) - h))

    def make(h, w):
        mask = torch.zeros(10, 12, dtype=torch.int64)
        mask[:h, :w] = 1
        return torch.randn(1, 2, 5, 5, generator=torch.Generator().manual_seed(1)), mask

    compared(f, [lambda s=s: make(*s) for s in [(4, 5), (6, 6), (10, 12), (1, 1)]], dynamic=True)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_elements_that_only_a_refused_operand_needs(dtype):
    """A branch that eager refuses is no graph in any way, so the captures are repeated with the elements as symbols. Those of
    each type can be read when a call begins."""

    def f(mask):
        alive = mask.all(0, keepdim=True)
        return alive + 1 if (alive > 0).any() else alive.bool() - True

    compared(f, [lambda e=e: (torch.tensor([e]).to(dtype),) for e in ([1, 0], [0, 0], [1, 1], [0, 0])], whole=False)
