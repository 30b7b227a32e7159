"""Where the parameters of recorded work have addresses: passes made by hand, as the driver would give them."""

import os
import struct
import sys

import pytest

sys.path[:0] = [path for path in (os.environ.get("OXYFUEL_RUNTIME_TESTING"),) if path]
rt = pytest.importorskip("oxyfuel_runtime_testing", reason="OXYFUEL_RUNTIME_TESTING names the folder of the module")

X, Y, Z = (0x7F59_8480_0000, 0x31_0000), (0x7F59_85C0_0000, 0x1_2000), (0x7F59_8700_0000, 0x1000)
DECOY_X, DECOY_Y, DECOY_Z = (0x3_0200_0000, 0x31_0000), (0x3_0231_1000, 0x1_2000), (0x3_0240_0000, 0x1000)


def low(address, other=0x3F80_0000):
    """A word with the lower half of an address, and something else."""
    return other << 32 | address & 0xFFFF_FFFF


def float_bits(number):
    return struct.unpack("<I", struct.pack("<f", number))[0]


def places(real, decoy, **memory):
    memories = {"memories": ([X, Y, Z], [DECOY_X, DECOY_Y, DECOY_Z]), **memory}
    passes = [rt.captured_pass(nodes, **{name: both[i] for name, both in memories.items()}) for i, nodes in enumerate((real, decoy))]
    return rt.find_places(passes[1], passes[0])


def test_addresses_of_given_memories():
    real, decoy = [7, X[0] + 64, Y[0], X[0], Y[0] + Y[1]], [7, DECOY_X[0] + 64, DECOY_Y[0], DECOY_X[0], DECOY_Y[0] + Y[1]]
    assert places([real], [decoy]) == [(1, 0, 64), (2, 1, 0), (3, 0, 0), (4, 1, Y[1])]


def test_numbers_stay():
    assert places([[1, 2, float_bits(1.0)]], [[1, 2, float_bits(1.0)]]) == []


def test_words_that_match_no_memory_are_noise():
    assert places([[X[0] + X[1] + 8]], [[0x1234_5678_9ABC]]) == []


def test_bytes_that_nobody_sets():
    assert places([[4, X[0]]], [[0x7F47_0000_0004, DECOY_X[0]]]) == [(1, 0, 0)]
    assert places([[0x7F59_2522_EF60, X[0]]], [[0x7F59_2528_26E0, DECOY_X[0]]]) == [(1, 0, 0)]


def test_half_of_an_address_that_is_left_over():
    assert places([[low(X[0]), X[0]]], [[low(DECOY_X[0]), DECOY_X[0]]]) == [(1, 0, 0)]


@pytest.mark.parametrize(
    "encode",
    [low, lambda a: a >> 4, lambda a: low(a >> 8), lambda a: low(5, other=(a >> 12) & 0xFFFF_FFFF)],
    ids=["half", "shifted", "half of one shifted", "shifted, upper half"],
)
def test_other_forms_of_addresses_are_refused(encode):
    with pytest.raises(ValueError, match="a parameter is not understood"):
        places([[encode(X[0]), Y[0]]], [[encode(DECOY_X[0]), DECOY_Y[0]]])


def test_distances_between_memories_are_refused():
    with pytest.raises(ValueError, match="a parameter is not understood"):
        places([[X[0], Y[0], Y[0] - X[0]]], [[DECOY_X[0], DECOY_Y[0], DECOY_Y[0] - DECOY_X[0]]])


def test_memory_that_is_allocated_on_the_way_stays_where_it_is():
    temporary, other = (0x7F59_4702_0000, 0x1000, 0, 2), (0x7F59_2E62_0000, 0x2000, 0, 2)
    real, decoy = [X[0], temporary[0] + 16], [DECOY_X[0], other[0] + 16]
    assert places([real], [decoy], allocations=([temporary], [other])) == [(0, 0, 0)]


def test_a_result_moves_from_where_its_operator_has_made_it():
    # Temporaries lie there before and afterwards.
    block, other = 0x7F59_46A0_0000, 0x7F59_2E00_0000
    allocations = [[(at, 0x4000, 0, 1), (at, 0x1000, 1, 2), (at, 0x2000, 2, 4)] for at in (block, other)]
    found = places(
        [[block + 8], [block + 8], [block + 8], [Z[0] + 16]],
        [[other + 8], [other + 8], [other + 8], [DECOY_Z[0] + 16]],
        results=([(2, block, 2)], [(2, other, 2)]),
        allocations=allocations,
    )
    assert found == [(0, 2, 8), (0, 2, 16)]  # of the second and the last node


def test_work_that_is_not_the_same():
    with pytest.raises(ValueError, match="it does not do the same each time"):
        places([[1], [2]], [[1]])
    with pytest.raises(ValueError, match="it does not allocate the same each time"):
        places([[1]], [[1]], allocations=([(4096, 16, 0, 1)], [(8192, 16, 0, -1)]))
