"""What C code asks of an object of the program's: special methods that log and change a list, times all that may call
them. The object is given, or made inside; what is given beside it, too."""

import array
import ast
import bisect
import cmath
import collections
import copy
import decimal
import fractions
import functools
import heapq
import itertools
import json
import math
import operator
import re
import string
import struct
import types

import pytest
import torch

import oxyfuel

EXPRESSIONS = """
int(u); float(u); complex(u); bool(u); str(u); repr(u); bytes(u); bytearray(u); len(u); abs(u); round(u);
round(u, 1); round(1.256, u); divmod(u, 2); divmod(7, u); pow(u, 2); pow(2, u); pow(2, 3, u); hex(u); bin(u);
oct(u); chr(u); range(u); list(range(u)); range(0, 9, u); slice(u); [7, 8, 9][u]; [7, 8, 9][u:]; [7, 8, 9][:u];
[7, 8, 9][::u]; (7, 8, 9)[u]; 'abc'[u]; 'abc'[:u]; b'abc'[u]; range(9)[u]; [0] * u; u * [0]; (1,) * u; 'a' * u;
u * 'a'; b'a' * u; [1] + u; (1,) + u; 'a' + u; u + [1]; 1 + u; u + 1; 1.5 + u; u * 2; 2 * u; u - 1; 1 - u;
u / 2; 2 / u; u // 2; 2 // u; u % 2; 7 % u; u ** 2; 2 ** u; u << 1; 1 << u; u & 1; u ^ 1; ~u; -u; +u; u == 2;
2 == u; u != 2; u < 2; 2 < u; u <= 2; u > 2; u in [1, 2]; 2 in u; u in {1: 1}; u in (2,); u in {2}; u in 'abc';
u in range(5); not u; u and 1; u or 1; 1 if u else 2; all([u]); any([u]); all(u); any(u); sum(u); sum([u, 1]);
sum([1], u); min(u); max(u); min(u, 3); max(u, 1); min([u, 1]); sorted(u); sorted([u, u]);
sorted([3, 1], key=u); list(u); tuple(u); set(u); dict(u); frozenset(u); list(map(u, [1, 2]));
list(filter(u, [1, 2])); list(zip(u, [1])); list(enumerate(u)); list(enumerate([1], u)); list(reversed(u));
next(iter(u)); [*u]; {*u}; {**u}; (lambda *a, **k: (a, sorted(k)))(*u); (lambda *a, **k: (a, sorted(k)))(**u);
f'{u}'; f'{u!r}'; f'{u!s}'; f'{u:3}'; f'{3:{u}}'; '%s' % u; '%s' % (u,); '%r' % (u,); '%d' % u; '%d' % (u,);
'%f' % (u,); '%x' % (u,); '%c' % (u,); '%*d' % (u, 3); '{}'.format(u); '{0!r}'.format(u); '{:{}}'.format(3, u);
format(u); format(u, '3'); 'a,b'.split(',', u); 'abc'.center(u); 'ab'.zfill(u); 'abc'.find('b', u);
'abcabc'.count('a', u); 'a'.join(u); 'a'.join([u]); 'abab'.replace('a', 'b', u); 'abc'.startswith('c', u);
'abc'.startswith(u); 5 .to_bytes(u, 'big'); int.from_bytes(u, 'big'); 1.5.__round__(u); 2.5.is_integer();
int('11', u); int(u, 3); float.fromhex('1'); [1, 2, 3].index(2, u); [1, 2, 3].index(u); [u, 1].index(1);
[1, 2].count(u); [u].count(2); [1, 2, 3].pop(u); [1, 2, 3].insert(u, 1); [1, 2, 2].remove(u); [3, 1, u].sort();
[1].extend(u); [1].append(u); [u] == [2]; (u,) == (2,); [u] < [3]; {u: 1}; {1: u} == {1: 2}; {1: 2}.get(u);
{1: 2}.pop(u, None); {}.setdefault(u, 1); {}.update(u); dict.fromkeys(u); dict([(u, 1)]); {1, 2}.union(u); {1};
{2}.discard(u); {1}.issubset(u); {1, 2}.isdisjoint(u); collections.deque(u); collections.deque([1], u);
collections.deque([1, 2]).rotate(u); collections.deque([1, 2, 3])[u]; collections.Counter(u);
collections.OrderedDict(u); collections.deque([1]) * u; collections.deque([u]) == collections.deque([2]);
collections.deque([1, 2]).index(u); collections.deque([1]).insert(u, 3); collections.deque([1, 2]).count(u);
collections.ChainMap(u); collections.namedtuple('N', 'a')(u) == (2,); itertools.islice([1, 2, 3], u);
list(itertools.islice([1, 2, 3], u)); list(itertools.repeat(1, u)); list(itertools.chain(u, [1]));
list(itertools.accumulate(u)); list(itertools.accumulate([u, 1])); list(itertools.combinations([1, 2, 3], u));
list(itertools.permutations(u)); list(itertools.product(u)); list(itertools.product([1], repeat=u));
list(itertools.starmap(u, [(1,)])); list(itertools.takewhile(u, [1])); list(itertools.compress([1], [u]));
list(itertools.groupby([u, u])); list(itertools.islice(itertools.count(u), 2));
list(itertools.islice(itertools.cycle(u), 3)); list(itertools.pairwise(u));
list(itertools.zip_longest(u, [1])); [list(q) for q in itertools.tee([1], u)]; functools.reduce(u, [1, 2]);
functools.reduce(operator.add, [1, 2], u); functools.reduce(operator.add, u); functools.partial(u, 1)(2);
operator.index(u); operator.add(u, 1); operator.add(1, u); operator.mul([1], u);
operator.getitem([1, 2, 3], u); operator.contains(u, 1); operator.contains([2], u); operator.countOf([2], u);
operator.indexOf([2], u); operator.length_hint(u); operator.itemgetter(u)([1, 2, 3]);
operator.itemgetter(1)(u); operator.attrgetter('x')(u); operator.not_(u); operator.truth(u);
operator.concat([1], u); operator.eq(u, 2); operator.neg(u); operator.call(u, 1); math.sqrt(u); math.floor(u);
math.ceil(u); math.trunc(u); math.gcd(u, 4); math.factorial(u); math.comb(5, u); math.isqrt(u); math.pow(u, 2);
math.fsum(u); math.fsum([u]); math.prod(u); math.prod([u, 2]); math.isclose(u, 2); math.hypot(u, 1);
math.ldexp(1.5, u); math.dist([u], [1]); math.copysign(1, u); math.isnan(u); math.log(u, 2); math.atan2(u, 1);
math.fmod(u, 2); math.modf(u); math.perm(u); math.lcm(u, 3); cmath.sqrt(u); bisect.bisect([1, 2, 3], u);
bisect.bisect(u, 2); bisect.insort([1, 2, 3], u); heapq.heappush([1, 2], u); heapq.nlargest(u, [1, 2, 3]);
heapq.nsmallest(1, u); heapq.heapify([u, 1]); copy.copy(u).__class__.__name__;
copy.deepcopy(u).__class__.__name__; copy.deepcopy([u])[0].__class__.__name__;
isinstance(u, collections.abc.Sized); isinstance(u, collections.abc.Iterable);
isinstance(u, collections.abc.Hashable); isinstance(u, collections.abc.Callable); callable(u); u is u;
hasattr(u, 'x'); getattr(u, 'x', 1); vars(u); bool([u]); torch.ones(u); torch.ones(2, u); torch.zeros((u,));
torch.full((2,), u); torch.tensor(u); torch.tensor([u, 1]); torch.arange(u); torch.arange(0, u); torch.eye(u);
x.sum(u - u if 0 else 0); x.view(u); x.reshape(u, 1); x.expand(u, 2); x[u - u if 0 else 0]; x + u; u + x;
x * u; x.repeat(u); x.unsqueeze(u); x.add(u); x.pow(u); x.new_ones(u); torch.add(x, u);
torch.add(x, 1, alpha=u); x.split(u); x.chunk(u); x.topk(u); torch.stack(u); torch.cat([x] * 2, u); x[u];
x[:u]; x[[u]]; x.flip(u); x.roll(u); torch.clamp(x, u); x == u; u == x; x < u; torch.where(x > 0, u, x);
torch.full_like(x, u); x.fill_(u); torch.nn.Linear(u, 1).weight.shape; torch.nn.functional.pad(x, (u, 1));
torch.nn.functional.dropout(x, u, False); torch.Size([u, 1]); torch.Size(u); x.size(u); x.to(u);
json.dumps({'a': 1}, indent=u); struct.pack('i', u); string.Template('$a').substitute(u);
decimal.Decimal(u); fractions.Fraction(u);
array.array('i', u); types.SimpleNamespace(a=u) == types.SimpleNamespace(a=2); memoryview(b'abc')[u];
bytearray(b'abc')[u]; bytes([u, 1]); 'abc'.encode(errors=u); compile(u, 'a', 'eval'); eval(u); getattr(u, u);
setattr(u, u, 1); isinstance(u, u); issubclass(int, u); super(u); list(zip(*[u])); sorted([2, 1], reverse=u);
max([1, 2], default=u); max(1, 2, key=u); enumerate(u, u); u | 1; 1 | u;
"""

