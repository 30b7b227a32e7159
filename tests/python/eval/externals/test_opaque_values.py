"""Values of C types that a program is given, and C code that looks at them: another value at the next call is seen."""

import array
import bisect
import collections
import copy
import datetime
import decimal
import fractions
import functools
import itertools
import json
import math
import operator
import re

import numpy as np
import pytest
import torch

import oxyfuel

X = torch.arange(12.0).reshape(3, 4)
LIST, DICT = [1, 2, 3, 4], {1: "one", 2: "two", "1": "text", "2": "texts"}


class Text(str):
    pass


class Whole(int):
    pass


class Real(float):
    pass


class Pair(tuple):
    pass


class Numbers(list):
    pass


VALUES = {
    "int64": np.int64,
    "float32": np.float32,
    "complex128": np.complex128,
    "numpy.str_": np.str_,
    "array": lambda i: np.array([i]),
    "scalar array": np.array,
    "datetime64": lambda i: np.datetime64(f"200{i}"),
    "str": Text,
    "int": Whole,
    "float": Real,
    "tuple": lambda i: Pair((i,)),
    "list": lambda i: Numbers([i]),
    "date": lambda i: datetime.date(2000, 1, i),
    "Decimal": decimal.Decimal,
    "Fraction": fractions.Fraction,
    "bytearray": lambda i: bytearray([i]),
    "array.array": lambda i: array.array("i", [i]),
    "frozenset": lambda i: frozenset([i]),
    "Size": lambda i: torch.Size([i]),
    "range": range,
    "slice": slice,
    "nested": lambda i: ([(i,)],),
}
EXPRESSIONS = """
    '%s' % (v,) | '%s' % v | '%d' % v | '%(a)s' % {'a': v} | '%s' % [v] | '%s' % {'a': (v,)} | b'%d' % v | f'{v}' | f'{[v]!r}' | str((v,))
    '{}'.format(v) | '{0}'.format([v]) | ','.join([v]) | b','.join([v]) | v.join('ab') | '12'.startswith(v) | 'ab' * v | '12'.find(v) | 'a1b'.split(v)
    v == 1 | (v,) == (1,) | [v] != [1] | {'a': [v]} == {'a': [1]} | v < 2 | (v, 1) < (2, 1) | v in LIST | v in {1, 2} | v in DICT | (v, 'x') in {(1, 'x')}
    DICT.get(v) | {**DICT}[v] | {v: 1}.get(1) | {v} | {1} & {v} | dict.fromkeys([v]) | hash((v,)) == hash((1,)) | collections.Counter([v])
    LIST[v] | [1, 2, 3][v] | 'abcd'[v] | LIST[:v] | 'abcd'[v:] | X[v] | X[:v] | X[:, v] | range(9)[v] | operator.getitem(LIST, v) | list[v]
    [1] * v | range(v) | list(itertools.islice(LIST, v)) | list(itertools.repeat(1, v)) | collections.deque(LIST, v) | list(itertools.combinations(LIST, v))
    abs(v) | -v | not v | v + 1 | 2 * v | divmod(v, 2) | round(v) | int(v) | float(v) | complex(v) | bool(v) | list(v) | len(v) | chr(v) | hex(v) | bytes([v])
    math.sqrt(v) | math.gcd(v, 4) | math.fsum([v]) | sum([v], v) | max(v, 2) | max([1, v]) | sorted([2, v]) | any([v]) | LIST.index(v) | LIST.count(v)
    X + v | X * v | torch.full((2,), v) | torch.tensor(v) | torch.zeros(v) | X.sum(v) | X.unsqueeze(v) | torch.arange(v) | X == v | X.to(v)
    functools.reduce(operator.add, [v, v]) | functools.partial(max, v)(2) | bisect.bisect(LIST, v) | copy.copy(v) | json.dumps([v]) | re.sub('a', v, 'abc')
    np.array([v]) + 1 | np.add(v, 1) | isinstance(v, (int, str)) | type(v).__name__ | kept(v) | inserted(v) | replaced(v) | removed(v) | matched(v)
"""


def kept(v):
    keys, numbers = set(), collections.defaultdict(int)
    keys.add(v)
    numbers[v] += 1
    return keys, numbers


def inserted(v):
    numbers = [1, 2, 3, 4]
    numbers.insert(v, 9)
    return numbers


def replaced(v):
    numbers = [1, 2, 3, 4]
    numbers[v] = 9
    return numbers


def removed(v):
    numbers = [1, 2, 3, 4]
    del numbers[v]
    return numbers


def matched(v):
    match v:
        case 1:
            return "one"
        case 2:
            return "two"
        case (1,) | [1]:
            return "one of them"
        case _:
            return "other"


def shown(function, value):
    try:
        return repr(function(value))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
def test_other_values_are_seen(make):
    for text in EXPRESSIONS.replace("\n", "|").split("|"):
        if not text.strip():
            continue
        oxyfuel.reset()
        function = eval(f"lambda v: {text.strip()}")
        compiled = oxyfuel.compile(function, backend="eager")
        for i in (1, 2, 1, 3):
            assert shown(compiled, make(i)) == shown(function, make(i)), text
        compiled = oxyfuel.compile(lambda held: function(held[0]), backend="eager")
        for i in (1, 2, 1, 3):
            assert shown(lambda v: compiled((v,)), make(i)) == shown(function, make(i)), (text, "held")
