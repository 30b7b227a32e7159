"""Random Python programs that end, for differential tests of the frame layer."""

import random

NAMES = "abcdef"

PRELUDE = '''
class Box:
    __match_args__ = ("v",)
    def __init__(self, v): self.v = v
    def __enter__(self): log.append("enter"); return self.v
    def __exit__(self, kind, value, tb):
        log.append(("exit", kind and kind.__name__, tb and tb.tb_lineno))
        return kind is KeyError
    def __getattr__(self, name):
        if name == "w": return 5
        raise AttributeError(name)
    def __iter__(self): yield self.v; yield 2
    def __bool__(self): return bool(self.v)
    def __del__(self): log.append("del")
    def method(self, *args, **kw): return (args, sorted(kw))
def g(*args, **kw):
    log.append(("g", len(args), sorted(kw)))
    return args[0] if args else 0
def raises(x):
    if x: raise KeyError(x)
    raise ValueError("zero")
def gen(n):
    try:
        for i in range(n):
            got = yield i
            log.append(got)
    finally:
        log.append("closed")
'''


class Program:
    """Writes the source of one function `f(a, b, c)`, with nested functions and handlers."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.loops = 0
        self.functions = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def name(self):
        return self.random.choice(NAMES)

    def expression(self, depth=0):
        e = (lambda: self.expression(depth + 1))
        if depth > 2 or self.random.random() < 0.3:
            return self.pick(self.name(), self.name(), str(self.random.randint(0, 4)), "'s'", "[1, 2]", "None", "Box(1)", "True")
        return self.random.choice([
            lambda: f"({e()} {self.pick('+', '*', '-', '//', '%', '|', '@')} {e()})",
            lambda: f"({e()} {self.pick('<', '==', '!=', 'is', 'is not', 'in', 'not in', '>=')} {e()})",
            lambda: f"({e()} {self.pick('and', 'or')} {e()})",
            lambda: f"({e()} if {e()} else {e()})",
            lambda: f"({self.pick('not ', '-', '~')}{e()})",
            lambda: f"g({e()}, {e()})",
            lambda: f"g(*[{e()}], k={e()})",
            lambda: f"g({e()}, *{e()}, **{{'z': {e()}}})",
            lambda: f"Box({e()}).method({e()}, q={e()})",
            lambda: f"Box({e()}).{self.pick('v', 'w', 'missing')}",
            lambda: f"[{e()}, *{e()}]",
            lambda: f"{{{e()}: {e()}, 'k': {e()}}}",
            lambda: f"({e()}, {e()})",
            lambda: f"[x + 1 for x in {self.pick('range(3)', e())} if {self.pick('x', 'a')}]",
            lambda: f"list(y for y in {self.pick('gen(2)', e())})",
            lambda: f"f'{{{self.name()}}} {{{self.name()}!r:>6}}'",
            lambda: f"(lambda z: ({e()}, z))({e()})",
            lambda: f"{self.pick('[1, 2, 3]', self.name())}[{self.pick('0', '1:', ':2', '9', e())}]",
            lambda: f"sorted(locals())",
            lambda: f"len({e()})",
        ])()

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    def block(self, depth, budget):
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, budget - 1)

    def statement(self, depth, budget):
        e, n = self.expression, self.name
        simple = [
            lambda: self.emit(depth, f"{n()} = {e()}"),
            lambda: self.emit(depth, f"{n()} {self.pick('+=', '*=', '|=')} {e()}"),
            lambda: self.emit(depth, f"{n()}, {n()} = {self.pick(e(), '1, 2', 'Box(3)')}"),
            lambda: self.emit(depth, f"{n()}, *{n()} = {e()}"),
            lambda: self.emit(depth, f"log.append({e()})"),
            lambda: self.emit(depth, f"del {n()}"),
            lambda: self.emit(depth, f"raises({e()})"),
            lambda: self.emit(depth, f"assert {e()}, {e()}"),
            lambda: self.emit(depth, f"log.append(frame_line())"),
            lambda: self.emit(depth, f"{n()} = {{}}; {n()}[{e()}] = {e()}"),
            lambda: self.emit(depth, f"return {e()}") if self.random.random() < 0.3 else self.emit(depth, "pass"),
            lambda: self.emit(depth, self.pick("break", "continue")) if self.loops else self.emit(depth, f"{n()} = 7"),
        ]
        if budget <= 0 or self.random.random() < 0.45:
            return self.random.choice(simple)()
        self.random.choice([self.conditional, self.loop, self.counted, self.handled, self.managed, self.nested, self.matched])(
            depth, budget)

    def conditional(self, depth, budget):
        self.emit(depth, f"if {self.expression()}:")
        self.block(depth + 1, budget)
        if self.random.random() < 0.5:
            self.emit(depth, "else:")
            self.block(depth + 1, budget)

    def loop(self, depth, budget):
        self.emit(depth, f"for {self.pick(self.name(), self.name() + ', ' + self.name())} in "
                         f"{self.pick('range(3)', 'gen(3)', '[(1, 2), (3, 4)]', self.expression())}:")
        self.loops += 1
        self.block(depth + 1, budget)
        self.loops -= 1
        if self.random.random() < 0.3:
            self.emit(depth, "else:")
            self.block(depth + 1, budget)

    def counted(self, depth, budget):
        counter = f"n{len(self.lines)}"
        self.emit(depth, f"{counter} = 0")
        self.emit(depth, f"while {counter} < 3 and {self.pick('True', self.expression())}:")
        self.emit(depth + 1, f"{counter} += 1")
        self.loops += 1
        self.block(depth + 1, budget)
        self.loops -= 1

    def handled(self, depth, budget):
        self.emit(depth, "try:")
        self.block(depth + 1, budget)
        finally_only = self.random.random() < 0.2
        if not finally_only:
            caught = self.pick("KeyError", "(TypeError, ValueError)", "Exception", "UnboundLocalError")
            self.emit(depth, f"except {caught} as err:")
            self.emit(depth + 1, "log.append((type(err).__name__, str(err), lines(err)))")
            self.block(depth + 1, budget)
            if self.random.random() < 0.3:
                self.emit(depth + 1, "raise")
            if self.random.random() < 0.3:
                self.emit(depth, "else:")
                self.block(depth + 1, budget)
        if finally_only or self.random.random() < 0.3:
            self.emit(depth, "finally:")
            saved, self.loops = self.loops, 0  # no break out of a finally: it would hide errors
            self.block(depth + 1, budget)
            self.loops = saved

    def managed(self, depth, budget):
        self.emit(depth, f"with Box({self.expression()}) as {self.name()}:")
        self.block(depth + 1, budget)

    def nested(self, depth, budget):
        self.functions += 1
        function = f"h{self.functions}"
        self.emit(depth, f"def {function}({self.name()}, w={self.expression()}):")
        if self.random.random() < 0.5:
            outer = self.pick("total")
            self.emit(depth + 1, f"nonlocal {outer}")
            self.emit(depth + 1, f"{outer} += 1")
        saved, self.loops = self.loops, 0
        self.block(depth + 1, budget)
        self.emit(depth + 1, f"return {self.pick('total', 'w')}")
        self.loops = saved
        self.emit(depth, f"{self.name()} = {function}({self.expression()})")

    def matched(self, depth, budget):
        self.emit(depth, f"match {self.expression()}:")
        for pattern in ("0 | 1", "[x1, *x2]", "Box(x3)", "{'k': x4}", "str() as x5", "_"):
            if self.random.random() < 0.5 or pattern == "_":
                self.emit(depth + 1, f"case {pattern}:")
                self.block(depth + 2, budget - 1)

    def source(self):
        self.emit(0, "def f(a, b, c=3):")
        self.emit(1, "total = 0")
        for _ in range(4):
            self.statement(1, 3)
        self.emit(1, "return a, b, c, total")
        return PRELUDE + "\n".join(self.lines) + "\n"
