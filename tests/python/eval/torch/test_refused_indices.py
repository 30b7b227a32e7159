"""Values that do not fit the indices that they are written to: eager's errors, and nothing is written."""

import itertools

import pytest
import torch

from eager_comparison import outcome, program

ROWS, COLUMNS = torch.tensor([2, 0]), torch.tensor([1, 1])
MASK = torch.tensor([True, False, True])
PLACES = {
    "rows": lambda a: (ROWS,),
    "row and column": lambda a: (ROWS, COLUMNS),
    "an outer product": lambda a: (ROWS[:, None], ROWS),
    "columns": lambda a: (slice(None), ROWS),
    "apart": lambda a: (ROWS, slice(None), COLUMNS) if a.dim() > 2 else (ROWS, 0),
    "mask": lambda a: (MASK,),
    "slice and rows": lambda a: (slice(1, None), ROWS),
}
SHAPES = [(), (1,), (2,), (3,), (4,), (2, 1), (2, 3), (3, 2), (2, 2), (4, 2, 3), (1, 1, 2)]
TYPES = [torch.float32, torch.float64, torch.int64, torch.bool]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", [(3, 3), (3, 3, 3)])
@program(backends=("native",))
def test_values_of_other_shapes(compile, place, shape):
    def assign(a, values):
        a[PLACES[place](a)] = values
        return a

    def put(a, values):
        indices = tuple(i for i in PLACES[place](a) if isinstance(i, torch.Tensor))
        return a.index_put(indices, values), a.index_put_(indices, values, accumulate=True)

    found = []
    for f in (compile(assign), compile(put)):
        for size in SHAPES:
            a = torch.zeros(shape)
            found.append((outcome(lambda: f(a, torch.arange(1.0, 1 + torch.Size(size).numel()).reshape(size)))[:3], a))
    return found


@pytest.mark.parametrize("order", list(itertools.permutations(["mask", "rows", "an outer product"])), ids=str)
@program(backends=("native",))
def test_values_of_other_types(compile, order):
    """Whichever came first: what a mask of one value takes, integer indices refuse."""
    found = []
    for place in order:
        f = compile(lambda a, values, place=place: a.index_put_(PLACES[place](a), values))
        for dtype in TYPES:
            for values in (torch.tensor(5, dtype=dtype), torch.ones(3, dtype=dtype)):
                a = torch.zeros(3, 3)
                found.append((outcome(lambda: f(a, values))[:3], a))
    return found
