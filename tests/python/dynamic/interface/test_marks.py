"""What the user says of sizes: marks on tensors, which hold from the first call on."""

import pytest
import torch

import oxyfuel


def compiles(compiled, calls):
    before = oxyfuel.metrics()["graphs"]
    for arguments in calls:
        compiled(*arguments)
    return oxyfuel.metrics()["graphs"] - before


def marked(n, mark, columns=4):
    x = torch.randn(n, columns)
    mark(x)
    return (x,)


def test_dynamic_from_the_first_call():
    compiled = oxyfuel.compile(lambda x: x * 2)
    calls = [marked(n, lambda x: oxyfuel.mark_dynamic(x, 0)) for n in (3, 5, 8, 1)]
    assert compiles(compiled, calls) == 1


def test_a_range():
    compiled = oxyfuel.compile(lambda x: x * 2 if x.size(0) <= 16 else x * 3)
    assert compiles(compiled, [marked(n, lambda x: oxyfuel.mark_dynamic(x, -2, min=2, max=16)) for n in (3, 16, 2)]) == 1


def test_a_contradiction_names_the_line():
    def function(x):
        y = x + 1
        return y if x.size(0) == 3 else y * 2

    x = torch.randn(3, 4)
    oxyfuel.mark_dynamic(x, 0)
    with pytest.raises(RuntimeError, match=r"(?s)x\.size\(0\).*takes it for 3.*test_marks\.py:\d+ in function"):
        oxyfuel.compile(function)(x)
    weak = torch.randn(3, 4)
    oxyfuel.maybe_mark_dynamic(weak, 0)
    assert torch.equal(oxyfuel.compile(function)(weak), function(weak))


def test_static():
    compiled = oxyfuel.compile(lambda x: x * 2, dynamic=True)
    assert compiles(compiled, [marked(n, lambda x: oxyfuel.mark_static(x, 1), 4) for n in (3, 5)]) == 1
    assert compiles(compiled, [marked(5, lambda x: oxyfuel.mark_static(x), m) for m in (6, 7)]) == 2


def test_marks_of_torch():
    compiled = oxyfuel.compile(lambda x: x * 2)

    def mark(x):
        x._dynamo_dynamic_indices = {0}

    assert compiles(compiled, [marked(n, mark) for n in (3, 5)]) == 1


def test_bad_marks():
    x = torch.randn(3, 4)
    with pytest.raises(IndexError, match="2 dimensions"):
        oxyfuel.mark_dynamic(x, 2)
    with pytest.raises(TypeError, match="takes a tensor, not list"):
        oxyfuel.mark_static([x])
    with pytest.raises(ValueError, match="at least 5 and at most 2"):
        oxyfuel.mark_dynamic(x, 0, min=5, max=2)
