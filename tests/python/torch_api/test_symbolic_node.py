"""Tensors of PyTorch's own whose sizes are symbols: what its C++ computes and asks of them."""

import itertools
import os
import random
import sys

import pytest
import torch

sys.path[:0] = [path for path in (os.environ.get("OXYFUEL_SYMBOL_TESTING"),) if path]
symbols = pytest.importorskip("oxyfuel_symbol_testing", reason="OXYFUEL_SYMBOL_TESTING names the folder of the module")


def at_hand(size):
    """A dimension that is a symbol with this value at hand."""
    return -size - 1


@pytest.fixture
def environment():
    return symbols.Environment()


def test_sizes_are_symbols(environment):
    x = environment.tensor("x", [at_hand(8), 4])
    assert environment.size_texts(x) == ["x.size(0)", "4"]
    assert environment.strides(x, [3]) == [4, 1]
    assert environment.size_texts(x.transpose(0, 1).unsqueeze(0)) == ["1", "4", "x.size(0)"]
    assert environment.guards() == []


@pytest.mark.parametrize("what, text", [
    ("a + b", "x.size(0) + x.size(1)"), ("2 - a", "-x.size(0) + 2"), ("a - a", "0"), ("a * b", "3*x.size(0)*x.size(1)"),
    ("a / 4", "x.size(0) // 4"), ("a % 4", "x.size(0) % 4"), ("min", "min(x.size(0), x.size(1))"),
    ("max", "max(x.size(1), 1)")])
def test_arithmetic(environment, what, text):
    assert environment.compute(environment.tensor("x", [at_hand(8), at_hand(3)]), what) == text
    assert environment.guards() == []


def test_the_text_of_a_size_is_its_number(environment):
    assert environment.shown(environment.tensor("x", [at_hand(8), 4]), 0) == "8"
    assert environment.guards() == ["x.size(0) == 8"]


def test_a_float_guards_the_number(environment):
    environment.at_line("model.py:7")
    x = environment.tensor("x", [at_hand(16), at_hand(3)])
    assert float(environment.compute(x, "sqrt")) == 0.25
    assert environment.guards() == ["x.size(0) == 16 (model.py:7)"]


@pytest.mark.parametrize("how, size, answer, guards", [
    ("==", 8, False, ["x.size(0) != 1"]), ("==", 1, True, ["x.size(0) == 1"]),
    ("size oblivious", 8, False, []), ("size oblivious", 1, True, ["x.size(0) == 1"]),
    ("or false", 8, False, []), ("or true", 8, False, []), ("or false", 1, True, ["x.size(0) == 1"]),
    ("statically known", 1, False, []), ("has value", 1, True, []),
    ("expect", 1, True, ["x.size(0) == 1"]), ("expect", 8, False, [])])
def test_ways_to_ask(environment, how, size, answer, guards):
    x = environment.tensor("x", [at_hand(size)])
    assert symbols.ask(x, 0, 1, how) is answer
    assert environment.guards() == guards


@pytest.mark.parametrize("how, answer", [
    ("size oblivious", None), ("or false", False), ("or true", True), ("statically known", False),
    ("has value", False)])
def test_ways_to_ask_about_data(environment, how, answer):
    x = environment.tensor("x", [at_hand(1)], with_data=False)
    if answer is None:
        with pytest.raises(RuntimeError, match=r"x.size\(0\) == 5 depends on x.size\(0\).* asked at f.py:3"):
            environment.at_line("f.py:3")
            symbols.ask(x, 0, 5, how)
    else:
        assert symbols.ask(x, 0, 5, how) is answer
    assert environment.guards() == []


def test_a_check_of_data_is_an_assertion(environment):
    x = environment.tensor("x", [at_hand(1)], with_data=False)
    assert symbols.ask(x, 0, 5, "expect")
    assert environment.assertions() == ["x.size(0) == 5"]
    assert symbols.ask(x, 0, 5, "==")
    assert not symbols.ask(x, 0, 6, "expect")


