"""transformers' generate() over compiled models: a key-value cache that grows with every token."""

import importlib.util

import pytest
import torch

if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)
import torchvision_operators  # noqa: E402, F401
import transformers  # noqa: E402

import oxyfuel  # noqa: E402

TOKENS = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0, "vocab_size": 101}


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, n_positions=64, **TOKENS)).eval()


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        num_hidden_layers=2, hidden_size=32, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        **TOKENS)).eval()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("make", [gpt2, llama])
def test_greedy_generation(make, padded, capfd):
    torch.manual_seed(0)
    model, ids = make(), torch.randint(2, 101, (2, 5))
    settings = {"max_new_tokens": 20, "do_sample": False, "use_cache": True}
    if padded:
        settings["attention_mask"] = torch.ones_like(ids).index_put((torch.tensor([0]), torch.tensor([[0], [1]])), torch.tensor(0))
    expected = model.generate(ids, **settings)
    compiled = oxyfuel.compile(model)
    assert torch.equal(compiled.generate(ids, **settings), expected)
    metrics = oxyfuel.metrics()
    # The first step, and one graph for all lengths of the cache.
    assert metrics["graphs"] <= 2 and not metrics["breaks"], metrics["recompile_reasons"]
    assert torch.equal(compiled.generate(ids, **settings), expected)
    again = oxyfuel.metrics()
    assert again["graphs"] == metrics["graphs"] and again["calls_compiled"] == 2 * metrics["calls_compiled"] == 40
    assert "run in eager" not in capfd.readouterr().err


@pytest.mark.parametrize("make", [gpt2, llama])
def test_one_step_with_a_cache_and_labels(make):
    torch.manual_seed(0)
    model, ids = make(), torch.randint(2, 101, (2, 6))
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1] * 6])
    compiled = oxyfuel.compile(model)
    with torch.no_grad():
        for settings in ({}, {"labels": ids}, {"attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}):
            expected, actual = (m(ids, use_cache=True, **settings) for m in (model, compiled))
            torch.testing.assert_close(actual.logits, expected.logits)
            if "labels" in settings:
                torch.testing.assert_close(actual.loss, expected.loss)
            steps = [m(ids[:, -1:], past_key_values=o.past_key_values, use_cache=True) for m, o in ((model, expected), (compiled, actual))]
            torch.testing.assert_close(steps[1].logits, steps[0].logits)
            for a, b in zip(steps[0].past_key_values.layers, steps[1].past_key_values.layers):
                torch.testing.assert_close(b.keys, a.keys)
                torch.testing.assert_close(b.values, a.values)
    assert not oxyfuel.metrics()["breaks"]


@pytest.mark.parametrize("cache", [None, "static"])
def test_prompts_of_several_lengths(cache):
    torch.manual_seed(0)
    model = llama()
    compiled = oxyfuel.compile(model)
    for length in (5, 9, 6, 14, 3, 11):
        ids = torch.randint(2, 101, (2, length))
        settings = {"max_new_tokens": 6, "do_sample": False, "cache_implementation": cache}
        assert torch.equal(compiled.generate(ids, **settings), model.generate(ids, **settings))
    # Prompts and steps, each with numbers first and then with symbols.
    metrics = oxyfuel.metrics()
    assert metrics["graphs"] <= 4 and not metrics["breaks"] and metrics["calls_eager"] == 0, metrics["recompile_reasons"]


@pytest.mark.parametrize("decoding", [{"do_sample": True, "top_k": 20}, {"do_sample": False, "num_beams": 3}])
def test_sampling_and_beams(decoding):
    model, ids = llama(), torch.randint(2, 101, (2, 5))
    compiled = oxyfuel.compile(model)
    for _ in range(2):
        tokens = []
        for target in (model, compiled):
            torch.manual_seed(1)
            tokens.append(target.generate(ids, max_new_tokens=12, **decoding))
        assert torch.equal(*tokens)
    assert oxyfuel.metrics()["graphs"] <= 2 and not oxyfuel.metrics()["breaks"]
