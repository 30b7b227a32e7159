"""LSTM, GRU and RNN of padded sequences: two compilations serve all lengths and batches, with eager's results and gradients."""

import copy
import re

import pytest
import torch
from size_checks import compiles, in_threads, same

import oxyfuel

nn = torch.nn
SIZES = ((5, 3), (4, 3), (7, 2), (3, 1), (1, 4))  # length, batch
LAYERS = {
    "LSTM": lambda: nn.LSTM(6, 5),
    "LSTM, two layers": lambda: nn.LSTM(6, 5, num_layers=2, batch_first=True),
    "LSTM both ways": lambda: nn.LSTM(6, 5, num_layers=2, bidirectional=True),
    "LSTM without biases": lambda: nn.LSTM(6, 5, bias=False),
    "LSTM with projection": lambda: nn.LSTM(6, 5, proj_size=3),
    "LSTM with projection both ways": lambda: nn.LSTM(6, 5, num_layers=2, proj_size=3, bidirectional=True, batch_first=True),
    "LSTM of doubles": lambda: nn.LSTM(6, 5).double(),
    "GRU": lambda: nn.GRU(6, 5, batch_first=True),
    "GRU both ways": lambda: nn.GRU(6, 5, num_layers=2, bidirectional=True),
    "RNN": lambda: nn.RNN(6, 5, num_layers=2),
    "RNN with relu": lambda: nn.RNN(6, 5, nonlinearity="relu", bias=False, batch_first=True),
}


def is_lstm(layer):
    return isinstance(layer, nn.LSTM)


def input_of(layer, length, batch):
    sizes = (batch, length, 6) if layer.batch_first else (length, batch, 6)
    return torch.randn(sizes, dtype=layer.weight_ih_l0.dtype, requires_grad=True)


def states_of(layer, batch):
    places = layer.num_layers * (2 if layer.bidirectional else 1)

    def made(width):
        return torch.randn(places, batch, width, dtype=layer.weight_ih_l0.dtype, requires_grad=True)

    hidden = made(layer.proj_size or layer.hidden_size)
    return (hidden, made(layer.hidden_size)) if is_lstm(layer) else hidden


