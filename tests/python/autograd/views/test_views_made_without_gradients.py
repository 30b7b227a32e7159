"""What a view that is made under no_grad says of itself: it requires grad as its base does, which of an argument that is a
view is another tensor than the argument."""

import pytest
import torch

import oxyfuel


def whole():
    return torch.arange(16.0).view(1, 16).clone().requires_grad_()


def part():
    return torch.arange(33.0)[None][:, 1:33:2].requires_grad_()


def made(make):
    return whole() * 1 if make == "result" else {"whole": whole, "part": part}[make]()


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("order", [("whole", "part", "result"), ("part", "result", "whole")], ids=str)
def test_requires_grad_of_the_view(order, dynamic):
    def program(x, weight):
        with torch.no_grad():
            view = x.view(-1)
            again = view[2:]
        computed = view * 2 + again.sum()
        return ((view + (1 if view.requires_grad else 2)) * weight, (again + (3 if again.requires_grad else 4)) * weight[2:],
                (view + (5 if computed.requires_grad else 6) + (7 if (computed * weight).requires_grad else 8)) * weight)

    compiled = oxyfuel.compile(program, dynamic=dynamic)
    for make in order:
        weights = [torch.ones(16, requires_grad=True) for _ in range(2)]
        for actual, expected in zip(compiled(made(make), weights[0]), program(made(make), weights[1])):
            assert torch.equal(actual, expected)
            actual.sum().backward()
            expected.sum().backward()
        assert torch.equal(weights[0].grad, weights[1].grad)
