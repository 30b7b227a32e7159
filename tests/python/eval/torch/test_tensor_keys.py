"""Dicts and sets that are keyed by tensors: a tensor is the key that it was before the capture."""

import collections

import pytest
import torch

import oxyfuel

P, Q, OTHER = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.full((3,), 2.0)), torch.ones(3)
NUMBERS = {P: 1.0, Q: 2.0}
STATE = collections.defaultdict(dict, {P: {"step": 1.0}})
ORDERED = collections.OrderedDict([(P, 5.0)])
PAIRS = {(P, 1): 7.0, (Q, (P, 2)): 8.0}
BOTH, ONE, LISTED = {P, Q}, frozenset([P]), [P, Q]

PROGRAMS = {
    "in": lambda p: 1.0 if p in NUMBERS else 2.0,
    "not in": lambda p: 1.0 if OTHER not in NUMBERS else 2.0,
    "get": lambda p: NUMBERS.get(p, 100.0),
    "get of a missing key": lambda p: NUMBERS.get(OTHER, 100.0),
    "item": lambda p: NUMBERS[p],
    "missing item": lambda p: NUMBERS[OTHER],
    "item of a defaultdict": lambda p: STATE[p]["step"],
    "item of an ordered dict": lambda p: ORDERED[p],
    "set": lambda p: 1.0 if p in BOTH else 2.0,
    "frozenset": lambda p: 1.0 if p in ONE else 2.0,
    "items": lambda p: sum(value * key.sum() for key, value in NUMBERS.items()),
    "identity of keys": lambda p: sum(1.0 if key is p else 3.0 for key in NUMBERS),
    "keys": lambda p: 1.0 if p in NUMBERS.keys() else 2.0,
    "item of a tuple": lambda p: PAIRS[(p, 1)],
    "tuple in": lambda p: 1.0 if (p, 1) in PAIRS else 2.0,
    "nested tuple": lambda p: 1.0 if (Q, (p, 2)) in PAIRS else 2.0,
    "dict of the region": lambda p: {p: 1.0, OTHER: 2.0}[p],
    "set of the region": lambda p: 1.0 if p in {p, OTHER} else 2.0,
    "copy": lambda p: dict(NUMBERS)[p],
    "difference": lambda p: float(len(BOTH - {p})),
    "union": lambda p: float(len({**NUMBERS, p: 3.0})),
    "result as key": lambda p: 1.0 if p + 1 in NUMBERS else 2.0,
    "any": lambda p: 1.0 if any(item is p for item in LISTED) else 2.0,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_lookups(name):
    read = PROGRAMS[name]

    def f(p):
        return OTHER + read(p)

    def outcome(function, key):
        try:
            return function(key).tolist()
        except KeyError as error:
            return error.args[0] is OTHER

    compiled = oxyfuel.compile(f)
    for key in (P, Q, P, Q):  # another tensor of the same shape is another key
        assert outcome(compiled, key) == outcome(f, key)


def test_lookups_that_are_captured():
    for name in ("in", "get", "item", "item of a tuple", "item of a defaultdict"):
        oxyfuel.reset()
        oxyfuel.compile(PROGRAMS[name])(P)
        oxyfuel.compile(lambda p, read=PROGRAMS[name]: p + read(p))(P)
        assert not oxyfuel.metrics()["breaks"], name
