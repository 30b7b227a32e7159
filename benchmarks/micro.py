"""The small figures: call overhead, guards, the idle hook, scatters and gathers, loops with breaks, large lists, compile time of long chains.

    python benchmarks/micro.py [--only call,guards,...] [--json out.json]

Times of a call are medians of batches of calls, in microseconds; each batch of one kind follows a batch of every other.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median

import torch

import oxyfuel

BATCHES = 15


def microseconds(functions, calls):
    """{name: median microseconds a call}, interleaved in batches of `calls`."""
    for function in functions.values():
        function()
    samples = {name: [] for name in functions}
    for _ in range(BATCHES):
        for name, function in functions.items():
            start = time.perf_counter()
            for _ in range(calls):
                function()
            samples[name].append((time.perf_counter() - start) / calls * 1e6)
    return {name: median(values) for name, values in samples.items()}


def add(a, b):
    return a + b


def call_overhead():
    """a + b on two 4-element tensors."""
    a, b = torch.randn(4), torch.randn(4)
    ours, theirs = oxyfuel.compile(add), torch.compile(add)
    with torch.no_grad():
        ours(a, b), theirs(a, b)
        return microseconds(
            {"eager": lambda: add(a, b), "oxyfuel": lambda: ours(a, b), "torch.compile": lambda: theirs(a, b)}, 2000
        )


class Discarding(torch.nn.Module):
    """Runs a model for nothing: what is compiled is x + 1, but all that the model reads must be guarded."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, **inputs):
        self.model(**inputs)
        return x + 1


def add_one(x):
    return x + 1


def guards():
    """Guards of a 16-layer Llama, unchanged and with a global counter beside it that changes every call."""
    from models import Case, _MODELS
    import transformers
    from transformers.models.llama import modeling_llama

    arguments = dict(_MODELS["llama"].sizes["small"], num_hidden_layers=16, vocab_size=128, use_cache=False)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**arguments)).eval()
    inputs, x = Case("llama", "small").inputs(), torch.randn(4)
    guarded, bare = oxyfuel.compile(Discarding(model), fullgraph=True), oxyfuel.compile(add_one, fullgraph=True)
    count = iter(range(1 << 62))

    def with_counter():
        modeling_llama.benchmark_counter = next(count)
        return guarded(x, **inputs)

    def counter_alone():
        modeling_llama.benchmark_counter = next(count)
        return bare(x)

    try:
        with torch.no_grad():
            unchanged = microseconds({"llama": lambda: guarded(x, **inputs), "bare": lambda: bare(x)}, 500)
            changing = microseconds({"llama": with_counter, "bare": counter_alone}, 500)
    finally:
        vars(modeling_llama).pop("benchmark_counter", None)
    return {
        "unchanged": unchanged["llama"] - unchanged["bare"],
        "changing global": changing["llama"] - changing["bare"],
    }


def _add_one_beside(x, tensors):
    for tensor in tensors:
        if tensor.dim() != 6:
            return x
    return x + 1


def _add_one_with_relations(x, tensors):
    for tensor in tensors:
        for i in range(6):
            if tensor.size(i) + 2 * tensor.size((i + 1) % 6) > 100:
                return x
    return x + 1


def relations():
    """Microseconds that 30 relations between sizes of five tensors add to a call that is given them."""
    x, tensors = torch.randn(4), [torch.randn(2, 3, 2, 5, 4, 3) for _ in range(5)]
    functions = {"with": _add_one_with_relations, "without": _add_one_beside}
    compiled = {name: oxyfuel.compile(function, dynamic=True, fullgraph=True) for name, function in functions.items()}
    with torch.no_grad():
        times = microseconds({name: lambda each=each: each(x, tensors) for name, each in compiled.items()}, 2000)
    # A call that one relation does not hold for is compiled once more.
    before = oxyfuel.metrics()["recompiles"]
    compiled["with"](x, tensors[:4] + [torch.randn(2, 3, 2, 5, 4, 60)])
    if oxyfuel.metrics()["recompiles"] != before + 1:
        raise AssertionError("the relations are no guards")
    return times | {"added": times["with"] - times["without"]}


def plain_python(n=200):
    total = 0
    for i in range(n):
        total += helper(i)
    return total


def helper(i):
    return i % 7


def idle_hook():
    """A plain Python function before any compilation and while a compiled function is idle."""
    before = microseconds({"before": plain_python}, 500)["before"]
    compiled = oxyfuel.compile(add)
    compiled(torch.randn(4), torch.randn(4))
    after = microseconds({"after": plain_python}, 500)["after"]
    again = microseconds({"after": plain_python}, 500)["after"]
    return {"before": before, "idle": min(after, again), "ratio": min(after, again) / before}


def chain_of_adds(n):
    lines = ["def chain(x, y):"] + ["    x = x + y"] * n + ["    return x"]
    space = {}
    exec(compile("\n".join(lines), f"<chain of {n}>", "exec"), space)
    return space["chain"], (torch.randn(8), torch.randn(8))


def doubling(n):
    def double(x):
        for _ in range(n):
            x = x + x
        return x

    return double, (torch.zeros(8),)


