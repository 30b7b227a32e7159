"""Programs of ATen operators that run in eager and are written as graphs at the same time."""

import re

import torch


def dtype_name(dtype):
    return str(dtype).removeprefix("torch.")


def meta(tensor):
    text = f"{dtype_name(tensor.dtype)}[{', '.join(map(str, tensor.shape))}]"
    if tensor.stride() != torch.empty(tensor.shape, device="meta").stride():
        text += f"{{strides=[{', '.join(map(str, tensor.stride()))}]}}"
    return text


class Program:
    """Each call of an operator runs it in eager and appends a line of the graph."""

    def __init__(self):
        self.inputs, self.lines, self.ids, self.count, self.kept = [], [], {}, 0, []
        self.symbol = None

    def define(self, tensor):
        self.ids[id(tensor)] = self.count
        self.kept.append(tensor)  # so that no id is used twice
        self.count += 1
        return f"%{self.count - 1}"

    def input(self, tensor):
        self.inputs.append((self.define(tensor), tensor))
        return tensor

    def argument(self, value):
        if isinstance(value, torch.Tensor):
            return f"%{self.ids[id(value)]}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(self.argument, value)) + "]"
        if isinstance(value, torch.dtype):
            return dtype_name(value)
        if isinstance(value, torch.memory_format):
            return str(value).removeprefix("torch.").removesuffix("_format")
        return f'"{value}"' if isinstance(value, str) else repr(value)

    def call(self, name, *arguments, **named):
        """`name`: "add.Tensor"."""
        packet, _, overload = name.partition(".")
        results = getattr(getattr(torch.ops.aten, packet), overload or "default")(*arguments, **named)
        texts = [self.argument(a) for a in arguments] + [f"{k}={self.argument(v)}" for k, v in named.items()]
        several = results if isinstance(results, tuple) else (results,)
        defined = ["_" if r is None else f"{self.define(r)} : {meta(r)}" for r in several]
        self.lines.append(f"  {', '.join(defined)} = aten::{name}({', '.join(texts)})")
        return results

    def varies(self, size):
        """The graph has a symbol in the place of this number, which nothing else may be."""
        self.symbol = size

    def graph(self, outputs):
        inputs = ", ".join(f"{name} : {meta(tensor)}" for name, tensor in self.inputs)
        returned = ", ".join(self.argument(t) for t in outputs)
        text = f"graph({inputs}) {{\n" + "\n".join(self.lines) + f"\n  return {returned}\n}}\n"
        if self.symbol is None:
            return text
        return "symbol s0: id1 in [2, 1048576]\n" + re.sub(rf"(?<![\w.%]){self.symbol}(?![\w.])", "s0", text)
