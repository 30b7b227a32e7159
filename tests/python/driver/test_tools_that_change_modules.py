"""Tools that change a module: its hooks, its class, its ``__dict__``. A compiled module is the module to them."""

import copy
import gc
import pickle
import weakref

import pytest
import torch
import torch.nn as nn
from eager_comparison import program
from torch.nn.utils import parametrize, prune

import oxyfuel

X = torch.ones(2, 3)
on_either = pytest.mark.parametrize("changed", ["compiled", "original"])
pytestmark = pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning", "ignore:.*_norm.*deprecated")


def pair(compile, changed, module):
    """A module that a tool is given, and one that is looked at."""
    compiled = compile(module)
    return (compiled if changed == "compiled" else module), compiled


@pytest.mark.parametrize("tool", ["weight_norm", "spectral_norm"])
@on_either
@program()
def test_norms(compile, changed, tool):
    module, compiled = pair(compile, changed, nn.Linear(3, 3))
    getattr(nn.utils, tool)(module)
    results = [compiled(X), sorted(compiled.state_dict())]
    getattr(nn.utils, f"remove_{tool}")(compiled)
    return results, compiled(X), sorted(compiled.state_dict()), len(compiled._forward_pre_hooks)


@on_either
@program()
def test_pruning(compile, changed):
    module, compiled = pair(compile, changed, nn.Linear(3, 3))
    prune.custom_from_mask(module, "weight", torch.eye(3))
    results = [prune.is_pruned(compiled), compiled(X)]
    prune.remove(compiled, "weight")
    results += [prune.is_pruned(compiled), compiled(X)]
    prune.random_unstructured(module, "weight", 0.3)
    prune.random_unstructured(compiled, "weight", 0.3)
    (hook,) = compiled._forward_pre_hooks.values()
    return results, compiled(X), isinstance(hook, prune.PruningContainer), len(hook), [method.__class__ for method in hook]


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight + weight.T

    def right_inverse(self, weight):
        return weight / 2


@on_either
@program()
def test_parametrizations(compile, changed):
    module, compiled = pair(compile, changed, nn.Linear(3, 3))
    parametrize.register_parametrization(module, "weight", Symmetric())
    results = [compiled(X), compiled.weight, parametrize.is_parametrized(compiled), compiled.__class__]
    results.append(copy.deepcopy(compiled)(X))
    compiled.weight = torch.eye(3)
    results += [compiled.weight, compiled(X)]
    parametrize.remove_parametrizations(compiled, "weight")
    return results, compiled.weight, compiled(X), compiled.__class__, isinstance(compiled, nn.Linear)


@on_either
@program()
def test_the_original_of_a_parametrized_module(compile, changed):
    module = nn.Linear(3, 3)
    compiled = compile(module)
    parametrize.register_parametrization(compiled if changed == "compiled" else module, "weight", Symmetric())
    return module(X), module.weight, type(module)


@program()
def test_lazy_modules(compile):
    net = compile(nn.LazyLinear(3))
    result = net(X)
    return result, isinstance(net, nn.LazyLinear), type(net).__name__, net.__class__, net.weight, repr(net), net(X)


class Scaled(nn.Module):
    factor = 2
    count = 0

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.factor

    def name(self):
        return "scaled"

    def add_one(self):
        self.__class__.count += 1
        return self.count, Scaled.count, type(self).count

    @classmethod
    def add_two(cls):
        cls.count += 2
        return cls.count, cls

    @staticmethod
    def three():
        return 3


class Shifted(Scaled):
    def forward(self, x):
        return x + self.factor

    def name(self):
        return "shifted"


@on_either
@program()
def test_another_class(compile, changed):
    module, compiled = pair(compile, changed, Scaled())
    results = [compiled(X), compiled.__class__, compiled.name()]
    module.__class__ = Shifted
    results += [compiled(X), compiled.__class__, compiled.name(), module.__class__, isinstance(compiled, Shifted)]
    compiled.__class__ = Scaled
    return results, module(X), compiled(X), compiled.name(), isinstance(compiled, Shifted), module.__class__


