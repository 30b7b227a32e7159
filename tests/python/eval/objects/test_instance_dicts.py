"""The dict of an object's attributes: replaced, shared, given away, with other keys or of another class."""

import collections

import pytest
import torch

from eager_comparison import outcome, program


class Plain:
    pass


class Shared:
    state = {}

    def __init__(self, x):
        self.__dict__ = self.state
        self.x = x + 1


class Attributes(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


class Proxy:
    @property
    def __dict__(self):
        return {"fake": 1}


def shared(x, given):
    return Shared(x).x * 2, sorted(Shared.state)


def attributes(x, given):
    d = Attributes(q=1)
    d.w = x + 1
    return d, d.__dict__ is d


def given_away(x, given):
    made = Plain()
    made.v = x + 1
    return made, made.__dict__


def given_away_by_vars(x, given):
    made = Plain()
    made.v = x + 1
    given.extend([vars(made), made])


def of_another(x, given):
    one, other = Plain(), Plain()
    other.__dict__ = one.__dict__
    one.v = x + 1
    return one, other


def kept_besides(x, given):
    made, state = Plain(), {"v": x + 1}
    made.__dict__ = state
    return made, state


def of_another_class(x, given):
    made = Plain()
    made.__dict__ = collections.OrderedDict(p=1, q=x)
    made.x = 2
    return made


def other_keys(x, given):
    made = Plain()
    made.__dict__[1] = x + 1
    return made


def proxied(x, given):
    made = Proxy()
    made.r = x + 1
    return made.__dict__, vars(made)


def read_only(x, given):
    made = Plain()
    made.v, made.w = x + 1, 2
    return sorted(made.__dict__), vars(made)["v"], {**made.__dict__}, list(made.__dict__.items())


PROGRAMS = [shared, attributes, given_away, given_away_by_vars, of_another, kept_besides, of_another_class, other_keys, proxied, read_only]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
@program()
def test_dicts_of_objects(compile, function):
    f, results = compile(function), []
    for i in range(3):
        Shared.state.clear()
        given = []
        kind, result = outcome(f, torch.ones(2) * i, given)[:2]
        for value in [*given, *(result if isinstance(result, tuple) else (result,))]:
            if isinstance(value, dict):
                value["later"] = i
            if isinstance(value, (Plain, Shared, Proxy, Attributes)):
                value.after = i
        results.append((kind, result, given, dict(Shared.state)))
        # Which dict is whose, and of which class.
        objects = [value for value in [*given, *(result if isinstance(result, tuple) else ())] if isinstance(value, Plain)]
        dicts = [value for value in [*given, *(result if isinstance(result, tuple) else ())] if isinstance(value, dict)]
        results.append([(type(o.__dict__).__name__, list(map(str, o.__dict__)), [o.__dict__ is d for d in dicts], [o.__dict__ is p.__dict__ for p in objects]) for o in objects])
    return results
