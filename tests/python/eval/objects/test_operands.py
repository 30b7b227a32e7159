"""Which operand an operator asks, in which order, and what it does if neither answers."""

import collections
import operator

import pytest
import torch

from eager_comparison import outcome, program

X = torch.ones(2)
ROWS = []


class Answers:
    """Answers the operators named in `answers`, notes all that it is asked."""

    log = []
    answers = ()

    def __repr__(self):
        return type(self).__name__


def asked(name):
    def method(self, other):
        self.log.append((name, repr(self)))
        return f"{self!r}.{name}" if name in self.answers else NotImplemented

    return method


def answering(name, bases=(Answers,), methods=(), answers=()):
    return type(name, bases, {"answers": answers, **{f"__{each}__": asked(each) for each in methods}})


ARITHMETIC = ("add", "radd", "iadd", "or", "ror", "ior", "mod", "rmod", "sub", "rsub", "isub", "mul", "rmul", "and", "rand", "xor", "rxor")
COMPARISONS = ("eq", "ne", "lt", "gt", "le", "ge")
OPERATORS = {
    "+": operator.add, "|": operator.or_, "%": operator.mod, "-": operator.sub, "*": operator.mul, "&": operator.and_, "^": operator.xor,
    "+=": operator.iadd, "|=": operator.ior, "-=": operator.isub, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">=": operator.ge,
}


def operands(names=None):
    """New ones of these names, or of all."""
    base = answering("Base", methods=ARITHMETIC + COMPARISONS, answers=("add", "or", "radd", "eq", "lt"))
    silent = answering("Silent", methods=ARITHMETIC + COMPARISONS)
    reflected = answering("Reflected", methods=("radd", "ror", "rmod", "rsub", "rmul"), answers=("radd", "ror", "rmod", "rsub"))
    equal = answering("Equal", methods=("eq",))
    makers = {
        "base": base, "inherits": lambda: type("Inherits", (base,), {})(), "overrides": lambda: answering("Overrides", (base,), ("radd", "gt"), ("radd", "gt"))(),
        "silent": silent, "reflected": reflected, "equal": equal, "sure": lambda: answering("Sure", methods=("eq",), answers=("eq",))(),
        "list": lambda: [1], "set": lambda: {1}, "dict": lambda: {1: 2}, "text": lambda: "a%s", "plain text": lambda: "a", "bytes": lambda: b"b%b", "number": lambda: 3, "none": lambda: None, "deque": lambda: collections.deque([1]),
        "own list": lambda: answering("OwnList", (Answers, list), ("add", "radd"), ("add",))([1]),
        "own set": lambda: answering("OwnSet", (Answers, set), ("or", "sub", "eq"), ("or",))({1}),
        "own dict": lambda: answering("OwnDict", (Answers, dict), ("or", "ror"), ("or",))({1: 3}),
        "ordered": lambda: collections.OrderedDict({1: 4}), "default": lambda: collections.defaultdict(list, {1: 5}), "counter": lambda: collections.Counter("a"),
        "plain list class": lambda: type("PlainList", (list,), {})([2]), "plain dict class": lambda: type("PlainDict", (dict,), {})({1: 6}),
    }
    return {name: makers[name]() for name in names or makers}


NAMES = list(operands())


def shown(value):
    return type(value).__name__, repr(value)


@pytest.mark.parametrize("made", ["before", "within"])
@pytest.mark.parametrize("left", NAMES)
@program()
def test_who_is_asked(compile, left, made):
    results = []
    for right in NAMES:
        for symbol, function in OPERATORS.items():
            def answer(x, given):
                Answers.log.append("begins")
                here = operands((left, right)) if made == "within" else given
                try:
                    found = shown(function(here[left], here[right]))
                except Exception as error:
                    found = type(error).__name__, str(error)
                Answers.log.append("ends")
                return found, shown(here[left])

            f = compile(answer)
            Answers.log.clear()
            seen = [f(X, operands()) for _ in range(1 if made == "within" else 2)]
            results.append((symbol, right, seen, list(Answers.log)))
    return results


@program()
def test_the_same_object_on_both_sides(compile):
    f = compile(lambda x, a: (a == a, a != a, [a] == [a], (a,) != (a,), a in [a]))
    results = []
    for name in ("base", "silent", "equal", "sure", "inherits"):
        Answers.log.clear()
        results += [f(X, operands()[name]) for _ in range(2)] + [list(Answers.log)]
    return results


class Item:
    def __init__(self, log, number):
        self.log, self.number = log, number

    def __radd__(self, other):
        self.log.append(("added", self.number))
        if self.number == 3:
            raise ValueError("three")
        return other + self.number


def made(log, count):
    for number in range(count):
        log.append(("made", number))
        yield Item(log, number)


SUMS = {
    "texts": lambda log: sum(["a", "b"], ""), "bytes": lambda log: sum([b"a"], b""), "lists": lambda log: sum([[1], [2]], []),
    "floats": lambda log: sum([0.1] * 10), "floats and tensors": lambda log: sum([0.1, 0.2, 0.3, torch.ones(1), 0.1, 0.2]), "none": lambda log: sum([]),
    "started": lambda log: sum([True, 2, 1 << 70], start=0.5), "items": lambda log: sum(made(log, 3)), "raises": lambda log: sum(made(log, 6)),
    "not one": lambda log: sum(5), "wrong": lambda log: sum([1, "a", 2]), "nothing to add": lambda log: sum([None]),
    "largest of nothing": lambda log: max([]), "of no arguments": lambda log: max(), "with a default": lambda log: max(1, 2, default=3),
    "least of nothing": lambda log: min(iter(())), "a default": lambda log: min([], default=4),
}


@pytest.mark.parametrize("kind", SUMS)
@program()
def test_sums_and_extremes(compile, kind):
    log = []
    f = compile(lambda x: (x + 1, SUMS[kind](log)))
    g = compile(lambda x: (x + 1, outcome(SUMS[kind], log)[:3]))
    return [outcome(f, X)[:3] for _ in range(2)], g(X), log


@program()
def test_containers_in_front_of_tensors(compile):
    @compile
    def f(x, rows, operation):
        fresh = [1]
        fresh += x
        before = rows
        rows = operation(rows, x)
        return rows is before, rows, before, fresh

    operations = (operator.iadd, operator.add, operator.imul, operator.isub)
    kinds = (list, collections.deque, tuple, dict)
    return [outcome(f, torch.arange(3.0), kind(), operation) for kind in kinds for operation in operations]


@program()
def test_a_global_list_in_front_of_a_tensor(compile):
    @compile
    def f(x):
        global ROWS
        ROWS += x
        return len(ROWS)

    ROWS.clear()
    return f(torch.arange(3.0)), f(torch.arange(2.0)), list(ROWS)