def nested_calls(n):
    lines = ["def f0(x):", "    return x + 1"]
    for i in range(1, n):
        lines += [f"def f{i}(x):", f"    return f{i - 1}(x) + 1"]
    space = {}
    exec(compile("\n".join(lines), f"<{n} nested calls>", "exec"), space)
    return space[f"f{n - 1}"], (torch.randn(8),)


CHAINS = {
    "chain of n adds": (chain_of_adds, (500, 1000, 2500, 5000)),
    "x = x + x, n times": (doubling, (500, 1000, 2500, 5000)),
    "n nested calls": (nested_calls, (50, 100, 250, 500)),
}


def compile_time():
    """Seconds of the first call, by length."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10_000))  # eager needs it for the nested calls
    result = {}
    try:
        for name, (make, lengths) in CHAINS.items():
            for n in lengths:
                function, inputs = make(n)
                oxyfuel.reset()
                compiled = oxyfuel.compile(function, fullgraph=True)
                start = time.perf_counter()
                with torch.no_grad():
                    actual = compiled(*inputs)
                result[f"{name}, n = {n}"] = time.perf_counter() - start
                torch.testing.assert_close(actual, function(*inputs), rtol=1e-3, atol=1e-3)
    finally:
        sys.setrecursionlimit(limit)
    return result


def training_overhead():
    """Forward and backward pass of a * b + a on 4 elements."""

    def function(a, b):
        return a * b + a

    def step(called):
        called(a, b).backward(upstream)
        a.grad = b.grad = None

    a, b, upstream = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True), torch.ones(4)
    compiled = oxyfuel.compile(function)
    return microseconds({"eager": lambda: step(function), "oxyfuel": lambda: step(compiled)}, 2000)


def whole_steps():
    """Forward, backward and optimizer.step() in one compiled function: four layers of 64, a batch of 32."""
    result = {}
    for name in ("SGD", "AdamW"):
        called = {}
        for who, compile in {"eager": lambda f: f, "oxyfuel": oxyfuel.compile, "torch.compile": torch.compile}.items():
            torch.manual_seed(0)
            layers = [torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(4)]
            model = torch.nn.Sequential(*layers, torch.nn.Linear(64, 1))
            optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-3)
            x, y = torch.randn(32, 64), torch.randn(32, 1)

            def step(model=model, optimizer=optimizer, x=x, y=y):
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                return loss.detach()

            called[who] = compile(step)
        for _ in range(5):
            losses = [each() for each in called.values()]
        torch.testing.assert_close(losses, [losses[0]] * 3, rtol=1e-3, atol=1e-5)
        times = microseconds(called, 50)
        result.update({f"{name}: {who}": value for who, value in times.items()})
    return result


def inference_capture():
    """Milliseconds of BERT-base without gradients, batch 1: capture, and the first call. The shortest of eight."""
    import models

    case = models.Case("bert", "base", 1)
    model, inputs = case.build(), case.inputs()
    captures, firsts = [], []
    for _ in range(8):
        oxyfuel.reset()
        compiled = oxyfuel.compile(model)
        start = time.perf_counter()
        with torch.no_grad():
            case.step(model, compiled, inputs)
        firsts.append(time.perf_counter() - start)
        captures.append(oxyfuel.metrics()["seconds"]["capture"])
    return {"capture": min(captures) * 1e3, "first call": min(firsts) * 1e3}


def joint_capture():
    """Seconds a stage of the first training step of BERT-base."""
    import models

    case = models.Case("bert", "base", 2, labels=True, mode="training")
    model, inputs = case.build(), case.inputs()
    oxyfuel.reset()
    case.step(model, oxyfuel.compile(model), inputs)
    return {stage: seconds for stage, seconds in oxyfuel.metrics()["seconds"].items() if "." not in stage}


def _first_call(title, model, step):
    oxyfuel.reset()
    compiled = oxyfuel.compile(model)
    start = time.perf_counter()
    step(compiled)
    first = time.perf_counter() - start
    metrics = oxyfuel.metrics()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        step(compiled)
        times.append(time.perf_counter() - start)
    return {
        f"{title}: first call s": first,
        f"{title}: machine code s": metrics["seconds"]["jit"],
        f"{title}: kernels": metrics["kernels"],
        f"{title}: launches": metrics["launches"],
        f"{title}: steady ms": min(times) * 1e3,
    }


def dense():
    """The first call of DenseNet-121, whose many layers differ in sizes: inference at batch 4, training at batch 2."""
    import torchvision_operators  # noqa: F401
    import timm

    model = timm.create_model("densenet121", pretrained=False)
    images, pair = torch.randn(4, 3, 224, 224), torch.randn(2, 3, 224, 224)

    def infer(compiled):
        with torch.no_grad():
            compiled(images)

    def train(compiled):
        compiled(pair).square().mean().backward()
        model.zero_grad(set_to_none=True)

    return _first_call("inference", model.eval(), infer) | _first_call("training", model.train(), train)


def _printing(x, out):
    for i in range(1000):
        x = x + 1
        print(i, file=out)
    return x


def _calling_c(x, out):
    for _ in range(1000):
        x = torch.relu(x + 1) * 0.5
        time.perf_counter()
    return x


def _counting(x, out):
    n = 0
    while n < 1000:
        x = x + 1
        time.perf_counter()
        n += 1
    return x


def _taking_items(x, out):
    total = 0.0
    for _ in range(1000):
        x = x * 0.5
        total += x.sum().item()
    return total


def _deciding_by_data(x, out):
    for _ in range(1000):
        x = x + 1
        if x.sum() > 0:
            x = x - 1
    return x


def _break_in_callee(x):
    x = x + 1
    time.perf_counter()
    return x * 0.5


def _calling_python(x, out):
    for _ in range(1000):
        x = _break_in_callee(x)
    return x


LOOPS = {
    "print(i)": _printing,
    "a C function": _calling_c,
    "the same, counting": _counting,
    "a callee with a break": _calling_python,
    "total += x.sum().item()": _taking_items,
    "if x.sum() > 0": _deciding_by_data,
}


def loops():
    """Microseconds an iteration of loops with a break, 16 elements, and of eager's time."""
    result = {}
    with open(os.devnull, "w") as out, torch.no_grad():
        x = torch.rand(2, 8)
        for name, function in LOOPS.items():
            oxyfuel.reset()
            torch._dynamo.reset()
            called = {"eager": function, "oxyfuel": oxyfuel.compile(function), "torch.compile": torch.compile(function)}
            for each in called.values():
                torch.testing.assert_close(each(x, out), function(x, out), rtol=1e-5, atol=1e-5)
            times = microseconds({who: lambda each=each: each(x, out) for who, each in called.items()}, 1)
            for who, time_of_call in times.items():
                result[f"{name}: {who}"] = time_of_call / 1000
                if who != "eager":
                    result[f"{name}: {who}, of eager's"] = time_of_call / times["eager"]
    return result


