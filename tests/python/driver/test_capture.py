"""What user functions may do inside a compiled function: calls, closures, arguments, the torch API."""

import importlib.metadata
import math
import pickle

import torch
import torch.nn as nn
import torch.nn.functional as F

from capture_samples import Color, made, x23
from eager_comparison import program


@program(whole=True)
def test_plain_function(compile):
    f = compile(lambda a, b: (a + b).relu() * 2 - b)
    return [f(x23(), x23() - 3), f(x23() * 2, x23())]


@program(whole=True)
def test_closure_changed_between_calls(compile):
    scale = 2.0

    @compile
    def f(x):
        return x * scale

    results = [f(x23())]
    scale = 3.0
    results.append(f(x23()))
    scale = torch.tensor(5.0)
    results.append(f(x23()))
    return results


@program(whole=True)
def test_nonlocal_write(compile):
    calls, last = 0, None

    @compile
    def f(x):
        nonlocal calls, last
        calls += 1
        last = x + calls
        return x * calls

    return [(f(x23()), calls, last) for _ in range(3)]


@program(whole=True)
def test_returned_closure(compile):
    @compile
    def make(x):
        y = x + 1

        def inner(z):
            return y * z

        return inner, inner(x)

    inner, first = make(x23())
    return first, inner(x23())


@program(whole=True)
def test_defaults_and_keywords(compile):
    @compile
    def f(x, scale=2.0, *, bias=1.0, name="n"):
        return {name: x * scale + bias}

    return [f(x23()), f(x23(), 3.0), f(x23(), bias=2.0), f(x23(), name="m"), f(scale=1.0, x=x23())]


@program(whole=True)
def test_star_arguments(compile):
    @compile
    def f(*args, **kwargs):
        total = args[0]
        for a in args[1:]:
            total = total + a
        for key, value in kwargs.items():
            total = total * value if key.startswith("m") else total - value
        return total, len(args), sorted(kwargs)

    a, b = x23(), x23() + 1
    return [f(a), f(a, b), f(a, b, m=a), f(a, s=b, m=b), f(*[a, b, a], **{"m": b})]


@program(whole=True)
def test_mutable_default_is_shared(compile):
    @compile
    def f(x, seen={}):
        return x * len(seen), seen

    first = f(x23())
    first[1]["a"] = 1
    return first, f(x23())


@program()
def test_defaults_replaced(compile):
    def g(x, scale=2.0):
        return x * scale

    f = compile(g)
    results = [f(x23())]
    g.__defaults__ = (4.0,)
    results.append(f(x23()))
    g.__kwdefaults__ = None
    results.append(f(x23()))
    return results


@program()
def test_code_replaced(compile):
    def helper(x):
        return x + 1

    f = compile(lambda x: helper(x) * 2)
    results = [f(x23())]
    helper.__code__ = (lambda x: x - 1).__code__
    results.append(f(x23()))
    return results


@program()
def test_attributes_of_functions_and_classes_replaced(compile):
    def helper(x, scale=None):
        return x

    class Named:
        pass

    def described(x):
        keywords = helper.__kwdefaults__
        return x + len(helper.__name__ + helper.__qualname__ + Named.__name__ + Named.__qualname__), keywords, helper.__annotations__

    f = compile(described)
    results = [f(x23()), f(x23())]
    for name, value in (("__name__", "a"), ("__qualname__", "b.c"), ("__kwdefaults__", {"scale": 2}), ("__annotations__", {"x": int})):
        setattr(helper, name, value)
        results += [f(x23()), f(x23())]
    for name in ("__name__", "__qualname__"):
        setattr(Named, name, "N")
        results += [f(x23()), f(x23())]
    helper.__kwdefaults__ = None
    return results + [f(x23())]


@program(whole=True)
def test_nested_calls_and_lambda(compile):
    def twice(f, x):
        return f(f(x))

    f = compile(lambda x, k: twice(lambda y: y * k + 1, x))
    return [f(x23(), 2), f(x23(), 3)]


@program(whole=True)
def test_recursion(compile):
    def power(x, n):
        return x if n == 0 else power(x, n - 1) * 1.5

    f = compile(power)
    return [f(x23(), 5), f(x23(), 0), f(x23(), 30)]


@program()
def test_endless_recursion(compile):
    def down(x):
        return down(x + 1)

    try:
        compile(down)(x23())
    except RecursionError as error:
        return type(error)


@program()
def test_random_numbers_follow_the_seed(compile):
    drop = nn.Dropout(0.5)
    f = compile(lambda x: drop(x) + torch.rand(2, 3) + torch.randn_like(x))
    return [f(x23()) for _ in range(3)], torch.rand(2)


@program(whole=True)
def test_functional_mix(compile):
    w, b = torch.randn(4, 3), torch.randn(4)

    @compile
    def f(x):
        h = F.gelu(F.linear(x, w, b))
        h = F.layer_norm(h, (4,))
        a = torch.softmax(h @ h.t() / math.sqrt(4), dim=-1)
        parts = torch.chunk(h, 2, dim=-1)
        return a, torch.cat(parts[::-1], -1), h.split([1, 3], 1)[1], torch.where(h > 0, h, 0.0), h.max(-1), torch.topk(h, 2), h.std(), F.pad(h, (1, 1)), torch.einsum("ij,kj->ik", h, h)

    return f(x23()), f(x23() * 0.1)


