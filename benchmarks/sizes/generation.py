#!/usr/bin/env python3
"""generate() of small language models, compiled and in eager.

    python benchmarks/sizes/generation.py                            all models, ways of decoding, caches and batches
    python benchmarks/sizes/generation.py --models gpt2 llama --decoding greedy --caches growing
    python benchmarks/sizes/generation.py --peer                     torch.compile beside, for greedy decoding with a growing cache

Each model has a process of its own, and each row a fresh compiled model. Columns: milliseconds of a call in eager and compiled, the
least of several in turn, after a first call that compiles; seconds of that first call; graphs that were compiled, which includes all
later calls; whether the tokens are eager's. Batches of 4 have prompts of other lengths, with padding on the left, or on the right where an
encoder reads them.
"""

import argparse
import copy
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPECIAL = {"vocab_size": 101, "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
POSITIONS = 256
MOST_COMPILATIONS = 4
DECODING = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "top_k": 20},
    "beams": {"do_sample": False, "num_beams": 3},
}
CACHES = {"growing": {}, "static": {"cache_implementation": "static"}}
BATCHES = (1, 4)
PEER_MODELS = ("gpt2", "llama")


def gpt2(tr):
    return tr.GPT2LMHeadModel(tr.GPT2Config(n_layer=2, n_head=2, n_embd=64, n_positions=POSITIONS, **SPECIAL))


def llama(tr):
    return tr.LlamaForCausalLM(tr.LlamaConfig(
        num_hidden_layers=2, hidden_size=64, intermediate_size=128, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=POSITIONS, **SPECIAL))  # fmt: skip


def qwen3(tr):
    return tr.Qwen3ForCausalLM(tr.Qwen3Config(
        num_hidden_layers=2, hidden_size=64, intermediate_size=128, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        max_position_embeddings=POSITIONS, **SPECIAL))  # fmt: skip


def t5(tr):
    return tr.T5ForConditionalGeneration(tr.T5Config(
        d_model=64, d_ff=128, d_kv=16, num_layers=2, num_heads=4, decoder_start_token_id=0, **SPECIAL))  # fmt: skip


def whisper(tr):
    return tr.WhisperForConditionalGeneration(tr.WhisperConfig(
        d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128,
        decoder_ffn_dim=128, num_mel_bins=16, max_source_positions=50, max_target_positions=POSITIONS, decoder_start_token_id=1,
        begin_suppress_tokens=None, suppress_tokens=None, **SPECIAL))  # fmt: skip


MODELS = {"gpt2": gpt2, "llama": llama, "qwen3": qwen3, "t5": t5, "whisper": whisper}


def build(name):
    import torch
    import torchvision_operators  # noqa: F401
    import transformers

    torch.manual_seed(0)
    model = MODELS[name](transformers).eval()
    model.generation_config.eos_token_id = None  # all calls give as many tokens
    return model


def prompts(model, name, batch):
    """What generate() is given."""
    import torch

    generator = torch.Generator().manual_seed(1)
    if name == "whisper":
        return {"input_features": torch.randn(batch, 16, 100, generator=generator)}
    ids = torch.randint(2, 101, (batch, 12), generator=generator)
    mask = torch.ones_like(ids)
    for row, padding in zip(range(batch), (0, 3, 1, 6)):
        mask[row, slice(12 - padding, 12) if model.config.is_encoder_decoder else slice(0, padding)] = 0
    return {"input_ids": ids.masked_fill(mask == 0, 0), "attention_mask": mask}


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def measure(name, decoding, cache, batch, arguments):
    """One row, in a process that may have measured others."""
    import torch

    import oxyfuel

    oxyfuel.reset()
    model = build(name)
    inputs = prompts(model, name, batch)
    settings = {**DECODING[decoding], **CACHES[cache], "max_new_tokens": arguments.tokens, **inputs}

    def run(target):
        torch.manual_seed(2)
        return target.generate(**settings)

    try:
        expected = run(model)
    except Exception as error:  # eager does not support the combination
        return {"unsupported": f"{type(error).__name__}: {error}".splitlines()[0]}
    if expected.shape[-1] < arguments.tokens:
        return {"error": f"eager gives {tuple(expected.shape)}"}
    targets = {"eager": model, "ours": oxyfuel.compile(copy.deepcopy(model))}
    if arguments.peer and name in PEER_MODELS and (decoding, cache, batch) == ("greedy", "growing", 1):
        targets["peer"] = copy.deepcopy(model)
        targets["peer"].forward = torch.compile(targets["peer"].forward)
    first, same = {}, {}
    for kind, target in targets.items():
        first[kind], tokens = timed(lambda: run(target))
        same[kind] = torch.equal(tokens, expected)
    seconds = dict.fromkeys(targets, math.inf)
    for _ in range(arguments.repeats):
        for kind, target in targets.items():
            taken, tokens = timed(lambda: run(target))
            seconds[kind] = min(seconds[kind], taken)
            same[kind] = same[kind] and torch.equal(tokens, expected)
    found = oxyfuel.metrics()
    return {
        "seconds": seconds, "first": first, "same": same, "graphs": found["graphs"], "in eager": found["calls_eager"],
        "breaks": [b["reason"] for b in found["breaks"]], "reasons": found["recompile_reasons"],
    }  # fmt: skip


