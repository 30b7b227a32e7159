"""Random classes that define special methods, with metaclasses and descriptors, used in every way that Python has: what is given,
what is raised, which methods are called in which order and what the objects hold, in eager and compiled.

    python tests/fuzz/class_programs.py --seeds 0:1000
    python tests/fuzz/class_programs.py --seeds 7:8 --show
"""

import builtins
import contextlib
import io
import random

import torch

import oxyfuel
import seeds

# Special methods, each with bodies to draw from. Every call is logged.
METHODS = {
    '__getattribute__(s, n)': ['return object.__getattribute__(s, n)', "if n.startswith('q'): return 5\nreturn object.__getattribute__(s, n)", "if n == 'z': raise AttributeError('no z')\nreturn object.__getattribute__(s, n)"],
    '__getattr__(s, n)': ['raise AttributeError(n)', 'return 7', "if n.startswith('_'): raise AttributeError(n)\nreturn n"],
    '__setattr__(s, n, v)': ['object.__setattr__(s, n, v)', 'pass', 'object.__setattr__(s, n, (v, 1))'],
    '__delattr__(s, n)': ['object.__delattr__(s, n)', 'pass'],
    '__eq__(s, o)': ['return True', 'return NotImplemented', 'return s is o', 'return 3', "raise ValueError('eq')"],
    '__ne__(s, o)': ['return True', 'return NotImplemented'],
    '__lt__(s, o)': ['return True', 'return NotImplemented', 'return id(s) == 3'],
    '__gt__(s, o)': ['return True', 'return NotImplemented', "return 'gt'"],
    '__hash__(s)': ['return 3', 'return -1', "return 'a'", "raise TypeError('nohash')"],
    '__bool__(s)': ['return True', 'return False', 'return 2', "raise KeyError('b')"],
    '__len__(s)': ['return 2', 'return 0', 'return -1', "return 'x'", 'return True'],
    '__call__(s, *a, **k)': ['return (a, k)', 'return s'],
    '__enter__(s)': ['return s', 'return 3', "raise ValueError('en')"],
    '__exit__(s, *a)': ['return True', 'return False', 'note(a[0]); return a[0] is KeyError', "raise IndexError('ex')"],
    '__iter__(s)': ['return iter([1, 2])', 'return s', 'yield 1; yield 2', 'return 3'],
    '__next__(s)': ['raise StopIteration', 'raise StopIteration(4)', 'if len(LOG) % 3 == 0 or len(LOG) > 200: raise StopIteration\nreturn 1'],
    '__contains__(s, o)': ['return True', 'return 0', "return 'x'"],
    '__getitem__(s, i)': ['return i', 'raise IndexError', 'if isinstance(i, int) and i > 2: raise IndexError(i)\nreturn i', 'raise KeyError(i)'],
    '__setitem__(s, i, v)': ['note((i, v))'],
    '__delitem__(s, i)': ['note(i)'],
    '__missing__(s, i)': ['return 4'],
    '__add__(s, o)': ['return 1', 'return NotImplemented', 'return s'],
    '__radd__(s, o)': ['return 2', 'return NotImplemented'],
    '__iadd__(s, o)': ['return s', 'return NotImplemented', 'return 9'],
    '__mul__(s, o)': ['return 1', 'return NotImplemented'],
    '__rmul__(s, o)': ['return 2', 'return NotImplemented'],
    '__sub__(s, o)': ['return 1', 'return NotImplemented'],
    '__or__(s, o)': ['return 1', 'return NotImplemented'],
    '__ror__(s, o)': ['return 2'],
    '__neg__(s)': ['return 3'],
    '__abs__(s)': ['return 3'],
    '__invert__(s)': ['return 3'],
    '__round__(s, n=None)': ['return n'],
    '__index__(s)': ['return 2', 'return True', "return 'x'", "raise TypeError('idx')"],
    '__int__(s)': ['return 2', 'return 2.5'],
    '__float__(s)': ['return 2.5', 'return 1'],
    '__complex__(s)': ['return 2j'],
    '__repr__(s)': ["return 'rr'", 'return 3', "return ''"],
    '__str__(s)': ["return 'ss'", 'return None'],
    '__format__(s, f)': ["return 'ff' + f", 'return 1'],
    '__bytes__(s)': ["return b'x'"],
    '__dir__(s)': ["return ['b', 'a']"],
    '__reversed__(s)': ['return [3]', "return iter('ab')"],
    '__length_hint__(s)': ['return 3', 'return NotImplemented', "raise TypeError('lh')"],
    '__copy__(s)': ['return 3', 'return s'],
    '__deepcopy__(s, m)': ['return 3', 'return s'],
    '__reduce_ex__(s, p)': ['return object.__reduce_ex__(s, p)', 'return (int, ())'],
    '__instancecheck__(s, o)': ['return True', 'return False', 'return 0'],
    '__subclasscheck__(s, o)': ['return True', 'return False'],
    '__divmod__(s, o)': ['return (1, 2)'],
    '__pow__(s, o, m=None)': ['return m', 'return NotImplemented'],
    '__matmul__(s, o)': ['return 5'],
    '__fspath__(s)': ["return 'p'"],
    '__trunc__(s)': ['return 5'],
    '__floor__(s)': ['return 5'],
    '__ceil__(s)': ['return 5'],
    '__aenter__(s)': ['return s', "raise ValueError('ae')"],
    '__aexit__(s, *a)': ['return True', 'return False', "raise IndexError('ax')"],
    '__aiter__(s)': ['return s', 'return 3'],
    '__anext__(s)': ['raise StopAsyncIteration', 'if len(LOG) % 3 == 0 or len(LOG) > 200: raise StopAsyncIteration\nreturn 1'],
    '__await__(s)': ['return iter([1])', 'yield 2', 'return 3'],
}
# Of metaclasses, besides those above.
OF_METACLASSES = {
    '__call__(s, *a, **k)': ['return type.__call__(s, *a, **k)', 'return 3', "o = type.__call__(s, *a, **k); o.__dict__['made'] = 1; return o"],
    '__getattribute__(s, n)': ['return type.__getattribute__(s, n)', "if n == 'k': return 77\nreturn type.__getattribute__(s, n)"],
    '__setattr__(s, n, v)': ['type.__setattr__(s, n, v)', 'pass'],
    '__delattr__(s, n)': ['type.__delattr__(s, n)'],
    '__new__(m, n, b, d, **k)': ["d = dict(d); d['extra'] = 3; return type.__new__(m, n, b, d)"],
    '__init__(s, *a, **k)': ["note('minit')"],
    '__eq__(s, o)': ['return s is o', 'return NotImplemented', 'return True'],
    '__hash__(s)': ['return 3', 'return type.__hash__(s)'],
}
# Of descriptors.
OF_DESCRIPTORS = {
    '__get__(s, o, t)': ['return 11', 'return s', "if o is None: return s\nreturn o.__dict__.get('_d', 0)", "raise AttributeError('dg')", 'return t.__name__'],
    '__set__(s, o, v)': ["o.__dict__['_d'] = v", "raise AttributeError('ds')", 'note(v)'],
    '__delete__(s, o)': ["note('del')", "o.__dict__.pop('_d', None)"],
    '__set_name__(s, t, n)': ["note(('sn', t.__name__, n))"],
    '__getattr__(s, n)': ['raise AttributeError(n)', 'return 7', "if n.startswith('_'): raise AttributeError(n)\nreturn n"],
    '__call__(s, *a, **k)': ['return (a, k)', 'return s'],
    '__bool__(s)': ['return True', 'return False', 'return 2', "raise KeyError('b')"],
    '__eq__(s, o)': ['return True', 'return NotImplemented', 'return s is o', 'return 3', "raise ValueError('eq')"],
}
# What is done with `a`, an object of class C, `b`, one of class D, which is derived from C, and `x`, a tensor.
EXPRESSIONS = """
a.k
a.d
a.z
a.q1
C.k
C.d
C.z
C.q1
b.d
b.k
D.d
D.k
type(a).__name__
a.__class__.__name__
getattr(a, 'z', 0)
getattr(C, 'z', 0)
hasattr(a, 'd')
hasattr(a, 'zz')
hasattr(C, 'd')
a == b
a != b
a == 3
3 == a
a < b
a > b
a < 3
a <= b
a is a
C == D
C != D
C == 3
hash(a) > 9**5 or hash(a)
hash(C) > 9**5 or hash(C)
bool(a)
bool(C)
not a
1 if a else 2
1 if C else 2
a and 3
a or 3
len(a)
len(C)
a()
a(1, k=2)
C()
list(a)
list(C)
tuple(a)
[v for v in a]
[v for v in C]
(*a,)
dict(a)
set(a)
sorted(a)
sum(a)
min(a)
max(a)
all(a)
any(a)
iter(a)
next(a)
next(iter(a))
next(a, 8)
3 in a
3 in C
a in [b, 3]
b in (a,)
a in {a: 1}
a[0]
a['x']
a[1:2]
a[...]
C[0]
C[int]
a + b
a + 3
3 + a
a - b
3 - a
a * 2
2 * a
a @ b
a 
3 
C 
C 
-a
abs(a)
~a
round(a)
round(a, 2)
int(a)
float(a)
complex(a)
bin(a)
range(a)
[1, 2, 3][a]
[5, 6, 7, 8][a:]
repr(a) if not 'at 0x' in object.__repr__(a) or '__repr__' in dir(type(a)) and type(a).__repr__ is not object.__repr__ else 0
str(a).count('at 0x')
format(a).count('at 0x')
format(a, '>3').count('at 0x')
f'{a}'.count('at 0x')
f'{a!r}'.count('at 0x')
f'{a:x}'.count('at 0x')
'%s' % (a,) == 1
bytes(a)
dir(a) == 3
reversed(a)
list(reversed(a))
isinstance(a, C)
isinstance(a, D)
isinstance(3, C)
isinstance(b, C)
isinstance(a, (D, int))
isinstance(3, (int, C))
issubclass(D, C)
issubclass(C, D)
issubclass(int, C)
isinstance(a, object)
callable(a)
callable(C)
a.m()
a.sm()
a.cm()
C.sm()
C.cm()
D.cm()
a.p
C.p is C.__dict__['p']
a.__dict__.get('k')
sorted(a.__dict__)
vars(a) == 3
divmod(a, 3)
pow(a, 2)
pow(a, 2, 3)
a ** 2
slice(a).stop is a
print(a is None)
[a, b].index(a)
[a, b].count(b)
[a, b] == [a, b]
[a] == [b]
(a,) < (b,)
{a: 1}.get(b)
{a, b} == {b, a}
{a: 1, b: 2}.get(a)
len({a, b})
dict.fromkeys([a, b]).get(a)
sorted([a, b]) == 1
min(a, b) is a
max(a, b) is a
list(zip(a, a))
list(map(str, [1]))
list(enumerate(a))
list(filter(None, [a]))[0:1] == 0
isinstance(a, type(b))
type(C).__name__
type(a) is C
C.__name__
C.__mro__[0] is C
D.__bases__[0] is C
C.__dict__.get('k')
copy.copy(a) is a
copy.deepcopy(a) is a
operator.add(a, 3)
operator.index(a)
operator.truth(a)
operator.length_hint(a, 5)
operator.attrgetter('k')(a)
operator.itemgetter(0)(a)
operator.methodcaller('m')(a)
functools.reduce(lambda p, q: p, a)
functools.partial(a, 1)()
functools.partial(a.m)()
math.floor(a)
math.ceil(a)
math.trunc(a)
math.sqrt(a)
os.fspath(a)
'ab'.join(a)
torch.ones(a).sum().item()
x[a].sum().item()
(x + a).sum().item()
(a + x)
(x == a)
x.sum(a)
torch.full((2,), a).sum().item()
x.view(a, 3).shape
x.reshape(a, -1).shape
[*a, *C]
m.Child(a).held is a
collections.Counter(a)
collections.deque(a)
collections.OrderedDict(a)
itertools.chain(a, a).__next__()
list(itertools.islice(a, 1))
dict(k=a)['k'] is a
{**a}
(lambda *p: len(p))(*a)
(lambda **p: len(p))(**a)
str.format('{0.k}', a)
str.format('{0[0]}', a)
'{:>5}'.format(a).count('at')
any(v is a for v in [a])
a.k.real
a.m.__func__ is C.__dict__['m']
a.m.__self__ is a
a.m == a.m
hash(a.m) == hash(a.m)
C.m(a)
super(D, b).m()
super(C, a).k
D.m(b)
object.__getattribute__(a, 'k')
type.__getattribute__(C, 'k')
object.__eq__(a, b)
a.__eq__(b)
a.__len__()
a.__hash__() == 1
a.__bool__()
C.__len__(a)
a.__init__()
a.__new__(C).k
a.__call__()
a.__add__(3)
a.__class__ is C
a | b
3 | a
C | D
C | int
drive(enter(a))
drive(walk(a))
drive(wait(a))
drive(enter(b))
[i async for i in a] if False else 0
type.__call__(C)
super(type(C), C).__getattribute__('k')
C.__call__()
b.__class__.__mro__[1] is C
type(a)() is a
C.__subclasses__() == 3
C.mro()[0] is C
""".strip().splitlines()
STATEMENTS = ['a.k = 5', 'a.d = 6', 'a.n = 7', 'del a.k', 'del a.d', 'del a.n', 'b.d = 3', 'C.k2 = 1', 'a[0] = 1', 'del a[0]', 'a[1:2] = 3', 'a += 1', 'b += a', 'a -= 1', 'with a as w: r.append(w is a)', "with a: raise KeyError('u')", 'with a, b: r.append(1)', "with a:\n    raise ValueError('v')", 'for v in a: r.append(v)', 'for v in C: r.append(v)', 'p, q = a', 'p, *q = a; r.append(q)', '[p, q] = C', 'assert a', "assert not a, 'msg'", 'while a:\n    r.append(1)\n    break', "match a:\n    case C(k=v): r.append(('m', v))\n    case _: r.append('no')", "match a:\n    case [p, q]: r.append(('s', p))\n    case {'x': p}: r.append(('d', p))\n    case 3: r.append('3')\n    case _: r.append('no')", 'match 3:\n    case C(): r.append(1)\n    case int(): r.append(2)', "try:\n    raise a\nfinally: r.append('fin')", 'try:\n    raise KeyError\nexcept a: r.append(1)', 'try:\n    raise KeyError\nexcept C: r.append(1)\nexcept KeyError: r.append(2)', 'class E(C): y = 4\nr.append(E.y)', 'class E(C):\n    d2 = a\nr.append(E().k)', 'global GG; GG = a; r.append(GG is a)', 'c = C(); c.k = 9; r.append(c.k); r.append(c.d)', 'c = C(); held.append(c); r.append(len(held))', 'c = D(); c.d = 3; r.append(c.d)', 'held[0:] = [a, b]; r.append(held[0] is a)', 'o = {}; o[a] = 1; o[b] = 2; r.append(len(o))', 's = {a}; s.add(b); r.append(len(s)); s.discard(a)', 'l = [a, b]; l.remove(b); r.append(len(l))', "setattr(a, 'k', 3); r.append(a.k)", "delattr(a, 'k')", "setattr(a, 'd', 3)", "a.__dict__['d'] = 44; r.append(a.d)", "a.__dict__['k'] = 45; r.append(a.k)", 'a.__dict__.update(z=1); r.append(a.z)', "r.append(f'{a.k}{b.k}')", 'yy = yield_(a); r.append(list(yy))', 'r.append(rec(a, 3))']

