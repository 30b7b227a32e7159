"""functools.lru_cache: what a cache can be told by, besides that it is fast."""

import functools
import io
import logging
import warnings

import pytest
import torch

import oxyfuel
from eager_comparison import outcome, program

X = torch.arange(3.0)


@program(whole=True)
def test_a_pure_function_of_numbers_is_captured(compile):
    @functools.lru_cache(maxsize=None)
    def offsets(n, step=1):
        return tuple(range(0, n, step)), torch.arange(float(n))

    @compile
    def f(x, n):
        numbers, tensor = offsets(n, step=2)
        return x + sum(numbers) + tensor

    return f(X, 3), f(X, 3)


@program()
def test_unhashable_arguments_raise(compile):
    @functools.lru_cache
    def same(*args, **kwargs):
        return len(args)

    @compile
    def f(x, *args, **kwargs):
        return x + same(*args, **kwargs)

    arguments = ([],), ({},), (set(),), (1, (2, [3])), (bytearray(),), (1, frozenset([1])), ((),)
    return [outcome(lambda: f(X, *each)) for each in arguments], outcome(lambda: f(X, key=[]))


@program()
def test_effects_happen_when_the_cache_lets_the_function_run(compile):
    log = []

    @functools.lru_cache
    def noted(n):
        log.append(n)
        return n

    @compile
    def f(x, n):
        return x + noted(n)

    return [f(X, n) for n in (1, 1, 2, 1, 2)], log


@program()
def test_a_list_from_the_cache_is_the_same_list(compile):
    @functools.lru_cache
    def collected(n):
        return [n]

    @compile
    def f(x, n):
        items = collected(n)
        items.append(len(items))
        return x + sum(items), items

    return f(X, 1)[0], f(X, 1)[0], f(X, 2)[0], f(X, 1)[1] is collected(1)


@program()
def test_a_tensor_that_changes_is_given_to_a_cache(compile):
    @functools.lru_cache
    def total(tensor):
        return tensor.sum()

    @compile
    def f(x):
        return x + total(x)

    x = X.clone()
    first = f(x)
    x.add_(1)
    return first, f(x)


@program()
def test_objects_that_hash_themselves(compile):
    class Key:
        hashed = 0

        def __init__(self, value):
            self.value = value

        def __hash__(self):
            Key.hashed += 1
            return 1

        def __eq__(self, other):
            return True

    @functools.lru_cache
    def value_of(key):
        return key.value

    @compile
    def f(x, key):
        return x + value_of(key)

    return f(X, Key(1)), f(X, Key(2)), Key.hashed


def test_the_reason_of_a_break_is_given():
    @functools.lru_cache
    def total(tensor):
        return tensor.sum()

    report = oxyfuel.explain(lambda x: x + total(x))(X)
    assert "gives a tensor to a cached function" in str(report)


@program(whole=True)
def test_a_cached_method_of_a_module(compile):
    class Layers(torch.nn.Module):
        calls = 0

        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(3, 3), torch.nn.ReLU()

        @functools.lru_cache
        def parts(self, kind):
            Layers.calls += 1
            return [part for part in self.children() if isinstance(part, kind)]

        def forward(self, x):
            for part in self.parts(torch.nn.Linear):
                x = part(x)
            return x * len(self.parts(torch.nn.ReLU))

    torch.manual_seed(0)
    model = Layers()
    f = compile(model)
    return f(X), f(X), Layers.calls


@program()
def test_a_cached_method_after_a_write(compile):
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.runs, self.scale = torch.nn.Linear(3, 3), 0, 2

        @functools.lru_cache
        def layers(self, kind):
            return tuple(part for part in self.children() if isinstance(part, kind))

        @functools.lru_cache
        def scaled(self, number):
            return self.scale * number

        def forward(self, x):
            self.runs += 1
            self.scale = 2
            return self.layers(torch.nn.Linear)[0](x) * self.scaled(3)

    torch.manual_seed(0)
    model = Counting()
    f = compile(model)
    return f(X), f(X), model.runs


