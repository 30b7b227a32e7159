"""Texts of tensors and of numbers that vary have digits, never the name of a symbol."""

import pytest
import torch

import oxyfuel

TEXTS = [
    lambda x: f"{x.long().sum()}",
    lambda x: f"{x.long().sum():>8}",
    lambda x: format(x.long().sum(), ""),
    lambda x: "{}".format(x.long().sum()),
    lambda x: "%s" % x.long().sum(),
    lambda x: str(x.long().sum()),
    lambda x: repr(x.long().sum()),
    lambda x: f"{x.long().sum().item()}",
    lambda x: x.long().sum().item().__format__(""),
    lambda x: f"{x.sum()}",
    lambda x: f"{(x > 0).all()}",
    lambda x: f"{x.size(0)} {x.shape}",
    lambda x: x.size(0).__format__("d"),
    lambda x: f"{torch.tensor(x.size(0))}",
    lambda x: f"{torch.full((), x.size(0))}",
]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_eagers(text, dynamic):
    def function(x):
        return text(x), x + 1

    oxyfuel.reset()
    compiled = oxyfuel.compile(function, dynamic=dynamic)
    for n in (2, 3, 5):
        x = torch.ones(n, 3)
        assert compiled(x)[0] == text(x)


def test_a_module_is_found_by_a_number_of_data():
    experts = torch.nn.ModuleDict({f"expert_{i}": torch.nn.Linear(3, 3) for i in range(4)})

    def function(x, chosen):
        result = torch.zeros_like(x)
        for index in chosen.nonzero():
            result = result + experts[f"expert_{index[0]}"](x)
        return result

    oxyfuel.reset()
    compiled = oxyfuel.compile(function)
    with torch.no_grad():
        for n, chosen in ((2, [1, 0, 1, 0]), (3, [0, 1, 1, 0]), (5, [1, 1, 1, 1])):
            x, mask = torch.randn(n, 3), torch.tensor(chosen)
            torch.testing.assert_close(compiled(x, mask), function(x, mask))