def test_a_class_with_another_layout_is_refused():
    class Slotted(nn.Module):
        __slots__ = ("extra",)

    compiled = oxyfuel.compile(Scaled())
    with pytest.raises(TypeError, match="layout differs"):
        compiled.__class__ = Slotted
    assert compiled.__class__ is Scaled and compiled(X).equal(X * 2)


@program()
def test_classes_and_their_methods(compile):
    Scaled.count = 0
    net = compile(Scaled())
    results = [net.add_one(), net.add_two(), net.__class__.add_two(), type(net).add_two(), net.three()]
    Scaled.add_two, before = Scaled.name, Scaled.__dict__["add_two"]
    try:
        results.append(net.add_two())
    finally:
        Scaled.add_two = before
    return results, Scaled.count, net.count, net.__class__


def test_a_class_that_is_derived_from_a_compiled_ones():
    class Derived(type(oxyfuel.compile(Scaled()))):
        count = 0

    assert Derived.add_two() == (2, Derived) == (Derived.count, Derived().__class__)
    assert Derived().add_two() == (4, Derived) and Scaled.__dict__["count"] != 4


@on_either
@program()
def test_another_dict(compile, changed):
    module, compiled = pair(compile, changed, Scaled())
    other = Scaled()
    other.factor, other.mark = 5, [1]
    module.__dict__ = other.__dict__
    results = [compiled(X), compiled.bias is other.bias, compiled.mark, compiled.factor]
    compiled.factor = 7
    return results, other.factor, compiled(X), module(X)


class Keeps:
    """A hook with state."""

    def __init__(self, seen):
        self.seen = seen
        self.limit = 2

    def __call__(self, module, arguments):
        if len(self.seen) < self.limit:
            self.seen.append(module)


@program()
def test_hooks_are_what_was_registered(compile):
    net, seen = compile(nn.Linear(3, 3)), []
    hook = Keeps(seen)
    handle = net.register_forward_pre_hook(hook)
    (found,) = net._forward_pre_hooks.values()
    results = [isinstance(found, Keeps), found == hook, hook == found, {hook: 1}[found], found.limit, found.__doc__, bool(found)]
    found.limit = 1
    results += [net(X), net(X), hook.limit, [module is net for module in seen]]
    copied = copy.deepcopy(net)
    (again,) = copied._forward_pre_hooks.values()
    again.seen.clear()
    copied(X)
    results += [isinstance(again, Keeps), again.seen is seen, [module is copied for module in again.seen]]
    (loaded,) = pickle.loads(pickle.dumps(net))._forward_pre_hooks.values()
    handle.remove()
    return results, type(loaded.__class__), loaded.limit, len(net._forward_pre_hooks)


def test_a_hook_that_is_registered_again_elsewhere():
    seen = []
    first, second, plain = oxyfuel.compile(nn.Linear(3, 3)), oxyfuel.compile(nn.Linear(3, 3)), nn.Linear(3, 3)
    first.register_forward_pre_hook(Keeps(seen))
    (found,) = first._forward_pre_hooks.values()
    found.limit = 5
    second.register_forward_pre_hook(found)
    plain.register_forward_pre_hook(found)
    for net in (first, second, plain):
        net(X)
    assert seen[0] is first and seen[1] is second and seen[2] is plain


@pytest.mark.parametrize("how", [oxyfuel.compile, oxyfuel.disable, lambda module: oxyfuel.disable(oxyfuel.compile(module))])
def test_a_module_that_its_class_holds_is_freed(how):
    def make():
        class Held(nn.Module):
            def forward(self, x):
                return x * 2

        Held.best = how(Held())
        Held.best(X)
        return weakref.ref(Held)

    held = make()
    oxyfuel.reset()
    for _ in range(2):
        gc.collect()
    assert held() is None


def test_classes_are_derived_once():
    first, second = oxyfuel.compile(Scaled()), oxyfuel.disable(Scaled())
    assert type(first) is type(second) is type(oxyfuel.disable(first))