def rows(arguments):
    return itertools.product(arguments.models, arguments.decoding, arguments.caches, arguments.batches)


def results(name, arguments):
    """(row, what was measured) of each row of a model, as its process has them."""
    threads = str(arguments.threads)
    command = [sys.executable, __file__, "--worker", *arguments.command, "--models", name]
    with tempfile.TemporaryDirectory(prefix="oxyfuel_generation_") as folder:
        environment = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=folder, OMP_NUM_THREADS=threads, TOKENIZERS_PARALLELISM="false")
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line.startswith("{"):
                found = json.loads(line)
                yield found.pop("row"), found
        _, errors = process.communicate()
        if process.returncode:
            yield [name, "", "", ""], {"error": (errors.strip().splitlines() or [f"exit status {process.returncode}"])[-1]}


def cells(found, peer):
    if "unsupported" in found:
        return ["not in eager", *[""] * (5 + 2 * peer)]
    if "error" in found:
        return ["failed", *[""] * (5 + 2 * peer)]
    seconds = found["seconds"]
    graphs = str(found["graphs"]) + (f", {len(found['breaks'])} breaks" if found["breaks"] else "")
    graphs += f", {found['in eager']} in eager" if found["in eager"] else ""
    result = [f"{seconds['eager'] * 1e3:.1f}", f"{seconds['ours'] * 1e3:.1f}", f"{seconds['eager'] / seconds['ours']:.2f}"]
    result += [f"{found['first']['ours']:.2f}", graphs, "eager's" if found["same"]["ours"] else "OTHERS"]
    if peer:
        result += [f"{seconds['peer'] * 1e3:.1f}", f"{found['first']['peer']:.1f}"] if "peer" in seconds else ["", ""]
    return result


def faults(row, found):
    label = " ".join(map(str, row)) + ": "
    if "unsupported" in found:
        return []
    if "error" in found:
        return [label + found["error"]]
    result = [] if found["same"]["ours"] else [label + "other tokens than eager's"]
    if found["graphs"] > MOST_COMPILATIONS:
        result.append(label + f"{found['graphs']} compilations; " + "; ".join(found["reasons"]))
    return result + [label + f"break: {text}" for text in found["breaks"]] + ([label + "calls in eager"] if found["in eager"] else [])


def main():
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=MODELS)
    parser.add_argument("--decoding", nargs="*", default=list(DECODING), choices=DECODING)
    parser.add_argument("--caches", nargs="*", default=list(CACHES), choices=CACHES)
    parser.add_argument("--batches", nargs="*", type=int, default=list(BATCHES), choices=BATCHES)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peer", action="store_true", help="torch.compile beside, for some rows")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        for row in rows(arguments):
            try:
                found = measure(*row, arguments)
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps({"row": row, **found}), flush=True)
        return 0
    arguments.command = sys.argv[1:]
    titles = ["model", "decoding", "cache", "batch", "eager, ms", "ours, ms", "eager / ours", "first call, s", "compilations", "tokens"]
    titles += ["torch.compile, ms", "its first call, s"] if arguments.peer else []
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles), flush=True)
    notes, ratios = [], []
    for name in arguments.models:
        for row, found in results(name, arguments):
            print("| " + " | ".join([*map(str, row), *cells(found, arguments.peer)]) + " |", flush=True)
            notes += faults(row, found)
            if "seconds" in found:
                ratios.append(found["seconds"]["eager"] / found["seconds"]["ours"])
    if ratios:
        print(f"\ngeometric mean of eager / ours: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    print("\n".join(notes))
    return int(bool(notes))


if __name__ == "__main__":
    sys.exit(main())
