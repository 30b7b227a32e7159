"""copy.copy() and copy.deepcopy() of objects that have a say in it."""

import copy

import torch

import oxyfuel

from capture_samples import x23
from eager_comparison import outcome, program

LOG = []


class Asked:
    """Tells which names it was asked for."""

    def __getattr__(self, name):
        LOG.append(name)
        raise AttributeError(name)


class AnswersAll:
    def __getattr__(self, name):
        return lambda *arguments: name


class AskedForAll:
    def __init__(self):
        self.content = [1]

    def __getattribute__(self, name):
        LOG.append(name)
        return object.__getattribute__(self, name)


class OfTheObject:
    def __init__(self):
        self.__deepcopy__ = lambda memo: 5
        self.__copy__ = lambda: 6


class HidesKey:
    def __init__(self):
        self.__dict__["content"] = [1]

    @property
    def content(self):
        return "property"


class HalfSlots:
    __slots__ = ("first", "__dict__")

    def __init__(self):
        self.first = [1]
        self.second = self.first


class NoState:
    pass


class OwnState:
    def __init__(self):
        self.content = [1]

    def __getstate__(self):
        return {"content": [2]}


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.content = [1]


CLASSES = [Asked, AnswersAll, AskedForAll, OfTheObject, HidesKey, HalfSlots, NoState, OwnState, Holder]


def show(value):
    attributes = object.__getattribute__(value, "__dict__") if hasattr(type(value), "__dict__") else {}
    return type(value).__name__, [(name, item) for name, item in attributes.items() if name in ("content", "first", "second")]


@program()
def test_objects_that_have_a_say(compile):
    results = []
    for make in CLASSES:
        for copied in (copy.copy, copy.deepcopy):

            def function(x, value):
                result = copied(value)
                return result if isinstance(result, (int, str)) else show(result), x + 1

            LOG.clear()
            value = make()
            run = compile(function)
            results.append([outcome(run, x23(), value) for _ in range(2)])
            results.append(list(LOG))
    return results


@program()
def test_objects_made_and_copied(compile):
    @compile
    def function(x):
        value = HalfSlots()
        twin, shallow = copy.deepcopy(value), copy.copy(value)
        return x + 1, twin.first is twin.second, twin.first is value.first, shallow.first is value.first

    return [function(x23()) for _ in range(2)]


@program()
def test_classes_that_answer_for_their_class(compile):
    @compile
    def function(x, value):
        return x + 1, isinstance(value, int), isinstance(value, AskedForAll), isinstance(value, (str, NoState))

    LOG.clear()
    value = AskedForAll()
    return [function(x23(), value) for _ in range(2)], list(LOG)


def in_a_list():
    items = []
    ring = (items,)
    items.append(ring)
    return ring


def in_an_object():
    value = NoState()
    value.content = (value, {"own": value})
    return value.content


@program()
def test_rings_are_copied(compile):
    def function(x, given):
        made, twin = copy.deepcopy(in_a_list()), copy.deepcopy(given)
        return x + 1, made[0][0] is made, twin[0].content is twin, twin[1]["own"] is twin[0], twin[0] is given[0]

    return [compile(function)(x23(), in_an_object()) for _ in range(2)]


class OtherNames:
    """As the configurations of transformers: an attribute may have two names."""

    names = {"length": "size"}

    def __init__(self):
        self.size = 3

    def __setattr__(self, name, value):
        super().__setattr__(type(self).names.get(name, name), value)

    def __getattribute__(self, name):
        if name != "names":
            name = super().__getattribute__("names").get(name, name)
        return super().__getattribute__(name)


def test_objects_that_answer_as_usual_are_copied_without_a_break():
    def function(x, given):
        deep, shallow = copy.deepcopy(given), copy.copy(given)
        deep.length, shallow.length = 5, 7
        return x + 1, deep.size, shallow.size, given.length, type(deep), type(shallow)

    oxyfuel.reset()
    assert repr(oxyfuel.compile(function)(x23(), OtherNames())) == repr(function(x23(), OtherNames()))
    assert not oxyfuel.metrics()["breaks"]