MANY = {
    "a tensor of them": lambda x, many: x + torch.tensor(many).sum(),
    "a comprehension": lambda x, many: x + sum([i * 2 for i in many]),
    "a generator": lambda x, many: x + max(i for i in many),
}


def many_numbers():
    """Milliseconds of programs that read a list of 200,000 numbers."""
    result = {}
    x, many = torch.rand(4), list(range(200_000))
    for name, function in MANY.items():
        oxyfuel.reset()
        ways = {"eager": function, "oxyfuel": oxyfuel.compile(function)}
        times = microseconds({who: lambda each=each: each(x, many) for who, each in ways.items()}, 1)
        result |= {f"{name}: {who}": value / 1000 for who, value in times.items()}
    return result


SCATTERS = [((2, 64), (4000, 64), 0), ((8, 4, 64), (8, 900, 64), 1), ((4000, 7), (4000, 50), 1), ((32, 1000), (32, 1000), 1)]
GATHERS = [((4000, 7), (4000, 50), 1), ((1000, 64), (1000, 64), 1), ((200, 1000), (200, 1000), 1)]


def indices():
    """Microseconds of a scatter into, and of a gather from, a small tensor along a dimension."""
    result = {}
    for target, places, dim in SCATTERS:
        x, where, rows = torch.randn(target), torch.randint(target[dim], places), torch.randn(places)
        ways = {"eager": torch.scatter, "oxyfuel": oxyfuel.compile(lambda *arguments: torch.scatter(*arguments))}
        times = microseconds({who: lambda each=each: each(x, dim, where, rows) for who, each in ways.items()}, 50)
        result |= {f"scatter {places} into {target}, {dim}: {who}": value for who, value in times.items()}
    for source, places, dim in GATHERS:
        x, where = torch.randn(source), torch.randint(source[dim], places)
        ways = {"eager": torch.gather, "oxyfuel": oxyfuel.compile(lambda *arguments: torch.gather(*arguments))}
        times = microseconds({who: lambda each=each: each(x, dim, where) for who, each in ways.items()}, 50)
        result |= {f"gather {places} from {source}, {dim}: {who}": value for who, value in times.items()}
    return result


# torch.compile, the peer of steps, of loops and of the call overhead, patches nn.Module for the whole process: it comes last.
FIGURES = {
    "idle": idle_hook,
    "guards": guards,
    "relations": relations,
    "chains": compile_time,
    "training": training_overhead,
    "capture": inference_capture,
    "joint": joint_capture,
    "dense": dense,
    "indices": indices,
    "many": many_numbers,
    "steps": whole_steps,
    "loops": loops,
    "call": call_overhead,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help=f"comma-separated, of {', '.join(FIGURES)}")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    names = [name for name in arguments.only.split(",") if name] or list(FIGURES)
    if set(names) - set(FIGURES):
        parser.error(f"--only: expected any of {', '.join(FIGURES)}")
    results = {}
    for name in names:
        print(FIGURES[name].__doc__.splitlines()[0])
        results[name] = FIGURES[name]()
        for what, value in results[name].items():
            print(f"  {what:52} {value:10.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
