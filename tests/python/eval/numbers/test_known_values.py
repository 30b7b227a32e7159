"""Small integer tensors that decide what is done: their elements are known while capturing, and guarded."""

import pytest
import torch

import oxyfuel
from eager_comparison import outcome, program


def calls(compile, function, inputs):
    f = compile(function)
    return [outcome(f, torch.arange(24.0).reshape(2, 12), *given) for given in inputs]


GRIDS = [torch.tensor(grid) for grid in ([[1, 2, 3]], [[1, 2, 3]], [[2, 2, 2]], [[1, 2, 3]], [[3, 1, 1]])]


@program(whole=False)
def test_sizes_from_a_grid(compile):
    def f(x, grid):
        parts = []
        for t, h, w in grid.tolist():
            parts.append(x[:, : t * h * w].reshape(-1, t, h, w).sum())
        for t, h, w in grid:
            parts.append(x[:t, : h * w].expand(2 if t == 1 else t, -1))
        sizes = (grid[:, 1] * grid[:, 2]).max().item()
        return parts, x[:, :sizes], torch.linspace(0, 1, int(grid[0, 1])), range(grid[0, 2])

    return calls(compile, f, [(grid,) for grid in GRIDS])


@program(whole=True)
def test_shapes_that_depend_on_elements(compile):
    def f(x, lengths):
        starts = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        rows = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        return x[:, : len(rows)] * rows, starts, lengths.nonzero(), lengths[lengths > 2], torch.unique(lengths), lengths.max() > 3

    return calls(compile, f, [(torch.tensor(lengths),) for lengths in ([3, 1, 4], [3, 1, 4], [1, 1, 1], [0, 2], [3, 1, 4])])


@program(whole=False)
def test_branches(compile):
    def f(x, mask, n):
        if mask.all():
            x = x + 1
        if mask.any() and not bool(mask[0]):
            x = x * 2
        if n.item() > 9:
            raise ValueError(f"{n.item()} is too large")
        while n > 0:
            x, n = x - n, n // 2
        return x, n, [x] * n

    masks = [torch.tensor(m) for m in ([True, True], [True, True], [False, True], [False, False])]
    return calls(compile, f, [(mask, torch.tensor(n)) for mask in masks for n in (3, 3, 5, 11, 0)])


@program(whole=True)
def test_what_is_written_to_is_not_known(compile):
    def f(x, n):
        first = n.item()
        n.add_(1)
        second = n.item()
        view = n.view(1)
        view.mul_(2)
        return x * first, second, n.item(), x[:, : view.tolist()[0]]

    def own(x, n):
        count = torch.zeros(2, dtype=torch.int64)
        count[0] += n
        return x[:, : count.tolist()[0]], count.sum().item()

    return [calls(compile, g, [(torch.tensor(v),) for v in (1, 1, 2, 5)]) for g in (f, own)]


@program(whole=True)
def test_what_follows_from_data_or_chance_is_not_known(compile):
    def f(x, n):
        a = (x.sum() > 0).long() + n
        b = torch.randint(0, 3, (2,)) + n
        return x * a.item(), x + b.tolist()[0], x[0, b[1]]

    return calls(compile, f, [(torch.tensor(v),) for v in (1, 1, 2, 5)])


@program(grad=True, whole=True)
def test_gradients(compile):
    w = torch.ones(12, requires_grad=True)

    def f(x, lengths):
        return [(part * w[: part.shape[-1]]).sum() for part in x.split(lengths.tolist(), -1)]

    compiled = compile(f)
    log = []
    for lengths in ([4, 8], [4, 8], [6, 6]):
        w.grad = None
        torch.stack(compiled(torch.arange(24.0).reshape(2, 12), torch.tensor(lengths))).prod().backward()
        log.append(w.grad)
    return log


@pytest.mark.parametrize("how", ["argument", "buffer"])
def test_one_graph_until_elements_change(how):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("stride", torch.tensor(2))

        def forward(self, x, stride):
            return x[:, :: (stride if how == "argument" else self.stride).item()] + 1

    model = Model()
    compiled = oxyfuel.compile(model)
    x, stride = torch.ones(2, 12), torch.tensor(2)
    with torch.no_grad():
        for _ in range(3):
            assert compiled(x, stride).shape == (2, 6)
        metrics = oxyfuel.metrics()
        assert metrics["graphs"] == 1 and not metrics["breaks"]
        (stride if how == "argument" else model.stride).fill_(3)
        for _ in range(3):
            assert compiled(x, stride).shape == (2, 4)
        assert oxyfuel.metrics()["graphs"] == 2  # what changes once is not relied on again: it is read at each call
        for value in (4, 3, 6, 2, 5):
            (stride if how == "argument" else model.stride).fill_(value)
            assert compiled(x, stride).shape == (2, -(-12 // value))
        reasons = oxyfuel.metrics()["recompile_reasons"]
        assert ["the elements of" in reason for reason in reasons] == [True] + [False] * (len(reasons) - 1), reasons
        assert not any("slice object" in reason for reason in reasons), reasons


def test_large_and_real_tensors_are_not_known():
    for given in (torch.zeros(65, dtype=torch.int64), torch.zeros(3), torch.zeros(3, dtype=torch.complex64)):
        oxyfuel.reset()
        oxyfuel.compile(lambda x: x + (1 if x.sum().abs() > 0 else 2))(given)
        assert oxyfuel.metrics()["breaks"]


def test_non_contiguous_elements():
    f = oxyfuel.compile(lambda x, n: x[: n[1, 0].item()])
    n = torch.tensor([[1, 2], [3, 4]]).t()
    for _ in range(2):
        assert len(f(torch.ones(9), n)) == 2
    n[1, 0] = 5
    assert len(f(torch.ones(9), n)) == 5


@program()
def test_what_follows_from_nothing(compile):
    def f(x, mask=None):
        mask = torch.ones(x.shape[0], 16, dtype=torch.long) if mask is None else mask
        lengths = mask.sum(-1)
        if (mask == 0).any():
            x = x * 0
        x = x[:, : lengths.max().item()] + torch.eye(2).trace()
        return x, lengths.tolist(), torch.arange(4).repeat_interleave(torch.tensor([1, 0, 2, 1])), mask.nonzero()

    return calls(compile, f, [()] * 2)


@program()
def test_sizes_from_tensors_of_constants(compile):
    def f(x):
        rows = torch.div(x.shape[1], 4, rounding_mode="trunc")
        return x.view(2, rows, 4), x.reshape(-1, torch.div(8, 2, rounding_mode="floor")).sum(), x * torch.div(1, 3)

    return calls(compile, f, [()] * 2)


@pytest.mark.parametrize("call", [lambda n: n.tolist(1), lambda n: n.tolist(n, 0), lambda n: torch.Tensor.tolist(n, 1), lambda n: torch.Tensor.tolist()])
def test_arguments_that_tolist_refuses(call):
    numbers = torch.tensor([1, 2])
    for function in (call, oxyfuel.compile(call)):
        with pytest.raises(TypeError, match="tolist"):
            function(numbers)
