"""Tensors as arguments, their identity and aliases, in-place writes, and effects on Python objects."""

import torch
import torch.nn as nn

import oxyfuel
from capture_samples import x23
from eager_comparison import outcome, program


@program(whole=True)
def test_same_tensor_twice(compile):
    f = compile(lambda a, b: (a.add_(1), a + b, a is b))
    x, y, z = x23(), x23(), x23()
    return f(x, x), x, f(y, z), y, z, f(z, z), z


@program()
def test_overlapping_arguments(compile):
    f = compile(lambda a, b: (a.mul_(2), b + 1))
    base = torch.arange(8.0)
    return f(base[:4], base[2:6]), base, f(base[4:], base[:4]), base, f(base[:4], base[:4]), base


@program(whole=True)
def test_outputs_that_are_inputs(compile):
    f = compile(lambda a, b: (a, b, a + b, [a]))
    x, y = x23(), x23()
    result = f(x, y)
    again = f(x, x)
    return x, y, result, result[0] is x, result[3][0] is x, again, again[1] is x


@program(whole=True)
def test_outputs_that_are_views_of_inputs(compile):
    @compile
    def f(x):
        v = x[0]
        return v, x.t(), x.view(-1)[1:3], v.unsqueeze(0), x.expand(2, 2, 3), x.detach(), x.reshape(3, 2), x.contiguous() is x

    x, y = x23(), x23()
    results = f(x)
    results[0].add_(10)
    return x, results, y, f(y)


@program(whole=True)
def test_outputs_that_alias_each_other(compile):
    @compile
    def f(x):
        y = x + 1
        return y, y[0], y.view(-1), y.t(), (y,), y[1:].squeeze(0)

    results = f(x23())
    results[1].zero_()
    return results, f(x23())


@program(whole=True)
def test_in_place_on_inputs_and_views(compile):
    @compile
    def f(x, y):
        x.add_(1)
        x[0] = 7
        v = y.view(-1)
        v[2:4] *= 3
        y.t()[1].copy_(torch.full((2,), 9.0))
        y += x
        return x * 2, v

    x, y = x23(), x23()
    first = f(x, y)
    second = f(x, y)
    return x, y, first, second


@program(whole=True)
def test_in_place_on_temporaries(compile):
    @compile
    def f(x):
        y = x.clone()
        z = y[0]
        y.mul_(2)
        z.add_(1)
        w = torch.zeros(2, 3)
        w[:, 1] = x[:, 0]
        w.masked_fill_(x > 3, -1)
        torch.add(x, 1, out=y)
        return y, z, w

    return f(x23()), f(x23())


@program()
def test_out_argument(compile):
    @compile
    def f(x, out):
        r = torch.add(x, 2, out=out)
        return r, r is out

    out = torch.empty(2, 3)
    return f(x23(), out), out, f(x23() + 1, out), out


@program(whole=True)
def test_buffers_written(compile):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.register_buffer("mean", torch.zeros(3))

        def forward(self, x):
            self.count += 1
            self.mean.mul_(0.5).add_(x.mean(0))
            self.last = x + self.count
            return x - self.mean

    net = Counter()
    f = compile(net)
    return [(f(x23()), net.count.clone(), net.mean.clone(), net.last) for _ in range(3)], list(net.state_dict())


@program()
def test_buffer_replaced_inside(compile):
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(2, 3))

        def forward(self, x):
            self.state = self.state + x
            return self.state * 2

    net = Cache()
    f = compile(net)
    return [(f(x23()), net.state.clone(), list(net._buffers), "state" in net.__dict__) for _ in range(3)]


@program()
def test_batch_norm_in_training(compile):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    torch.manual_seed(2)
    for p in net.parameters():
        nn.init.normal_(p)
    f = compile(net)
    return [(f(x23() + i), {k: v.clone() for k, v in net.state_dict().items()}) for i in range(3)]


COUNTER = 0


@program()
def test_effects_happen_once(compile):
    global COUNTER
    COUNTER = 0
    log, table, seen = [], {"n": 0}, set()

    class Holder:
        total = None

    holder = Holder()

    @compile
    def f(x):
        global COUNTER
        COUNTER += 1
        log.append(COUNTER)
        log.append(x + 1)
        table["n"] += 1
        table[f"k{COUNTER}"] = x
        seen.add(COUNTER)
        holder.total = x if holder.total is None else holder.total + x
        return x * COUNTER

    return [(f(x23()), COUNTER, list(log), dict(table), set(seen), holder.total) for _ in range(3)]


@program()
def test_external_list_append_in_a_loop(compile):
    hidden = []

    @compile
    def f(x):
        for i in range(3):
            x = x + 1
            hidden.append(x)
        return x

    return f(x23()), hidden, f(x23()), len(hidden)


