"""Calls of functions that do not take what they are given, and handlers of what is raised then."""

import torch

from eager_comparison import program

X = torch.arange(3.0)


def plain(a, b):
    return a + b


def defaults(a, b=1, *, key, other=2):
    return a + b + key + other


def positional_only(a, /, b, *rest):
    return a + b


def anything(*args, **kwargs):
    return args[0]


class Callable:
    def __call__(self, a, b):
        return a + b

    def method(self, a):
        return a

    @classmethod
    def of_class(cls, a):
        return a


CALLS = {
    "too few": lambda x: plain(x),
    "none": lambda x: plain(),
    "too many": lambda x: plain(x, x, x),
    "twice": lambda x: plain(x, a=x),
    "unknown": lambda x: plain(x, x, c=x),
    "without keyword": lambda x: defaults(x),
    "keyword by position": lambda x: defaults(x, 1, 2),
    "position by keyword": lambda x: positional_only(a=x, b=x),
    "no position": lambda x: positional_only(),
    "object": lambda x: Callable()(x),
    "method": lambda x: Callable().method(),
    "method too many": lambda x: Callable().method(x, x),
    "classmethod": lambda x: Callable.of_class(x, x),
    "lambda": lambda x: (lambda a, b=2: a)(),
    "constructor": lambda x: Callable(x),
    "starred": lambda x: plain(*[x] * 4),
    "double starred": lambda x: plain(**{"a": x, "z": x}),
    "fits": lambda x: anything(x, y=2),
}


@program()
def test_what_is_wrong_with_the_arguments(compile):
    class Noting:
        def __init__(self):
            self.errors = []

        def __enter__(self):
            return self

        def __exit__(self, kind, value, traceback):
            self.errors.append((kind, str(value)))
            return True

    @compile
    def f(x, call):
        with Noting() as noting:
            x = x + call(x)
        try:
            x = call(x)
        except TypeError as error:
            noting.errors.append(str(error))
        return x + 1, noting.errors

    return [f(X, call) for call in CALLS.values()]


@program()
def test_a_keyword_that_is_given_twice(compile):
    def takes(**keywords):
        return keywords

    @compile
    def f(x, first, second):
        try:
            return takes(**first, **second), x + 1
        except TypeError as error:
            return str(error), x + 2

    x = torch.ones(2)
    return [f(x, {"k": 1}, second) for second in ({"k": 2}, {"l": 2}, {"k": 3})]
