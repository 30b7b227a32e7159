"""What can be done with modules inside compiled code: every method of nn.Module and its containers, with arguments that fit and others."""

import copy
import itertools
import pickle
import re

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils as utils

import oxyfuel
from eager_comparison import is_close

ADDRESS = re.compile("0x[0-9a-f]+")
KINDS_EACH = {"eager": 5, "native": 3}  # the kinds take turns


class Block(nn.Module):
    count = 0

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("kept", torch.ones(4), persistent=False)
        self.register_parameter("nothing", None)
        self.scale = 2.0

    def forward(self, x):
        self.steps += 1
        self.count += 1
        return self.second(F.relu(self.first(x))) * self.scale + self.kept

    @property
    def size(self):
        return self.first.weight.shape[0]

    def extra_repr(self):
        return f"scale={self.scale}"


class Odd(nn.Module):
    """Its own attribute access and iteration."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.log = []

    def __getattr__(self, name):
        if name.startswith("made_"):
            return name[5:]
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        if not name.startswith("_") and name not in ("training", "log"):
            self.__dict__.setdefault("order", []).append(name)
        super().__setattr__(name, value)

    def __len__(self):
        return 2

    def __iter__(self):
        return iter([self.inner, self.inner])

    def forward(self, x):
        self.log.append(len(self.log))
        return self.inner(x) + len(self.log)


MODULES = {
    "linear": lambda: nn.Linear(4, 4),
    "block": Block,
    "odd": Odd,
    "sequential": lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.BatchNorm1d(4)),
    "list": lambda: nn.ModuleList([nn.Linear(4, 4), nn.Tanh()]),
    "dict": lambda: nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Tanh()}),
    "parameters": lambda: nn.ParameterList([torch.ones(4), torch.zeros(4)]),
    "named parameters": lambda: nn.ParameterDict({"a": torch.ones(4), "b": torch.zeros(4)}),
    "norm": lambda: nn.BatchNorm1d(4),
    "recurrent": lambda: nn.GRU(4, 4, batch_first=True),
    "dropped": lambda: nn.Sequential(nn.Dropout(0.0), nn.Identity()),
    "lazy": lambda: nn.LazyLinear(4),
    "weight norm": lambda: utils.parametrizations.weight_norm(nn.Linear(4, 4)),
    "nested": lambda: nn.Sequential(Block(), nn.ModuleList([nn.Linear(4, 4)]), nn.Sequential(nn.Linear(4, 2))),
}
EXPRESSIONS = """
m(x) | m(x, x) | m() | m.forward(x) | m.__call__(x) | type(m)(x) | m.training | m.T_destination | m.call_super_init | m.dump_patches
m.train() | m.train(False) | m.train(1) | m.eval() | m.requires_grad_() | m.requires_grad_(False) | m.zero_grad() | m.zero_grad(set_to_none=False) | m.half() | m.double() | m.float() | m.bfloat16()
m.to(torch.float64) | m.to('cpu') | m.to(x) | m.to(torch.int64) | m.to(1) | m.to(device='cpu', dtype=torch.float64) | m.to(memory_format=torch.channels_last) | m.type(torch.float64) | m.cpu() | m.to_empty(device='meta') | m.share_memory() is m
list(m.parameters()) | list(m.parameters(recurse=False)) | list(m.named_parameters()) | list(m.named_parameters('p')) | list(m.named_parameters(remove_duplicate=False)) | list(m.buffers()) | list(m.named_buffers(recurse=False))
list(m.children()) | list(m.named_children()) | list(m.modules()) | list(m.named_modules()) | list(m.named_modules(prefix='p', remove_duplicate=False)) | [type(c).__name__ for c in m.children()] | dict(m.named_parameters()).keys()
sum(p.numel() for p in m.parameters()) | sum(p.sum() for p in m.parameters()) | next(m.parameters()) | next(m.parameters()).device | next(m.parameters()).dtype | len(list(m.modules())) | max(p.abs().max() for p in m.parameters())
m.state_dict() | m.state_dict(prefix='p.') | m.state_dict(keep_vars=True) | list(m.state_dict()) | m.load_state_dict(m.state_dict()) | m.load_state_dict({}) | m.load_state_dict({}, strict=False) | m.load_state_dict(n.state_dict(), assign=True)
m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()}) | m.get_submodule('') | m.get_submodule('inner') | m.get_submodule('0') | m.get_submodule('first.weight') | m.get_parameter('weight') | m.get_parameter('0.weight') | m.get_buffer('steps') | m.set_submodule('inner', n)
m.get_extra_state() | m.extra_repr() | repr(m) | str(m) | f'{m}' | m._get_name() | dir(m) | sorted(vars(m)) | list(m.__dict__) | hash(m) == hash(m) | m == m | m != n | m is m | bool(m) | len(m) | list(m) | iter(m) is m | m in [m, n] | {m: 1}[m] | id(m) == id(m)
m.weight | m.bias | m.missing | m.scale | m.size | m.count | m.steps | m.nothing | m.inner | m.made_up | m[0] | m[-1] | m[5] | m['a'] | m['z'] | m[0:1] | m[:] | m[::-1] | m[x] | m[None] | 'a' in m | m.in_features | m.weight.grad | m.weight.requires_grad | m.a | m.running_mean
getattr(m, 'weight') | getattr(m, 'missing', 3) | hasattr(m, 'weight') | hasattr(m, 'missing') | isinstance(m, nn.Module) | isinstance(m, nn.Linear) | isinstance(m, (nn.Sequential, nn.ModuleList)) | issubclass(type(m), nn.Module) | type(m) | type(m).__name__ | m.__class__ | m.__module__ | m.__doc__ is None | callable(m)
m.keys() | list(m.keys()) | list(m.items()) | list(m.values()) | m.get('a') | m.get('z', 1) | m.pop('a') | m.pop(0) | m.pop() | m.popitem() | m.clear() | m.copy() | m.setdefault('a', x) | m.fromkeys(['q']) | m.update({'c': nn.ReLU()}) | m.update([('c', nn.ReLU())]) | m.update(1) | m | {'c': x}
m.append(nn.ReLU()) | m.append(x) | m.append(torch.ones(2)) | m.append(1) | m.extend([nn.ReLU()]) | m.extend(m) | m.extend(1) | m.insert(0, nn.ReLU()) | m.insert(9, nn.ReLU()) | m.insert(0, 1) | m + m | m + n | m * 2 | 2 * m | m + 1 | reversed(m) | list(reversed(m))
m.apply(lambda c: None) | m.apply(lambda c: c.train(False)) | m.apply(lambda c: setattr(c, 'seen', 1)) | m._apply(lambda t: t * 2) | m.apply(1) | m.register_buffer('more', x) | m.register_buffer('more', None) | m.register_buffer('more', 1) | m.register_buffer('a.b', x) | m.register_buffer('weight', x) | m.register_buffer('', x)
m.register_parameter('more', nn.Parameter(x)) | m.register_parameter('more', x) | m.register_parameter('more', None) | m.register_parameter('forward', None) | m.add_module('more', nn.ReLU()) | m.add_module('more', None) | m.add_module('more', 1) | m.add_module('forward', n) | m.register_module('more', nn.ReLU())
copy.copy(m) is m | copy.copy(m) | copy.deepcopy(m) | copy.deepcopy(m)(x) | pickle.loads(pickle.dumps(m.state_dict())) | nn.Sequential(m, m)(x) | nn.Sequential(m, nn.ReLU()) | nn.ModuleList([m, n]) | nn.ModuleDict({'a': m}) | nn.Identity()(m)
utils.parameters_to_vector(m.parameters()) | utils.vector_to_parameters(torch.arange(100.0), m.parameters()) | utils.clip_grad_norm_(m.parameters(), 1.0) | utils.clip_grad_value_(m.parameters(), 1.0) | utils.get_total_norm(m.parameters()) | utils.parametrize.is_parametrized(m) | utils.parametrize.is_parametrized(m, 'weight')
torch.func.functional_call(m, dict(m.named_parameters()), (x,)) | torch.func.functional_call(m, {k: v * 2 for k, v in m.named_parameters()}, x) | [p.requires_grad for p in m.parameters()] | [n for n, _ in m.named_parameters()] | {k: v.shape for k, v in m.state_dict().items()} | m.compile() is None
"""
STATEMENTS = r"""
m.train(False); y = m(x); m.train() | m.scale = 3; y = m(x) | m.scale += 1; y = m(x) | m.new = x; y = m(x) + m.new | m.new = nn.Linear(4, 4); y = m(x) | m.weight = nn.Parameter(x[0] + m.weight.detach()); y = m(x)
m.weight = x; y = 1 | m.weight = None; y = m.weight | m.weight = 1; y = 1 | m.first = nn.Linear(4, 4); y = m(x) | m.first = None; y = m(x) | m.first = x; y = 1 | m.steps = x; y = m(x) | m.steps = None; y = m.steps | m.steps = 1; y = 1 | m.steps = nn.Parameter(x); y = m.steps
del m.weight; y = 1 | del m.bias; y = m(x) | del m.first; y = list(m._modules) | del m.steps; y = list(m._buffers) | del m.scale; y = 1 | del m.missing; y = 1 | del m[0]; y = list(m._modules) | del m['a']; y = len(m) | del m[-1]; y = len(m) | del m[0:1]; y = len(m) | m.bias = None; y = m(x)
m[0] = nn.ReLU(); y = m[0](x) | m['c'] = nn.ReLU(); y = m['c'](x) | m[1] = x; y = m[1] | m['a'] = x; y = m['a'] | m[5] = nn.ReLU(); y = 1 | m += [nn.ReLU()]; y = len(m) | m *= 2; y = len(m) | m |= {'c': x}; y = len(m)
m.weight.data.mul_(2); y = m(x) | m.weight.data = x; y = m.weight | m.weight.requires_grad = False; y = m(x) | m.weight.grad = torch.ones_like(m.weight); y = m.weight.grad + 1 | m(x).sum().backward(); y = m.weight.grad | m.weight.add_(1); y = 1
with torch.no_grad(): m.weight.add_(1)\n  y = m(x) | with torch.no_grad(): y = m(x) | with torch.no_grad(): [p.zero_() for p in m.parameters()]\n  y = m(x) | y = x\n  for c in m: y = c(y) | y = x\n  for c in m.children(): y = c(y) | y = x\n  for k, c in m.items(): y = c(y) | y = 0\n  for p in m.parameters(): y = y + p.sum()
h = m.register_forward_hook(lambda m, a, o: o * 2); y = m(x); h.remove() | h = m.register_forward_pre_hook(lambda m, a: (a[0] + 1,)); y = m(x); h.remove() | m.register_forward_hook(lambda m, a, o: o + 1); y = m(x) | m.register_forward_hook(lambda m, a, k, o: o + 1, with_kwargs=True); y = m(x)
m.register_forward_pre_hook(lambda m, a, k: (a, k), with_kwargs=True); y = m(x) | m.register_forward_hook(lambda m, a, o: None, always_call=True); y = m(x) | m.register_forward_hook(lambda m, a, o: 1 / 0); y = m(x) | m.register_full_backward_hook(lambda m, i, o: None); y = m(x) | m.register_full_backward_pre_hook(lambda m, o: None); y = m(x)
m.register_state_dict_pre_hook(lambda m, p, k: None); y = list(m.state_dict()) | m.register_state_dict_post_hook(lambda m, s, p, l: s.update(q=1)); y = list(m.state_dict()) | m.register_load_state_dict_pre_hook(lambda m, s, *a: None); y = m.load_state_dict(m.state_dict()) | m.register_load_state_dict_post_hook(lambda m, i: None); y = m.load_state_dict(m.state_dict())
m.forward = lambda x: x + 1; y = m(x) | m.forward = m.forward; y = m(x) | m.__class__ = Block; y = type(m) | m._modules['z'] = nn.ReLU(); y = list(m.named_children()) | m._parameters.clear(); y = list(m.parameters()) | m.__dict__['q'] = 1; y = m.q | m._buffers['b'] = x; y = m.b | m.training = False; y = m(x) | m.training = not m.training; y = m.training
nn.init.ones_(m.weight); y = m(x) | nn.init.zeros_(m.bias); y = m(x) | nn.init.constant_(m.weight, 0.5); y = m(x) | nn.init.eye_(m.weight); y = m(x) | m.reset_parameters is None; y = 1 | utils.parametrize.register_parametrization(m, 'weight', nn.Identity()); y = m(x) | utils.parametrizations.weight_norm(m); y = m(x) | utils.parametrizations.spectral_norm(m); y = type(m)
utils.parametrize.remove_parametrizations(m, 'weight'); y = m(x) | utils.weight_norm(m); y = m(x) | utils.remove_weight_norm(m); y = 1 | utils.fusion is None; y = 1 | a = m; a.extra = 1; y = m.extra | a = m.weight; m.weight = nn.Parameter(a * 2); y = a.sum() + m.weight.sum() | m.first.weight = nn.Parameter(x); y = m.second.weight is m.first.weight
class Local(nn.Module):\n    def forward(self, x): return x * 2\n  y = Local()(x) | class Local(nn.Linear): pass\n  y = Local(4, 4).weight.shape | c = nn.Linear(4, 4); c.load_state_dict(m.state_dict()); y = c(x) | c = nn.Linear(4, 4).requires_grad_(False); nn.init.ones_(c.weight); nn.init.zeros_(c.bias); y = c(x) | c = copy.deepcopy(m); c.scale = 9; y = m(x)
"""


def programs():
    for line in EXPRESSIONS.strip().splitlines():
        yield from (f"return {expression.strip()}" for expression in line.split(" | "))
    for line in STATEMENTS.strip().splitlines():
        yield from (f"{statement.strip()}\n  return y".replace("\\n", "\n") for statement in line.split(" | "))


def look(value, known):
    if isinstance(value, torch.Tensor):
        if id(value) in known:
            return "tensor", known[id(value)]
        known[id(value)] = len(known)
        known.setdefault("kept", []).append(value)
        if isinstance(value, nn.UninitializedParameter) or value.is_meta:
            return type(value).__name__, str(value.device)
        return (type(value).__name__, str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad, value.is_leaf, value.grad is None, value.detach().double().flatten().tolist())
    if isinstance(value, nn.Module):
        if id(value) in known:
            return "module", known[id(value)]
        known[id(value)] = len(known)
        known.setdefault("kept", []).append(value)
        return type(value).__name__, [(k, look(v, known)) for k, v in value.__dict__.items()]
    if isinstance(value, torch.nn.modules.module._IncompatibleKeys):
        return str(value)
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [look(item, known) for item in value]
    if isinstance(value, dict):
        return type(value).__name__, [(i if isinstance(key, int) else look(key, known), look(item, known)) for i, (key, item) in enumerate(value.items())]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, value))
    if callable(value):
        return type(value).__name__, getattr(value, "__qualname__", None)
    return type(value).__name__, ADDRESS.sub("0x", repr(value))


def seen(function, m, n, number):
    x = torch.rand(4, 4, generator=torch.Generator().manual_seed(number)) - 0.3
    try:
        torch.manual_seed(number)
        result = function(m, n, x)
    except Exception as error:
        message = str(error).split("\n")[0]
        result = type(error).__name__, "takes ..." if "takes " in message else ADDRESS.sub("0x", message)
    return look((result, m, n, x), {})


def make(kind):
    torch.manual_seed(0)
    return MODULES[kind](), nn.Linear(4, 4)


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("part", range(4))
@pytest.mark.filterwarnings("ignore")
def test_what_can_be_done_with_modules(part, backend):
    kinds = itertools.cycle(MODULES)
    for body in itertools.islice(programs(), part, None, 4):
        namespace = {}
        exec(f"def f(m, n, x):\n  {body}", globals(), namespace)
        function = namespace["f"]
        for kind in itertools.islice(kinds, KINDS_EACH[backend]):
            if kind == "lazy" and body.startswith("del m."):
                continue  # the result is memory that nobody has written
            oxyfuel.reset()
            compiled = oxyfuel.compile(function, backend=backend)
            expected, actual = make(kind), make(kind)
            for number in (1, 2, 3):
                wanted = seen(function, *expected, number)
                found = seen(compiled, *actual, number)
                assert is_close(found, wanted, 1e-3, 1e-5), (body, kind, number, found, wanted)
