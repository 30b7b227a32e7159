"""oxyfuel.compile(dynamic_shapes=...): what a user says of all arguments at once, in the form of torch.export's."""

import collections

import pytest
import torch
from torch.export import Dim

import oxyfuel


def run(function, specification, *calls, **settings):
    """The number of compilations of calls whose results are eager's."""
    compiled = oxyfuel.compile(function, dynamic_shapes=specification, **settings)
    before = oxyfuel.metrics()["graphs"]
    for arguments in calls:
        torch.testing.assert_close(compiled(*arguments), function(*arguments))
    return oxyfuel.metrics()["graphs"] - before


def refused(kind, match, function, specification, *arguments, **settings):
    with pytest.raises(kind, match=match):
        oxyfuel.compile(function, dynamic_shapes=specification, **settings)(*arguments)


def rows(*sizes, columns=3):
    return [torch.randn(n, columns) for n in sizes]


def scaled(x):
    return x * 2 + x.size(0)


def both(x, y):
    return x.sum(0) + y.mean(0)


BATCH = Dim("batch")


@pytest.mark.parametrize(
    "specification",
    [
        {"x": {0: BATCH}},
        {"x": {-2: BATCH}},
        {"x": (BATCH, None)},
        {"x": [Dim.DYNAMIC, Dim.STATIC]},
        ({0: Dim.AUTO},),
        [{0: Dim.DYNAMIC(min=0, max=64)}],
        {"x": {0: Dim("n", max=100), 1: 3}},
    ],
)
def test_one_compilation(specification):
    assert run(scaled, specification, *[(x,) for x in rows(5, 2, 1, 0, 7)]) == 1


def test_dynamic_false_leaves_the_rest_numbers():
    calls = [(torch.randn(n, m),) for n, m in ((2, 3), (4, 3), (4, 5), (6, 5), (7, 6))]
    assert run(scaled, {"x": {0: BATCH}}, *calls, dynamic=False) == 3


def test_static_is_compiled_for_each_number():
    calls = [(torch.randn(n, m),) for n, m in ((2, 3), (4, 3), (4, 5), (5, 5))]
    assert run(scaled, {"x": {0: BATCH, 1: Dim.STATIC}}, *calls, dynamic=True) == 2
    assert run(scaled, {"x": None}, *calls, dynamic=True) == 4


def test_what_is_not_named_is_as_dynamic_says():
    calls = list(zip(rows(2, 3, 4), rows(5, 6, 7)))
    assert run(both, {"x": {0: BATCH}}, *calls) == 2
    assert run(both, {"x": {0: BATCH}}, *calls, dynamic=True) == 1


def test_the_same_name_is_the_same_size():
    specification = {"x": {0: BATCH}, "y": {0: BATCH}}
    compiled = oxyfuel.compile(lambda x, y: x + y, dynamic_shapes=specification)
    before = oxyfuel.metrics()["graphs"]
    for x, y in zip(rows(4, 5, 1), rows(4, 5, 1)):
        assert torch.equal(compiled(x, y), x + y)
    assert oxyfuel.metrics()["graphs"] == before + 1
    with pytest.raises(RuntimeError, match=r"x\.size\(0\) is 4 and y\.size\(0\) is 1.*'batch' is one number: 4 there"):
        compiled(*rows(4, 1))


def test_the_name_is_checked_where_no_operator_asks():
    compiled = oxyfuel.compile(both, dynamic_shapes={"x": {0: BATCH}, "y": {0: BATCH}})
    compiled(*rows(4, 4))
    with pytest.raises(RuntimeError, match="give them different names"):
        compiled(*rows(4, 5))


@pytest.mark.parametrize("is_reversed", [False, True])
def test_derived(is_reversed):
    def function(x, y):
        return (y + 1, x + 1) if is_reversed else x.repeat(2, 1) * y

    specification = {"x": {0: BATCH}, "y": {0: 2 * BATCH}}
    assert run(function, specification, *zip(rows(3, 5, 1, 0), rows(6, 10, 2, 0))) == 1
    refused(RuntimeError, r"y\.size\(0\) is 7, and no 'batch' makes", function, specification, *rows(3, 7))
    refused(RuntimeError, r"'batch' is one number: 3 there and 4 here", function, specification, *rows(3, 8))


