"""What a program asks about the machine is known while it is captured."""

import pytest
import torch

import oxyfuel

QUESTIONS = {
    "is_available": lambda: torch.cuda.is_available(),
    "device_count": lambda: torch.cuda.device_count(),
    "is_bf16_supported": lambda: torch.cuda.is_bf16_supported(),
    "accelerator": lambda: torch.accelerator.is_available(),
    "current accelerator": lambda: torch.accelerator.current_accelerator(),
    "autocast": lambda: torch.amp.is_autocast_available("cuda"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions(name):
    ask = QUESTIONS[name]

    def function(x):
        return x + 1 if ask() else x - 1

    x = torch.ones(3)
    compiled = oxyfuel.compile(function, fullgraph=True)
    for _ in range(2):
        assert torch.equal(compiled(x), function(x))


@pytest.mark.filterwarnings("ignore:.*CUDA is not available.*:UserWarning")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast_of_gpus(dtype):
    def function(x):
        with torch.autocast("cuda", dtype):
            return x @ x

    x = torch.ones(3, 3)
    assert torch.equal(oxyfuel.compile(function)(x), function(x))


def test_answers_of_the_program(monkeypatch):
    """Another function in its place is the program's own, with what it reads."""
    answers = [True]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: answers[0])
    compiled = oxyfuel.compile(lambda x: x + 1 if torch.cuda.is_available() else x - 1, fullgraph=True)
    assert compiled(torch.zeros(2)).tolist() == [1, 1]
    answers[0] = False
    assert compiled(torch.zeros(2)).tolist() == [-1, -1]