VALUES = {
    "__index__": 2,
    "__int__": 2,
    "__float__": 2.0,
    "__complex__": 2 + 0j,
    "__bool__": True,
    "__len__": 2,
    "__str__": "s",
    "__repr__": "r",
    "__hash__": 5,
    "__trunc__": 2,
    "__floor__": 2,
    "__ceil__": 2,
    "__abs__": 2,
    "__neg__": -2,
    "__pos__": 2,
    "__invert__": -3,
    "__bytes__": b"ab",
    "__fspath__": "p",
    "__length_hint__": 2,
}
OPERATORS = "add sub mul truediv floordiv mod pow lshift rshift and or xor matmul divmod".split()
CALLS = {
    "__format__": lambda self, spec: "f",
    "__round__": lambda self, *digits: 2,
    "__eq__": lambda self, other: other == 2,
    "__lt__": lambda self, other: True,
    "__contains__": lambda self, item: True,
    "__getitem__": lambda self, i: [1, 2][i] if isinstance(i, int) else i,
    "__iter__": lambda self: iter([1, 2]),
    "__reversed__": lambda self: iter([2, 1]),
    "__call__": lambda self, *arguments, **keywords: len(arguments),
    "keys": lambda self: ["a"],
    **{f"__{name}__": lambda self, other: 3 for name in OPERATORS},
    **{f"__r{name}__": lambda self, other: 4 for name in OPERATORS},
    **{name: lambda self, value=value: value for name, value in VALUES.items()},
}
TOGETHER = [
    *[[name] for name in (*VALUES, "__format__", "__round__", "__eq__", "__lt__", "__contains__", "__iter__", "__call__")],
    ["__index__", "__len__"],
    ["__index__", "__int__", "__float__"],
    ["__hash__", "__eq__"],
    ["__getitem__"],
    ["__getitem__", "__len__"],
    ["keys", "__getitem__"],
    ["__trunc__", "__floor__", "__ceil__"],
    ["__abs__", "__neg__", "__pos__", "__invert__"],
    ["__length_hint__", "__iter__"],
    ["__reversed__", "__len__", "__getitem__"],
    [f"__{name}__" for name in OPERATORS],
    [f"__r{name}__" for name in OPERATORS],
]


