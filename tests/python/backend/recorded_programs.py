"""What eager calls of ATen while it runs a program, as a graph: forward passes, and backward passes behind them."""

import torch
from graph_programs import Program, dtype_name
from torch.utils._python_dispatch import TorchDispatchMode

LEFT_OUT = ("device", "layout", "pin_memory")  # of factories: the graph's device is the kernels'
MOST = 2**61 - 1  # the largest integer of a graph, which stands for the end of a slice
SAME = ("detach", "lift_fresh", "alias")  # their results are their arguments, as far as a graph can tell


class NotRecorded(Exception):
    """The program calls what has no form in a graph without writes."""


def draws(function, arguments, named):
    """Whether the operator draws random numbers. Attention without dropout does not, whatever its tag says."""
    if torch.Tag.nondeterministic_seeded not in function.tags:
        return False
    given = dict(zip((argument.name for argument in function._schema.arguments), arguments)) | named
    return "dropout_p" not in {argument.name for argument in function._schema.arguments} or given.get("dropout_p", 0) != 0


class RecordedProgram(Program):
    """Tensors are told by the memory that they show: what autograd has saved comes back as another object."""

    def key(self, tensor):
        return (tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)

    def define(self, tensor):
        self.ids[self.key(tensor)] = self.count
        self.kept.append(tensor)  # so that no memory is used twice
        self.count += 1
        return f"%{self.count - 1}"

    def forget_views(self, tensor):
        """What shows the memory of a tensor that was written to is another tensor from now on."""
        storage = tensor.untyped_storage()._cdata
        self.ids = {key: number for key, number in self.ids.items() if key[0] != storage}

    def argument(self, value):
        if isinstance(value, torch.Tensor):
            if self.key(value) not in self.ids:
                self.inputs.append((self.define(value), value.detach().clone(memory_format=torch.preserve_format)))
            return f"%{self.ids[self.key(value)]}"
        if type(value) is int:
            return str(max(-MOST, min(value, MOST)))
        if isinstance(value, (complex, torch.Generator, torch.device)):
            raise NotRecorded(f"an argument of type {type(value).__name__}")
        return super().argument(value)


class Recording(TorchDispatchMode):
    """Records what runs in it. `program` has the graph."""

    def __init__(self):
        super().__init__()
        self.program = RecordedProgram()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        named = {name: value for name, value in (named or {}).items()}
        program, packet = self.program, function.overloadpacket.__name__
        if function.namespace != "aten" or draws(function, arguments, named):
            raise NotRecorded(str(function))
        given = {name: value for name, value in named.items() if name not in LEFT_OUT}
        for argument in function._schema.arguments[len(arguments) :]:  # the text has no lists as defaults
            if isinstance(argument.default_value, list):
                given.setdefault(argument.name, argument.default_value)
        texts = [program.argument(a) for a in arguments] + [f"{name}={program.argument(value)}" for name, value in given.items()]
        results = function(*arguments, **named)
        if packet in SAME:
            program.ids[program.key(results)] = program.ids[program.key(arguments[0])]
            program.kept.append(results)
            return results
        name = f"{packet}.{function._overloadname}".removesuffix(".default")
        if function._schema.is_mutable:
            written = [a.name for a in function._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
            if not packet.endswith("_") or packet.startswith("_") or written != [function._schema.arguments[0].name]:
                raise NotRecorded(str(function))
            name = f"{packet[:-1]}.{function._overloadname}".removesuffix(".default")
            program.forget_views(arguments[0])
            results = arguments[0]
        several = results if isinstance(results, (tuple, list)) else (results,)
        if not any(isinstance(result, torch.Tensor) for result in several):
            return results  # a number that the program reads, or a check
        if not all(isinstance(result, (torch.Tensor, type(None))) for result in several):
            raise NotRecorded(f"results of {function} that are no tensors")
        defined = ["_" if result is None else f"{program.define(result)} : {self.meta(result)}" for result in several]
        program.lines.append(f"  {', '.join(defined)} = aten::{name}({', '.join(texts)})")
        return arguments[0] if function._schema.is_mutable else results

    @staticmethod
    def meta(tensor):
        extra = [] if tensor.is_contiguous() else [f"strides=[{', '.join(map(str, tensor.stride()))}]"]
        if tensor.storage_offset():
            extra.append(f"offset={tensor.storage_offset()}")
        text = f"{dtype_name(tensor.dtype)}[{', '.join(map(str, tensor.shape))}]"
        return f"{text}{{{', '.join(extra)}}}" if extra else text


def recorded(function):
    """The program that a call of `function` is, and its outputs: the floating point tensors of a list that it returns."""
    with Recording() as recording:
        outputs = function()
    known = recording.program.ids
    inputs = {name for name, _ in recording.program.inputs}
    kept = []
    for output in outputs:
        number = known.get(recording.program.key(output))
        if number is not None and f"%{number}" not in inputs and number not in (n for n, _ in kept):
            kept.append((number, output))
    return recording.program, [output for _, output in kept]
