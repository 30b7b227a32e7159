"""The decoder against CPython's own `dis`, over functions of the standard library."""

import dis
import functools
import importlib
import sys
import types

import pytest

from frame_layer_module import layer

MODULES = """json.decoder json.encoder collections dataclasses typing inspect functools argparse asyncio.tasks asyncio.streams
asyncio.base_events contextlib ast re._parser re._compiler unittest.mock pathlib subprocess logging zipfile difflib
email.message http.client threading traceback tempfile shutil datetime _pydecimal _pydatetime test.test_grammar
test.test_patma test.test_with test.test_exception_group test.test_coroutines test.test_generators""".split()

# CPython's names of what canonical operations come from, where a rule of letters does not give it.
RENAMED = {
    "LOAD_FAST_CHECK": "LoadFast", "LOAD_CLASSDEREF": "LoadClassDeref", "POP_JUMP_FORWARD_IF_NOT_NONE": "PopJumpIfNotNone",
    "JUMP_FORWARD": "Jump", "JUMP_BACKWARD": "Jump", "JUMP_BACKWARD_NO_INTERRUPT": "Jump", "CALL_KW": "Call",
    "FORMAT_SIMPLE": "FormatValue", "FORMAT_WITH_SPEC": "FormatValue",
}
LOCAL_PAIRS = {
    "LOAD_FAST_LOAD_FAST": ["LoadFast", "LoadFast"], "STORE_FAST_LOAD_FAST": ["StoreFast", "LoadFast"],
    "STORE_FAST_STORE_FAST": ["StoreFast", "StoreFast"], "RETURN_CONST": ["LoadConst", "ReturnValue"],
}
INTRINSICS = {
    "INTRINSIC_PRINT": "PrintExpr", "INTRINSIC_IMPORT_STAR": "ImportStar", "INTRINSIC_ASYNC_GEN_WRAP": "AsyncGenWrap",
    "INTRINSIC_STOPITERATION_ERROR": "StopIterationError", "INTRINSIC_UNARY_POSITIVE": "UnaryPositive",
    "INTRINSIC_LIST_TO_TUPLE": "ListToTuple", "INTRINSIC_PREP_RERAISE_STAR": "PrepReraiseStar",
}


def canonical_names(instruction):
    name = instruction.opname
    if name in LOCAL_PAIRS:
        return LOCAL_PAIRS[name]
    if name in RENAMED:
        return [RENAMED[name]]
    if name.startswith("CALL_INTRINSIC"):
        return [INTRINSICS.get(instruction.argrepr, "TypeIntrinsic")]
    if sys.version_info >= (3, 12) and name in ("LOAD_ATTR", "LOAD_SUPER_ATTR") and instruction.arg & 1:
        return [name.title().replace("_", "").replace("Attr", "Method")]
    if name.startswith("POP_JUMP_"):
        name = name.replace("FORWARD_", "").replace("BACKWARD_", "")
    return [name.title().replace("_", "")]


@functools.cache
def code_objects(module_name):
    """Every code object of a module, nested ones included."""
    module = importlib.import_module(module_name)
    with open(module.__file__, "rb") as file:
        pending = [compile(file.read(), module.__file__, "exec", dont_inherit=True)]
    found = []
    while pending:
        code = pending.pop()
        found.append(code)
        pending += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return found


def is_available(module_name):
    try:
        return bool(importlib.import_module(module_name).__file__.endswith(".py"))
    except ImportError:
        return False


MODULES = [name for name in MODULES if is_available(name)]