def logging_class(names, log):
    def logs(name, function):
        def method(*arguments, **keywords):
            log.append(name)
            return function(*arguments, **keywords)

        return method

    return type("U", (), {name: logs(name, CALLS[name]) for name in names})


class Given(ast.NodeTransformer):
    """Containers of constants become parts of what is given."""

    def __init__(self):
        self.texts = []

    def visit_List(self, node):
        if any(isinstance(part, ast.Name) for part in ast.walk(node)):
            return self.generic_visit(node)
        self.texts.append(ast.unparse(node))
        return ast.parse(f"given[{len(self.texts) - 1}]", mode="eval").body

    visit_Tuple = visit_Set = visit_Dict = visit_List


def program(expression, inside, outside):
    given = Given()
    if outside:
        expression = ast.unparse(given.visit(ast.parse(expression, mode="eval")))
    lines = ["u = make() if inside else made", "y = x + 1", f"try: r = {expression}"]
    lines += ["except Exception as e: r = (type(e).__name__, str(e))"]
    lines += ["if isinstance(r, torch.Tensor): return y, r, len(log)"]
    lines += ["return y, len(r) if isinstance(r, (set, frozenset)) else repr(r), len(log)"]
    text = "def f(x, make, made, inside, log, given):\n" + "\n".join("    " + line for line in lines)
    return text, lambda: [eval(part) for part in given.texts]


def outcome(names, text, given, inside, call):
    namespace = dict(globals())
    exec(compile(text, "<program>", "exec"), namespace)
    function, log, found = call(namespace["f"]), [], []
    make = logging_class(names, log)
    made = make()
    for _ in range(3):
        log.clear()
        containers = given()
        try:
            found.append(repr(function(torch.ones(2), make, made, inside, log, containers)))
        except Exception as error:
            found.append((type(error).__name__, str(error)))
        found.append((list(log), repr(containers)))
    return re.sub("0x[0-9a-f]+", "", repr(found))


# Of the expressions one in so many with each object; which, changes from object to object.
SPARSITY = 5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("names", TOGETHER, ids=lambda names: names[0] if len(names) == 1 else f"{names[0]} and more")
def test_special_methods_in_c(names):
    oxyfuel.reset()
    expressions = EXPRESSIONS.replace("\n", " ").split(";")
    for i in range(TOGETHER.index(names) % SPARSITY, len(expressions), SPARSITY):
        inside, outside = i // SPARSITY % 2 == 0, i // SPARSITY % 4 < 2
        if not expressions[i].strip():
            continue
        text, given = program(expressions[i].strip(), inside, outside)
        wanted = outcome(names, text, given, inside, lambda function: function)
        assert outcome(names, text, given, inside, oxyfuel.compile) == wanted, f"inside: {inside}\n{text}"
