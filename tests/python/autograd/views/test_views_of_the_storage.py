"""as_strided of an argument that eager does not hold for the backward pass: its view of the storage is the same then."""

import pytest
import torch

import oxyfuel

VIEWS = {
    "further than the argument": (lambda: torch.randn(5)[1:3:2], lambda a: a.as_strided((2,), (1,))),
    "from the beginning of the storage": (lambda: torch.randn(9)[4:8], lambda a: a.as_strided((4,), (1,), 2)),
    "all of the storage": (lambda: torch.randn(12)[3:6], lambda a: a.as_strided((3, 4), (4, 1), 0)),
    "the argument's own elements": (lambda: torch.randn(4, 3), lambda a: a.as_strided((3, 4), (1, 3))),
    "windows": (lambda: torch.randn(10), lambda a: a.as_strided((4, 3), (2, 1))),
    "windows of a part": (lambda: torch.randn(12)[2:], lambda a: a.as_strided((4, 3), (2, 1), 3)),
    "a transposed argument": (lambda: torch.randn(3, 4).t(), lambda a: a.as_strided((4, 3), (1, 4))),
}
# Gradients reach the elements of the part alone.
OF_PARTS = {
    "a column": lambda a: a.select(-1, 0).as_strided((3,), (1,)),
    "within a column": lambda a: a.select(-1, 0).as_strided((3,), (4,)),
    "behind some rows": lambda a: a[1:].as_strided((3, 2), (1, 4), 0),
    "windows of columns": lambda a: a[:, 1:3].as_strided((2, 2), (1, 1)),
    "repeated rows": lambda a: a[:2].repeat(2, 1).as_strided((3,), (1,)),
    "expanded": lambda a: a[0].expand(4, 4).as_strided((4, 4), (4, 1)),
    "twice": lambda a: a.as_strided((3,), (2,)).as_strided((5,), (1,)),
    "a part of it": lambda a: a.as_strided((3, 2), (2, 1))[1:],
    "all of it, turned": lambda a: a.t().view(2, 2, 4).as_strided((3,), (1,), 2),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("read_by_others", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_gradients(name, read_by_others, dynamic):
    oxyfuel.reset()
    make, view = VIEWS[name]

    def program(a, b, c):
        seen = view(a)
        result = b[..., None] % seen.reshape(-1) + seen.sum() ** 2
        return (result * a.sum() if read_by_others else result), c * 2

    def run(function):
        torch.manual_seed(0)
        arguments = [x.requires_grad_() for x in (make(), torch.randn(2, 3), torch.randn(3))]
        first, _ = function(*arguments)
        first.backward(torch.ones_like(first), retain_graph=True)
        first.backward(torch.full_like(first, 0.5))
        return first, [x.grad for x in arguments[:2]]

    expected, compiled = run(program), oxyfuel.compile(program, dynamic=dynamic)
    for _ in range(2):
        torch.testing.assert_close(run(compiled), expected)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("of_result", [False, True])
@pytest.mark.parametrize("name", OF_PARTS)
def test_gradients_of_parts(name, of_result, dynamic):
    """As results themselves, and of an argument as of a result."""
    view = OF_PARTS[name]

    def program(a):
        seen = view(a * 2 if of_result else a)
        return seen, seen.square().sum()

    def run(function):
        a = torch.linspace(-2, 2, 16).view(4, 4).requires_grad_()
        seen, total = function(a)
        first = torch.autograd.grad(seen, a, torch.arange(1.0, seen.numel() + 1).view(seen.shape), retain_graph=True)
        return seen, *first, *torch.autograd.grad(total, a)

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for _ in range(2):
        torch.testing.assert_close(run(compiled), run(program))


@pytest.mark.parametrize("fusion", [True, False])
@pytest.mark.parametrize("dynamic", [None, True])
def test_gradients_scattered_into_a_part_of_the_arena(dynamic, fusion):
    """The operator counts from the beginning of a storage, which is not that of a tensor in the arena."""

    def program(x, y):
        product = (x @ y.t()) / 8
        product[..., None].mul_(0.5)
        repeated = product.repeat(2, 2, 1)
        return torch.where(repeated.detach() > 0, repeated, repeated)

    compiled = oxyfuel.compile(program, dynamic=dynamic, options={"fusion": fusion})
    for rows, columns in ((129, 4), (65, 2), (7, 3)):
        x, y = torch.randn(rows, 1, columns, dtype=torch.bfloat16, requires_grad=True), torch.randn(columns, columns, dtype=torch.bfloat16)
        gradients = []
        for function in (program, compiled):
            function(x, y).square().sum().backward()
            gradients.append(x.grad)
            x.grad = None
        torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("grad", [False, True])
def test_results_without_elements_that_begin_behind_the_storage(dynamic, grad):
    """The other results and what the program wrote are what they are in eager: nothing runs twice."""

    def program(x, y):
        y.div_(2)
        whole = x * 2
        return whole[1:, 1:], whole, whole[2:2, 1::3], whole[:, 1:]

    for sizes in ((1, 1), (1, 2), (2, 1), (3, 3)):
        oxyfuel.reset()
        compiled = oxyfuel.compile(program, dynamic=dynamic)
        for _ in range(2):
            x, y, z = torch.ones(sizes, requires_grad=grad), torch.ones(2), torch.ones(2)
            for got, expected in zip(compiled(x, y), program(x, z)):
                assert torch.equal(got, expected) and got.storage_offset() == expected.storage_offset() and got.stride() == expected.stride()
            assert torch.equal(y, z)
        assert oxyfuel.metrics()["calls_eager"] == 0
