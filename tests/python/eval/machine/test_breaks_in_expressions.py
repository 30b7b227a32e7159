"""Breaks between the parts of an expression: what is on the stack then goes on. tests/fuzz/python_programs.py --kind expressions
runs more."""

import pytest
import torch

from eager_comparison import program
import expression_generator
import oxyfuel
import program_runner

CHUNK = 100


@oxyfuel.disable
def passed_on(value):
    return value


@pytest.mark.parametrize("first", range(0, 500, CHUNK))
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_same_as_eager(first):
    different = program_runner.differing(expression_generator, first, CHUNK)
    assert not different, f"see one with: tests/fuzz/python_programs.py --kind expressions --seeds N:N+1 --show --shrink; {different}"


def test_programs_are_those_of_their_seeds():
    assert expression_generator.generate(7) == expression_generator.generate(7)
    assert expression_generator.generate(7).source != expression_generator.generate(8).source


def a_default(x, k):
    def inner(p=k, *, q=passed_on(3)):
        return p * q

    return inner() * x


def a_default_with_a_tensor(x, k):
    def inner(p=x * 2, *, q=passed_on(3)):
        return p * q + k

    return inner()


def a_keyword_default(x, k):
    def inner(*, p=k, q=[k], r: passed_on(1) = x):  # noqa: B006
        return p * r + len(q)

    return inner() * x, inner.__kwdefaults__, inner.__defaults__


def a_closure(x, k):
    y = x * k

    def inner(p=passed_on(2)):
        return y * p + k

    return inner(), inner(3)


def a_lambda(x, k):
    return x * (lambda p, q=k, r=passed_on(1): q * r)(k)


def an_object(x, k):
    held = (k, [k])
    f = lambda a, b=held, c=passed_on(4): (a, b, c)  # noqa: E731
    return f(x), f.__defaults__, f.__defaults__[0] is held


def a_method(x, k):
    y = x + k

    class Made:
        def method(self, p=y, q=passed_on(1)):
            return p * q

    return Made().method()


def a_generator(x, k):
    def made(a=[k, x], b=passed_on(2)):  # noqa: B006
        a.append(b)
        yield from a

    return list(made()), list(made())


def beside_a_text_that_varies(x, k):
    return str(k), (lambda a, b=passed_on(x), *, c=k: (a, b, c))(passed_on(k))


@pytest.mark.parametrize("f", [a_default, a_default_with_a_tensor, a_keyword_default, a_closure, a_lambda, an_object, a_method, a_generator, beside_a_text_that_varies], ids=lambda f: f.__name__)
@program(whole=False)
def test_between_the_defaults_of_a_function(compile, f):
    compiled = compile(f)
    return [compiled(torch.arange(3.0) + k, k) for k in (1, 2, 5, 0, 7, 1, 3)]
