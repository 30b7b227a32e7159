"""Small classes, modules and tensors that tests of captured programs share."""

import dataclasses
import enum

import torch
import torch.nn as nn


def x23():
    return torch.arange(6.0).reshape(2, 3)


@dataclasses.dataclass
class Config:
    scale: float
    tensor: torch.Tensor = None
    names: list = dataclasses.field(default_factory=list)

    @property
    def doubled(self):
        return self.scale * 2


@dataclasses.dataclass
class Derived(Config):
    extra: int = 0

    def __post_init__(self):
        self.extra += 1


class Net(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.linear = nn.Linear(3, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.table = nn.ModuleDict({"norm": nn.LayerNorm(width), "act": nn.GELU()})
        self.drop = nn.Dropout(0.5)
        self.register_buffer("offset", torch.ones(width))
        self.scale = 2.0
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = self.linear(x)
        for i, layer in enumerate(self.layers):
            x = x + layer(x) * i
        for name, module in self.table.items():
            x = module(x)
        return self.drop(x) * self.scale + self.offset


def made(cls=Net, *args):
    torch.manual_seed(1)
    return cls(*args).eval()


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    def factor(self):
        return self.value * 10
