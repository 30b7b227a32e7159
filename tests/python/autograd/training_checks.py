"""Calls and backward passes of a function, compiled and in eager, that must show the same."""

import torch

import oxyfuel


def tensor(*sizes, requires_grad=True, seed=0):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed)).requires_grad_(requires_grad)


def weighted(value):
    return (value * (torch.arange(value.numel()).view(value.shape) + 1)).sum()


def backward_of_outputs(function, inputs):
    """Everything that a call and a backward pass show."""
    outputs = function(*inputs)
    outputs = [o for o in (outputs if isinstance(outputs, (tuple, list)) else [outputs])]
    loss = sum(weighted(o) for o in outputs if o.requires_grad)
    if isinstance(loss, torch.Tensor):
        loss.backward()
    return [
        [o.detach() for o in outputs],
        [(o.requires_grad, o.is_leaf) for o in outputs],
        [i.grad if i.is_leaf else None for i in inputs],
        [i.detach() for i in inputs],
        [i._version for i in inputs],
    ]


def result_of(run, function, inputs):
    torch.manual_seed(3)
    inputs = [i.detach().clone().requires_grad_(i.requires_grad) for i in inputs]
    try:
        return run(function, inputs)
    except RuntimeError as error:
        return f"{type(error).__name__}: {str(error).split('[')[0]}"


def check(function, *inputs, run=backward_of_outputs, graphs=None):
    expected = result_of(run, function, inputs)
    compiled = oxyfuel.compile(function)
    for _ in range(2):
        found = result_of(run, compiled, inputs)
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected
        else:
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    if graphs is not None:
        metrics = oxyfuel.metrics()
        assert metrics["graphs"] == graphs and not metrics["calls_eager"], metrics["breaks"]


X, Y, CONSTANT = tensor(4, 6), tensor(4, 6, seed=1), tensor(4, 6, requires_grad=False, seed=2)
