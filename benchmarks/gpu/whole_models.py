"""Models on a GPU beside torch.compile: steady times, first calls and peak memory. Prints the table of docs/benchmarks-gpu.md.

    python benchmarks/gpu/whole_models.py [--models bert resnet llama token distilbert … train-bert …] [--ways eager ours no-graphs tuned compile reduce-overhead]
                                    [--kernels 20]

Each way runs in this process, one after the other: eager, ours, ours without CUDA graphs, ours with mode="max-autotune",
torch.compile, and torch.compile with mode="reduce-overhead". Times are the best of three rounds of 20 calls back to back, host and device together. The host's
time is that of a few calls before which the device was idle. Memory of the graphs of torch.compile is held by the allocator, but is
in no tensor.
--kernels lists below each row the kernels that take most of the device's time, in microseconds a call.
"""

import argparse
import functools
import gc
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

import torch
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import models  # noqa: E402
import oxyfuel  # noqa: E402
from timing import seconds  # noqa: E402

CUDA = torch.device("cuda")
ROUNDS, CALLS, WARM_UP = 3, 20, 6
HOST_ROUNDS, HOST_CALLS = 50, 4


def tuned(model):
    return oxyfuel.compile(model, mode="max-autotune")


def no_graphs(model):
    return oxyfuel.compile(model, options={"graphs": False})


def reduce_overhead(model):
    return torch.compile(model, mode="reduce-overhead")


WAYS = {
    "eager": lambda model: model,
    "ours": oxyfuel.compile,
    "no-graphs": no_graphs,
    "tuned": tuned,
    "compile": torch.compile,
    "reduce-overhead": reduce_overhead,
}


def inference(model, *arguments, **options):
    """Makes a function that calls the model in a way."""

    def make(way):
        compiled = way(model)

        def call():
            with torch.no_grad():
                compiled(*arguments, **options)

        return call

    return make


def training(model, loss, *arguments, **options):
    """Makes a function that runs a forward and a backward pass under autocast to bfloat16. Its `lacks()` counts the
    parameters that get no gradient: a way that leaves some out is not to be compared."""
    parameters = list(model.parameters())

    def make(way):
        compiled = way(model)

        def backward():
            with torch.autocast("cuda", torch.bfloat16):
                result = loss(compiled(*arguments, **options))
            result.backward()

        def forget():
            for parameter in parameters:
                parameter.grad = None

        def step():
            backward()
            forget()

        def lacks():
            backward()
            count = sum(parameter.grad is None for parameter in parameters)
            forget()
            return count

        step.lacks = lacks
        return step

    return make


def kernels_of(function, count):
    """Lines for all, and for those that take most of the device's time: microseconds and launches a call, the name."""
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(CALLS):
            function()
        torch.cuda.synchronize()
    times, launches = Counter(), Counter()
    for event in profiled.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            times[event.name] += event.device_time
            launches[event.name] += 1
    rows = [("all", times.total(), launches.total())]
    rows += [(name, time, launches[name]) for name, time in times.most_common(count)]
    return [f"{time / CALLS:8.0f} us {launched / CALLS:6.1f}  {name[:100]}" for name, time, launched in rows]


def host_seconds(function):
    """Of one call, whose work the device has not begun: the shortest of few calls that follow an idle device."""
    best = float("inf")
    for _ in range(HOST_ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(HOST_CALLS):
            function()
        best = min(best, (time.perf_counter() - begin) / HOST_CALLS)
    torch.cuda.synchronize()
    return best


@dataclass
class Measured:
    steady: float  # seconds of a call
    first: float  # seconds of the first call, less a steady one
    in_tensors: int  # the peaks of memory, MiB
    held: int


measured = {}  # by row: by way


def show(name, make, ways, kernels=0):
    """A row. A call of ours that ran in eager is named as such. Memory that the ways before have left is not counted."""
    cells, lists = [], []
    row = measured[name] = {}
    before = None  # allocated and reserved before the first way
    for way in ways:
        torch._dynamo.reset()
        oxyfuel.reset()
        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()  # each way makes its own
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        present = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        before = before or present
        left = [now - first for now, first in zip(present, before)]
        function = make(WAYS[way])
        first = seconds(function, 1)
        for _ in range(WARM_UP):
            function()
        steady = min(seconds(function, CALLS) for _ in range(ROUNDS))
        peaks = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        peak, reserved = ((highest - rest) >> 20 for highest, rest in zip(peaks, left))
        row[way] = Measured(steady, first - steady, peak, reserved)
        note = " in eager" if way in ("ours", "no-graphs", "tuned") and oxyfuel.metrics()["calls_eager"] else ""
        if left[0] >> 20:
            note += f" ({left[0] >> 20} MiB were left before)"
        if hasattr(function, "lacks") and (lacking := function.lacks()):
            note += f" {lacking} parameters without gradient"
        if kernels:
            lists += [way, *kernels_of(function, kernels)]
        cells.append(f"{steady * 1e6:.0f} ({first:.2f} s, {peak} of {reserved} MiB, host {host_seconds(function) * 1e6:.0f}){note}")
        del function
    print("\n".join([f"| {name} | {' | '.join(cells)} |", *lists]), flush=True)


def random_ids(*sizes):
    return torch.randint(0, 1000, sizes, device=CUDA)


def bert(ways, kernels):
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig()).to(CUDA).eval().bfloat16()
    for batch in (1, 16):
        show(f"BERT-base, bfloat16, {batch} x 128", inference(model, random_ids(batch, 128)), ways, kernels)


def resnet(ways, kernels):
    import torchvision

    for dtype in (torch.bfloat16, torch.float32):
        model = torchvision.models.resnet50().to(CUDA).eval().to(dtype)
        for batch in (1, 32):
            images = torch.randn(batch, 3, 224, 224, device=CUDA, dtype=dtype)
            show(f"ResNet-50, {str(dtype)[6:]}, batch {batch}", inference(model, images), ways, kernels)


