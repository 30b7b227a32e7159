"""Modules called inside of a compiled function."""

import pytest
import torch.nn as nn

from capture_samples import made, x23
from eager_comparison import program


@program(whole=True)
def test_module(compile):
    net = made()
    f = compile(net)
    return [f(x23()), net.calls, f(x23() + 1), net.calls, f.calls, net(x23()), f.calls]


@program(whole=True)
def test_modules_in_a_dict(compile):
    nets = {"a": made(nn.Linear, 3, 3), "b": made(nn.Sequential, nn.Linear(3, 3), nn.ReLU())}
    f = compile(lambda name, x: nets[name](x) + nets["a"](x))
    results = [f("a", x23()), f("b", x23())]
    nets["b"] = nn.Identity()
    return results + [f("b", x23())]


@program(whole=True)
def test_module_method(compile):
    net = made()
    net.head = lambda x: net.linear(x) + 1
    f = compile(net.head)
    g = compile(net.forward)
    return f(x23()), g(x23()), g(x23())


@program(whole=True)
def test_sequential_and_containers(compile):
    net = made(nn.Sequential, nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2), nn.Softmax(-1)))
    f = compile(net)

    @compile
    def g(x):
        return [m(x) for m in net[:1]], len(net), net[2][0].weight.shape, [n for n, _ in net.named_children()]

    return f(x23()), g(x23())


@program()
def test_named_parameters_inside(compile):
    net = made()

    @compile
    def f(x):
        total = x.sum()
        names = []
        for name, parameter in net.named_parameters():
            names.append(name)
            total = total + parameter.sum()
        for buffer in net.buffers():
            total = total + buffer.sum()
        return total, names, sum(p.numel() for p in net.parameters()), [type(m).__name__ for m in net.modules()]

    return f(x23()), f(x23())


@program(whole=True)
def test_super_and_inheritance(compile):
    class Base(nn.Module):
        kind = "base"

        def forward(self, x, k=1):
            return x * k + self.extra(x)

        def extra(self, x):
            return x

        @classmethod
        def describe(cls, x):
            return cls.kind, x + 1

        @staticmethod
        def shift(x):
            return x - 1

    class Child(Base):
        kind = "child"

        def forward(self, x):
            return super().forward(self.shift(x), k=3) + super(Child, self).extra(x)

        def extra(self, x):
            return self.describe(x)[1] * 2 + len(super().describe(x)[0])

    f = compile(Child())
    return f(x23()), f(x23())


@pytest.fixture
def as_after_torch_compile():
    """torch.compile replaces these methods of every module, for good, when it is used for the first time."""
    from torch._dynamo.mutation_guard import install_generation_tagging_init

    names = ("__init__", "__setstate__")
    before = {name: getattr(nn.Module, name) for name in names}
    was_patched = not getattr(nn.Module, "___needs_generation_tag_patch", True)
    install_generation_tagging_init()
    yield
    if not was_patched:
        for name, method in before.items():
            setattr(nn.Module, name, method)
        setattr(nn.Module, "___needs_generation_tag_patch", True)


@program(whole=True)
def test_modules_made_in_a_process_that_uses_torch_compile(compile, as_after_torch_compile):
    layers = nn.ModuleList(made(nn.Linear, 3, 3) for _ in range(3))

    def f(x):
        for layer in layers[1:]:
            x = layer(x)
        return nn.Sequential(layers[0], nn.ReLU())(x)

    return compile(f)(x23())
