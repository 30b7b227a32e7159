"""Versions of dicts and types, and instance attributes read without making a dict."""

import sys

import pytest

from frame_layer_module import layer


class Plain:
    def __init__(self, **values):
        for name, value in values.items():
            setattr(self, name, value)


class Slots:
    __slots__ = ("a",)


class DictLike(dict):
    pass


def set_attribute(owner): owner.a = object()
def add_attribute(owner): owner.fresh = 1
def delete_attribute(owner): del owner.a
def set_by_setattr(owner): setattr(owner, "a", object())
def set_by_object(owner): object.__setattr__(owner, "a", object())
def set_in_dict(owner): owner.__dict__["a"] = object()
def update_dict(owner): owner.__dict__.update(a=object())
def pop_from_dict(owner): owner.__dict__.pop("a")
def clear_dict(owner): owner.__dict__.clear()
def set_default(owner): owner.__dict__.setdefault("z", 1)
def merge_dict(owner): owner.__dict__.__ior__({"a": object()})
def pop_item(owner): owner.__dict__.popitem()


CHANGES = [set_attribute, add_attribute, delete_attribute, set_by_setattr, set_by_object, set_in_dict, update_dict,
           pop_from_dict, clear_dict, set_default, merge_dict, pop_item]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("warm", [False, True])
def test_every_change_of_an_instance_dict_changes_its_version(change, warm):
    if warm:  # the specialised forms of the instructions
        for _ in range(100):
            other = Plain(a=1, b=2)
            other.__dict__
            change(other)
    owner = Plain(a=1, b=2)
    dictionary = owner.__dict__
    for _ in range(3):
        owner.a = 0  # so that it can be deleted
        before = layer.dict_version(dictionary)
        assert layer.dict_version(dictionary) == before
        change(owner)
        after = layer.dict_version(dictionary)
        if before == 0:  # honest: there is none to be trusted
            assert sys.version_info >= (3, 13)
            continue
        assert after != before
        owner.__dict__.pop("fresh", None)
        owner.__dict__.pop("z", None)


def test_instance_dicts_have_versions_where_python_keeps_them():
    owner = Plain(a=1)
    assert (layer.dict_version(owner.__dict__) == 0) == (sys.version_info >= (3, 13))
    owner.__dict__ = {"a": 1}
    assert layer.dict_version(owner.__dict__) != 0


@pytest.mark.parametrize("dictionary", [{"a": 1}, DictLike(a=1), globals()], ids=["dict", "subclass", "globals"])
def test_every_change_of_a_dict_changes_its_version(dictionary):
    seen = {layer.dict_version(dictionary)}
    def changed():
        version = layer.dict_version(dictionary)
        assert version not in seen
        seen.add(version)
        assert layer.dict_version(dictionary) == version
    dictionary["oxy_key"] = 1
    changed()
    dictionary["oxy_key"] = 2
    changed()
    dictionary.update(oxy_key=3, oxy_other=4)
    changed()
    del dictionary["oxy_key"]
    changed()
    dictionary.pop("oxy_other")
    changed()
    dictionary.get("a"), len(dictionary), list(dictionary)
    assert layer.dict_version(dictionary) in seen


def test_a_global_statement_changes_the_version():
    def store():
        global oxy_global
        oxy_global = object()
    for _ in range(50):
        before = layer.dict_version(globals())
        store()
        assert layer.dict_version(globals()) != before


def test_two_dicts_never_share_a_version():
    versions = set()
    for i in range(1000):
        fresh = {"a": i}
        versions.add(layer.dict_version(fresh))
        del fresh
    assert len(versions) == 1000


def test_type_versions():
    class Base:
        x = 1
    class Child(Base):
        pass
    first = layer.assign_type_version(Child)
    assert first != 0 and layer.type_version(Child) == first
    Child().x
    assert layer.type_version(Child) == first
    Base.x = 2
    assert layer.type_version(Child) != first
    second = layer.assign_type_version(Child)
    Child.y = 3
    assert layer.type_version(Child) != second
    assert layer.assign_type_version(Child) not in (first, second, 0)
    assert layer.assign_type_version(Base) != layer.assign_type_version(Child)


def test_attributes_are_read_without_making_a_dict():
    owner = Plain(a=1, b="two")
    assert not layer.has_dict(owner) and layer.has_inline_values(owner)
    assert layer.instance_value(owner, "a") == 1 and layer.instance_value(owner, "b") == "two"
    assert layer.instance_value(owner, "missing") is layer.null
    del owner.a
    assert layer.instance_value(owner, "a") is layer.null
    owner.c = 3
    assert layer.instance_value(owner, "c") == 3
    assert not layer.has_dict(owner) and layer.has_inline_values(owner)
    assert owner.__dict__ == {"b": "two", "c": 3}
    assert layer.has_dict(owner) and not layer.has_inline_values(owner)
    assert layer.instance_value(owner, "c") == 3
    owner.__dict__["d"] = 4
    assert layer.instance_value(owner, "d") == 4
    owner.__dict__ = {"e": 5}
    assert layer.instance_value(owner, "e") == 5 and layer.instance_value(owner, "d") is layer.null


def test_objects_without_attributes_of_their_own():
    slots = Slots()
    slots.a = 1
    for thing in (slots, 5, "text", None, [], object()):
        assert layer.instance_value(thing, "a") is layer.null
        assert not layer.has_dict(thing) and not layer.has_inline_values(thing)
    def function(): pass
    function.a = 7
    assert layer.instance_value(function, "a") == 7 and layer.has_dict(function)
    error = ValueError()
    error.a = 8
    assert layer.instance_value(error, "a") == 8
    assert layer.instance_value(sys, "path") is sys.path


def test_names_that_are_equal_but_not_the_same_object():
    owner = Plain(abc=1)
    assert layer.instance_value(owner, "".join(["a", "bc"])) == 1


def test_many_attributes():
    owner = Plain(**{f"v{i}": i for i in range(100)})
    assert [layer.instance_value(owner, f"v{i}") for i in range(100)] == list(range(100))