def tensors_in(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [tensor for item in result for tensor in tensors_in(item)]


def check_gradients(compiled, layer, arguments, chosen=None):
    """Calls both with the arguments, and compares results, gradients of the arguments and of the weights."""
    leaves = [*tensors_in(arguments), *layer.parameters()]
    leaves = [leaf for leaf in leaves if leaf.requires_grad]
    every = []
    for function in (compiled, layer):
        results = function(*arguments)
        flowing = tensors_in(results) if chosen is None else [tensors_in(results)[i] for i in chosen]
        loss = sum((k + 1) * result.square().sum() for k, result in enumerate(flowing))
        every.append((results, torch.autograd.grad(loss, leaves, allow_unused=True)))
    (ours, our_gradients), (eager, gradients) = every
    same(ours, eager)
    for mine, theirs in zip(our_gradients, gradients):
        assert (mine is None) == (theirs is None)
        if theirs is not None:
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def fresh():
    oxyfuel.reset()
    torch.manual_seed(0)


@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("name", LAYERS)
def test_gradients(name, dynamic):
    layer = LAYERS[name]()
    compiled = oxyfuel.compile(layer, dynamic=dynamic, fullgraph=True)

    def calls():
        for length, batch in SIZES:
            check_gradients(compiled, layer, (input_of(layer, length, batch),))

    assert compiles(calls) <= (1 if dynamic else 3)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_with_given_states(name):
    layer = LAYERS[name]()
    compiled = oxyfuel.compile(layer, dynamic=True, fullgraph=True)

    def calls():
        for length, batch in SIZES:
            check_gradients(compiled, layer, (input_of(layer, length, batch), states_of(layer, batch)))

    assert compiles(calls) == 1


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("chosen", [[0], [1], [-1]])
def test_gradients_of_some_results(name, chosen):
    layer = LAYERS[name]()
    compiled = oxyfuel.compile(layer, dynamic=True, fullgraph=True)
    for length, batch in SIZES[:3]:
        check_gradients(compiled, layer, (input_of(layer, length, batch), states_of(layer, batch)), chosen)


@pytest.mark.parametrize("name", ["LSTM, two layers", "GRU", "RNN"])
def test_sequences_without_a_batch_and_empty_batches(name):
    layer = LAYERS[name]()
    compiled = oxyfuel.compile(layer, dynamic=True, fullgraph=True)
    for length in (4, 3, 6):
        check_gradients(compiled, layer, (torch.randn(length, 6, requires_grad=True),))
    for batch in (2, 0, 1):
        check_gradients(compiled, layer, (input_of(layer, 3, batch),))


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_only_some_weights_are_trained(name):
    layer = LAYERS[name]()
    layer.weight_ih_l0.requires_grad_(False)
    layer.bias_hh_l0.requires_grad_(False)
    compiled = oxyfuel.compile(layer, dynamic=True, fullgraph=True)
    for length, batch in SIZES[:3]:
        check_gradients(compiled, layer, (input_of(layer, length, batch).detach(),))


class Tagger(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.words = nn.Embedding(20, 6)
        self.layer = cell(6, 5, batch_first=True, bidirectional=True)
        self.out = nn.Linear(10, 3)

    def forward(self, words):
        return self.out(torch.tanh(self.layer(self.words(words))[0]))


def steps(model, train, sizes):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for length, batch in sizes:
        words = torch.arange(length * batch).view(batch, length) % 20
        optimizer.zero_grad()
        losses.append(train(model, words).detach())
        optimizer.step()
    return losses, [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("is_inside", [False, True])
def test_training_a_model(cell, is_inside):
    model = Tagger(cell)
    reference = copy.deepcopy(model)

    def train(model, words):
        loss = model(words).square().mean()
        loss.backward()
        return loss

    compiled = oxyfuel.compile(train, dynamic=True, fullgraph=True) if is_inside else None
    whole = oxyfuel.compile(model, dynamic=True, fullgraph=True)

    def ours():
        run = compiled if is_inside else lambda model, words: train(whole, words)
        for got, expected in zip(steps(model, run, SIZES), steps(reference, train, SIZES)):
            torch.testing.assert_close(got, expected)

    assert compiles(ours) <= 2


def test_two_backward_passes_through_one_call():
    layer = LAYERS["LSTM"]()
    compiled = oxyfuel.compile(layer, dynamic=True, fullgraph=True)
    x = input_of(layer, 4, 2)
    loss, expected = compiled(x)[0].sum(), layer(x)[0].sum()
    for _ in range(2):
        ours, eager = (torch.autograd.grad(value, x, retain_graph=True)[0] for value in (loss, expected))
        torch.testing.assert_close(ours, eager)
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_gradients_of_gradients():
    layer = LAYERS["GRU"]()
    compiled = oxyfuel.compile(layer, dynamic=True, fullgraph=True)
    for length, batch in SIZES[:3]:
        x = input_of(layer, length, batch)
        found = []
        for function in (compiled, layer):
            (first,) = torch.autograd.grad(function(x)[0].square().sum(), x, create_graph=True)
            found.append(torch.autograd.grad(first.square().sum(), [x, layer.weight_hh_l0]))
        torch.testing.assert_close(found[0], found[1])


def test_gradients_of_gradients_inside():
    layer = LAYERS["GRU"]()

    def penalty(x):
        (first,) = torch.autograd.grad(layer(x)[0].square().sum(), x, create_graph=True)
        return first.square().sum()

    compiled = oxyfuel.compile(penalty, dynamic=True)
    for length in (3, 4):
        x = input_of(layer, length, 2)
        ours, eager = (torch.autograd.grad(function(x), [x, layer.weight_hh_l0]) for function in (compiled, penalty))
        torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("trained", [False, True])
def test_under_autocast(trained):
    layer = LAYERS["LSTM"]()
    compiled = oxyfuel.compile(layer, dynamic=True)
    for length in (3, 5):
        x = input_of(layer, length, 2)
        with torch.set_grad_enabled(trained), torch.autocast("cpu", dtype=torch.bfloat16):
            try:
                eager = layer(x)[0]
            except RuntimeError as refused:  # oneDNN has no such layer for some processors
                with pytest.raises(RuntimeError, match=re.escape(str(refused)[:60])):
                    compiled(x)
                continue
            ours = compiled(x)[0]
        assert ours.dtype == eager.dtype
        torch.testing.assert_close(ours, eager)


def test_dropout_draws_the_numbers_of_eager():
    layer = nn.GRU(6, 5, num_layers=2, dropout=0.5)
    compiled = oxyfuel.compile(layer, dynamic=True)
    for length in (3, 4):
        x = input_of(layer, length, 2)
        found = []
        for function in (compiled, layer):
            torch.manual_seed(7)
            found.append(torch.autograd.grad(function(x)[0].sum(), x)[0])
        torch.testing.assert_close(found[0], found[1])


def test_errors_are_those_of_eager():
    layer = LAYERS["LSTM"]()
    compiled = oxyfuel.compile(layer, dynamic=True)
    for x in (torch.randn(3, 2, 7), torch.randn(0, 2, 6)):
        with pytest.raises(RuntimeError) as eager:
            layer(x)
        with pytest.raises(RuntimeError) as ours:
            compiled(x)
        assert str(ours.value) == str(eager.value)


def test_layers_that_are_not_compiled_are_pytorchs():
    layer = LAYERS["LSTM"]()
    oxyfuel.compile(layer, dynamic=True)(input_of(layer, 3, 2))
    nodes, seen = [layer(input_of(layer, 3, 2))[0].grad_fn], set()
    while nodes:
        node = nodes.pop()
        seen.add(node.name())
        nodes += [following for following, _ in node.next_functions if following is not None]
    assert "RecurrentBackward" not in seen and "AccumulateGrad" in str(seen)


def test_threads_that_train():
    """The engine, which runs inside of the plan, holds no lock that another thread waits for."""
    model = Tagger(nn.GRU)

    def gradients(words):
        loss = model(words).square().mean()
        return torch.autograd.grad(loss, list(model.parameters()))

    compiled = oxyfuel.compile(gradients, dynamic=True)

    def work(seed):
        for length, batch in SIZES:
            words = (torch.arange(length * batch).view(batch, length) + seed) % 20
            torch.testing.assert_close(compiled(words), gradients(words))

    in_threads(4, work)
