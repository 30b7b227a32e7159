"""torch.autocast inside of compiled functions: what is cast, and the thread's state after the function."""

import torch
import torch.nn as nn

import oxyfuel
from eager_comparison import outcome, program


def state():
    return (
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_cache_enabled(),
        torch.autocast_increment_nesting() - 1 + 0 * torch.autocast_decrement_nesting(),
    )


def linear():
    torch.manual_seed(0)
    return nn.Linear(4, 4)


@program(whole=True)
def test_a_region_in_bfloat16(compile):
    net = linear()

    @compile
    def f(x):
        before = torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
            inside = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
            with torch.autocast("cpu", enabled=False):
                z = net(x)
            with torch.autocast("cpu", dtype=torch.float16, cache_enabled=False):
                w = net(x)
                cached = torch.is_autocast_cache_enabled()
        return y, z, w, net(x).dtype, before, inside, cached

    x = torch.ones(2, 4)
    results = [f(x)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        results.append(f(x))
    return results, state()


@program(whole=True)
def test_as_a_decorator(compile):
    net = linear()

    @compile
    @torch.autocast("cpu", dtype=torch.bfloat16)
    def f(x):
        return net(x)

    return f(torch.ones(2, 4)), state()


@program(whole=False)
def test_a_break_inside(compile):
    net = linear()

    @compile
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
            print(y.dtype, state())
            y = net(y) + 1
        return y, net(x)

    return [f(torch.ones(2, 4)) for _ in range(2)], state()


@program()
def test_an_exception_inside(compile):
    net = linear()

    @compile
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
            raise ValueError(str(y.dtype))

    return [outcome(f, torch.ones(2, 4)) for _ in range(2)], state()


@program()
def test_a_function_that_leaves_it_on(compile):
    net = linear()

    @compile
    def enter(x, context):
        context.__enter__()
        return net(x)

    @compile
    def leave(x, context):
        context.__exit__(None, None, None)
        return net(x)

    context = torch.autocast("cpu", dtype=torch.bfloat16)
    x = torch.ones(2, 4)
    log = []
    for _ in range(2):
        log += [enter(x, context), state(), net(x), leave(x, context), state(), net(x)]
    return log


def test_casts_of_changed_weights():
    net = linear()
    f = oxyfuel.compile(lambda x: net(x) * 2)
    x = torch.ones(2, 4)
    with torch.no_grad():
        for _ in range(3):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                torch.testing.assert_close(f(x), net(x) * 2)
            net.weight.add_(1)


@program(whole=True, grad=True)
def test_gradients_of_a_region_in_bfloat16(compile):
    net = linear()

    @compile
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x).relu()
        return y.float().sum()

    f(torch.ones(2, 4)).backward()
    return net.weight.grad, net.bias.grad, state()
