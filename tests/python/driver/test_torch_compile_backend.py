"""torch.compile(model, backend="oxyfuel"): found by its entry point, right in inference and training."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn as nn

import oxyfuel

ROOT = Path(__file__).resolve().parents[3]
GROUP = "torch_dynamo_backends"


@pytest.fixture(autouse=True, scope="module")
def modules_stay_as_they_are():
    # torch.compile replaces their __init__ for good: other tests count what is captured of it.
    original = nn.Module.__init__
    yield
    nn.Module.__init__ = original


@pytest.fixture(autouse=True)
def forget_graphs():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.last = nn.Linear(8, 3)

    def forward(self, x, scale=1.0):
        hidden = self.norm(self.first(x)).relu()
        return self.last(hidden) * scale, hidden


@pytest.fixture
def nets():
    torch.manual_seed(0)
    first, second = Net(), Net()
    second.load_state_dict(first.state_dict())
    return first, second


def backends():
    return pytest.mark.parametrize("backend", ["oxyfuel", oxyfuel.dynamo_backend], ids=["name", "function"])


def test_the_entry_point_is_found():
    (entry,) = importlib.metadata.entry_points(group=GROUP, name="oxyfuel")
    assert entry.load() is oxyfuel.dynamo_backend
    assert "oxyfuel" in torch._dynamo.list_backends()


def test_a_wheel_has_the_entry_point(tmp_path, monkeypatch):
    build = pytest.importorskip("scikit_build_core.build")
    monkeypatch.chdir(ROOT)
    folder = tmp_path / build.prepare_metadata_for_build_wheel(str(tmp_path))
    distribution = importlib.metadata.PathDistribution(folder)
    (entry,) = distribution.entry_points.select(group=GROUP)
    assert (entry.name, entry.value) == ("oxyfuel", "oxyfuel:dynamo_backend")


@backends()
def test_inference(backend, nets):
    compiled = torch.compile(nets[0].eval(), backend=backend, fullgraph=True)
    x = torch.randn(4, 6)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), nets[1].eval()(x))
        metrics = oxyfuel.metrics()
        assert metrics["graphs"] == 1 and metrics["kernels"] > 0 and not metrics["breaks"]
        for scale in (2.0, 3.0):  # torch.compile's next graph takes the scale as an input
            torch.testing.assert_close(compiled(x, scale), nets[1].eval()(x, scale))


@backends()
def test_training(backend, nets):
    ours, eager = nets
    compiled = torch.compile(ours, backend=backend)
    optimisers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    for _ in range(3):
        x = torch.randn(5, 6)
        for net, optimiser in zip((compiled, eager), optimisers):
            optimiser.zero_grad()
            net(x)[0].square().mean().backward()
            optimiser.step()
    for (name, a), b in zip(ours.state_dict().items(), eager.state_dict().values()):
        torch.testing.assert_close(a, b, msg=lambda text, name=name: f"{name}: {text}")
    assert oxyfuel.metrics()["graphs"] >= 1 and not oxyfuel.metrics()["breaks"]


def test_sizes_that_change(nets):
    compiled = torch.compile(nets[0].eval(), backend="oxyfuel")
    with torch.no_grad():
        for batch in (2, 3, 4, 7):
            x = torch.randn(batch, 6)
            torch.testing.assert_close(compiled(x), nets[1].eval()(x))


def test_options():
    compiled = torch.compile(lambda x: x + 1, backend="oxyfuel", options={"fusion": False})
    assert compiled(torch.ones(3)).equal(torch.full((3,), 2.0))
    with pytest.raises(Exception, match="unknown option 'speed'"):
        torch.compile(lambda x: x + 1, backend="oxyfuel", options={"speed": 1})(torch.ones(3))


@pytest.mark.parametrize("graph_module", [3, nn.ReLU(), lambda x: x])
def test_wrong_arguments(graph_module):
    with pytest.raises(TypeError, match="GraphModule"):
        oxyfuel.dynamo_backend(graph_module, [])


def test_nothing_of_dynamo_is_loaded():
    code = """
import sys, torch, oxyfuel
module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()))
x = torch.ones(2, 3)
torch.testing.assert_close(oxyfuel.dynamo_backend(module, [x])(x), module(x))
assert oxyfuel.metrics()["graphs"] == 1
print([name for name in sys.modules if name.split(".")[:2] in (["torch", "_dynamo"], ["torch", "_inductor"])])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[]"