def test_derived_of_what_no_argument_has():
    specification = {"x": {0: 3 * BATCH + 1}, "y": {0: BATCH - 1}}
    assert run(both, specification, *zip(rows(7, 10, 13), rows(1, 2, 3))) == 1
    refused(RuntimeError, "no 'batch' makes", both, specification, *rows(8, 1))


def test_bounds():
    specification = {"x": {0: Dim("n", min=2, max=16)}}
    assert run(lambda x: x * 2 if x.size(0) <= 16 else x, specification, *[(x,) for x in rows(3, 16, 2)]) == 1
    for size in (1, 17):
        text = rf"x\.size\(0\) is {size}, but the dimension 'n' of dynamic_shapes\['x'\]\[0\] is at least 2 and at most 16"
        refused(RuntimeError, text, scaled, specification, *rows(size))
    refused(RuntimeError, r"at most 4", scaled, {"x": {0: Dim.AUTO(max=4)}}, *rows(5))
    compiled = oxyfuel.compile(scaled, dynamic_shapes=specification)
    compiled(*rows(5))
    with pytest.raises(RuntimeError, match="at most 16"):
        compiled(*rows(20))
    assert torch.equal(compiled(*(x := rows(6))), scaled(*x))  # the function goes on


def test_a_program_that_needs_less_than_the_bounds():
    text = (
        r"(?s)to be 2 <= x\.size\(0\) <= 16, but the program needs x\.size\(0\) <= 8"
        r".*test_dynamic_shapes\.py:\d+ in .*other bounds"
    )
    specification = {"x": {0: Dim("n", min=2, max=16)}}
    refused(RuntimeError, text, lambda x: x * 2 if x.size(0) <= 8 else x, specification, *rows(3))
    # Without bounds the program may divide the sizes among graphs.
    assert run(lambda x: x * 2 if x.size(0) <= 8 else x * 3, {"x": {0: Dim("n")}}, *[(x,) for x in rows(3, 8, 9)]) == 2


def test_a_program_that_takes_one_number():
    def function(x):
        return x + torch.ones(4, 3)

    for said, text in ((BATCH, "the dimension 'batch'"), (Dim.DYNAMIC, r"Dim\.DYNAMIC")):
        refused(
            RuntimeError,
            rf"(?s){text} of dynamic_shapes\['x'\]\[0\], but the program takes it for 4.*in function.*Dim\.AUTO",
            function,
            {"x": {0: said}},
            *rows(4),
        )
    assert run(function, {"x": {0: Dim.AUTO}}, *[(x,) for x in rows(4, 1)]) <= 2


def test_ints():
    def function(x, n):
        return x * n + torch.arange(n)

    calls = [(torch.randn(n), n) for n in (3, 4, 7)]
    assert run(function, {"x": {0: BATCH}, "n": Dim.DYNAMIC}, *calls) == 1
    assert run(function, {"x": {0: Dim.AUTO}, "n": None}, *calls, dynamic=True) == 3
    refused(RuntimeError, "n is 3, but dynamic_shapes\\['n'\\] says that it is 4", function, {"n": 4}, *calls[0])
    refused(ValueError, "gives the int n a name", function, {"n": BATCH}, *calls[0])
    refused(RuntimeError, r"(?s)Dim\.DYNAMIC of dynamic_shapes\['n'\], but the program takes it for 3",
            lambda x, n: x * {3: 1, 4: 2}[n], {"n": Dim.DYNAMIC}, *calls[0])


