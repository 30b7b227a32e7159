"""Random Python programs from a seed, made of the templates beside this file.

A program is its source, which defines ``f``, and the argument tuples that ``f`` is called with, as source too.
"""

import ast
import dataclasses
import random
import re

import program_templates as templates

HOLE = re.compile(r"\$(\w+)")
TYPES = [name for name in templates.EXPRESSIONS if name not in ("none", "point", "ordered", "mixed")]
ANY = ["int", "int", "list", "tensor", "str", "obj", "tuple", "dict", "float", "bool", "none", "set"]
PARAMETERS = [("a", "int"), ("b", "list"), ("x", "tensor"), ("m", "mixed"), ("o", "obj"), ("d", "dict"), ("s", "str")]


@dataclasses.dataclass
class Program:
    seed: int
    source: str  # without the prelude
    calls: list  # argument tuples, as source

    def full_source(self):
        return templates.PRELUDE + self.source


class Scope:
    def __init__(self, variables=()):
        self.variables = {}
        for name, kind in variables:
            self.add(name, kind)

    def add(self, name, kind):
        names = self.variables.setdefault(kind, [])
        if name not in names:
            names.append(name)

    def copy(self):
        scope = Scope()
        scope.variables = {kind: list(names) for kind, names in self.variables.items()}
        return scope


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0
        self.helpers = []
        self.scope = Scope()
        self.statements = 0

    def new_name(self, kind):
        self.names += 1
        return f"{kind[:2]}{self.names}"

    # ---- expressions

    def usable(self, template):
        return all(
            self.scope.variables.get(name[2:]) or (name == "v_any" and self.scope.variables)
            for name in HOLE.findall(template)
            if name.startswith("v_") and name != "v_iter" or name in ("v_iter", "v_func")
        )

    def expression(self, kind, depth=0):
        if kind == "any":
            kind = self.random.choice(ANY)
        known = self.scope.variables.get(kind)
        if depth > 2 or self.random.random() < 0.3:
            if known and self.random.random() < 0.7:
                return self.random.choice(known)
            if kind in templates.LITERALS:
                return self.random.choice(templates.LITERALS[kind])
        if self.random.random() < 0.01:
            kind = self.random.choice(TYPES)  # of another type than expected
        choices = [template for template in templates.EXPRESSIONS[kind] if self.usable(template)]
        text = self.fill(self.random.choice(choices), depth + 1)
        return text if text.isidentifier() or text[0] in "([{" and text[-1] in ")]}" else f"({text})"

    def variable(self, kind):
        if kind == "any":
            kind = self.random.choice(list(self.scope.variables))
        return self.random.choice(self.scope.variables[kind])

    def target(self, kind):
        if kind == "any":
            kind = "any_"
        known = self.scope.variables.get(kind)
        if known and self.random.random() < 0.5:
            return self.random.choice(known)
        return self.new_name(kind)

    def call(self, kind):
        if not self.helpers:
            return self.expression("int" if kind == "int" else "any", 2)
        name, parameters = self.random.choice(self.helpers)
        call = f"{name}({', '.join(self.expression(kind, 2) for _, kind in parameters)})"
        return f"first_int({call})" if kind == "int" else call

    def fill(self, template, depth, own=None):
        own = {} if own is None else own

        def replace(match):
            name = match[1]
            if name.startswith("new"):
                if name not in own:
                    own[name] = self.new_name("n_")
                return own[name]
            if name.startswith("v_"):
                return self.variable(name[2:])
            if name.startswith("s_"):
                target = self.target(name[2:])
                own.setdefault("targets", []).append((target, name[2:]))
                return target
            if name.startswith("call_"):
                return self.call(name[5:])
            return self.expression(name, depth)

        return HOLE.sub(replace, template)

    # ---- statements

    def simple(self, choices, depth):
        usable = [template for template in choices if self.usable(template)]
        own = {}
        line = "    " * depth + self.fill(self.random.choice(usable), 0, own)
        for target, kind in own.get("targets", ()):
            self.scope.add(target, kind if kind != "any" else "any_")
        return [line]

    def block(self, depth, budget, mode):
        lines = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.statement(depth, budget, mode)
        if mode == "danger":
            lines += self.simple(templates.RAISING if self.random.random() < 0.8 else templates.SIMPLE, depth)
        return lines

    def statement(self, depth, budget, mode):
        self.statements += 1
        chance = self.random.random()
        if mode in templates.SUSPENDING and self.random.random() < 0.2:
            return self.simple(templates.SUSPENDING[mode], depth)
        if budget <= 0 or self.statements > 60 or chance < 0.55:
            return self.simple(templates.SIMPLE, depth)
        if chance < 0.57:
            return self.simple(templates.RAISING, depth)
        if chance < 0.65 and mode in ("loop",):
            return self.simple(templates.IN_LOOP, depth)
        if chance < 0.6 and mode not in ("safe", "generator", "coroutine", "async generator"):
            return self.simple(templates.LEAVING, depth)
        return self.compound(depth, budget, mode)

    def compound(self, depth, budget, mode):
        usable = [template for template in templates.COMPOUND if self.usable(template)]
        template = self.random.choice(usable)
        if "case" in template and self.random.random() < 0.3:
            template = self.random.choice(usable)
        own, lines = {}, []
        for line in template.split("\n"):
            inner = depth + (len(line) - len(line.lstrip())) // 4
            word = line.strip()
            if word in ("$block", "$loop", "$safe", "$danger", "$function"):
                outer = self.scope
                self.scope = outer.copy()
                inside = {"$block": mode, "$danger": "danger"}.get(word, word[1:])
                if word == "$danger" and mode == "safe":
                    inside = "danger"
                lines += self.block(inner, budget - 1, inside)
                if word == "$function":
                    lines.append("    " * inner + "return " + self.expression("any"))
                if self.random.random() < 0.9 or word in ("$function",):
                    self.scope = outer
            else:
                own.pop("targets", None)
                lines.append("    " * inner + self.fill(word, 1, own))
                for target, kind in own.get("targets", ()):
                    self.scope.add(target, kind if kind != "any" else "any_")
        return lines

    # ---- functions

    def body(self, parameters, size, mode="function"):
        self.scope, self.statements = Scope(parameters), 0
        lines = ["    global COUNT, LOG, TABLE, SEEN"]
        for _ in range(size):
            lines += self.statement(1, 3, mode)
            if mode in templates.SUSPENDING and self.random.random() < 0.6:
                lines += self.simple(templates.SUSPENDING[mode], 1)
        return lines + (["    return"] if mode == "async generator" else self.simple(templates.LEAVING, 1))

    def helper(self):
        name = f"h{len(self.helpers) + 1}"
        parameters = self.random.sample(PARAMETERS, self.random.randint(1, 3))
        lines = ["@compile"] if self.random.random() < 0.15 else []
        lines.append(f"def {name}({', '.join(p for p, _ in parameters)}):")
        lines += self.body(parameters, self.random.randint(1, 3))
        self.helpers.append((name, parameters))
        return lines

    def program(self, seed):
        lines = ["def first_int(value): return value if isinstance(value, int) else 4"]
        for _ in range(self.random.choice([0, 0, 1, 2])):
            lines += self.helper()
        parameters = PARAMETERS[:3] + self.random.sample(PARAMETERS[3:], self.random.randint(0, 3))
        names = ", ".join(name for name, _ in parameters)
        size = self.random.randint(2, 7)
        flavour = self.random.choice(["function"] * 6 + ["closure", "method", "module", "generator", "generator", "coroutine", "async generator", "defaults"])
        body = self.body(parameters, size, flavour if flavour in templates.SUSPENDING else "function")
        indented = ["    " + line for line in body]
        if flavour == "closure":
            lines += ["def make():", "    kept, i1 = [1, 2], 5", "    @compile", f"    def f({names}):", *indented, "    return f", "f = make()"]
        elif flavour == "method":
            lines += ["class Holder(Node):", f"    def run(self, {names}):", *indented, "f = compile(Holder(3).run)"]
        elif flavour == "module":
            lines += ["class Network(Model):", f"    def forward(self, {names}):", *indented, "f = compile(Network())"]
        elif flavour in ("coroutine", "async generator"):
            lines += ["@compile", f"async def f({names}):", *body]
        elif flavour == "defaults":
            lines += ["@compile", f"def f({names}, *rest, i1=3, **more):", *body]
        else:
            lines += ["@compile", f"def f({names}):", *body]
        self.scope = Scope()
        calls = []
        for _ in range(self.random.randint(2, 5)):
            if calls and self.random.random() < 0.4:
                calls.append(self.random.choice(calls))
                continue
            values = [self.argument(kind) for _, kind in parameters]
            calls.append(f"({', '.join(values)},)")
        return Program(seed, "\n".join(lines) + "\n", calls)

    def argument(self, kind):
        if kind == "mixed":
            return self.random.choice(["[[1, 2], 3]", "[(k := [1]), k]", "[torch.ones(3), 1]", "[t := torch.arange(3.0), t]", "[LOG, TABLE]", "[STATE, 'a']", "[None, True]"])
        if kind == "obj":
            return self.random.choice(["Node(3)", "STATE", "Record(2)", "Child(-1)", "Slotted(3)", "Ordered(2, [1, 2])", "Dynamic(1)", "Described(4)"])
        return self.random.choice(templates.LITERALS[kind])


def generate(seed):
    """The program of a seed."""
    for attempt in range(1000):
        program = Generator(f"{seed}.{attempt}").program(seed)
        try:
            compile(ast.parse(program.source), "program", "exec")
        except SyntaxError:
            continue
        return program
    raise AssertionError(f"no program for seed {seed}")