@program()
def test_bound_methods_of_c_made_outside(compile):
    log, table, base = [], {"k": 2}, x23()
    append, get, put, plus = log.append, table.get, table.__setitem__, base.add
    steps = iter(range(100)).__next__

    @compile
    def f(x, also):
        append(1)
        also(x + 1)
        put("n", len(log))
        return plus(x) * get("k") + steps()

    other = []
    results = [f(x23(), other.append), list(log), list(other), dict(table)]
    table["k"] = 5
    base.add_(1)
    return results + [f(x23(), other.append), log, other, table]


@program()
def test_containers_given_are_written(compile):
    @compile
    def f(items, table, x):
        items.append(x + 1)
        items[0] = x
        table["out"] = x * 2
        table.pop("in")
        return items, table

    items, table = [1], {"in": 3}
    result = f(items, table, x23())
    return result, items is result[0], table is result[1], f([2], {"in": 1, "z": 0}, x23())


@program()
def test_module_attribute_lists(compile):
    class Recorder(nn.Module):
        def __init__(self):
            super().__init__()
            self.outputs = []
            self.cache = {}

        def forward(self, x):
            y = x * 2
            self.outputs.append(y)
            self.cache["last"] = y
            return y + len(self.outputs)

    net = Recorder()
    f = compile(net)
    return [(f(x23()), len(net.outputs), net.cache["last"]) for _ in range(3)], net.outputs


@program()
def test_effects_before_an_exception(compile):
    log = []

    class Holder:
        n = 0

    holder = Holder()

    @compile
    def f(x, fail):
        log.append("before")
        holder.n += 1
        x.add_(1)
        if fail:
            raise ValueError("no")
        log.append("after")
        return x

    a = x23()
    return [outcome(f, a, flag) for flag in (False, True, False, True)], log, holder.n, a


@program(whole=True)
def test_writes_over_what_is_read(compile):
    """New contents are written in place: what the old ones were read for must have been done before."""

    @compile
    def f(a, b, c, table, index):
        old = a * 2
        a.mul_(b).add_(1)
        b.copy_(a.t())
        c.add_(c.flip(0))
        c.mul_(b.sum())
        table.add_(table[index].sum())
        return old, a + 1, table[index]

    a, b, c, table = (torch.randn(3, 3) for _ in range(4))
    held = [t.view(-1) for t in (a, b, c, table)]
    index = torch.tensor([2, 0])
    versions = [t._version for t in (a, b, c, table)]
    results = [f(a, b, c, table, index) for _ in range(3)]
    return results, held, [t._version > v for t, v in zip((a, b, c, table), versions)]


@program()
def test_nothing_is_written_by_a_run_that_fails(compile):
    @compile
    def f(a, table, index):
        a.mul_(2)
        table.add_(1)
        return table[index] + a

    a, table = torch.ones(3), torch.zeros(4, 3)
    log = []
    for index in ([0, 3], [0, 4], [1, 1]):
        log.append((outcome(f, a, table, torch.tensor(index)[:, None].expand(2, 3)[:, 0]), a.clone(), table.clone()))
    return log


@program(whole=True)
def test_writes_to_tensors_of_many_layouts(compile):
    @compile
    def f(*tensors):
        for t in tensors:
            t.mul_(2).add_(t.mean())
        return [t.sum() for t in tensors]

    base = torch.randn(4, 6)
    tensors = [
        torch.randn(3, 4).t(), torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.randn(6)[::2],
        base[1:3], torch.randn(0, 3), torch.tensor(2.0), torch.randn(5, dtype=torch.float64), torch.randn(3, 1, 2),
    ]
    return [f(*tensors) for _ in range(2)], tensors, base


@program(whole=True)
def test_writes_under_inference_mode(compile):
    f = compile(lambda t: t.mul_(2).add_(1))
    with torch.inference_mode():
        t = torch.ones(4)
        f(t)
        f(t)
    return t.clone()


def test_a_written_copy_on_write_tensor_leaves_its_origin_alone():
    f = oxyfuel.compile(lambda t: t.mul_(2))
    origin = torch.ones(4)
    copy = torch._lazy_clone(origin)
    f(copy)
    assert origin.tolist() == [1, 1, 1, 1] and copy.tolist() == [2, 2, 2, 2]
    both = oxyfuel.compile(lambda a, b: (a.mul_(3), b.add_(1)))
    copy = torch._lazy_clone(origin)
    both(copy, origin)
    assert origin.tolist() == [2, 2, 2, 2] and copy.tolist() == [3, 3, 3, 3]
