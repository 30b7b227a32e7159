"""torch._check() and the like, and assertions: where they fail, the program's own exception comes through, in fullgraph=True too."""

import pytest
import torch

import oxyfuel


def after(check, value=lambda x: x * 2):
    def program(x):
        check(x)
        return value(x)

    return program


scope = {}
exec('def asserts(x):\n    assert x.size(0) < 10, f"{x.size(0)} is too much"\n', scope)  # pytest rewrites assertions in its files


def catches(x):
    try:
        torch._check(x.size(0) < 10, lambda: "too much")
    except RuntimeError as error:
        return str(error)
    return "small"


def number(x):
    return x.sum().int().item()


PROGRAMS = {
    "check": after(lambda x: torch._check(x.size(0) < 10, lambda: "too much")),
    "check without a message": after(lambda x: torch._check(x.size(0) < 10)),
    "remainder": after(lambda x: torch._check(x.size(0) % 4 == 0, lambda: "odd")),
    "message of a size": after(lambda x: torch._check_value(x.size(0) < 10, lambda: f"{x.size(0)} is too much")),
    "index": after(lambda x: torch._check_index(x.size(0) < 10, lambda: "out of range")),
    "type": after(lambda x: torch._check_type(isinstance(x, int), lambda: "no int")),
    "not implemented": after(lambda x: torch._check_not_implemented(x.size(0) < 10, lambda: "not yet")),
    "with": after(lambda x: torch._check_with(KeyError, x.size(0) < 10, lambda: "key")),
    "is a size": after(lambda x: torch._check_is_size(x.size(0) - 3)),
    "is a size up to": after(lambda x: torch._check_is_size(x.size(0) - 3, max=9)),
    "is a size with a message": after(lambda x: torch._check_is_size(x.size(0) - 3, lambda: "below", max=9)),
    "a message that is no function": after(lambda x: torch._check(x.size(0) < 10, "too much")),
    "a message that raises": after(lambda x: torch._check(x.size(0) < 10, lambda: {}["nothing"])),
    "a number of data": after(lambda x: torch._check(number(x) < 10, lambda: "too much"), number),
    "a size of data": after(lambda x: torch._check_is_size(number(x), max=9), lambda x: x.new_zeros(number(x))),
    "assert": after(scope["asserts"]),
    "raise": after(lambda x: x.size(0) < 10 or next(iter(()))),
    "caught": catches,
}


def outcome(function, x):
    try:
        result = function(x)
    except Exception as error:
        return type(error), str(error)
    return result.tolist() if isinstance(result, torch.Tensor) else result


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_exception_is_the_programs(name, whole, dynamic):
    if whole and dynamic is False and name.endswith("of data"):
        pytest.skip("numbers of data end a graph then")
    program = PROGRAMS[name]
    compiled = oxyfuel.compile(program, fullgraph=whole, dynamic=dynamic)
    for size in (8, 17, 4, 15, 2, 12):
        x = torch.ones(size)
        assert outcome(compiled, x) == outcome(program, x)


def test_what_holds_is_one_graph():
    compiled = oxyfuel.compile(PROGRAMS["is a size up to"], fullgraph=True, dynamic=True)
    for size in (3, 5, 12, 8):
        compiled(torch.ones(size))
    assert oxyfuel.metrics()["graphs"] == 1


def test_effects_before_the_exception_happen_once():
    def program(x, seen):
        seen.append(x.size(0))
        x.mul_(2)
        torch._check(x.size(0) < 10)
        return x

    for whole in (False, True):
        compiled = oxyfuel.compile(program, fullgraph=whole)
        x, seen = torch.ones(12), []
        with pytest.raises(RuntimeError, match="Expected cond"):
            compiled(x, seen)
        assert seen == [12] and x.tolist() == [2.0] * 12


def test_an_exception_that_does_not_come_again():
    """The program has run then, and its result counts."""
    count = [0]

    @oxyfuel.assume_constant_result
    def next_count():
        count[0] += 1
        return count[0]

    def program(x):
        x.add_(1)
        if next_count() == 1:
            raise ValueError("first")
        return x

    x = torch.zeros(2)
    assert oxyfuel.compile(program, fullgraph=True)(x) is x and x.tolist() == [1.0, 1.0]


def test_arguments_that_the_checks_do_not_have():
    for check in (lambda x: torch._check(True, foo=1), lambda x: torch._check_is_size(3, foo=1)):
        assert outcome(oxyfuel.compile(check), torch.ones(2)) == outcome(check, torch.ones(2))
