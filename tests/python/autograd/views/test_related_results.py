"""Results without a history that share memory: which is a view of which, as autograd sees it."""

import itertools

import pytest
import torch

from eager_comparison import outcome, program


def results_of(x):
    base = x * 2
    detached = base.detach()
    return {
        "base": base,
        "whole": base.view(-1),
        "part": base[1:],
        "part of the part": base[1:][0],
        "as another type": base.view(torch.int32),
        "detached": detached,
        "part of the detached": detached[1:],
    }


NAMES = list(results_of(torch.ones(2, 2)))
PICKS = [*itertools.permutations(NAMES, 2), ("part", "base", "whole"), ("whole", "part", "base"), ("part", "whole", "part of the part"), ("part of the detached", "part", "base")]


def relations(tensors):
    """Which of them is a view, and whose."""
    bases = [tensor._base for tensor in tensors]
    return [(tensor._is_view(), tensor.requires_grad, [base is other for other in (*tensors, *bases)]) for tensor, base in zip(tensors, bases)]


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad])
@pytest.mark.parametrize("picks", PICKS, ids=" and ".join)
@program(grad=True)
def test_which_is_a_view_of_which(compile, picks, mode):
    answers = []
    for made_grad in range(len(picks)):

        @compile
        def f(x):
            found = results_of(x)
            return [found[name] for name in picks]

        for _ in range(2):
            with mode():
                results = f(torch.arange(4.0).view(2, 2))
            answers.append(relations(results))
            answers.append(outcome(lambda: results[made_grad].requires_grad_() is not None)[:3])
            answers.append(relations(results))
            answers.append(outcome(lambda: results[-1].mul_(2) is not None)[:3])
            answers += [tensor.detach().clone() for tensor in results]
    return answers
