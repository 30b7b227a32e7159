"""Programs that the frame layer must run exactly as plain Python does.

Each case is a function without arguments. What it returns, prints into `log`, or raises (with the lines of its
traceback) is compared between a plain run and one whose every instruction is performed natively.
"""

import contextlib
import functools
import sys
import warnings

CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def arithmetic():
    a, b = 7, 3
    out = [a + b, a - b, a * b, a / b, a // b, a % b, a**b, a << b, a >> b, a & b, a | b, a ^ b, -a, +a, ~a, not a]
    c = [1]
    d = c
    c += [2]
    c *= 2
    x = 5
    x -= 1; x *= 2; x //= 3; x **= 2; x %= 7; x <<= 2; x >>= 1; x |= 8; x &= 12; x ^= 5; x /= 2
    return out, d is c, c, x, a < b, a <= b, a == b, a != b, a > b, a >= b, a is b, a is not b, a in [7], a not in [7]


class Matrix:
    def __init__(self, v): self.v = v
    def __matmul__(self, other): return ("mm", self.v, other.v)
    def __imatmul__(self, other): self.v += other.v; return self
    def __radd__(self, other): return ("radd", other, self.v)
    def __getitem__(self, key): return ("item", key)
    def __setitem__(self, key, value): self.v = (key, value)
    def __delitem__(self, key): self.v = ("del", key)
    def __contains__(self, key): return key == 1
    def __bool__(self): return False
    def __len__(self): return 3
    def __eq__(self, other): return "equal"
    __hash__ = None


@case
def operators_of_objects():
    a, b = Matrix(1), Matrix(2)
    r = [a @ b, 5 + a, a[1], a[1:2], a[1:2:3], a[1, 2], 1 in a, 2 not in a, not a, a == b, bool(a == b), len(a)]
    a @= b
    r.append(a.v)
    a[7] = 8
    r.append(a.v)
    a[1:2] = 9
    r.append(a.v)
    del a[3]
    r.append(a.v)
    del a[3:4]
    r.append(a.v)
    a.v = 11
    r.append(a.v)
    del a.v
    r.append(hasattr(a, "v"))
    return r


@case
def loops():
    out = []
    for i in range(10):
        if i == 2:
            continue
        if i == 7:
            break
        for j in "ab":
            out.append((i, j))
    else:
        out.append("never")
    for _ in []:
        pass
    else:
        out.append("else")
    n = 0
    while n < 5:
        n += 1
        if n == 3:
            continue
    while True:
        n -= 1
        if not n:
            break
    i = 0
    while i < 3 and n == 0 or i < 1:
        i += 1
    return out, n, i


@case
def half_consumed_iterators():
    it = iter(range(10))
    first = [x for x, _ in zip(it, range(3))]
    def gen():
        for k in it:
            yield k * 2
    g = gen()
    second = next(g)
    rest = []
    for x in g:
        rest.append(x)
        if x > 12:
            break
    return first, second, rest, list(it), list(g)


@case
def exceptions():
    out = []
    for i in range(6):
        try:
            try:
                if i == 0:
                    raise ValueError("zero")
                if i == 1:
                    {}["missing"]
                if i == 2:
                    [][1]
                if i == 3:
                    undefined_name
                if i == 4:
                    (1).missing
                out.append("fine")
            except ValueError as e:
                out.append(("value", str(e), e.__traceback__.tb_lineno))
            except (KeyError, IndexError) as e:
                out.append((type(e).__name__, str(e)))
                raise
            else:
                out.append("else")
            finally:
                out.append(("finally", i))
        except LookupError as e:
            out.append(("outer", type(e).__name__, [t.tb_lineno for t in trace(e)]))
        except (NameError, AttributeError) as e:
            out.append(("outer", str(e), getattr(e, "name", None)))
    return out


nothing = None


def trace(e):
    t = e.__traceback__
    while t:
        yield t
        t = t.tb_next


@case
def return_in_finally():
    def f(x):
        try:
            return x / 0
        except ZeroDivisionError:
            return "handled"
        finally:
            if x == 2:
                return "finally"
    def g():
        for i in range(3):
            try:
                continue
            finally:
                if i == 1:
                    break
        return i
    return f(1), f(2), g()


@case
def nested_exceptions():
    try:
        try:
            raise KeyError("a")
        except KeyError:
            raise ValueError("b")
    except ValueError as e:
        first = (repr(e), repr(e.__context__), repr(e.__cause__))
    try:
        try:
            raise KeyError("a")
        except KeyError as k:
            raise ValueError("b") from k
    except ValueError as e:
        second = (repr(e), repr(e.__context__), repr(e.__cause__), sys.exc_info()[1] is e)
    return first, second, sys.exc_info()


@case
def raises_deep():
    def a(n):
        if n == 0:
            raise RuntimeError("deep")
        return a(n - 1)
    return a(4)


@case
def raises_builtin():
    x = [1, 2]
    y = sorted(x, key=lambda v: v.missing)
    return y


@case
def raises_in_expression():
    value = (
        1
        + 2
        + undefined_thing
        + 3
    )
    return value


@case
def unbound_local():
    if sys is None:
        x = 1
    return x


@case
def unbound_free():
    def inner():
        return late
    if sys is None:
        late = 1
    return inner()


@case
def deleted_local():
    x = 1
    del x
    try:
        x
    except UnboundLocalError as e:
        text = str(e)
    y = 2
    del y
    del y
    return text


@case
def wrong_calls():
    out = []
    def f(a, b=2, *, c): return a, b, c
    for call in (lambda: f(), lambda: f(1), lambda: f(1, 2, 3, c=4), lambda: f(1, c=2, d=3), lambda: f(*3, c=1),
                 lambda: f(**{"a": 1}, **{"a": 2}), lambda: f(1, **[1]), lambda: f(1, **{1: 2}), lambda: nothing(),
                 lambda: f(1, c=5), lambda: f(*[1], **{"c": 3})):
        try:
            out.append(call())
        except TypeError as e:
            out.append(str(e))
    return out


@case
def unpacking():
    out = []
    a, b = 1, 2
    a, b = b, a
    (c, d), e = [3, 4], 5
    f, *g = range(4)
    *h, i = "abc"
    j, *k, l = [1, 2]
    out.append((a, b, c, d, e, f, g, h, i, j, k, l))
    for source in ([], [1], [1, 2, 3], 5, iter([1]), {1, 2}, "ab"):
        try:
            x, y = source
            out.append((x, y))
        except (TypeError, ValueError) as error:
            out.append(str(error))
        try:
            x, *y, z = source
            out.append((x, y, z))
        except (TypeError, ValueError) as error:
            out.append(str(error))
    def bad():
        yield 1
        raise KeyError("inside")
    try:
        x, y = bad()
    except KeyError as error:
        out.append(repr(error))
    return out


class Manager:
    def __init__(self, log, swallow=False): self.log, self.swallow = log, swallow
    def __enter__(self): self.log.append("enter"); return self
    def __exit__(self, *info):
        self.log.append(("exit", info[0] and info[0].__name__, info[2] and info[2].tb_lineno))
        return self.swallow


@case
def with_blocks():
    log = []
    with Manager(log) as m:
        log.append(m.swallow)
    with Manager(log, True):
        raise ValueError("swallowed")
    try:
        with Manager(log), Manager(log):
            log.append("both")
            {}[1]
    except KeyError:
        log.append("caught")
    def f():
        with Manager(log):
            return "returned"
    log.append(f())
    for i in range(3):
        with contextlib.suppress(ZeroDivisionError):
            log.append(1 // i)
            if i == 1:
                continue
        log.append(("after", i))
    try:
        with 5:
            pass
    except TypeError as e:
        log.append(str(e))
    return log


@case
def closures():
    def counter():
        n = 0
        def add(k=1):
            nonlocal n
            n += k
            return n
        def get():
            return n
        return add, get
    add, get = counter()
    add(); add(5)
    fs = [lambda i=i: (i, get()) for i in range(3)]
    gs = [lambda: i for i in range(3)]
    def swap(a, b):
        def inner():
            nonlocal a, b
            a, b = b, a
            del b
            return a
        return inner(), a
    return get(), [f() for f in fs], [g() for g in gs], swap(1, 2), add.__closure__[0].cell_contents


@case
def argument_in_cell():
    def outer(x, *args, y=3, **kw):
        def inner(z):
            return x, args, y, kw, z
        x = x + 1
        return inner
    return outer(1, 2, 3, y=4, w=5)(6)


@case
def comprehensions():
    n = 3
    x = "outer"
    a = [x * n for x in range(4) if x % 2]
    b = {x: [y for y in range(x)] for x in range(3)}
    c = {x // 2 for x in range(5)}
    d = list(x + y for x in range(2) for y in range(2))
    e = [[(i, j) for j in range(i)] for i in range(3)]
    f = [(lambda: z + n)() for z in range(3)]
    try:
        [1 // k for k in (1, 0)]
    except ZeroDivisionError as error:
        g = [t.tb_lineno for t in trace(error)][-1:]
    h = [last := i for i in range(4)]
    return a, b, c, d, e, f, g, h, last, x, dict(sorted(locals().items())).keys()


@case
def stars():
    def f(*args, **kw): return args, kw
    a, k = [1, 2], {"x": 1}
    return (f(*a, 3, *a, **k, y=2), f(**k), f(*a), [*a, 0, *a], {*a, 5}, (*a,), {**k, "z": 3, **k},
            f(1, 2, k=3), f(*range(3), *"ab"), print, max(*a, key=lambda v: -v), dict(k, q=1))


@case
def strings():
    x, name = 3.14159, "né"
    class F:
        def __format__(self, spec): return "F<" + spec + ">"
        def __str__(self): return "strF"
        def __repr__(self): return "reprF"
    f = F()
    return (f"{x:.2f} {name!r} {name!a} {name!s:>5} {f} {f!s} {f!r:>8} {f:abc} {x:{4}.{2}} {{}} {x=} {1}", f"{name}",
            f"{''}", "".join([f"{i}" for i in range(3)]), f"{f!s}{f!r}")


@case
def raises_format():
    class F:
        def __format__(self, spec): return 5
    return f"a{F()}b"


@case
def boolean_logic():
    class B:
        def __init__(self, v, log): self.v, self.log = v, log
        def __bool__(self): self.log.append(self.v); return self.v > 0
    log = []
    b = [B(i, log) for i in (-1, 1)]
    r = [(x and y, x or y, not x, x if y else 0) for x in b for y in b]
    if b[0] or b[1] and not b[0]:
        log.append("yes")
    assert b[1]
    while b[0]:
        pass
    v = None
    w = 5 if v is None else 6
    if v is not None:
        w = 7
    return [(x[0].v, x[1].v, x[2], getattr(x[3], "v", x[3])) for x in r], log, w, 1 < 2 < 3, 1 < 3 < 2, 3 > 2 >= 2


@case
def raises_bool():
    class B:
        def __bool__(self): raise OSError("no truth")
    if B():
        return 1
    return 2


@case
def failed_assert():
    value = 3
    assert value == 4, f"value is {value}"


@case
def matching():
    out = []
    class P:
        __match_args__ = ("x", "y")
        def __init__(self, x, y): self.x, self.y = x, y
    for v in (1, "a", [1, 2], [1, 2, 3], {"k": 5, "z": 6}, P(1, 2), P(3, 4), None, (), {"q": 1}, 2.5, [[1], 2]):
        match v:
            case 1 | 2: out.append("small")
            case str() as s: out.append(s)
            case [a, b] if a == 1: out.append((a, b))
            case [[inner], b]: out.append((inner, b))
            case [a, *rest] if rest: out.append((a, rest))
            case {"k": k, **rest}: out.append((k, rest))
            case {"q": q}: out.append(q)
            case P(1, y=yy): out.append(("P", yy))
            case P(x, y): out.append(("P2", x, y))
            case None: out.append("none")
            case float(f): out.append(f)
            case _: out.append("other")
    return out


@case
def generators():
    def g(n):
        got = []
        try:
            for i in range(n):
                r = yield i
                got.append(r)
        except KeyError as e:
            yield ("caught", str(e))
        finally:
            got.append("closed")
        return got
    def d():
        r = yield from g(3)
        yield ("result", r)
    x = g(5)
    out = [next(x), x.send("s"), x.throw(KeyError("k"))]
    try:
        next(x)
    except StopIteration as e:
        out.append(e.value)
    out.append(list(d()))
    y = g(2)
    next(y)
    y.close()
    return out, sum(i for i in range(10)), list(map(lambda v: v + 1, g(3)))


@case
def coroutines():
    import asyncio
    log = []
    class A:
        async def __aenter__(self): log.append("aenter"); return self
        async def __aexit__(self, *a): log.append("aexit"); return False
    async def ticks(n):
        for i in range(n):
            yield i
            await asyncio.sleep(0)
    async def main():
        async with A():
            async for i in ticks(3):
                log.append(i)
        return await asyncio.gather(*(child(i) for i in range(3))), [i async for i in ticks(2)]
    async def child(i):
        await asyncio.sleep(0)
        return i * 2
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main()), log
    finally:
        loop.close()


def twice(f):
    @functools.wraps(f)
    def wrapper(*a, **k):
        return f(*a, **k), f(*a, **k)
    return wrapper


@case
def decorators_and_classes():
    @twice
    def f(x: int, y: "str" = "d") -> float: return x, y
    class Base:
        z: int = 1
        def __init_subclass__(cls, **kw): cls.kw = kw
        def who(self): return "base", self.z
        @property
        def p(self): return self.z * 2
        @classmethod
        def c(cls): return cls.__name__
        @staticmethod
        def s(): return "static"
    class Child(Base, tag=5):
        z = 2
        def who(self):
            return "child", super().who(), __class__.__name__, super(Child, self).p
        for i in range(3):
            z += i
        locals_ = sorted(k for k in locals() if not k.startswith("__"))
    c = Child()
    c.extra = 1
    c.extra += 2
    return f(1), f.__annotations__, c.who(), c.p, Child.c(), c.s(), Child.kw, Child.z, Child.locals_, c.__dict__, \
        Child.__qualname__, f.__wrapped__.__qualname__, f.__wrapped__.__defaults__


@case
def raises_super():
    class A:
        def f(self): return super().missing
    return A().f()


@case
def recursion():
    def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
    @functools.lru_cache(None)
    def cached(n): return n if n < 2 else cached(n - 1) + cached(n - 2)
    return fib(12), cached(60)


@case
def endless_recursion():
    depth = 0
    def r():
        nonlocal depth
        depth += 1
        return r()
    try:
        r()
    except RecursionError as e:
        return str(e), depth > 100
    return "?"


@case
def endless_recursion_lambda():
    f = lambda: f()
    try:
        f()
    except RecursionError as e:
        return str(e), len(list(trace(e))) > 100


@case
def frames():
    def look(level):
        f = sys._getframe(level)
        return f.f_code.co_name, f.f_lineno, sorted(f.f_locals), f.f_back.f_code.co_name, f.f_lasti >= 0
    a = 1
    first = look(1)
    b = look(
        1
    )
    def inner(q):
        a
        return look(1), look(2)
    return first, b, inner(3), sys._getframe().f_lineno, sys._getframe().f_locals["a"]


@case
def frame_outlives_call():
    def f(x):
        y = x + 1
        return sys._getframe()
    fr = f(4)
    return fr.f_locals, fr.f_lineno, fr.f_code.co_name


@case
def local_namespace():
    x = 1
    before = dict(locals())
    y = [v for v in locals()]
    z = eval("x + 10")
    return before, sorted(y), z, sorted(vars())


@case
def globals_of_module():
    global made_here
    made_here = 5
    r = [made_here, globals()["made_here"]]
    del made_here
    try:
        made_here
    except NameError as e:
        r.append(str(e))
    try:
        del made_here
    except NameError as e:
        r.append(str(e))
    return r


@case
def imports():
    import os.path as path
    from collections import OrderedDict as O, namedtuple
    import json, math as m
    try:
        from json import nothing_here
    except ImportError as e:
        text = str(e).split("(")[0]
    try:
        import no_such_module_anywhere
    except ImportError as e:
        name = e.name
    return path.join("a", "b"), O(a=1), namedtuple("N", "a b")(1, 2), json.dumps([1]), m.floor(2.5), text, name


@case
def object_lifetimes():
    log = []
    class D:
        def __init__(self, n): self.n = n
        def __del__(self): log.append(self.n)
    def f():
        a = D("a")
        log.append("made a")
        a = D("b")
        log.append("rebound")
        del a
        log.append("deleted")
        D("c")
        log.append("dropped")
        c = D("d")
        return "done"
    log.append(f())
    for d in [D("f"), D("h")]:
        log.append("body")
    del d
    log.append("end")
    return log


@case
def arguments_die_in_the_callee():
    log = []
    class D:
        def __init__(self, n): self.n = n
        def __del__(self): log.append(self.n)
    class E:
        def m(self, x, y=None):
            x = None
            log.append("after")
            y = None
    def g(x, *rest, k=None):
        x = None
        log.append("after")
        rest = k = None
        log.append("later")
    g(D("a"))
    g(D("b"), D("c"), k=D("d"))
    E().m(D("e"), y=D("f"))
    method = E().m
    method(D("g"))
    return log


@case
def exec_and_eval():
    space = {}
    exec("x = 1\nfor i in range(3):\n    x += i\ndef f(a):\n    return a + x\nclass C:\n    y = x\n    def m(self): return self.y\n", space)
    return space["x"], space["f"](2), space["C"]().m(), eval("[a for a in range(3)]"), eval("x * 2", {"x": 4})


@case
def raises_syntax():
    exec("x = = 1")


@case
def exception_groups():
    log = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2), OSError(3)])
    except* ValueError as e:
        log.append(("v", len(e.exceptions)))
    except* (KeyError, OSError) as e:
        log.append(("k", len(e.exceptions)))
    return log


