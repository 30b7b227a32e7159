"""Objects made inside compiled code that hold each other in rings, and ones that lie deep in each other."""

import collections
import copy
import functools
import itertools
import types

import pytest
import torch

import oxyfuel


class Node:
    def __init__(self, next=None):
        self.next = next


class Slots:
    __slots__ = ("content",)


class OwnList(list):
    pass


class OwnDict(dict):
    pass


Pair = collections.namedtuple("Pair", "a b")


def a_tuple_in_its_list():
    items = []
    ring = (items,)
    items.append(ring)
    return ring, ring[0][0] is ring


def the_list_of_its_tuple():
    items = []
    ring = (items,)
    items.append(ring)
    return items, ring


def a_tuple_of_its_object():
    node = Node()
    node.next = (node, 1)
    return node.next


def a_named_tuple():
    items = []
    ring = Pair(items, 1)
    items.append(ring)
    return ring


def a_frozenset_of_its_object():
    node = Node()
    node.next = frozenset([node])
    return node.next


def a_set_of_its_object():
    node = Node()
    node.next = ({node, (node, 1)},)
    return node.next


def a_partial():
    items = []
    ring = functools.partial(print, items)
    items.append(ring)
    return ring


def a_method_of_c_code():
    items = []
    ring = items.append
    ring(ring)
    return ring


def a_method():
    node = Node()
    node.next = node.__init__
    return node.next


def views():
    d = {}
    d[1] = d.values()
    d[2] = d.items()
    return d[1], d


def keys_of_their_dict():
    node = Node()
    d = {node: 1}
    node.next = (d, d.keys(), d.items())
    return node.next


def an_iterator_in_its_list():
    items = [1, 2]
    ring = iter(items)
    next(ring)
    items.append(ring)
    return ring


def an_iterator_and_its_list_in_a_tuple():
    items = [1, 2]
    iterator = iter(items)
    next(iterator)
    ring = (items, iterator)
    items.append(ring)
    return ring


def iterators_over_what_is_made():
    items, d = [1, 2, 3], {1: 2, 3: 4}
    keys = iter(d)
    next(keys)
    return reversed(items), itertools.chain(items, items), [keys, d, (keys, d)], items


def an_exception_with_itself():
    ring = ValueError(1)
    ring.args = (ring,)
    return ring


def an_exception_of_its_object():
    node = Node()
    node.next = ValueError(node, [node])
    return node.next


def subclasses_of_containers():
    items, d, queue = OwnList(), OwnDict(), collections.deque(maxlen=2)
    ring = (items, d, queue)
    items.append(ring)
    items.attribute = ring
    d[1] = ring
    d.attribute = d
    queue.append(ring)
    return ring


def a_default_dict():
    d = collections.defaultdict(list)
    d[1] = (d,)
    return d[1]


def slots():
    holder = Slots()
    ring = (holder,)
    holder.content = [ring, holder]
    return ring


def a_slice():
    items = []
    ring = slice(items, None)
    items.append(ring)
    return ring


def a_closure():
    items = []

    def function():
        return items

    items.append((function, items))
    return function


def a_generator():
    items = []

    def generate():
        yield items
        yield ring

    ring = generate()
    next(ring)
    items.append((ring,))
    return ring, items


def a_chain_of_tuples():
    nodes, last = [], None
    for i in range(300):
        last = Node((last, i))
        nodes.append(last)
    return last, nodes


RINGS = [value for name, value in list(globals().items()) if name.startswith(("a_", "an_", "the_"))]
RINGS += [views, keys_of_their_dict, iterators_over_what_is_made, subclasses_of_containers, slots]


def shape(value, places, shown):
    """What is reached from a value, each object once: later mentions say which it was."""
    if isinstance(value, (int, str, type(None), type, types.MethodDescriptorType)):
        return shown.append(value)
    if id(value) in places:
        return shown.append(("object", places[id(value)]))
    places[id(value)] = len(places)
    places.setdefault("kept alive", []).append(value)
    shown.append(type(value).__name__)
    parts = []
    if isinstance(value, (list, tuple, collections.deque)):
        parts = list(value)
    elif isinstance(value, dict):
        parts = [part for pair in value.items() for part in pair]
    elif isinstance(value, (set, frozenset)):
        parts = sorted(value, key=lambda item: type(item).__name__)
    elif isinstance(value, (functools.partial, BaseException)):
        parts = [value.args]
    elif isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        parts = [value.__self__]
    elif isinstance(value, slice):
        parts = [value.start]
    elif isinstance(value, Slots):
        parts = [value.content]
    elif isinstance(value, types.FunctionType):
        parts = [cell.cell_contents for cell in value.__closure__ or ()]
    elif isinstance(value, (collections.abc.Iterator, collections.abc.ValuesView, collections.abc.KeysView, collections.abc.ItemsView)):
        parts = [list(value)]
    if not isinstance(value, (types.FunctionType, types.MethodType)):
        parts += getattr(value, "__dict__", {}).values()
    for part in parts:
        shape(part, places, shown)


@pytest.mark.parametrize("make", RINGS, ids=lambda make: make.__name__)
def test_rings(make):
    def function(x):
        y = x + 1
        return make(), y

    compiled = oxyfuel.compile(function)
    wanted = []
    shape(function(torch.ones(1))[0], {}, wanted)
    for _ in range(3):
        found = []
        shape(compiled(torch.ones(1))[0], {}, found)
        assert found == wanted


LAYERS = {
    "list": lambda inner: [inner],
    "tuple": lambda inner: (inner,),
    "dict": lambda inner: {"a": inner},
    "object": Node,
    "partial": lambda inner: functools.partial(print, inner),
    "exception": ValueError,
    "method": lambda inner: Node(inner).__init__,
}


@pytest.mark.parametrize("kind", LAYERS)
def test_objects_deep_in_each_other(kind):
    """Deeper than the stack of the machine bears."""
    layer = LAYERS[kind]

    def function(x, given):
        made = 1
        for _ in range(30000):
            made = layer(made)
        return x + 1, made, [given]

    y, made, given = oxyfuel.compile(function)(torch.ones(1), layer(1))
    for _ in range(3):
        value, made = made, None
        while value != 1:
            parts = []
            if isinstance(value, (list, tuple)):
                parts = value
            elif isinstance(value, dict):
                parts = list(value.values())
            elif isinstance(value, types.MethodType):
                parts = [value.__self__.next]
            elif isinstance(value, Node):
                parts = [value.next]
            else:
                parts = value.args
            value = parts[0]
        made = value
    assert y.item() == 2 and made == 1


@pytest.mark.parametrize("show", [repr, copy.deepcopy, str, hash, lambda value: value == [value], lambda value: f"{value}"])
@pytest.mark.parametrize("kind", LAYERS)
def test_errors_of_what_is_too_deep(kind, show):
    layer = LAYERS[kind]

    def function(x, given):
        y = x + 1
        try:
            show(given)
        except RecursionError:
            return y, "RecursionError"
        except TypeError as error:
            return y, str(error)
        return y, "no error"

    given = 1
    for _ in range(5000):
        given = layer(given)
    if show is hash and kind == "tuple":
        given = (given, [])  # C code that calls itself without a limit
    assert oxyfuel.compile(function)(torch.ones(1), given)[1] == function(torch.ones(1), given)[1]