@program()
def test_integer_and_bool_tensors(compile):
    @compile
    def f(i, m):
        return i // 2, i % 3, ~m, i[m], i.sum(), i.float().mean(), m.any(), i == 3, (i > 1) & m, i.to(torch.float64) / 3, i.cumsum(0), torch.arange(3) * i[0]

    i = torch.tensor([1, 2, 3, 4])
    return f(i, i > 2), f(i, i > 0)


@program()
def test_tensors_without_elements_and_scalars(compile):
    f = compile(lambda x: (x + 1, x.sum(), x * torch.tensor(2.0), torch.tensor([1.0, 2.0]).mean()))
    return [f(torch.empty(0)), f(torch.tensor(3.0)), f(torch.empty(0, 3)), f(torch.ones(1))]


@program()
def test_tensor_attributes(compile):
    @compile
    def f(x):
        return (x.shape, x.size(0), x.dim(), x.ndim, x.numel(), len(x), x.dtype, x.device, x.stride(), x.is_contiguous(), x.requires_grad,
                x.T, x.mT, x.data, x.is_floating_point(), x.element_size(), x.storage_offset(), x.is_leaf, x.layout, x.itemsize, x.nbytes)

    return f(x23()), f(x23().t())


@program()
def test_attributes_put_on_tensors(compile):
    @compile
    def f(x):
        y = x + 1
        y.tag = "made"
        return y, y.tag, getattr(x, "tag", "none")

    x = x23()
    first = f(x)
    x.tag = "given"
    return first, f(x)


@program()
def test_parameters_and_nested_grad_modes(compile):
    net = made(nn.Linear, 3, 3)

    @compile
    def f(x):
        with torch.no_grad():
            a = net(x)
        with torch.enable_grad():
            b = a + 1
            inside = torch.is_grad_enabled()
        with torch.inference_mode():
            c = a * 2
        return a, b, c.sum().item(), inside, torch.is_grad_enabled()

    return f(x23()), f(x23())


@program()
def test_autocast_inside(compile):
    net = made(nn.Linear, 3, 3)

    @compile
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
            with torch.autocast("cpu", enabled=False):
                z = net(x)
        return y, z, net(x)

    return f(x23()), f(x23())


@program()
def test_decorated_by_no_grad(compile):
    @compile
    @torch.no_grad()
    def f(x):
        return x * 2, torch.is_grad_enabled()

    @torch.no_grad()
    @compile
    def g(x):
        return x * 3

    return f(x23()), g(x23())


@program()
def test_pickled_inside(compile):
    @compile
    def f(x):
        return x + pickle.loads(pickle.dumps({"a": 2}))["a"]

    return f(x23()), f(x23())


@program()
def test_sort_and_keys_of_containers(compile):
    @compile
    def f(x):
        items = [("b", 2), ("a", 1)]
        items.sort(key=lambda p: p[1])
        table = {(1, 2): x, None: 1, 1.5: 2, True: 3, Color.RED: 4, int: 5, torch.float32: 6}
        return items, table[(1, 2)] + table[1], table[Color.RED], table[int], table[torch.float32], len(table)

    return f(x23())


@program()
def test_class_made_inside(compile):
    @compile
    def f(x):
        class Local:
            k = 3

            def run(self, y):
                return y * self.k

        return Local().run(x), Local.__name__

    return f(x23()), f(x23())


@program()
def test_globals_locals_vars(compile):
    class Holder:
        def __init__(self):
            self.a, self.b = 1, 2

    @compile
    def f(x):
        h = Holder()
        return x + sum(vars(h).values()), sorted(h.__dict__), "COUNTER" in globals(), sorted(locals())

    return f(x23())


@program()
def test_two_functions_share_a_helper(compile):
    def helper(x, n):
        return x + n

    f, g = compile(lambda x: helper(x, 1)), compile(lambda x: helper(x, 2) * 2)
    return f(x23()), g(x23()), f(x23()), g(f(x23()))


@program(whole=True)
def test_conditions_and_versions(compile):
    @compile
    def f(x):
        torch._check_with(RuntimeError, x.shape[1] == 3, lambda: "three columns")
        torch._check(x.shape[0] == 2, lambda: "two rows")
        torch._check_value(x.dim() == 2)
        try:
            importlib.metadata.version("no distribution has this name")
        except importlib.metadata.PackageNotFoundError:
            return x + len(importlib.metadata.version("torch"))

    return f(x23())


@program()
def test_conditions_that_do_not_hold(compile):
    @compile
    def f(x):
        try:
            torch._check(x.shape[0] == 3, lambda: "three rows")
        except RuntimeError as error:
            return x + 1, str(error)

    return f(x23())


@program()
def test_compiled_inside_compiled(compile):
    inner = compile(lambda x: x * 2)
    net = compile(made(nn.Linear, 3, 3))
    outer = compile(lambda x: inner(x) + net(x) + 1)
    return outer(x23()), outer(x23()), inner(x23())


@program()
def test_callable_object(compile):
    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x * self.k

    s = Scale(2)
    f = compile(s)
    results = [f(x23())]
    s.k = 3
    return results + [f(x23()), compile(s.__call__)(x23())]


@program()
def test_questions_about_distributed_processes(compile):
    def f(x):
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return x * 2
        return x + 1

    return compile(f)(x23())
