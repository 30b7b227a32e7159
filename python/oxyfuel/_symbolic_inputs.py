"""What the graphs of another front end say of sizes, in the form of ``dynamic_shapes=``."""

import types

import torch

_AUTO = types.SimpleNamespace(name="AUTO")


def symbolic_inputs(graph_module, example_inputs):
    """By input of a ``torch.fx.GraphModule``: which ints and sizes are symbols. Symbols of one name are one number."""
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    return [_of_input(*pair) for pair in zip(placeholders, example_inputs)]


def _of_input(placeholder, example):
    # The examples may be real tensors; what the nodes are noted to hold has the symbols.
    value = placeholder.meta.get("example_value", placeholder.meta.get("val", example))
    if isinstance(value, torch.SymInt):
        return _dimension(value)
    if isinstance(value, torch.Tensor):
        return {d: _dimension(size) for d, size in enumerate(value.shape) if isinstance(size, torch.SymInt)}
    return None


def _dimension(size):
    expression = getattr(size.node, "expr", None)
    name = {"__name__": str(expression)} if getattr(expression, "is_symbol", False) else {}
    return types.SimpleNamespace(type=_AUTO, min=None, max=None, **name)
