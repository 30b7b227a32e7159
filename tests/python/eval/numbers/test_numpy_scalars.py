"""Numbers of numpy's in captured code: constants that are guarded once they are looked at."""

import warnings

import numpy as np
import pytest
import torch

import oxyfuel
from eager_comparison import outcome, program


def calls(compile, function, values):
    f = compile(function)
    return [outcome(f, torch.arange(4.0), value) for value in values]


VALUES = [np.float64(0.5), np.float64(0.5), np.float32(3), np.int64(2), np.bool_(True), np.float64("nan"), np.float64(-0.0), 2.5]


@program()
def test_functions_and_operators(compile):
    def f(x, n):
        scale = np.sqrt(len(x)) * 2
        return x / scale, x * np.float64(3), np.maximum(2, 5) + 1, -scale, scale > 3, scale == 4, (x.sum() * np.exp(1)).dtype

    def g(x, n):
        scale = np.float32(2)
        return scale, [scale * 2, np.int64(3) // 2], scale.item(), scale.dtype, "big" if scale > 1 else "small", float(scale)

    return [calls(compile, function, [1, 1]) for function in (f, g)]


@program()
def test_arguments(compile):
    def f(x, n):
        return x * n, n + 1, n * n, n > 1, -n if n.dtype != bool else 0, type(n), "yes" if n else "no"

    def kept(x, n):
        return x + 1, [n, n]

    return [calls(compile, function, VALUES) for function in (f, kept)]


def test_one_that_is_only_passed_on_is_not_guarded():
    f = oxyfuel.compile(lambda x, n: (x + 1, n))
    for value in range(12):
        assert f(torch.ones(2), np.float64(value))[1] == value
    assert oxyfuel.metrics()["graphs"] == 1


@program()
def test_attributes(compile):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = np.sqrt(64)

        def forward(self, x):
            return x / self.scale

    module = Scaled()
    f = compile(module)
    log = [f(torch.ones(2))]
    module.scale = np.float64(2)
    log.append(f(torch.ones(2)))
    module.scale = np.float32(4)
    log.append(f(torch.ones(2)))
    return log


@program()
def test_errors(compile):
    return calls(compile, lambda x, n: x + np.add(n, "text"), [1]) + calls(compile, lambda x, n: np.float64(1) + n, ["text"])


def told(function, *arguments):
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        result = outcome(function, *arguments)
    return result, [(str(record.message), record.lineno) for record in records]


CALCULATIONS = {
    "divide": lambda one, zero: one / zero,
    "function": lambda one, zero: np.divide(1.0, 0.0),
    "overflow": lambda one, zero: np.float64(1e300) * np.float64(1e300),
    "integers": lambda one, zero: np.int8(127) + np.int8(1),
    "underflow": lambda one, zero: np.exp(np.float64(-1e5)),
    "cast": lambda one, zero: np.float64(1e300).astype(np.float32),
}


@pytest.mark.parametrize("calculation", CALCULATIONS)
@program()
def test_what_numpy_tells_of(compile, calculation):
    @compile
    def f(x, one, zero):
        return CALCULATIONS[calculation](one, zero), x + 1

    x, numbers = torch.arange(4.0), (np.float64(1), np.float64(0))
    results = [told(f, x, *numbers), told(f, x, *numbers)]
    for what in ("ignore", "raise", "warn"):
        with np.errstate(all=what):
            results += [told(f, x, *numbers), told(f, x, *numbers)]
    return results