@pytest.mark.parametrize("size", [0, 1, 8])
def test_a_tensor_that_is_laid_out_contiguously_needs_no_guard(environment, size):
    x = environment.tensor("x", [at_hand(size), 4, at_hand(3)])
    assert x.is_contiguous() and x.contiguous() is x
    assert x.unsqueeze(1).select(1, 0).is_contiguous()
    print(environment.guards())
    assert size <= 1 or environment.guards() == []


def test_layouts_that_differ_with_the_sizes_are_guarded(environment):
    x = environment.tensor("x", [at_hand(8), 4])
    environment.at_line("f.py:2")
    assert not x.transpose(0, 1).is_contiguous()
    assert environment.guards() == ["2 <= x.size(0) (f.py:2)"]
    assert [environment.holds([n]) for n in (0, 1, 2, 9)] == [False, False, True, True]


VIEWS = [
    ("transpose", lambda t: t.transpose(0, -1)),
    ("unsqueeze", lambda t: t.unsqueeze(1)),
    ("squeeze", lambda t: t.squeeze()),
    ("squeeze first", lambda t: t.squeeze(0)),
    ("last", lambda t: t[..., -1]),
    ("first", lambda t: t[0]),
    ("second", lambda t: t.select(0, 1)),
    ("contiguous", lambda t: t.contiguous()),
    ("like", torch.empty_like),
    ("sum", lambda t: t.sum(0)),
    ("add", lambda t: t + t),
    ("broadcast", lambda t: t * t.unsqueeze(0)),
    ("outer", lambda t: t.unsqueeze(-1) + t.unsqueeze(0)),
]


def attempt(function, tensor):
    try:
        return function(tensor)
    except (RuntimeError, IndexError, NotImplementedError):
        return None


@pytest.mark.parametrize("seed", range(12))
def test_views_of_symbols_are_those_of_numbers(seed):
    """Random views of a tensor with symbolic sizes. Wherever the guards hold, sizes, strides and offset are those that
    numbers have. A view that fails with the numbers at hand fails with the symbols, and there is nothing to compare."""
    print("seed", seed)
    choice = random.Random(seed)
    compared = 0
    for _ in range(40):
        rank = choice.randint(1, 3)
        sizes = [choice.choice([0, 1, 1, 2, 3, 4, 6, 8]) for _ in range(rank)]
        is_symbol = [choice.random() < 0.7 for _ in range(rank)]
        environment = symbols.Environment()
        tensor = environment.tensor("x", [at_hand(n) if s else n for n, s in zip(sizes, is_symbol)])
        real = torch.empty(sizes, device="meta")
        done = []
        for name, view in (choice.choice(VIEWS) for _ in range(choice.randint(1, 4))):
            expected = attempt(view, real)
            if expected is None:
                continue
            result = attempt(view, tensor)
            if result is None:  # not for symbols: no wrong answer
                break
            tensor, real = result, expected
            done.append((name, view))
        places = [d for d in range(rank) if is_symbol[d]]
        for values in itertools.product([0, 1, 2, 3, 5, 8], repeat=len(places)):
            if not environment.holds(list(values)):
                continue
            other = list(sizes)
            for d, value in zip(places, values):
                other[d] = value
            numbers = torch.empty(other, device="meta")
            for _, view in done:
                numbers = view(numbers)
            story = (sizes, is_symbol, [name for name, _ in done], values, environment.guards())
            assert environment.sizes(tensor, list(values)) == list(numbers.shape), story
            if numbers.numel():
                strides = environment.strides(tensor, list(values))
                assert [s for s, n in zip(strides, numbers.shape) if n != 1] == \
                    [s for s, n in zip(numbers.stride(), numbers.shape) if n != 1], story
                assert environment.offset(tensor, list(values)) == numbers.storage_offset(), story
            compared += 1
        assert environment.holds([n for n, s in zip(sizes, is_symbol) if s]), (sizes, is_symbol, environment.guards())
    assert compared > 100