@case
def traceback_of_handler():
    try:
        {}["a"]
    except KeyError:
        helper_that_raises()


def helper_that_raises():
    x = 1
    raise ValueError("from helper",
                     x)


@case
def traceback_after_try():
    try:
        x = 1
    except ValueError:
        return 2
    return [].missing


@case
def traceback_first_in_try():
    v = None
    try:
        v.missing
    except AttributeError as e:
        a = e.__traceback__.tb_lineno, e.__traceback__.tb_lasti >= 0
    try:
        -v
    except TypeError as e:
        b = e.__traceback__.tb_lineno
    try:
        for i in v: pass
    except TypeError as e:
        c = e.__traceback__.tb_lineno
    try:
        f"{v!r:>{v}}"
    except (TypeError, ValueError) as e:
        d = e.__traceback__.tb_lineno
    try:
        del v.x
    except AttributeError as e:
        f = e.__traceback__.tb_lineno
    return a, b, c, d, f


@case
def warnings_point_at_the_line():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn("here")
        def inner():
            warnings.warn("there", stacklevel=2)
        inner()
    return [(str(w.message), w.lineno) for w in seen]


@case
def iterator_that_raises():
    class It:
        def __iter__(self): return self
        def __next__(self):
            raise LookupError("next")
    for x in It():
        pass


