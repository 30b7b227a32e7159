"""What is kept of tensors that depend on sizes alone: how much of it, and for how long."""

import os
import sys

import pytest
import torch

sys.path[:0] = [path for path in (os.environ.get("OXYFUEL_RUNTIME_TESTING"),) if path]
rt = pytest.importorskip("oxyfuel_runtime_testing", reason="OXYFUEL_RUNTIME_TESTING names the folder of the module")

OPERATORS = ["aten::arange", "aten::mul.Tensor", "aten::permute"]
SCALED = """
symbol s0 : id 0 in [0, 100000000]
symbol s1 : id 1 in [0, 8]
graph(%0 : int64[]) {
  %1 : int64[s0] = aten::arange(s0)
  %2 : int64[s0] = aten::mul.Tensor(%1, %0)
  return %2
}
"""
MIB = 1 << 20


def test_the_sets_used_last_are_kept():
    constants = rt.SizeConstants(OPERATORS, SCALED, [torch.tensor(3)])
    made = {n: constants.get([n, 0])[0] for n in range(2, 12)}
    for n, tensor in made.items():
        assert torch.equal(tensor, 3 * torch.arange(n))
    assert constants.kept()[0] == 8
    assert constants.get([11, 0])[0].data_ptr() == made[11].data_ptr()
    assert constants.get([4, 0])[0].data_ptr() == made[4].data_ptr()
    constants.get([20, 0]), constants.get([21, 0])  # 5 and 6 go, since 4 was used after them
    assert constants.get([4, 0])[0].data_ptr() == made[4].data_ptr()
    assert constants.get([5, 0])[0].data_ptr() != made[5].data_ptr()


def test_symbols_that_it_does_not_mention_make_no_difference():
    constants = rt.SizeConstants(OPERATORS, SCALED, [torch.tensor(3)])
    assert constants.get([5, 1])[0].data_ptr() == constants.get([5, 2])[0].data_ptr()
    assert constants.kept()[0] == 1


def test_bytes_are_bounded():
    constants = rt.SizeConstants(OPERATORS, SCALED, [torch.tensor(1)])
    for n in range(6):
        constants.get([MIB + n, 0])  # 8 MiB each
        assert constants.kept()[1] <= 32 * MIB
    assert constants.kept()[0] == 3
    # The set that was used last is kept, however large it is. The others go.
    assert constants.get([5 * MIB, 0])[0].numel() == 5 * MIB
    assert constants.kept() == (1, 40 * MIB)
    constants.get([2, 0])
    assert constants.kept() == (1, 16)


def test_layouts_are_those_of_the_graph():
    text = """
symbol s0 : id 0 in [0, 100000000]
graph(%0 : int64[2, 3]) {
  %1 : int64[3, 2]{strides=[1, 3]} = aten::permute(%0, [1, 0])
  %2 : int64[3, 2] = aten::mul.Tensor(%1, s0)
  return %2
}
"""
    given = torch.arange(6).view(2, 3)
    tensor = rt.SizeConstants(OPERATORS, text, [given]).get([7])[0]
    assert (given.t() * 7).stride() != (2, 1)
    assert tensor.stride() == (2, 1)
    assert torch.equal(tensor, given.t() * 7)
