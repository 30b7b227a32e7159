"""Runs plans for a GPU on CPU tensors, under Triton's interpreter.

`python triton_runner.py FOLDER`: for each FOLDER/<number>.py, which oxyfuel_triton_scripts wrote, with inputs in
<number>.in (a list of tensors), writes <number>.out: {"outputs": [...], "inputs": [...]} after the run, or
{"error": text}. TRITON_INTERPRET=1 has to be set.
"""

import importlib.util
import sys
import traceback
from pathlib import Path

import numpy as np
import torch
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime import interpreter

FUNCTIONS = {
    "expm1": torch.expm1, "log10": torch.log10, "log1p": torch.log1p, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan,
    "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh,
    "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh, "erfc": torch.erfc, "rint": torch.round,
    "pow": torch.pow, "atan2": torch.atan2, "fmod": torch.fmod, "copysign": torch.copysign, "fast_dividef": torch.div,
}


def interpreted(function):
    """A function of NVIDIA's library as torch has it: the interpreter knows none of them."""

    def call(*arguments):
        tensors = [a for a in arguments if isinstance(a, tl.core.tensor)]
        first = max(tensors, key=lambda a: np.asarray(a.handle.data).size)
        arrays = [a.handle.data if isinstance(a, tl.core.tensor) else np.array(a, first.handle.data.dtype) for a in arguments]
        result = np.ascontiguousarray(function(*torch.broadcast_tensors(*map(torch.from_numpy, arrays))).numpy())
        return tl.core.tensor(interpreter.TensorHandle(result, first.handle.dtype), first.type)

    return call


def reduce_by_halves(self, arguments):
    """tl.reduce with a function of the kernel's: all pairs at once, where the interpreter goes element by element."""
    data = [a.handle.data for a in arguments]
    while data[0].shape[self.axis] > 1:
        halves = [np.split(d, 2, self.axis) for d in data]
        sides = [[self.to_tensor(h[k], a.dtype) for h, a in zip(halves, arguments)] for k in (0, 1)]
        joined = self.combine_fn.fn(*sides[0], *sides[1])
        data = [t.handle.data for t in (joined if isinstance(joined, tuple) else (joined,))]
    return [self.to_tensor(d.squeeze(self.axis), a.dtype) for d, a in zip(data, arguments)]


def scan_by_doubling(self, arguments):
    """tl.associative_scan with a function of the kernel's: all elements at once, with those 1, 2, 4 and so on before them."""
    data, distance = [a.handle.data for a in arguments], 1
    position = np.arange(data[0].shape[self.axis]).reshape([-1 if d == self.axis else 1 for d in range(data[0].ndim)])
    while distance < position.size:
        sides = [[self.to_tensor(d, a.dtype) for d, a in zip(side, arguments)] for side in ([np.roll(d, distance, self.axis) for d in data], data)]
        joined = self.combine_fn.fn(*sides[0], *sides[1])
        joined = joined if isinstance(joined, tuple) else (joined,)
        data = [np.where(position >= distance, t.handle.data, d) for t, d in zip(joined, data)]
        distance *= 2
    return [self.to_tensor(d, a.dtype) for d, a in zip(data, arguments)]


def index_of(tensor):
    return int(tensor.handle.data.item())  # numpy no longer converts arrays of one element


def load(path):
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(folder):
    for name, function in FUNCTIONS.items():
        setattr(libdevice, name, interpreted(function))
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(debug=True)  # so that indices are checked
    interpreter.ReduceOps.generic_reduce = reduce_by_halves
    interpreter.ScanOps.generic_scan = scan_by_doubling
    patch = interpreter._patch_lang_tensor
    interpreter._patch_lang_tensor = lambda tensor, scope: (patch(tensor, scope), scope.set_attr(tensor, "__index__", index_of))
    np.seterr(all="ignore")
    for path in sorted(Path(folder).glob("[0-9]*.py"), key=lambda p: int(p.stem)):
        inputs = torch.load(path.with_suffix(".in"))
        try:
            result = {"outputs": load(path).run(inputs), "inputs": inputs}
        except Exception:
            result = {"error": traceback.format_exc()}
        torch.save(result, path.with_suffix(".out"))


if __name__ == "__main__":
    main(sys.argv[1])
