"""Random calls of what the standard library has, with arguments that fit and others, from a seed: programs as those of
program_generator.py, for the same runner."""

import importlib
import random

from program_generator import Program

MODULES = """abc ast base64 bisect builtins calendar cmath collections colorsys contextlib copy dataclasses datetime decimal difflib enum fnmatch
fractions functools hashlib heapq html inspect itertools json keyword math operator pprint random re reprlib shlex statistics string struct
textwrap types typing unicodedata""".split()

# What runs other programs or is one, waits, answers by addresses or the state of the process, or takes long.
LEFT_OUT = set("""exec eval exit quit input open breakpoint help license credits copyright compile globals locals vars dir id hash print
SystemRandom getrandbits randbytes seed cycle count repeat memoryview currentframe stack trace getouterframes getinnerframes perm comb factorial
pow SystemExit KeyboardInterrupt GeneratorExit BaseException BaseExceptionGroup prmonth prcal setcontext localcontext scrypt pbkdf2_hmac
main file_digest field getsourcelines findsource getsource getsourcefile getmodule getcomments getdoc getabsfile getfile new""".split())

ARGUMENTS = """0 1 2 3 -1 7 2.5 -0.5 1j True None ... NotImplemented 'ab' 'a' '' 'a,b' 'k' '{}' '%s' b'xy' [3,1,2] [] [1.5,2.5] ['b','a'] [[1,2],[3]]
[(1,2),(3,4)] (1,2) () {'a':1,'b':2} {} {1,2} frozenset([3]) range(3) slice(1,2) iter([1,2,3]) zip([1],[2]) map(str,[1]) generated()
fn ends_in_two len max operator.add functools.partial(max,1) x.sum obj.m int str list dict object Obj Number Color ValueError ValueError('e') obj
Number(2) Items() Color.A Data(1) Pair(1,2) lst dct dq dd od cnt x y x[0] x.shape torch.float32 decimal.Decimal('1.5') fractions.Fraction(1,3)
datetime.date(2020,1,2) datetime.timedelta(1) re.compile('a')""".split()
SPACED = ["(i * 2 for i in [4, 5])", "lambda *a: len(a)", "lambda a: a", "lambda a, b: a"]
KEYWORDS = """key=len reverse=True default=5 start=1 strict=True maxlen=2 initial=1 sep=',' r=2 n=2 fillvalue=0 indent=1 a=1 func=len iterable=[1]
object=1 encoding='utf8' ndigits=1""".split()

PRELUDE = f"""
import {", ".join(MODULES)}
LOG.clear()
class Obj:
    k = 1
    def __init__(self, v=0): self.v = v
    def m(self, *a): return len(a)
class Number:
    def __init__(self, v): self.v = v
    def __index__(self): LOG.append('index'); return self.v
    def __eq__(self, o): return isinstance(o, Number) and o.v == self.v
    def __lt__(self, o): LOG.append('lt'); return self.v < getattr(o, 'v', 0)
    def __hash__(self): return 5
    def __add__(self, o): return Number(self.v + 1)
    __radd__ = __add__
class Items:
    def __len__(self): return 2
    def __getitem__(self, i):
        if i > 1: raise IndexError(i)
        return i
    def __iter__(self): LOG.append('iter'); return iter([5, 6])
class Color(enum.Enum):
    A = 1
    B = 'b'
@dataclasses.dataclass
class Data:
    a: int
    b: list = dataclasses.field(default_factory=list)
Pair = collections.namedtuple('Pair', 'p q')
class Movie(typing.TypedDict, total=False):
    name: str
def fn(a, b=2, *c, d=3, **e): return (a, b, c, d)
def ends_in_two(): raise StopIteration(2)
def generated():
    LOG.append('generated'); yield 1; yield 2
"""

CALLS = ["(torch.arange(6.0).reshape(2, 3), torch.tensor([1, 2]), Obj(3), [1, 2, 3], {'a': [1]}, collections.deque([1, 2]), "
         "collections.defaultdict(list, a=[1]), collections.OrderedDict(a=1, b=2), collections.Counter('aab'))"] * 3  # fmt: skip


def callables():
    found = []
    for module in MODULES:
        for name, value in sorted(vars(importlib.import_module(module)).items()):
            if callable(value) and not name.startswith("_") and name not in LEFT_OUT:
                found.append(f"{module}.{name}")
    return [*found, "Movie", "Data", "Pair", "Color", "Obj"]


CALLABLES = callables()


def generate(seed):
    """The program of a seed."""
    draw = random.Random(seed)
    source = PRELUDE + "@compile\ndef f(x, y, obj, lst, dct, dq, dd, od, cnt):\n    r = []\n    z = x + 1\n"
    for _ in range(draw.randint(1, 5)):
        arguments = [draw.choice(SPACED if draw.random() < 0.05 else ARGUMENTS) for _ in range(draw.choice([0, 1, 1, 1, 2, 2, 2, 3]))]
        if draw.random() < 0.15:
            arguments.append(draw.choice(KEYWORDS))
        call = f"{draw.choice(CALLABLES)}({', '.join(arguments)})"
        form = draw.random()
        if form < 0.2:
            call = f"list({call})"
        elif form < 0.3:
            call = f"next(iter({call}))"
        elif form < 0.4:
            call = f"{call}({draw.choice(ARGUMENTS)})"
        source += f"    try:\n        r.append({call})\n    except Exception as error:\n        r.append((type(error).__name__, str(error)))\n"
    return Program(seed, source + "    return r, z * 2\n", CALLS)
