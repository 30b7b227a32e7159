"""What a compiled module is besides being called: its class, its copies, and what its class does when it is derived."""

import abc
import copy
import functools
import gc
import pickle
import weakref

import pytest
import torch
import torch.nn as nn

import oxyfuel

X = torch.ones(2, 3)


class Doubles(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x) * 2

    def another(self):
        return type(self)()

    @classmethod
    def make(cls):
        return cls()


def test_its_class_makes_modules():
    compiled = oxyfuel.compile(Doubles())
    for module in (compiled.another(), compiled.make(), type("Derived", (type(compiled),), {})()):
        assert isinstance(module, Doubles)
        torch.testing.assert_close(module(X), module.linear(X) * 2)
        for again in (copy.copy(module), copy.deepcopy(module), pickle.loads(pickle.dumps(module)) if type(module) is type(compiled) else module):
            torch.testing.assert_close(again(X), module(X))


def test_slices_of_a_sequential():
    layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    compiled = oxyfuel.compile(layers)
    torch.testing.assert_close(compiled[:1](X), layers[0](X))
    torch.testing.assert_close(copy.deepcopy(compiled[:1])(X), layers[0](X))


def test_a_copy_has_attributes_of_its_own():
    module = Doubles()
    module.count = 0
    compiled = oxyfuel.compile(module)
    shallow = copy.copy(compiled)
    shallow.count = 5
    assert module.count == compiled.count == 0
    torch.testing.assert_close(shallow(X), compiled(X))


def test_compiling_derives_no_class_that_the_program_sees():
    derived = []

    class Registered(nn.Module):
        def __init_subclass__(cls, **options):
            derived.append(cls)

    class Named(Registered, kind=3):
        def forward(self, x):
            return x * 2

    class Meta(type):
        def __new__(meta, name, bases, namespace):
            derived.append(name)
            return super().__new__(meta, name, bases, namespace)

    class Made(nn.Module, metaclass=Meta):
        def forward(self, x):
            return x * 2

    class Abstract(nn.Module, abc.ABC):
        def __init_subclass__(cls):
            derived.append(cls)

        @abc.abstractmethod
        def forward(self, x): ...

    class Concrete(Abstract):
        def forward(self, x):
            return x * 2

    before = list(derived)
    for cls in (Named, Made, Concrete):
        module = oxyfuel.compile(cls())
        torch.testing.assert_close(module(X), X * 2)
        assert isinstance(module, cls) and not isinstance(3, type(module)) and type(type(module)) is type(cls)
    assert derived == before


def seen_by_hook(seen, module, *args):
    seen.append(module)


def test_hooks_are_given_what_they_were_registered_on():
    net, seen = Doubles(), []
    compiled = oxyfuel.compile(net)
    hook = functools.partial(seen_by_hook, seen)
    names = {module: name for name, module in compiled.named_modules()}
    for module in compiled.modules():
        module.register_forward_pre_hook(hook)
        module.register_full_backward_hook(hook)
    net.register_forward_hook(hook, always_call=True)
    compiled(torch.ones(2, 3, requires_grad=True)).sum().backward()
    assert [names.get(module, "original") for module in seen] == ["", "linear", "original", "linear", ""]
    assert seen[2] is net
    copied = copy.deepcopy(compiled)
    copied(X)
    assert next(iter(copied._forward_pre_hooks.values())).args[0][len(seen)] is copied
    assert pickle.loads(pickle.dumps(compiled)).linear.weight.equal(net.linear.weight)


def test_slots_are_those_of_the_module():
    class Slotted(nn.Module):
        __slots__ = ("factor", "unset")

        def forward(self, x):
            return x * self.factor

    net = Slotted()
    net.factor = 2
    compiled = oxyfuel.compile(net)
    assert compiled.factor == 2 and compiled(torch.ones(1)) == 2
    compiled.factor = 3
    assert net.factor == 3 and compiled(torch.ones(1)) == 3
    del compiled.factor
    both = oxyfuel.disable(compiled)
    both.factor = 4
    assert net.factor == 4 and both(torch.ones(1)) == 4
    del both.factor
    for module in (net, compiled, both):
        for name in ("factor", "unset"):
            with pytest.raises(AttributeError, match=name):
                getattr(module, name)


def test_slots_behind_another_attribute():
    class Slotted(nn.Module):
        __slots__ = ("factor",)

    class Hiding(Slotted):
        factor = 3

        def forward(self, x):
            return x * self.factor

    compiled = oxyfuel.compile(Hiding())
    assert compiled(X).equal(X * 3) and compiled.factor == 3 and "factor" not in vars(type(compiled))


def test_slots_and_code_that_runs_when_derived():
    class Slotted(nn.Module):
        __slots__ = ("extra",)

        def __init_subclass__(cls): ...

        def forward(self, x):
            return x * 2

    torch.testing.assert_close(oxyfuel.compile(Slotted())(X), X * 2)


def test_classes_end_with_their_modules():
    def compile_and_forget():
        class Large(nn.Module):
            def forward(self, x):
                return x * 2

        oxyfuel.compile(Large())(X)
        return weakref.ref(Large)

    large = compile_and_forget()
    oxyfuel.reset()
    for _ in range(2):
        gc.collect()
    assert large() is None


def test_static_methods():
    class Holder:
        @oxyfuel.compile
        @staticmethod
        def add(x):
            return x + 7

    torch.testing.assert_close(Holder().add(X), X + 7)
    torch.testing.assert_close(Holder.add(X), X + 7)


class Registry(abc.ABC):
    pass


@pytest.mark.parametrize("kind", [Doubles, nn.Linear, (nn.Linear, nn.Module), Registry])
def test_isinstance_of_a_compiled_part(kind):
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = oxyfuel.compile(Doubles())

        def forward(self, x):
            return x + 1 if isinstance(self.part, kind) else x - 1

    net = Outer()
    torch.testing.assert_close(oxyfuel.compile(net, fullgraph=True)(X), net(X))
