"""What C code and libraries run for the program, or read for it, is run at every call and may change between calls."""

import pytest
import torch

from eager_comparison import outcome, program

# Defines f(x), what changes before call number `i` (change), and perhaps LOG, which is looked at.
PROGRAMS = {
    "a function that wraps one of torch": """
scale = [1.0]
@functools.wraps(F.relu)
def mine(t): LOG.append('mine'); return t * scale[0]
def f(x): return mine(x) + 1
def change(i): scale[0] = i + 1.0
""",
    "a function that torch calls": """
k = [1.0]
def distance(a, b): LOG.append('distance'); return (a - b).abs().sum(-1) * k[0]
def f(x): return F.triplet_margin_with_distance_loss(x, x + 3, x + 1, distance_function=distance, margin=0.5)
def change(i): k[0] = i + 1.0
""",
    "a replaced function under one of torch": """
old = F.scaled_dot_product_attention
m = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
for p in m.parameters(): torch.nn.init.ones_(p)
def f(x): q = torch.ones(1, 3, 4) * x.sum(); return m(q, q, q, need_weights=False)[0]
def change(i): F.scaled_dot_product_attention = old if i % 2 else lambda q, k, v, *a, **kw: LOG.append('sdpa') or v * 0
def undo(): F.scaled_dot_product_attention = old
""",
    "a replaced method under one of torch": """
old = torch.Tensor.softmax
def f(x): return F.softmax(x, dim=0)
def change(i): torch.Tensor.softmax = old if i % 2 else lambda t, *a, **kw: t * 0
def undo(): torch.Tensor.softmax = old
""",
    "a ufunc of a Python function": """
k = [1.0]
u = np.frompyfunc(lambda v: LOG.append(v) or v * k[0], 1, 1)
def f(x): return x * u(2)
def change(i): k[0] = i + 1.0
""",
    "defaults that a signature shows": """
def g(a, kept=[]): return a
def f(x): d = inspect.signature(g).parameters['kept'].default; d.append(1); return x + len(d)
""",
    "registered ways to copy": """
class P:
    def __init__(self, v): self.v = v
def f(x): return x + copy.deepcopy(P(1.0)).v
def change(i):
    if i == 1: copyreg.pickle(P, lambda o: (P, (o.v * 10,)))
    if i == 2: copy._deepcopy_dispatch[P] = lambda o, memo: P(o.v * 100)
""",
    "copies of modules": "def f(x): return x + 1, copy.deepcopy({'m': math})",
    "error handlers of codecs": """
k = ['?']
def handler(e): LOG.append('handler'); return k[0], e.end
codecs.register_error('of this test', handler)
def f(x): return x, 'aé'.encode('ascii', 'of this test'), bytes('aé', 'ascii', 'of this test'), 'é'.encode('ascii', 'replace')
def change(i): k[0] = str(i)
""",
    "a logger's own method": """
lg = logging.Logger('z', 30); lg.addHandler(logging.NullHandler()); on = [False]; lg.isEnabledFor(10)
lg.isEnabledFor = lambda level: LOG.append(level) or on[0]
lg.handle = lambda record: LOG.append(record.getMessage())
def f(x): lg.debug('hi'); return x + 1
def change(i): on[0] = i > 1
""",
    "a module that is not to be imported": """
def f(x):
    try: import module_of_this_test
    except ImportError: return x - 1
    return x + module_of_this_test.v
def change(i): sys.modules['module_of_this_test'] = None if i < 2 else types.SimpleNamespace(v=10.0)
def undo(): del sys.modules['module_of_this_test']
""",
    "a name that a module lacks": """
def f(x):
    try: from math import nothing_of_this_name
    except Exception as e: return x, type(e), str(e)[:40]
""",
    "an abstract class in a union": """
class A(abc.ABC): pass
class P: pass
U = typing.Union[str, A]
def f(x): return x + isinstance(P(), int | A), isinstance(5.5, U), issubclass(P, A | None)
def change(i):
    if i == 2: A.register(P); A.register(float)
""",
    "a protocol": """
@typing.runtime_checkable
class Counts(typing.Protocol):
    def count_things(self): ...
def f(x): return x + isinstance(5.5, Counts), isinstance([], Counts)
def change(i):
    if i == 2: Counts.register(float)
""",
    "the text of a member": """
class C(enum.Enum): A = [1]
def f(x): return x, str(C.A), f'{C.A}', repr(C.A), '%s' % C.A, '{}'.format(C.A)
def change(i):
    if i == 1: C.A.value.append(2)
    if i == 2: C.__str__ = lambda s: 'custom'; C.__repr__ = lambda s: 'represented'
""",
    "the text of a class": """
class B: pass
class E(Exception): pass
def g(): pass
def f(x): return x, str(B), f'{B}', '%s' % B, repr(E(1)), repr(g)[:12], repr(list[B]), str(math)[:15]
def change(i): B.__qualname__ = f'B{i}'; E.__name__ = f'E{i}'; g.__qualname__ = f'g{i}'
""",
    "members that an enum class lacks": """
class C(enum.Enum): A = 1
def f(x):
    try: C(5); return x + 1
    except ValueError: return x - 1
def change(i):
    if i == 2: C._value2member_map_[5] = C.A
""",
    "enum classes made by calls": """
made = []
def f(x): made.append(enum.Enum('E', 'A B')); return x + len(set(map(id, made)))
""",
    "the precision of products": """
def f(x): return x + len(torch.get_float32_matmul_precision())
def change(i): torch.set_float32_matmul_precision('high' if i % 2 else 'highest')
def undo(): torch.set_float32_matmul_precision('highest')
""",
    "how many digits numbers may have": """
def f(x):
    try: return x + int('9' * 5000) % 7
    except ValueError: return x - 1
def change(i): sys.set_int_max_str_digits(0 if i < 2 else 4300)
def undo(): sys.set_int_max_str_digits(4300)
""",
    "digits of numbers that become text": """
def f(x, n=10 ** 5000):
    try: return x + len(str(n)) + len('%d' % n) + len(f'{n}') + len(repr([n]))
    except ValueError: return x - 1
def change(i): sys.set_int_max_str_digits(0 if i < 2 else 4300)
def undo(): sys.set_int_max_str_digits(4300)
""",
    "whole numbers under another default dtype": """
w = torch.tensor([0, 1, 2**24, 2**24 + 1])
def f(x): return w == 2.0**24 + 1, w > 0.1, w <= 70000.0, w * 2.5, torch.where(w > 1, w, 0.5)
def change(i): torch.set_default_dtype([torch.float, torch.half, torch.double, torch.bfloat16][i])
def undo(): torch.set_default_dtype(torch.float)
""",
    "results given under another default dtype": """
def f(x): return torch.mul(torch.tensor([0, 1, 2**24 + 1]), 0.1, out=torch.empty(3, dtype=torch.double))
def change(i): torch.set_default_dtype([torch.float, torch.double][i % 2])
def undo(): torch.set_default_dtype(torch.float)
""",
    "the docstring of a property": """
class A:
    @property
    def p(self): 'one'
def f(x): return x + len(A.p.__doc__)
def change(i): A.p.__doc__ = 'x' * i
""",
    "the autocast dtype of other devices": """
def f(x): return x + (torch.get_autocast_dtype('xpu') == torch.float16) + 2 * torch.is_autocast_enabled('xpu')
def change(i): torch.set_autocast_dtype('xpu', [torch.bfloat16, torch.float16][i % 2]); torch.set_autocast_enabled('xpu', i > 1)
def undo(): torch.set_autocast_dtype('xpu', torch.float16); torch.set_autocast_enabled('xpu', False)
""",
    "a module's __getattr__": """
m = types.ModuleType('mm'); m.__getattr__ = lambda name: LOG.append(name) or 2.0
def f(x): return x * m.scale
""",
    "the order of fields": """
class A:
    def __init__(self, n): self.n = n
    def __str__(self): LOG.append(self.n); return self.n
def f(x): a, b = A('a'), A('b'); return x, '{1} {0} {0}'.format(a, b), '{0}'.format(a, b), '{} {}'.format(a, b)
""",
    "what is told once": """
st = []; lg = logging.Logger('z', 30); lg.handle = lambda record: LOG.append(list(st))
@functools.lru_cache(None)
def once(lg, m): lg.warning(m)
def f(x): st.append('before'); once(lg, 'message'); return x + 1
""",
}
IMPORTS = """
import abc, codecs, copy, copyreg, enum, functools, inspect, logging, math, sys, types, typing
import numpy as np, torch, torch.nn.functional as F
LOG = []
def change(i): pass
def undo(): pass
"""


@pytest.mark.parametrize("name", PROGRAMS)
@program()
def test_calls(compile, name):
    names = {"__name__": "run_for_real"}
    exec(IMPORTS + PROGRAMS[name], names)
    f = compile(names["f"])
    results = []
    try:
        for i in range(4):
            names["change"](i)
            results.append(outcome(f, torch.ones(1, 2))[:3])
            results.append(list(names["LOG"]))
    finally:
        names["undo"]()
    return results
