"""Regular expressions in captured code: queries of constant strings, and their matches."""

import re

import torch

from eager_comparison import program

VERSION = re.compile(r"(?P<major>\d+)\.(?P<minor>\d+)")


@program()
def test_matches(compile):
    def f(x, text):
        match = VERSION.match(text)
        if not match:
            return x, VERSION.search(text) is None, VERSION.fullmatch(text)
        major, minor = match.groups()
        return (x * int(major) + int(match["minor"]), match.group(), match.group("major", 2), match.groupdict(), match.span(2),
                match.start(), match.end("minor"), match.string, match.lastgroup, match.re is VERSION, match.expand(r"\2"),
                bool(VERSION.fullmatch(text)), minor)  # fmt: skip

    compiled = compile(f)
    return [compiled(torch.ones(2), text) for text in ("2.13", "2.13", "10.4.1", "v2.1", "", "none")]


@program()
def test_functions_of_the_module(compile):
    def f(x, text):
        found = re.search("[a-z]+", text)
        parts = re.split(r"\W", text), re.findall("[0-9]", text), re.sub("[0-9]", "#", text)
        return x + len(parts[0]), found and found.group(), parts

    compiled = compile(f)
    return [compiled(torch.ones(2), text) for text in ("ab 1 cd 2", "12", "x")]


@program()
def test_a_match_that_is_kept(compile):
    kept = []

    def f(x):
        match = VERSION.match("3.11")
        kept.append(match)
        return x + 1, match

    compiled = compile(f)
    return [(compiled(torch.ones(2))[1].groups(), kept[-1].span()) for _ in range(3)]


@program()
def test_a_match_made_before(compile):
    matches = [VERSION.match("3.11"), VERSION.match("2.5")]
    compiled = compile(lambda x, match: x + int(match.group(1)))
    return [compiled(torch.ones(2), match) for match in (*matches, *matches)]
