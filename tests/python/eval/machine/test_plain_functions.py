"""Functions in which no tensor operator is found: the interpreter runs them after a while, and them alone."""

import pytest
import torch

import oxyfuel
from capture_samples import x23


def test_functions_without_tensors_are_left_to_the_interpreter():
    def plain(n):
        print(end="")
        return n + 1

    def with_tensors(x, n):
        print(end="")
        return x * n

    @oxyfuel.compile
    def f(x, n):
        return with_tensors(x, plain(n))

    def visited():
        return {segment["function"].split(".")[-1] for segment in oxyfuel.explain(f)(x23(), 1).segments}

    assert {"f", "plain", "with_tensors"} <= visited()
    for n in range(100):
        torch.testing.assert_close(f(x23(), n), x23() * (n + 1))
    assert {"with_tensors"} == visited()


@pytest.mark.parametrize("stance", ["eager_on_recompile", "force_eager"])
def test_calls_that_were_not_compiled_do_not_count(stance):
    def helper(x, n):
        print(end="")
        return x * n

    @oxyfuel.compile
    def f(x, n):
        print(end="")
        return helper(x, n)

    with oxyfuel.set_stance(stance):
        for n in range(100):
            f(x23(), n)
    segments = oxyfuel.explain(f)(x23(), 2).segments
    assert any(segment["function"].endswith("helper") and segment["operators"] for segment in segments)