@case
def iterator_without_next():
    out = []
    for bad in (5, None, object):
        try:
            for x in bad:
                pass
        except TypeError as e:
            out.append(str(e))
    return out


@case
def type_parameters():
    if sys.version_info < (3, 12):
        return None
    space = {}
    exec("def f[T](x: T) -> T: return x\nclass C[T]: pass\ntype A = list[int]\n", space)
    return space["f"](3), space["C"].__name__, space["A"].__value__, str(space["f"].__type_params__)


@case
def large_function():
    source = "def f(x):\n" + "".join(f"    v{i} = x + {i}\n    if v{i} == {400 + i}: return {i}\n" for i in range(300))
    source += "    for i in range(3):\n" + "".join(f"        v{i} += i\n" for i in range(300)) + "    return v0, v299\n"
    space = {}
    exec(source, space)
    return space["f"](1)


@case
def standard_library():
    import argparse, collections, dataclasses, inspect, json, re, textwrap
    @dataclasses.dataclass(order=True)
    class Point:
        x: int
        y: float = 2.0
        z: list = dataclasses.field(default_factory=list)
    p = argparse.ArgumentParser(prog="p")
    p.add_argument("--n", type=int, default=3)
    p.add_argument("rest", nargs="*")
    return (json.loads(json.dumps({"a": [1, 2.5, None, "x"]}, indent=1)), Point(1) < Point(2), dataclasses.asdict(Point(3)),
            vars(p.parse_args(["--n", "5", "a", "b"])), str(inspect.signature(Point)), collections.Counter("hello"),
            re.sub(r"(\w+)-(\w+)", r"\2-\1", "ab-cd ef-gh"), textwrap.wrap("some words to wrap here", 10), p.format_help())
