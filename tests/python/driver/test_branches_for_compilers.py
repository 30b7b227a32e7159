"""What the program does only while it is compiled, and cannot be compiled itself."""

import pytest
import torch

import oxyfuel


def breaks_of(function, *arguments):
    oxyfuel.reset()
    before = len(oxyfuel.metrics()["breaks"])
    compiled = oxyfuel.compile(function)
    for _ in range(3):
        torch.testing.assert_close(compiled(*arguments), function(*arguments))
    return oxyfuel.metrics()["breaks"][before:]


def raises(x, mask=None):
    if mask is None and not torch.compiler.is_compiling():
        mask = torch.ones(x.shape)
    return x * mask.sum()


def raises_in_a_call(x):
    return raises(x) + raises(x * 2)


def breaks(x):
    if torch.compiler.is_compiling():
        print(end="")
    return x + 1


def marks(x):
    state = x * 2
    if not torch.compiler.is_compiling():
        torch._dynamo.mark_static_address(state)
    return breaks(state)


@pytest.mark.parametrize("function", [raises, raises_in_a_call, breaks, marks])
def test_the_answer_is_no(function):
    assert not breaks_of(function, torch.ones(2, 3))


def test_the_answer_is_yes_where_nothing_is_wrong():
    def told(x):
        return x + 1 if torch.compiler.is_compiling() else x + 2

    assert oxyfuel.compile(told)(torch.zeros(1)) == 1

    def both_break(x):
        x = x + 1 if torch.compiler.is_compiling() else x + 2
        print(end="")
        return x

    assert oxyfuel.compile(both_break)(torch.zeros(1)) in (1, 2)


def test_errors_of_the_program():
    def refuses(x):
        if torch.compiler.is_compiling() and x.dim() > 1:
            raise ValueError("compiled")
        raise KeyError("always")

    compiled = oxyfuel.compile(refuses)
    for _ in range(2):
        with pytest.raises(KeyError, match="always"):
            compiled(torch.ones(2, 2))
