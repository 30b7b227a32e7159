"""What programs that are differentiated have more: lines about autograd, and the backward passes behind the call."""

from generator import is_float
from generator_lines import FAMILIES as PLAIN
from generator_lines import writing
from program import Line


def history(b):
    """Stops, starts and detours of autograd's history."""
    name = b.pick(is_float)
    if not name:
        return
    other = b.pick(lambda t: is_float(t) and t.shape == b.values[name].shape) or name
    text = b.random.choice((
        f"{name}.detach()", f"{name}.detach() * {other}", f"{name}.data + {other}", f"Tripled.apply({name}, 0.5)[0]", f"Tripled.apply({name}, 2)[1]",
        f"torch.no_grad()(lambda: {name} * 0.5)()", f"torch.no_grad()(lambda: {name}.view(-1))()", f"{name}.detach().clone().requires_grad_()",
        f"{name} * 2 if {name}.requires_grad else {name} + 1", f"{name} + 1 if {name}.is_leaf else {name} - 1", f"{name}.requires_grad_(False) + 1 if {name}.is_leaf else {name}",
        f"torch.utils.checkpoint.checkpoint(torch.sin, {name}, use_reentrant=False)", f"({name} * 1).view(-1).detach()", f"{name}.clone()",
        f"torch.where({name}.detach() > 0, {name}, {other})", f"({name} + {other}).sum().item() + {name}", f"{name}.tanh().retain_grad() or {name}",
        f"{name} * {name} * {other}", f"torch.cat([{name}.reshape(-1), {name}.detach().reshape(-1), {other}.reshape(-1)])", f"{name}.new_zeros({name}.shape).add_({name})",
        f"(lambda t: t.register_hook(lambda g: g * 2) and t)({name} * 1)",
    ))
    b.emit(text, None)


def without_grad(b):
    """A statement under no_grad: a value without history, or a write that autograd is not to see."""
    name = b.pick(is_float)
    if not name:
        return
    made = f"v{len(b.lines)}"
    text = b.random.choice((f"{made} = {name} * 0.5", f"{made} = {name}.view(-1)", f"{made} = {name}.sin()", f"{name}.mul_(0.5)", f"{name}.add_(1)", f"{name}[0] = 0", f"{name}.zero_()"))
    block = f"with torch.no_grad(): {text}"
    try:
        exec(block, b.space)
    except Exception:
        return
    if text.startswith(f"{made} = "):
        b.lines.append(Line(block, made, b.uses(text) - {made}))
        b.adopt(made, b.space[made], None, b.uses(text) - {made})
    else:
        b.lines.append(Line(block, "", b.uses(text)))
        for member in b.alias[name]:
            b.depth[member] = None


def write_result(b):
    """Writes to what was made here, which takes part in autograd."""
    name = b.emit(f"{b.pick(is_float) or b.names[0]} * 1.5", None)
    if name:
        writing(b)


FAMILIES = (*PLAIN, (history, 7), (without_grad, 3), (write_result, 3))


def backward_passes(b, outputs):
    """Statements over `outputs`, `leaves` and `gradients`."""
    r = b.random
    carrying = [name for name in outputs if name in b.values and b.values[name].requires_grad]
    if b.raises or not carrying:
        return ["pass"]
    kinds = ("plain", "plain", "plain", "expanded", "transposed", "strided")

    def carried(chosen):
        return f"*carry(outputs, {[(name, r.randrange(1000), r.choice(kinds)) for name in chosen]})"

    def gradients(chosen, inputs, keep=""):
        return f"(lambda o, t: torch.autograd.grad(o, {inputs}, t, allow_unused=True{keep}))({carried(chosen)})"

    chosen = [name for name in carrying if r.random() < 0.8] or carrying[:1]
    if any("special=True" in line.text for line in b.inputs):
        chosen = carrying  # a gradient that is missing is one of zeros here, and times infinity not a number
    keep = ", retain_graph=True"
    statements = []
    # Behind unsafe_chunk() autograd does not notice writes: eager's gradients are of some values before them and of some after.
    is_noticed = not any("unsafe_" in line.text for line in b.lines)
    if r.random() < 0.15 and is_noticed:
        # Eager gives a view that was written to through another view a new grad_fn at the next look. A hook before that ends the process.
        o = f"outputs[{r.choice(outputs)!r}]"
        statements.append(r.choice((
            f"{o}.mul_(2)", f"{o}.detach().add_(1)", f"{o}.data.mul_(2)", f"{o}.view(-1).mul_(3)", f"torch.no_grad()({o}.add_)(1)",
            "torch.no_grad()(lambda: [leaf.add_(0.5) for leaf in leaves])()", f"{o}.grad_fn; {o}.register_hook(lambda g: g * 2)",
            "[leaf.register_hook(lambda g: g + 1) for leaf in leaves[:1]]", "[leaf.requires_grad_(False) for leaf in leaves[-1:]]",
        )))
    kind = r.random()
    if kind < 0.45:
        statements.append(f"torch.autograd.backward({carried(chosen)})")
    elif kind < 0.6:
        statements.append(f"torch.autograd.backward({carried(chosen)}{keep})")
        statements.append(f"torch.autograd.backward({carried(carrying)})")
    elif kind < 0.65:  # an error, unless nothing was saved
        statements.append(f"torch.autograd.backward({carried(chosen)})")
        statements.append(f"torch.autograd.backward({carried(carrying)})")
    elif kind < 0.9:
        statements.append(f"gradients += {gradients(chosen, 'leaves')}")
    else:
        statements.append(f"gradients += {gradients(chosen, 'leaves[::2]', keep)} if leaves[::2] else []")
        statements.append(f"torch.autograd.backward({carried(carrying)})")
    if r.random() < 0.1:
        statements.append("[leaf.grad.add_(1) for leaf in leaves if leaf.grad is not None]")
    return statements
