"""Makes a failing program smaller while it still fails."""

import ast
import copy
import dataclasses


def statements_of(tree):
    """Every list of statements, with its owner and field."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield node, field, block


def expressions_of(tree):
    """Every place of an expression: (owner, field, index or None)."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                yield node, field, None
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        yield node, field, i


def statement_edits(tree):
    for b, (_, _, block) in enumerate(statements_of(tree)):
        for width in (4, 2, 1):
            for i in range(0, len(block), width):
                yield ("remove", b, i, width)
    for b, (_, _, block) in enumerate(statements_of(tree)):
        for i, statement in enumerate(block):
            if hasattr(statement, "body"):
                yield ("inline", b, i, "body")
            for field in ("orelse", "finalbody", "handlers"):
                if getattr(statement, field, None):
                    yield ("clear", b, i, field)
            if getattr(statement, "decorator_list", None) and not isinstance(statement, ast.ClassDef):
                yield ("undecorate", b, i, None)


def apply_statement_edit(tree, edit):
    kind, b, i, extra = edit
    tree = copy.deepcopy(tree)
    blocks = list(statements_of(tree))
    if b >= len(blocks):
        return None
    owner, field, block = blocks[b]
    if i >= len(block):
        return None
    if kind == "remove":
        rest = block[:i] + block[i + extra:]
        setattr(owner, field, rest or ([ast.Pass()] if field == "body" else []))
        if not rest and block and isinstance(block[0], ast.Pass):
            return None
    elif kind == "inline":
        block[i:i + 1] = getattr(block[i], extra)
    elif kind == "clear":
        setattr(block[i], extra, [])
    elif kind == "undecorate":
        block[i].decorator_list = []
    return tree


def smaller_expressions(node):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
    if not isinstance(node, (ast.Constant, ast.Name)):
        yield from (ast.Constant(1), ast.Constant(None), ast.List([], ast.Load()))


def shrink(program, fails, attempts=2000):
    """The smallest program found for which ``fails`` is true."""
    tries = 0

    def accept(candidate):
        nonlocal tries, program
        tries += 1
        if tries > attempts:
            return False
        try:
            compile(candidate.source, "program", "exec")
            if not fails(candidate):
                return False
        except Exception:
            return False
        program = candidate
        return True

    def try_tree(tree):
        try:
            return accept(dataclasses.replace(program, source=ast.unparse(ast.fix_missing_locations(tree)) + "\n"))
        except Exception:
            return False

    progress = True
    while progress and tries < attempts:
        progress = False
        for i in range(len(program.calls) - 1, -1, -1):
            calls = program.calls[:i] + program.calls[i + 1:]
            if calls and accept(dataclasses.replace(program, calls=calls)):
                progress = True
        restart = True
        while restart and tries < attempts:
            restart = False
            tree = ast.parse(program.source)
            for edit in statement_edits(tree):
                smaller = apply_statement_edit(tree, edit)
                if smaller is not None and try_tree(smaller):
                    progress = restart = True
                    break
        restart = True
        while restart and tries < attempts:
            restart = False
            tree = ast.parse(program.source)
            for place, (owner, field, index) in enumerate(list(expressions_of(tree))):
                value = getattr(owner, field)
                node = value if index is None else value[index]
                if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
                    continue
                for smaller in list(smaller_expressions(node)):
                    if index is None:
                        setattr(owner, field, smaller)
                    else:
                        value[index] = smaller
                    if try_tree(tree):
                        progress = restart = True
                        break
                    if index is None:
                        setattr(owner, field, node)
                    else:
                        value[index] = node
                if restart:
                    break
    return program