PRELUDE = """
import collections, copy, functools, itertools, math, operator, os, torch
LOG, held = [], []
def note(value):
    if len(LOG) > 300: raise OverflowError("too many calls")
    LOG.append(value)
class Holder:
    def __init__(self, held): self.held = held
def parts(o):
    yield o.k
    for v in o: yield v
def down(o, n): return o.k if n == 0 else (o.k, down(o, n - 1))
async def enter(o):
    async with o as v: return v is o
async def walk(o): return [v async for v in o]
async def wait(o): return await o
def drive(coroutine):
    try:
        for i in range(20): coroutine.send(None)
    except StopIteration as stop: return stop.value
    coroutine.close()
"""


def indented(text, depth):
    return "".join("    " * depth + line + "\n" for line in text.split("\n"))


def some_methods(draw, table, count, prefix):
    source = ""
    for signature in draw.sample(list(table), count):
        name = signature[: signature.index("(")]
        kind = "async " if name in ("__aenter__", "__aexit__", "__anext__") else ""
        source += indented(f"{kind}def {signature}:", 1) + indented(f"note({prefix + name!r})\n{draw.choice(table[signature])}", 2)
    return source


def program(seed):
    """The source of a program: classes C and D and a function ``f(x, a, b)``."""
    draw = random.Random(seed)
    source = PRELUDE
    has_metaclass = draw.random() < 0.5
    if has_metaclass:
        source += "class M(type):\n    k0 = 1\n" + some_methods(draw, METHODS | OF_METACLASSES, draw.randint(1, 3), "M.")
    source += "class Descriptor:\n    v = 1\n" + some_methods(draw, OF_DESCRIPTORS, draw.randint(0, 3), "Descriptor.")
    source += f"class C{'(metaclass=M)' if has_metaclass else ''}:\n"
    if draw.random() < 0.15:
        source += "    __slots__ = ('w', '__dict__')\n"
    source += "    k = 1\n    d = Descriptor()\n    def m(self): return self.k\n    @staticmethod\n    def sm(): return 4\n"
    source += "    @classmethod\n    def cm(cls): return cls.__name__\n    @property\n    def p(self): return self.k\n"
    source += some_methods(draw, METHODS, draw.choice([0, 1, 1, 2, 2, 3, 5]), "C.")
    source += "class D(C):\n    e = Descriptor()\n    j = 2\n" + some_methods(draw, METHODS, draw.choice([0, 0, 1, 2]), "D.")
    source += "def f(x, a, b):\n    r, y = [], x + 1\n"
    for _ in range(draw.randint(2, 6)):
        done = draw.choice(STATEMENTS) if draw.random() < 0.25 else f"r.append({draw.choice(EXPRESSIONS)})"
        source += indented("try:", 1) + indented(done, 2) + indented("except Exception as error: r.append((type(error).__name__, str(error)))", 1)
    return source + "    return r, y * 2\n"