@program()
def test_what_a_cached_function_reads_and_changes(compile):
    state, log = {"k": 1}, []

    @functools.lru_cache
    def scaled(n):
        log.append(n)
        return state["k"] * n

    @functools.lru_cache(maxsize=1)
    def last(n):
        log.append(("last", n))
        return n

    @compile
    def f(x, k):
        log.append("starts")
        first = scaled(2)
        state["k"] = k
        second = scaled(2), scaled(3)
        scaled.cache_clear()
        third = scaled(2)
        log.append("ends")
        return x + 1, first, second, third

    @compile
    def g(x):
        return last(1), last(2), last(1), x + 1

    return [f(X, k) for k in (5, 5, 7)], [g(X) for _ in range(2)], log


@program()
def test_a_cached_function_that_raises_behind_a_write(compile):
    log = []

    @functools.lru_cache
    def refuse(n):
        log.append(n)
        raise ValueError(n)

    @compile
    def f(x):
        log.append("starts")
        try:
            refuse(3)
        except ValueError as error:
            return x + 1, str(error)

    return f(X), f(X), log


STATE = {"value": 1}


@functools.lru_cache(maxsize=None, typed=True)
def typed(n, scale=1):
    return n, STATE["value"], scale


@functools.lru_cache(maxsize=8)
def by_keyword(n, *, scale=1):
    return n, STATE["value"], scale


@functools.lru_cache(maxsize=0)
def never_kept(n):
    return n, STATE["value"]


@program()
def test_caches_of_every_kind_are_cleared(compile):
    f = compile(lambda x: (typed(1), typed(1.0), typed(1, scale=2), x + 1))
    g = compile(lambda x: (by_keyword(1, scale=2), by_keyword(scale=3, n=1), x + 1))
    h = compile(lambda x: (never_kept(1), x + 1))
    results = []
    for value in (1, 1, 2, 3, 3):
        if STATE["value"] != value:
            STATE["value"] = value
            typed.cache_clear()
            by_keyword.cache_clear()
        results.append((f(X), g(X), h(X)))
    return results


@program(whole=True)
def test_numbers_that_vary_in_what_a_cache_is_asked(compile):
    @functools.lru_cache
    def doubled(n, pair=(0, 0)):
        return n * 2, pair

    f = compile(lambda x, n: (doubled(n), doubled(0, (n, 1)), x * n))
    return [f(X, n) for n in (1, 2, 3, 4, 2)]


@program(whole=True)
def test_what_a_cached_function_tells_of_its_caller(compile):
    @functools.lru_cache
    def tells(n):
        warnings.warn("told", stacklevel=2)
        return n

    f = compile(lambda x: x + tells(1))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        results = f(X), f(X)
    return results, [(str(each.message), each.lineno) for each in told]


class Kept:
    pass


class LooksAt(logging.Filter):
    """A part of the program that sees its objects whenever something is told."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def filter(self, record):
        record.msg += f", and {self.kept.number} was kept"
        return True


def tell_behind_a_write(compile, prepare):
    """As transformers' warning_once()."""

    @functools.lru_cache
    def tell_once(logger, *arguments):
        logger.warning(*arguments)

    kept, logger, stream = Kept(), logging.Logger("told once"), io.StringIO()
    kept.number = 0
    logger.addHandler(logging.StreamHandler(stream))
    prepare(logger, kept)

    @compile
    def f(x):
        kept.number = 2
        tell_once(logger, f"{type(x).__name__} came")
        return x + kept.number

    return f(X), f(X), stream.getvalue(), kept.number


@program(whole=True)
def test_what_is_told_once_behind_a_write(compile):
    """The message says nothing of what was written, so that it is told at the capture."""
    return tell_behind_a_write(compile, lambda logger, kept: None)


LOOKING = {
    "a filter": lambda logger, kept: logger.addFilter(LooksAt(kept)),
    "a filter of a handler": lambda logger, kept: logger.handlers[0].addFilter(LooksAt(kept)),
    "a handler of a parent": lambda logger, kept: setattr(logger, "parent", logging.Logger("above")) or logger.parent.addHandler(Telling(logger, kept)),
    "a stream": lambda logger, kept: setattr(logger.handlers[0], "stream", Stream(kept, logger.handlers[0].stream)),
    "a callable in the place of a method": lambda logger, kept: setattr(logger, "handle", functools.partial(LooksAt(kept).filter)),
    "a method": lambda logger, kept: setattr(logger, "handle", lambda record: LooksAt(kept).filter(record) and logger.callHandlers(record)),
}


