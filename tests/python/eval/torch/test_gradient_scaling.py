"""GradScaler in compiled functions, and the operators that it calls."""

import pytest
import torch
from torch import nn

import oxyfuel

CALLS = 24


def train(compile, dtype, fused, clips):
    """Losses, scales and parameters of steps whose scale is too large at first, and grows afterwards."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=fused)
    largest = 126 if dtype == torch.float32 else 127
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**largest, backoff_factor=2.0**-10, growth_interval=3)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(1e3 * model(x), y)
        scaler.scale(loss).backward()
        if clips:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    step = compile(step)
    losses, scales = [], []
    for call in range(CALLS):
        generator = torch.Generator().manual_seed(call)
        x, y = torch.randn(4, 8, generator=generator).to(dtype), torch.randint(4, (4,), generator=generator)
        losses.append(step(x, y))
        scales.append(scaler.get_scale())
    return torch.stack(losses), scales, [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_steps(dtype, fused, clips):
    losses, scales, parameters = train(oxyfuel.compile, dtype, fused, clips)
    metrics = oxyfuel.metrics()
    expected = train(lambda function: function, dtype, fused, clips)
    assert scales == expected[1] and len(set(scales)) > 3
    if dtype != torch.bfloat16:  # roundings of its parameters differ soon
        torch.testing.assert_close(losses, expected[0], rtol=1e-4, atol=1e-2)
        torch.testing.assert_close(parameters, expected[2], rtol=1e-4, atol=1e-5)
    if fused:  # the optimizer leaves out a step by itself
        assert not metrics["breaks"] and metrics["calls_compiled"] == CALLS
    else:  # whether a step is left out is asked by the host
        assert "_maybe_opt_step" in metrics["breaks"][0]["stack"][0] and metrics["graphs"] >= 2


GRADIENTS = {
    "finite": [1.5, -2.0, 0.0],
    "inf": [1.5, float("inf"), 0.0],
    "-inf": [float("-inf"), 1.0, 2.0],
    "nan": [1.5, float("nan"), 0.0],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("factor", [1.0, 0.5, 2.0**-30, float("inf")])
def test_gradients_are_unscaled(name, dtype, factor):
    def unscale(gradients, found, inverse):
        torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
        return [gradient + 1 for gradient in gradients]

    def arguments(found, shape=()):
        values = torch.tensor(GRADIENTS[name]).to(dtype)
        gradients = [values * 100, torch.ones(2, 3).to(dtype).t(), torch.ones((), dtype=dtype), torch.ones(0, dtype=dtype)]
        return gradients, torch.full(shape, found), torch.full(shape, factor)

    compiled = oxyfuel.compile(unscale, fullgraph=True)
    for found in (0.0, 1.0, 3.0):
        for shape in ((), (1,)):
            ours, eagers = arguments(found, shape), arguments(found, shape)
            torch.testing.assert_close(compiled(*ours), unscale(*eagers), equal_nan=True)
            torch.testing.assert_close(ours, eagers, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("scale", [4.0, 3e38])
def test_scales_are_updated(scale):
    def update(scale, tracker, found):
        result = torch._amp_update_scale_(scale, tracker, found, 2.0, 0.25, 3)
        return result * 1

    compiled = oxyfuel.compile(update, fullgraph=True)
    ours, eagers = ((torch.tensor(scale), torch.tensor(0, dtype=torch.int32)) for _ in range(2))
    for found in (0, 0, 0, 1, 0, 2.5, 0, 0, 0, 0, 0, 0, float("nan")):
        number = torch.tensor(float(found))
        assert torch.equal(compiled(*ours, number), update(*eagers, number))
        assert torch.equal(ours[0], eagers[0]) and torch.equal(ours[1], eagers[1])


def test_other_types_run_as_in_eager():
    def update(scale, tracker, found):
        return torch._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 3)

    arguments = torch.tensor(4.0, dtype=torch.float64), torch.tensor(0, dtype=torch.int32), torch.tensor(0.0)
    with pytest.raises(RuntimeError) as eager:
        update(*arguments)
    with pytest.raises(RuntimeError) as ours:
        oxyfuel.compile(update)(*arguments)
    assert str(ours.value) == str(eager.value)
