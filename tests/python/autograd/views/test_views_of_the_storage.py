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
