"""Operators know themselves: outside of src/ops, sources name no operator by text, except for the rows below.

What holds for several operators is a trait (src/ops/core/traits.h), stated in the entries of the operators. A rule about one
operator names it through the vocabulary (src/aten/operators.h). See "An operator" in docs/adding.md.
"""

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[3] / "src"

# The table of operators, the vocabulary, and the CPU's table of extern calls.
OWN_PLACES = ("ops/", "aten/operators.", "runtime/extern/", "runtime/cpu/")

# (layer, name) -> why it is named there.
NAMES = {
    ("runtime", "aten::_scaled_dot_product_flash_attention_for_cpu"): "tagged as random by torch, which it is not; asked before its schema is made",
    ("runtime", "oxyfuel::packed_linear"): "registered with the dispatcher, which wants the declaration",
    ("runtime", "oxyfuel::packed_convolution"): "likewise",
    ("driver", "aten::_local_scalar_dense"): "the beginning of a reason, as users read it",
}

# (layer, what is asked of the text of a name) -> why. Names are texts by nature where they come in or go out.
QUESTIONS = {
    ("aten", 'op.name.find("::")'): "the library of an operator",
    ("aten", "op.name).substr"): "the library of an operator",
    ("aten", 'schema.name.find("::")'): "the parser of declarations",
    ("trace", "writing.name.substr"): "torch's convention for the names of out= and in-place operators, for those without an entry",
    ("runtime", 'schema.name.find("::")'): "the dispatcher looks operators up by base and overload",
    ("runtime", "schema.name.find('.'"): "likewise",
    ("runtime", "schema.name.substr"): "likewise",
    ("runtime", "op.schema().name() !="): "see _scaled_dot_product_flash_attention_for_cpu",
}

LIBRARIES = "aten|prims|oxyfuel|quantized|torchvision"  # those whose operators are nodes of graphs
NAME = re.compile(rf"\b(?:{LIBRARIES})::\w+(?:\.\w+)?")
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.S)
QUESTION = re.compile(
    r"""\b\w+(?:\(\))?(?:\.schema\(\)|->op)?(?:\.|->)name(?:\(\))?\)?\s*
        (?:(?:==|!=)(?=\s*(?:"|k[A-Z]))|\.(?:starts_with|ends_with|contains|substr|find\((?:"[^"]*"|'[^']*')\)?))""",
    re.X,
)


def without_comments(text):
    return COMMENT.sub(lambda found: found[1] or "", text)


def names_in(text):
    """The operators that string literals name, neighbouring literals joined."""
    joined = re.sub(r'"\s*\n?\s*"', "", without_comments(text))
    return {name for literal in STRING.findall(joined) for name in NAME.findall(literal)}


def questions_in(text):
    return {re.sub(r"\s+", " ", found).strip() for found in QUESTION.findall(without_comments(text)) if is_about_an_operator(found)}


def is_about_an_operator(question):
    return re.match(r"(?:\w*op|\w*schema|writing|functional|entry)\b", question) is not None


def scan(find):
    found = {}
    for path in sorted(SOURCES.rglob("*")):
        name = str(path.relative_to(SOURCES))
        if path.suffix not in (".h", ".cpp", ".cc") or name.startswith(OWN_PLACES):
            continue
        for item in find(path.read_text()):
            found.setdefault((name.split("/")[0], item), set()).add(name)
    return found


@pytest.mark.parametrize("find, rows", [(names_in, NAMES), (questions_in, QUESTIONS)], ids=["names", "questions"])
def test_operators_named_by_text(find, rows):
    found = scan(find)
    new = {key: sorted(files) for key, files in found.items() if key not in rows}
    assert not new, "state a trait, or use the vocabulary, or give a reason here"
    assert not rows.keys() - found.keys(), "these rows are about nothing"


def test_the_scan_sees_names():
    assert names_in('if (name == "aten::view") // "aten::relu"') == {"aten::view"}
    assert names_in('f("aten::add.Tensor(Tensor self"\n  ", Tensor other)", "prims::x");') == {"aten::add.Tensor", "prims::x"}
    assert names_in('"oxy"\n   "fuel::total"') == {"oxyfuel::total"}
    assert names_in("aten::kSum; oxyfuel::view(x);") == set()


@pytest.mark.parametrize(
    "text",
    ['node.op->name == "a"', 'if (op.name != kView)', 'op.name.starts_with("aten::as_")', 'schema->name.ends_with("_")',
     'op.schema().name() == "x"', 'std::string_view(op.name).substr(0, 3)', 'info.schema->name\n    != "x"'],
)
def test_the_scan_sees_questions(text):
    assert len(questions_in(text)) == 1


@pytest.mark.parametrize("text", ["op.name", "other.name == name", 'argument.name == "dtype"', '// node.op->name == "a"', "ops::find(op->name)"])
def test_the_scan_leaves_other_texts_alone(text):
    assert questions_in(text) == set()