def test_bounds_of_ints():
    calls = [(torch.randn(3), n) for n in (3, -5, 0)]
    assert run(lambda x, n: x * n, {"n": Dim.DYNAMIC(max=5)}, *calls) == 1
    refused(RuntimeError, r"n is 9, but Dim\.DYNAMIC of dynamic_shapes\['n'\] is at most 5", lambda x, n: x * n,
            {"n": Dim.DYNAMIC(max=5)}, torch.randn(3), 9)


def test_optional_arguments():
    def function(x, y=None):
        return x * 2 if y is None else x * y

    calls = [(rows(3)[0],), (rows(4)[0], None), tuple(rows(4, 4)), tuple(rows(5, 5))]
    assert run(function, {"x": {0: BATCH}, "y": {0: BATCH}}, *calls) == 3
    assert run(function, ({0: BATCH}, {0: BATCH}), *calls) == 3


def test_a_callable_without_a_signature():
    refused(ValueError, "no signature found", torch.sin, {"input": {0: BATCH}}, *rows(3))


def test_ints_within_containers_and_variadic_arguments():
    def function(*rest, **named):
        return rest[0] * rest[1][0] + named["k"]["n"] * torch.ones(rest[1][0])

    calls = [(torch.randn(n), [n]) for n in (3, 4, 6)]
    specification = {"rest": ({0: BATCH}, [Dim.DYNAMIC]), "named": {"k": {"n": Dim.DYNAMIC}}}
    compiled = oxyfuel.compile(function, dynamic_shapes=specification)
    before = oxyfuel.metrics()["graphs"]
    for i, arguments in enumerate(calls):
        assert torch.equal(compiled(*arguments, k={"n": i}), function(*arguments, k={"n": i}))
    assert oxyfuel.metrics()["graphs"] == before + 1


Pair = collections.namedtuple("Pair", "first second")


def test_nested_arguments():
    def function(inputs, pair):
        return inputs["a"][0].sum(0) + inputs["b"].sum(0) + pair.first.sum(0) * pair.second.size(0)

    def call(n, m):
        return {"a": rows(n), "b": rows(m)[0], "c": 1}, Pair(*rows(n, m))

    said = {0: BATCH}
    specification = {"inputs": {"a": [said], "b": {0: Dim.DYNAMIC}}, "pair": (said, {0: Dim.DYNAMIC})}
    assert run(function, specification, call(3, 4), call(5, 6), call(2, 2)) == 1
    arguments = call(3, 4)
    refused(ValueError, r"dynamic_shapes\['inputs'\] names the key 'z', which inputs does not have", function,
            {"inputs": {"z": None}}, *arguments)
    refused(ValueError, r"dynamic_shapes\['inputs'\]\['a'\] has 2 entries, and inputs\['a'\] has 1", function,
            {"inputs": {"a": [said, said]}}, *arguments)
    refused(ValueError, r"has to be a dict", function, {"inputs": [said]}, *arguments)
    refused(ValueError, r"has to be a tuple or list", function, {"inputs": {"a": {0: said}}}, *arguments)
    with_text = {**arguments[0], "c": "text"}
    refused(ValueError, r"only tensors and ints have sizes", function, {"inputs": {"c": {0: BATCH}}}, with_text, arguments[1])


def test_other_objects_that_pytree_knows():
    class Box:
        def __init__(self, x, y):
            self.x, self.y = x, y

    torch.utils._pytree.register_pytree_node(Box, lambda box: ([box.x, box.y], None), lambda items, _: Box(*items))
    calls = [(Box(*rows(n, n)),) for n in (3, 4, 5)]
    assert run(lambda box: box.x + box.y, {"box": [{0: BATCH}, {0: BATCH}]}, *calls) == 1