def looks(value, depth=0):
    """A value as text; objects of a program's classes by the name of the class, for they may answer as they like."""
    kind = type(value)
    if depth == 5:
        return "..."
    if kind is torch.Tensor:
        return str((tuple(value.shape), value.tolist()))
    if kind in (list, tuple):
        return f"{kind.__name__}({', '.join(looks(item, depth + 1) for item in value)})"
    if kind is dict:
        return f"dict({', '.join(looks(key, depth + 1) + ': ' + looks(item, depth + 1) for key, item in value.items())})"
    if kind is str and " at 0x" in value:
        return "text with an address"
    return repr(value) if kind in (int, float, str, bool, complex, bytes, type(None), range) else type.__repr__(kind)


def run(source, name, compile):
    """What can be seen of three calls: results, calls of special methods, attributes of `a` and what is printed."""
    namespace, printed = {"__name__": "program"}, io.StringIO()
    exec(builtins.compile(source, name, "exec"), namespace)
    a, b = namespace["C"](), namespace["D"]()
    f, seen = compile(namespace["f"]), []
    with contextlib.redirect_stdout(printed):
        for _ in range(3):
            try:
                result = looks(f(torch.arange(6.0).reshape(2, 3), a, b))
            except Exception as error:
                result = looks(("raised", type(error).__name__, str(error)))
            log = list(namespace["LOG"])
            namespace["LOG"].clear()
            try:
                attributes = looks(object.__getattribute__(a, "__dict__"))
            except AttributeError:
                attributes = "none"
            seen.append((result, log, attributes))
    return [*seen, printed.getvalue()]


def difference(seed):
    """What differs between eager and compiled, as text; empty if nothing does, or if the classes cannot be made."""
    source, name = program(seed), f"<classes {seed}>"
    try:
        expected = run(source, name, lambda function: function)
    except Exception:  # a metaclass may make no class, a class no object
        return ""
    actual = run(source, name, oxyfuel.compile)
    oxyfuel.reset()
    for place, (left, right) in enumerate(zip(expected, actual)):
        if left != right:
            return f"call {place}: expected {left}, got {right}"
    return ""


if __name__ == "__main__":
    seeds.main(__doc__, program, difference)
