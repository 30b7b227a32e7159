"""Loops with torch.amp.GradScaler, around compiled models and inside of compiled steps."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from eager_comparison import program


def new_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 2))


def batches(count, bad=None):
    generator = torch.Generator().manual_seed(1)
    for step in range(count):
        x, y = torch.randn(5, 6, generator=generator), torch.randn(5, 2, generator=generator)
        yield (x * float("inf") if step == bad else x), y


def new_scaler():
    return torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)


def state(model, scaler):
    return [p.detach().clone() for p in model.parameters()], scaler.get_scale(), scaler.state_dict()["_growth_tracker"]


@program(whole=True, grad=True)
def test_a_compiled_model(compile):
    model = new_model()
    compiled, scaler = compile(model), new_scaler()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    log = []
    for x, y in batches(6, bad=3):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.mse_loss(compiled(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        log.append(state(model, scaler))
    return log


@program(grad=True)
def test_a_compiled_step(compile):
    model, scaler = new_model(), new_scaler()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    @compile
    def step(x, y):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    log = []
    for x, y in batches(6, bad=3):
        step(x, y)
        log.append(state(model, scaler))
    return log