@pytest.mark.parametrize(
    "kind, match, specification",
    [
        (ValueError, r"names 'z', which is no parameter: they are x, y", {"z": None}),
        (ValueError, r"has 1 entries for the 2 arguments", (None,)),
        (ValueError, r"names the dimension 2, and x has 2", {"x": {2: BATCH}}),
        (ValueError, r"names the dimension -3", {"x": {-3: BATCH}}),
        (ValueError, r"names the dimension 'n'", {"x": {"n": BATCH}}),
        (ValueError, r"dynamic_shapes\['x'\] has 1 entries, and x has 2 dimensions", {"x": (BATCH,)}),
        (TypeError, r"dynamic_shapes\['x'\]\[0\] is a str: a size is", {"x": {0: "batch"}}),
        (TypeError, r"is a bool: a size is", {"x": {0: True}}),
        (TypeError, r"dynamic_shapes\['x'\] is a Dim: a tensor needs a dict", {"x": BATCH}),
        (RuntimeError, r"x\.size\(1\) is 3, but dynamic_shapes\['x'\] says that it is 7", {"x": {1: 7}}),
        (ValueError, r"two dimensions 'n' with different bounds", {"x": {0: Dim("n", max=9)}, "y": {0: Dim("n")}}),
    ],
)
def test_wrong_specifications(kind, match, specification):
    refused(kind, match, both, specification, *rows(4, 4))


def test_wrong_types():
    with pytest.raises(TypeError, match="dynamic_shapes must be a dict by parameter, a tuple or a list, not str"):
        oxyfuel.compile(scaled, dynamic_shapes="x")
    with pytest.raises(TypeError, match="not ShapesCollection"):
        oxyfuel.compile(scaled, dynamic_shapes=torch.export.ShapesCollection())


def test_one_tensor_twice():
    x = rows(4)[0]
    assert run(both, {"x": {0: BATCH}, "y": {0: BATCH}}, (x, x)) == 1
    assert run(both, {"x": {0: BATCH}, "y": {}}, (x, x)) == 1
    refused(ValueError, "says another thing of dimension 0", both, {"x": {0: BATCH}, "y": {0: Dim.STATIC}}, x, x)


def test_methods_and_modules():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, x, scale=None):
            return self.linear(x) if scale is None else self.linear(x) * scale

        def method(self, x):
            return x + self.linear.weight.sum()

    model = Model()
    with torch.no_grad():
        assert run(model, {"x": {0: BATCH}, "scale": None}, *[(x,) for x in rows(3, 4, 6)]) == 1
        assert run(model.method, {"x": {0: BATCH}}, *[(x,) for x in rows(3, 4, 6)]) == 1
    refused(ValueError, "no parameter: they are x, scale", model, {"y": None}, *rows(3))


def test_a_function_with_a_break():
    def function(x, y):
        z = x * 2
        print("break")
        return z + y

    calls = list(zip(rows(3, 4, 6), rows(3, 4, 6)))
    assert run(function, {"x": {0: BATCH}, "y": {0: BATCH}}, *calls) == 2


def test_gradients():
    def function(x, y):
        return (x * y).sum(0)

    compiled = oxyfuel.compile(function, dynamic_shapes=({0: BATCH}, {0: BATCH}))
    before = oxyfuel.metrics()["graphs"]
    for n in (4, 1, 6, 0):
        x, y = (t.requires_grad_() for t in rows(n, n))
        got = torch.autograd.grad(compiled(x, y).sum(), (x, y))
        torch.testing.assert_close(got, torch.autograd.grad(function(x, y).sum(), (x, y)))
    assert oxyfuel.metrics()["graphs"] == before + 1


def test_as_a_decorator_and_with_marks():
    @oxyfuel.compile(dynamic_shapes={"x": {0: Dim.STATIC}})
    def function(x):
        return x * 2

    before = oxyfuel.metrics()["graphs"]
    for x in rows(3, 4):
        oxyfuel.mark_dynamic(x, 0)  # the specification comes first
        function(x)
    assert oxyfuel.metrics()["graphs"] == before + 2


def test_arguments_that_do_not_fit_the_function():
    compiled = oxyfuel.compile(scaled, dynamic_shapes={"x": {0: BATCH}})
    with pytest.raises(TypeError, match="positional argument"):
        compiled()
    with pytest.raises(TypeError, match="positional argument"):
        compiled(*rows(3, 4))
