"""Trains a small transformer on the documentation strings of Python's own library, in eager and compiled.

    python benchmarks/train_tiny.py --steps 300 --plot training.png

Both runs start from the same weights and see the same batches and, with dropout, the same random numbers: their loss
curves should lie on each other. Prints a line every so many steps, then the medians of the step times.
"""

import argparse
import copy
import importlib
import inspect
import json
import sys
import time
from pathlib import Path
from statistics import median

import torch
import torch.nn.functional as F
from torch import nn

import oxyfuel

MODULES = (
    "argparse ast asyncio bisect calendar codecs collections configparser contextlib copy csv ctypes dataclasses datetime "
    "decimal difflib dis email enum fractions functools glob gzip heapq html http imaplib inspect io ipaddress itertools "
    "json linecache locale logging mailbox math mimetypes multiprocessing operator os pathlib pickle platform pprint queue "
    "random re sched secrets select shlex shutil signal smtplib socket sqlite3 ssl statistics string struct subprocess "
    "tarfile tempfile textwrap threading timeit tokenize traceback types typing unittest urllib.parse uuid warnings wave "
    "weakref xml.dom xml.sax zipfile zlib"
).split()


def library_text():
    """Documentation of the standard library's modules, classes and functions, as bytes."""
    texts = []
    for name in MODULES:
        module = importlib.import_module(name)
        texts.append(inspect.getdoc(module) or "")
        for _, member in sorted(vars(module).items(), key=lambda item: item[0]):
            if inspect.isclass(member) or inspect.isroutine(member):
                texts.append(inspect.getdoc(member) or "")
    return "\n\n".join(filter(None, dict.fromkeys(texts))).encode()


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.dropout(self.project(attended.transpose(1, 2).reshape(batch, length, width)), self.dropout, self.training)
        hidden = self.down(F.gelu(self.up(self.before_mlp(x))))
        return x + F.dropout(hidden, self.dropout, self.training)


class ByteModel(nn.Module):
    """Predicts the next byte: tokens [batch, length] of int64 to logits [batch, length, 256]."""

    def __init__(self, length, width=192, depth=4, heads=6, dropout=0.1):
        super().__init__()
        self.token, self.place = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        for table in (self.token, self.place):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.token.weight.t()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def batches(text, steps, batch, length):
    generator = torch.Generator().manual_seed(0)
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    for _ in range(steps):
        starts = torch.randint(len(data) - length - 1, (batch,), generator=generator)
        rows = torch.stack([data[s : s + length + 1] for s in starts.tolist()])
        yield rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def train(name, model, function, arguments, text):
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 30))
    torch.manual_seed(1)
    losses, seconds = [], []
    for step, (tokens, targets) in enumerate(batches(text, arguments.steps, arguments.batch, arguments.length)):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=arguments.autocast):
            loss = function(tokens, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
        if step % 25 == 0 or step + 1 == arguments.steps:
            print(f"{name:8} step {step:5}  loss {losses[-1]:.4f}  {1000 * seconds[-1]:7.1f} ms", flush=True)
    return {"losses": losses, "seconds": seconds}


def plot(results, path):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        sys.exit("--plot needs matplotlib: pip install matplotlib")
    figure = Figure(figsize=(11, 4), layout="constrained")
    curves, times = figure.subplots(1, 2)
    for name, result in results.items():
        curves.plot(result["losses"], label=name, linewidth=1)
        times.plot([1000 * s for s in result["seconds"]], label=name, linewidth=1)
    curves.set(title="loss", xlabel="step")
    times.set(title="time of a step", xlabel="step", ylabel="ms", yscale="log")
    for axes in (curves, times):
        axes.legend()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=128, help="bytes of context")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--autocast", action="store_true", help="bfloat16")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="a picture of both loss curves and of the step times")
    arguments = parser.parse_args()
    text = library_text()
    torch.manual_seed(0)
    model = ByteModel(arguments.length)
    mirror = copy.deepcopy(model)
    print(f"{len(text)} bytes of text, {sum(p.numel() for p in model.parameters())} parameters")
    results = {
        "eager": train("eager", model, model, arguments, text),
        "compiled": train("compiled", mirror, oxyfuel.compile(mirror), arguments, text),
    }
    eager, compiled = (median(results[name]["seconds"]) for name in ("eager", "compiled"))
    apart = max(abs(a - b) for a, b in zip(results["eager"]["losses"], results["compiled"]["losses"]))
    print(f"median step: eager {1000 * eager:.1f} ms, compiled {1000 * compiled:.1f} ms: {eager / compiled:.2f}x")
    print(f"first compiled step {results['compiled']['seconds'][0]:.2f} s; losses at most {apart:.4f} apart")
    if arguments.json:
        arguments.json.write_text(json.dumps(results))
    if arguments.plot:
        plot(results, arguments.plot)


if __name__ == "__main__":
    main()
