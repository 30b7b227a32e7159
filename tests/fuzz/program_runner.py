"""Runs a program in eager and compiled, and says how what can be seen of the two differs."""

import builtins
import collections
import contextlib
import dataclasses
import gc
import io
import itertools
import linecache
import re
import signal
import traceback
import types
import warnings

import torch

import oxyfuel
import seeds

GLOBALS = ("COUNT", "LOG", "TABLE", "STATE", "SEEN", "RECENT", "GROUPS", "ORDER", "COUNTS", "stored_error")
ADDRESS = re.compile(r"0x[0-9a-f]*")
ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), torch.dtype, torch.device, torch.Size, range)


class Timeout(BaseException):
    pass


class Describer:
    """Objects as nested tuples of text. What is met again is named by the number of its first meeting."""

    def __init__(self, filename):
        self.filename, self.numbers, self.kept = filename, {}, []

    def number(self, key, value):
        self.kept.append(value)
        return self.numbers.setdefault(key, len(self.numbers))

    def describe(self, value):
        kind = type(value)
        if kind is torch.Size:
            return ("size", tuple(value))
        if kind in ATOMS:
            return (kind.__name__, ADDRESS.sub("0x", repr(value)))
        if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType)):
            return (kind.__name__, getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or value.co_name)
        key = id(value)
        if key in self.numbers:
            return ("again", self.numbers[key])
        number = self.number(key, value)
        return (kind.__qualname__, number, self.contents(value))

    def contents(self, value):
        if isinstance(value, torch.Tensor):
            storage = self.number(("storage", value.untyped_storage()._cdata), value)
            plain = value.detach()
            return (str(value.dtype), tuple(value.shape), value.stride(), value.storage_offset(), storage, value.requires_grad, value.is_leaf,
                    [round(v, 4) if isinstance(v, float) else v for v in plain.flatten().tolist()])
        if isinstance(value, BaseException):
            return self.error(value)
        if isinstance(value, types.FunctionType):
            cells = []
            for cell in value.__closure__ or ():
                try:
                    cells.append(self.describe(cell.cell_contents))
                except ValueError:
                    cells.append("empty")
            return (value.__qualname__, value.__code__.co_firstlineno, self.describe(value.__defaults__), self.describe(value.__kwdefaults__), cells, self.describe(vars(value)))
        if isinstance(value, types.MethodType):
            return (value.__func__.__qualname__, self.describe(value.__self__))
        if isinstance(value, (set, frozenset)):
            # What is hashed by its address has no order: what it looks like gives one, before it gets its number.
            looks = {id(item): str(Describer(self.filename).describe(item)) for item in value}
            if len(set(looks.values())) < len(looks):
                return sorted(looks.values())
            return [self.describe(item) for item in sorted(value, key=lambda item: looks[id(item)])]
        if isinstance(value, slice):
            return (self.describe(value.start), self.describe(value.stop), self.describe(value.step))
        result = []
        if isinstance(value, (list, tuple, collections.deque)):
            result.append([self.describe(item) for item in value])
        elif isinstance(value, dict):
            result.append([(self.describe(key), self.describe(item)) for key, item in value.items()])
        elif isinstance(value, collections.ChainMap):
            result.append(self.describe(value.maps))
        elif isinstance(value, (type({}.keys()), type({}.values()), type({}.items()))):
            result.append([self.describe(item) for item in value])
        elif not isinstance(value, torch.nn.Module) and hasattr(type(value), "__next__"):
            with contextlib.suppress(Exception):
                for item in itertools.islice(value, 10):
                    result.append(self.describe(item))
        for owner in type(value).__mro__:
            for name in getattr(owner, "__slots__", ()):
                if isinstance(name, str) and hasattr(value, name) and type(value).__module__ not in ("builtins", "collections"):
                    result.append((name, self.describe(getattr(value, name))))
        own = getattr(value, "__dict__", None)
        if own and isinstance(own, dict):
            result.append([(key, self.describe(item)) for key, item in own.items()])
        return result

    def error(self, error):
        lines = [(frame.name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self.filename]
        if isinstance(error, UnboundLocalError) and lines:
            # CPython 3.11 fuses a store with the load behind it, and then names the store's line.
            lines[-1] = (lines[-1][0], None)
        return (self.describe(error.args), ADDRESS.sub("0x", str(error)), lines, self.describe(error.__cause__), self.describe(error.__context__),
                error.__suppress_context__, self.describe(vars(error)))


def drive(value):
    """What a generator or coroutine gives when it is run to its end, with values sent and one error thrown."""
    if isinstance(value, types.AsyncGeneratorType):
        items = []
        for i in range(5):
            step = drive(value.athrow(KeyError("thrown")) if i == 3 else value.asend(i or None))
            items.append(step)
        return [*items, drive(value.aclose())]
    items = []
    try:
        sent = None
        for i in range(30):
            items.append(value.throw(KeyError("thrown")) if i == 4 else value.send(sent))
            sent = i
        value.close()
    except StopIteration as stop:
        items.append(stop.value)
    except Exception as error:
        items.append(error)
    return items


def run(program, compile, filename):
    """What can be observed of the program: a list, one entry a call and one for what is printed."""
    source = program.full_source()
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = {"compile": compile, "__name__": "program", "__file__": filename}
    printed, observed = io.StringIO(), []
    describer = Describer(filename)
    torch.manual_seed(0)
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(builtins.compile(source, filename, "exec"), namespace)
        for call in program.calls:
            args = eval(call, namespace)
            try:
                result = namespace["f"](*args)
                if isinstance(result, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
                    result = drive(result)
                outcome = ("returned", describer.describe(result))
            except Exception as error:
                outcome = ("raised", describer.describe(error))
            gc.collect()  # what is in cycles has come to its end, too
            observed.append((call, outcome, ("arguments", [describer.describe(arg) for arg in args]),
                             ("globals", [(name, describer.describe(namespace[name])) for name in GLOBALS]),
                             ("modes", torch.is_grad_enabled())))
    return observed + [("printed", ADDRESS.sub("0x", printed.getvalue()))]


def first_difference(expected, actual, path=""):
    if type(expected) is type(actual) and isinstance(expected, (tuple, list)):
        for i, (a, b) in enumerate(zip(expected, actual)):
            found = first_difference(a, b, f"{path}/{i}")
            if found:
                return found
        if len(expected) == len(actual):
            return None
        return f"{path}: {len(expected)} entries, not {len(actual)}: {str(expected)[:300]} | {str(actual)[:300]}"
    if expected == actual:
        return None
    if isinstance(expected, float) and isinstance(actual, float) and (expected != expected and actual != actual or abs(expected - actual) < 1e-3):
        return None
    return f"{path}: expected {str(expected)[:300]}, got {str(actual)[:300]}"


@dataclasses.dataclass
class Verdict:
    difference: str = ""  # empty: none
    graphs: int = 0
    breaks: int = 0
    skipped: bool = False


def eager_elsewhere(program, filename):
    """Runs of a program whose objects lie at other addresses, which decide the order of sets of tensors."""
    kept = []
    for count in (1, 5, 11, 17):
        kept += [(object(), torch.zeros(1)) for _ in range(count)]
        yield run(program, lambda target: target, filename)


def differing(generator, first, count):
    """Of `count` seeds those whose programs differ, with what differs."""
    return seeds.differing(lambda seed: check(generator.generate(seed)).difference, first, count)


def check(program, backend=None, seconds=20, on_compiled=lambda: None):
    """Runs a program both ways; ``on_compiled`` is called between. Programs that take long
    in eager, or differ from themselves there, are not compared."""

    if "compile(None)" in program.source:  # what shrinking may come to: a decorator, not a program
        return Verdict(skipped=True)
    late = []  # programs may handle the exception

    def on_alarm(*_):
        late.append(True)
        raise Timeout

    if backend is None:
        backend = "native" if program.seed % 8 == 0 else "eager"
    filename = f"<program {program.seed}>"
    previous = signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(2)
    gc.freeze()  # run() collects after each call: the program's objects alone
    try:
        try:
            expected = run(program, lambda target: target, filename)
            if late or "MemoryError" in str(expected):
                return Verdict(skipped=True)
        except Timeout:
            return Verdict(skipped=True)
        signal.alarm(seconds)
        on_compiled()
        oxyfuel.reset()
        try:
            actual = run(program, lambda target: oxyfuel.compile(target, backend=backend), filename)
        except Exception as error:
            return Verdict(f"the program cannot be run compiled: {type(error).__name__}: {error}")
        metrics = oxyfuel.metrics()
        difference = first_difference(expected, actual) or ""
        if difference and any(first_difference(expected, again) for again in eager_elsewhere(program, filename)):
            return Verdict(skipped=True)
        return Verdict(difference, metrics["graphs"], len(metrics["breaks"]))
    except Timeout:
        return Verdict("it takes too long")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
        torch.set_grad_enabled(True)
        gc.unfreeze()