@functools.cache
def lines_of(code):
    lines = {}
    for start, end, line in code.co_lines():
        for offset in range(start, end, 2):
            lines[offset // 2] = -1 if line is None else line
    return lines


def check_operand(code, instruction, first, rest, instructions, index_of_offset):
    """The operand of one instruction of dis, against the canonical ones."""
    name, arg, value = instruction.opname, instruction.arg, instruction.argval
    def leads_to(target):
        # Between the target that dis names and ours there is nothing but what has no canonical form.
        return all(index_of_offset[unit] < 0 for unit in range(value // 2, instructions[target]["offset"]))
    if "JUMP" in name or name == "SEND":
        assert instructions[first["arg"]]["offset"] * 2 >= value and leads_to(first["arg"])
        assert first["arg2"] == ("JUMP_BACKWARD" in name and "NO_INTERRUPT" not in name)
    elif name == "FOR_ITER":
        target = first["arg"]
        skipped = {(3, 11): [], (3, 12): ["EndFor"], (3, 13): ["EndFor", "PopTop"]}[sys.version_info[:2]]
        assert [i["op"] for i in instructions[target - len(skipped):target]] == skipped
        assert leads_to(target - len(skipped))
    elif name in ("LOAD_CONST", "RETURN_CONST"):
        assert code.co_consts[first["arg"]] is value
    elif name in LOCAL_PAIRS:
        names = code._varname_from_oparg
        assert (names(first["arg"]), names(rest[0]["arg"])) == tuple(value)
    elif name in ("LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLOSURE",
                  "MAKE_CELL", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"):
        assert code._varname_from_oparg(first["arg"]) == value
    elif arg is not None and instruction.opcode in dis.hasname:
        assert code.co_names[first["arg"]] == value
        if name == "LOAD_GLOBAL":
            assert first["arg2"] == arg & 1
        if name == "LOAD_SUPER_ATTR":
            assert first["arg2"] == arg >> 1 & 1
    elif name == "COMPARE_OP":
        assert value in (dis.cmp_op[first["arg"]], f"bool({dis.cmp_op[first['arg']]})")
        assert first["arg2"] == (arg >> 4 & 1 if sys.version_info >= (3, 13) else 0)
    elif name == "BINARY_OP":
        symbols = ["+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^"]
        assert instruction.argrepr == symbols[first["arg"]] + "=" * first["arg2"]
    elif name == "UNPACK_EX":
        assert first["arg"] + (first["arg2"] << 8) == arg and first["arg"] < 256
    elif name == "FORMAT_VALUE":
        assert ([None, str, repr, ascii][first["arg"]], bool(first["arg2"])) == value
    elif name.startswith("FORMAT_"):
        assert (first["arg"], first["arg2"]) == (0, name == "FORMAT_WITH_SPEC")
    elif name == "CALL_KW":
        assert (first["arg"], first["arg2"]) == (arg, -2)
    elif name.startswith("CALL_INTRINSIC") and first["op"] == "TypeIntrinsic":
        assert (first["arg"], first["arg2"]) == (arg, int(name[-1]))
    elif arg is not None and not name.startswith("CALL_INTRINSIC") and not (
            name == "MAKE_FUNCTION" and sys.version_info >= (3, 13)):
        assert first["arg"] == arg


def check_code(code):
    instructions, table, index_of_offset, entry = layer.decode(code)
    lines = lines_of(code)
    at = 0          # index into instructions
    start = None    # offset of the first prefix of an instruction
    names = -1      # from KW_NAMES
    for i in dis.get_instructions(code):
        if start is None:
            start = i.offset // 2
        if i.opname in ("EXTENDED_ARG", "PRECALL"):
            continue
        if i.opname == "KW_NAMES":
            names = i.arg
            continue
        if i.opname == "NOP":
            start = None
            continue
        expected = canonical_names(i)
        group = instructions[at:at + len(expected)]
        at += len(expected)
        assert [g["op"] for g in group] == expected, (i, group)
        for position, g in enumerate(group):
            assert g["offset"] == start and g["at"] == i.offset // 2 and g["raw"] == i.opcode
            assert g["line"] == lines[i.offset // 2]
            assert g["continues"] == (position > 0)
        assert index_of_offset[start] == at - len(expected)
        if i.opname == "CALL":
            assert group[0]["arg2"] == names
            names = -1
        check_operand(code, i, group[0], group[1:], instructions, index_of_offset)
        start = None
    assert at == len(instructions)
    for one, two in zip(instructions, instructions[1:]):
        assert one["end"] <= two["offset"] or two["continues"]
    entries = [(e.start // 2, e.end // 2, e.target // 2, e.depth, e.lasti) for e in dis._parse_exception_table(code)]
    assert table == entries
    assert all(i["op"] in ("MakeCell", "CopyFreeVars") for i in instructions[:entry])
    assert instructions[entry]["op"] in ("Resume", "ReturnGenerator")


@pytest.mark.parametrize("module", MODULES)
def test_decoder_agrees_with_dis(module):
    for code in code_objects(module):
        check_code(code)


def test_specialised_code_decodes_as_compiled():
    def work(a, b):
        total = 0
        for i in range(len(a)):
            total += a[i] * b[i]
            b.append(total) if total > 10**9 else None
        return total
    before = layer.decode(work.__code__.replace())
    for _ in range(300):
        work([1, 2, 3], [4, 5, 6])
    assert layer.decode(work.__code__.replace()) == before
    assert layer.decode(work.__code__) == before


def test_traced_code_decodes_as_compiled():
    def work(a):
        return [x for x in a if x]
    plain = layer.decode(work.__code__.replace())
    traced = []
    def trace(frame, event, argument):
        if frame.f_code is work.__code__ and not traced:
            traced.append(layer.decode(frame.f_code))
        return trace
    sys.settrace(trace)
    try:
        work([1, 2])
    finally:
        sys.settrace(None)
    assert traced == [plain]


def test_extended_arguments_are_folded():
    source = "def f(x):\n" + "".join(f"    v{i} = x + {1000 + i}\n" for i in range(400))
    source += "    while x:\n" + "".join(f"        v{i} += v{i + 1}\n" for i in range(399)) + "    return v399\n"
    space = {}
    exec(source, space)
    check_code(space["f"].__code__)


def test_decoded_code_dies_with_its_code_object():
    for _ in range(200):
        space = {}
        exec("def f(x): return x + 1", space)
        layer.decode(space["f"].__code__)


def reference_liveness(code):
    """Which locals are live before each instruction, by walking the paths forwards from it."""
    instructions, table, index_of_offset, _ = layer.decode(code)
    def handler(i):
        for begin, end, target, _, _ in table:
            if begin <= i["at"] < end:
                return index_of_offset[target]
        return None
    def successors(k):
        i = instructions[k]
        if i["op"] not in ("Jump", "ReturnValue", "RaiseVarargs", "Reraise"):
            yield k + 1
        if "Jump" in i["op"] or i["op"] in ("ForIter", "Send"):
            yield i["arg"]
    result = []
    for k in range(len(instructions)):
        live, seen = set(), set()
        pending = [(k, frozenset())]
        while pending:
            state = pending.pop()
            if state in seen or state[0] >= len(instructions):
                continue
            seen.add(state)
            at, written = state
            i = instructions[at]
            if handler(i) is not None:
                pending.append((handler(i), written))
            if i["op"] in ("LoadFast", "DeleteFast", "LoadFastAndClear") and i["arg"] not in written:
                live.add(i["arg"])
            if i["op"] == "StoreFast":
                written = written | {i["arg"]}
            pending += [(n, written) for n in successors(at)]
        result.append(live)
    return result


def test_live_locals():
    def branches(a, b, c):
        if a:
            b = 1
        else:
            d = c
        for e in b:
            a = e
            try:
                b = a.x
            except ValueError:
                c = a
            finally:
                d = 1
        return a
    def straight(a, b):
        c = a + b
        a = c
        del b
        return a
    def loop(n):
        k = 0
        while k < n:
            k += 1
        return [k for k in range(k)]
    for function in (branches, straight, loop):
        code = function.__code__
        assert layer.live_locals(code) == reference_liveness(code)