def llama(ways, kernels):
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=32000, **sizes)).to(CUDA).eval().bfloat16()
    for batch, length in ((1, 1), (4, 256)):
        make = inference(model, random_ids(batch, length), use_cache=False)
        show(f"Llama, 16 layers of 1024, bfloat16, {batch} x {length}", make, ways, kernels)


def copy_bandwidth():
    """Bytes a second that a copy of a gigabyte reads and writes."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device=CUDA)
    target = torch.empty_like(source)
    return 2 * source.nbytes / min(seconds(lambda: target.copy_(source), CALLS) for _ in range(ROUNDS))


def token(ways, kernels):
    """The next token of a Llama with 1.2 billion parameters: the weights' bytes, divided by the time and by what a copy moves."""
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8}
    config = LlamaConfig(vocab_size=128256, tie_word_embeddings=True, max_position_embeddings=4096, **sizes)
    model = LlamaForCausalLM(config).to(CUDA).eval().bfloat16()
    length = 128
    place = torch.tensor([length], device=CUDA)

    def make(way):  # the cache counts calls: each way has its own
        cache = StaticCache(config=config, max_cache_len=1024)
        with torch.no_grad():
            model(random_ids(1, length), past_key_values=cache, cache_position=torch.arange(length, device=CUDA))
        return inference(model, random_ids(1, 1), past_key_values=cache, position_ids=place.view(1, 1), cache_position=place)(way)

    name = f"Llama of 1.2e9 parameters, bfloat16, a token behind {length}"
    show(name, make, ways, kernels)
    weights, bandwidth = sum(p.nbytes for p in model.parameters()), copy_bandwidth()
    shares = [f"{way} {weights / of_way.steady / bandwidth:.2f}" for way, of_way in measured[name].items()]
    print(f"shares of a copy's {bandwidth / 1e9:.0f} GB/s: {', '.join(shares)}", flush=True)


def inputs_of(case, dtype=None):
    """The arguments of a case of models.py on the GPU, its floating point numbers in `dtype`."""
    inputs = {key: value.to(CUDA) for key, value in case.inputs().items()}
    return {key: value.to(dtype) if dtype and value.is_floating_point() else value for key, value in inputs.items()}


def inference_of(name, batch, dtype=torch.bfloat16):
    """Calls of a model of models.py in its base configuration, parameters and inputs in `dtype`."""
    case = models.Case(name, batch=batch)
    return inference(case.build().to(CUDA).to(dtype), **inputs_of(case, dtype))


def in_bfloat16(name, ways, kernels):
    for batch in (1, 16):
        show(f"{name}, bfloat16, batch {batch}", inference_of(name, batch), ways, kernels)


def training_batch(name):
    return 32 if name == "resnet50" else 16


def training_of(name):
    """Training steps of a model of models.py in its base configuration. Language models have labels."""
    case = models.Case(name, batch=training_batch(name), labels=name in models.LANGUAGE_NAMES, mode="training")
    return training(case.build().to(CUDA), lambda output: case.loss(output).float(), **inputs_of(case))


def train(name, ways, kernels):
    show(f"{name}, a training step, batch {training_batch(name)}", training_of(name), ways, kernels)


def show_means(ways):
    """Geometric means of the other ways' times divided by ours and of our memory divided by theirs, and the worst of each, of
    inference and of training. torch.compile's modes are also taken together, the better one of each row."""
    modes = [way for way in ways if way in ("compile", "reduce-overhead")]
    for kind, trains in (("inference", False), ("training", True)):
        rows = [row for name, row in measured.items() if ("training" in name) == trains]
        for way in ways:
            if not rows or way == "ours" or "ours" not in ways:
                continue
            times, firsts = ([getattr(row[way], part) / getattr(row["ours"], part) for row in rows] for part in ("steady", "first"))
            memory = [[getattr(row["ours"], part) / getattr(row[way], part) for row in rows] for part in ("in_tensors", "held")]
            in_tensors, held = (f"{geometric_mean(ratios):.2f} (largest {max(ratios):.2f})" for ratios in memory)
            first = f", first calls {geometric_mean(firsts):.1f}" if min(firsts) > 0 else ""
            print(f"{kind}: {way} / ours {geometric_mean(times):.2f} (least {min(times):.2f}){first}; ours / {way}: memory in tensors {in_tensors}, held {held}")
        if rows and len(modes) == 2 and "ours" in ways:
            ratios = [min(row[way].steady for way in modes) / row["ours"].steady for row in rows]
            print(f"{kind}: the better of {' and '.join(modes)} / ours {geometric_mean(ratios):.2f} (least {min(ratios):.2f})")


MODELS = {"bert": bert, "resnet": resnet, "llama": llama, "token": token}
for _name in ("distilbert", "gpt2", "t5", "vit", "mobilenetv3", "convnext"):
    MODELS[_name] = functools.partial(in_bfloat16, _name)
for _name in ("bert", "gpt2", "distilbert", "llama", "t5", "resnet50", "vit", "convnext"):
    MODELS[f"train-{_name}"] = functools.partial(train, _name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--kernels", type=int, default=0)
    arguments = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}. Microseconds a call (first call, peaks of the memory in tensors and of all that the allocator holds, microseconds of the host)\n")
    print(f"| model | {' | '.join(arguments.ways)} |\n|---|{'---|' * len(arguments.ways)}")
    torch.manual_seed(0)
    for name in arguments.models:
        MODELS[name](arguments.ways, arguments.kernels)
    print()
    show_means(arguments.ways)


if __name__ == "__main__":
    main()