class Stream:
    """What a handler writes to, that sees an object of the program."""

    def __init__(self, kept, stream):
        self.kept, self.stream = kept, stream

    def write(self, text):
        self.stream.write(f"{self.kept.number}: {text}")


class Telling(logging.Handler):
    def __init__(self, logger, kept):
        super().__init__()
        self.logger, self.kept = logger, kept

    def emit(self, record):
        self.logger.handlers[0].stream.write(f"{self.kept.number} was kept\n")


@pytest.mark.parametrize("looking", LOOKING.values(), ids=LOOKING)
@program(whole=False)
def test_what_looks_at_objects_when_something_is_told(compile, looking):
    return tell_behind_a_write(compile, looking)


@program(whole=False, options={"recompile_limit": 2})
def test_a_cached_function_that_raises_runs_once_a_call(compile):
    log = []

    @functools.lru_cache
    def refuse(n):
        log.append(n)
        if n % 2:
            raise ValueError(n)
        return n

    @compile
    def f(x, n):
        try:
            return refuse(n) + x
        except ValueError as error:
            return x + 1, str(error)

    return [f(X, n) for n in (1, 1, 2, 2, 1, 3, 5, 4, 4)], log


@program(whole=False, options={"fill_caches_in_eager": False})
def test_a_call_that_does_not_wait_for_the_cache_breaks_once(compile):
    log = []

    @functools.lru_cache
    def doubled(n):
        log.append(n)
        return n * 2

    f = compile(lambda x, n: x.sin() + doubled(n))
    return [f(X, n) for n in (1, 1, 1, 2, 2)], log


@program(whole=False)
def test_a_cached_function_asked_anew_in_a_loop_that_breaks(compile):
    log = []

    @functools.lru_cache
    def doubled(n):
        log.append(n)
        return n * 2

    @compile
    def f(x, numbers):
        print("starts")
        for n in numbers:
            x = x + doubled(n)
        return x

    return [f(X, range(start, start + 4)) for start in (0, 0, 0, 2, 2, 5)], log


def test_a_call_that_fills_a_cache_is_left_to_eager():
    @functools.lru_cache
    def doubled(n):
        return n * 2

    f = oxyfuel.compile(lambda x, n: x * doubled(n), fullgraph=True)
    graphs = []
    for n in (1, 1, 1, 2, 2):
        assert torch.equal(f(X, n), X * 2 * n)
        graphs.append(oxyfuel.metrics()["graphs"])
    assert graphs == [0, 1, 1, 1, 2]


def test_fullgraph_refuses_a_function_that_keeps_no_answers():
    @functools.lru_cache(maxsize=0)
    def doubled(n):
        return n * 2

    f = oxyfuel.compile(lambda x: x * doubled(2), fullgraph=True)
    with pytest.raises(oxyfuel.Unsupported, match="no answer yet"):
        f(X)


def test_explain_shows_the_answer_that_lacks():
    @functools.lru_cache
    def doubled(n):
        return n * 2

    def f(x):
        return x * doubled(3)

    assert "calls a cached function that has no answer yet" in str(oxyfuel.explain(f)(X))
    assert "no answer yet" not in str(oxyfuel.explain(f)(X))


@program(whole=True)
def test_an_answer_that_there_is_behind_writes(compile):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(3, 3, bias=False))
            torch.nn.init.ones_(self.inner[0].weight)
            self.calls = 0

        @functools.lru_cache
        def layers(self, module):
            return [each for each in module.children()]

        def forward(self, x):
            self.calls += 1
            for layer in self.layers(self.inner):
                x = layer(x)
            return x

    model = Model()
    model.layers(model.inner)
    compiled = compile(model)
    with torch.no_grad():
        return [compiled(X) for _ in range(3)], model.calls


@program()
def test_a_hash_that_reads_what_was_written(compile):
    class Key:
        def __init__(self):
            self.number = 0

        def __hash__(self):
            return hash(self.number)

        def __eq__(self, other):
            return self.number == other.number

    @functools.lru_cache
    def doubled(key):
        return 2 * key.number

    key, other = Key(), Key()
    other.number = 1

    def f(x):
        key.number = 1
        result = x + doubled(key)
        key.number = 0
        return result

    doubled(key), doubled(other)
    compiled = compile(f)
    return [compiled(X) for _ in range(3)]
