"""The builtin format(): numbers, texts, objects with a __format__, and what it refuses."""

import pytest
import torch

from eager_comparison import outcome, program

X = torch.ones(3, 2)


class Formatted:
    def __format__(self, spec):
        return f"<{spec}>"


class Plain:
    def __str__(self):
        return "plain"


class Spec(str):
    pass


CASES = {
    "a float": (1.256, ".1f"),
    "an int without a specification": (17,),
    "an empty specification": (17, ""),
    "a text": ("ab", ">4"),
    "a truth value": (True, "3"),
    "nothing": (None,),
    "an object that formats itself": (Formatted(), "x"),
    "an object that formats itself without a specification": (Formatted(),),
    "an object with a text": (Plain(),),
    "a specification of a class of its own": (1.5, Spec(".3f")),
}
REFUSED = {
    "a specification that is no text": (1, 2),
    "an unknown specification": (1, "q"),
    "a specification for what takes none": (None, "3"),
}


@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
@program(whole=True)
def test_formatted(compile, given):
    return compile(lambda x: (x * 2, format(*given)))(X)


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
@program(whole=True)
def test_refused(compile, given):
    def f(x):
        try:
            return x * 2, format(*given)
        except (TypeError, ValueError) as error:
            return x * 3, str(error)

    return outcome(compile(f), X)


@program(whole=True)
def test_the_size_of_a_tensor(compile):
    f = compile(lambda x: (x + 1, format(x.shape[0], "03")))
    return [f(torch.ones(size)) for size in (3, 4, 5, 6)]
