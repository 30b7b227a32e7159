"""What typing makes inside functions, also behind writes to what was there before; classes that are indexed."""

import collections
import dataclasses
import enum
import sys
import typing
from typing import Annotated, Any, Callable, ClassVar, Dict, ForwardRef, Generic, List, Literal, NamedTuple, NewType, Optional, ParamSpec, Sequence, Tuple, Type, TypedDict, TypeVar, Union

import pytest
import torch

import oxyfuel
from eager_comparison import outcome, program

X = torch.arange(3.0)
T = TypeVar("T")
UserId = NewType("UserId", int)


class Known:
    pass


class Box(Generic[T]):
    pass


class Indexed:
    def __class_getitem__(cls, item):
        return cls.__name__, item


class Holder:
    value = 0


HOLDER, NUMBERS, COUNT = Holder(), [], 0


def write_attribute():
    HOLDER.value = 1


def write_list():
    NUMBERS.append(1)


def write_global():
    global COUNT
    COUNT = 1


WRITES = {"nothing": lambda: None, "attribute": write_attribute, "list": write_list, "global": write_global}
EXPRESSIONS = {
    "List[T]": lambda: List[T],
    "List of a class": lambda: List[Known],
    "Dict": lambda: Dict[str, List[Optional[Known]]],
    "Optional": lambda: Optional[List[int]],
    "Union": lambda: Union[int, str, None, Known],
    "Union of others": lambda: Union[List[int], Dict[str, Known]],
    "Callable": lambda: Callable[[int, T], str],
    "Callable of anything": lambda: Callable[..., T],
    "Tuple": lambda: (Tuple[int, ...], Tuple[()]),
    "Type": lambda: Type[Known],
    "Literal": lambda: Literal["a", 1],
    "Annotated": lambda: Annotated[int, "words"],
    "ClassVar": lambda: ClassVar[int],
    "unions": lambda: (Known | None, int | str, List[int] | None, list[int] | torch.Tensor),
    "builtins": lambda: (list[int], dict[str, Known], list[T]),
    "parameters that are replaced": lambda: (List[T][int], list[T][int], Box[T][int]),
    "a generic class": lambda: (Box[int], Box[T], Box[int] is Box[int]),
    "a class of the program's own": lambda: Indexed[3],
    "forward references": lambda: (List["Known"], Optional["Known"]),
    "tensors": lambda: Tuple[torch.Tensor, Optional[torch.nn.Module]],
    "cast": lambda: (typing.cast(List[int], 3), typing.cast("List[int]", 4)),
    "isinstance": lambda: (isinstance(3, int | str), isinstance(3, Union[int, str]), isinstance([], List), isinstance(len, Callable), isinstance([1], Sequence)),
    "origin and arguments": lambda: (typing.get_origin(List[int]), typing.get_args(Dict[str, int]), List[int].__args__),
    "equality": lambda: (List[int] == List[int], List[int] == List[str], List[int] in (List[str], List[int]), List[bytes] is List[bytes]),
    "keys": lambda: {List[int]: 1, int: 2, Optional[str]: 3}[Optional[str]],
    "hash": lambda: hash(List[int]) == hash(List[int]),
    "text": lambda: (repr(List[int]), f"{Optional[Known]}", str(Any)),
    "instances": lambda: (list[int]((1, 2)), dict[str, int](a=1), type(Box[int]()).__name__),
    "a new type": lambda: UserId(3) + 1,
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_captured(name, write):
    def f(x):
        WRITES[write]()
        y = x * 2
        return y, EXPRESSIONS[name]()

    compiled = oxyfuel.compile(f, fullgraph=True)
    for _ in range(3):
        (ours, made), (theirs, expected) = compiled(X), f(X)
        assert ours.equal(theirs) and made == expected and type(made) is type(expected)


@program()
def test_refused_by_typing(compile):
    @compile
    def f(x, kind):
        y = x + 1
        return y, List[int, int] if kind == 0 else List[3] if kind == 1 else isinstance([1], list[int]) if kind == 2 else List[int]()

    return [outcome(f, X, kind) for kind in range(4)]


def defines_a_class(x):
    class Local:
        value = 2

    return x * Local.value


def defines_a_dataclass(x):
    @dataclasses.dataclass
    class Local:
        values: List[int]
        other: Optional[Known] = None

    return x * Local([2]).values[0]


def defines_a_named_tuple(x):
    class Local(NamedTuple):
        value: int
        more: List[int] = []

    return x * Local(2).value + collections.namedtuple("Pair", "a b")(1, 2).b


def defines_a_typed_dict(x):
    class Local(TypedDict):
        value: int

    return x * Local(value=2)["value"]


def annotates(x):
    values: List[int] = [3]
    others: Dict[str, T] = {}

    def inner(a: List[T], b: Optional[Known] = None) -> Dict[str, int]:
        return a

    return inner(x * values[0]), others


def uses_a_new_variable(x):
    variable = TypeVar("variable")
    return x * 2, List[variable].__args__[0].__name__


def uses_a_new_class(x):
    class Local:
        pass

    return x * 2, [List[Local], Optional[Local]][0].__args__[0].__name__


def makes_a_class(x):
    return x * type("Local", (), {"value": 2}).value


def makes_an_enumeration(x):
    return x * enum.Enum("Local", "a b").b.value


@pytest.mark.parametrize(
    "define",
    [
        defines_a_class, defines_a_dataclass, defines_a_named_tuple, defines_a_typed_dict, annotates, uses_a_new_variable, uses_a_new_class, makes_a_class,
        makes_an_enumeration,
    ],
)  # fmt: skip
@pytest.mark.parametrize("write", WRITES)
@program()
def test_definitions_in_functions(compile, define, write):
    @compile
    def f(x):
        WRITES[write]()
        return define(x)

    return [f(X) for _ in range(3)]


@pytest.mark.parametrize("f", [defines_a_class, makes_a_class])
def test_the_reason_says_that_a_class_is_made(f):
    with pytest.raises(oxyfuel.Unsupported, match="(defines|makes) a class"):
        oxyfuel.compile(f, fullgraph=True)(X)


@program()
def test_what_typing_makes_anew_is_anew(compile):
    variables = ParamSpec("variables")

    @compile
    def f(x):
        return x + 1, typing.ParamSpecArgs(variables), Annotated[int, [1]], ForwardRef("Known")

    results = [f(X) for _ in range(3)]
    results[0][2].__metadata__[0].append(2)
    results += [f(X)]
    flat = [made for _, *all_made in results for made in all_made]
    return len({id(made) for made in flat}), [repr(made) for made in flat]


@program()
def test_a_type_that_is_another_one_at_each_call(compile):
    @compile
    def f(x, kind):
        return x + 1, List[kind].__args__[0]

    kinds = [type(f"Kind{i}", (), {}) for i in range(3)] + [int, int, T]
    return [f(X, kind)[1].__name__ for kind in kinds]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the name of a type variable cannot be written to")
@program()
def test_what_a_type_variable_says_may_change(compile):
    variable = TypeVar("variable")

    @compile
    def f(x):
        return x * 2, variable.__name__

    first = f(X)
    variable.__name__ = "another"
    return first, f(X)
