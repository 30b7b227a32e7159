"""Programs whose sizes change from call to call, for benchmarks/sizes/dynamic_programs.py.

PROGRAMS has them by name. build() gives a module with random weights, calls() its arguments in the order in which a user's loop would
have them, and perform(module, function, call) one call of `function`, which is the module or made of it.
"""

import itertools
from dataclasses import dataclass
from typing import Callable

import models
import torch
from torch import nn
from torch.nn import functional as F

BATCHES = tuple(range(1, 65))
LENGTHS = (5, 6, 7, 16, 17, 33, 48, 64, 65, 100, 128, 200, 255, 256, 300, 384, 511, 512)
SPECIAL = {"vocab_size": 101, "bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
TOKENS = 60  # that generate() adds


def call_it(module, function, call):
    with torch.no_grad():
        return function(**call)


def train_it(module, function, call):
    """The loss and the gradients of a step; the parameters stay as they are, so that each step can be repeated."""
    module.zero_grad(set_to_none=True)
    loss = function(**call)
    loss.backward()
    return {"loss": loss.detach(), **{name: p.grad for name, p in module.named_parameters()}}


def generate(module, function, call):
    return function.generate(max_new_tokens=TOKENS, do_sample=False, **call)


@dataclass(frozen=True)
class Program:
    title: str
    build: Callable
    calls: Callable
    perform: Callable = call_it
    trains: bool = False
    most: int = 2  # compilations


def tokens(*shape):
    return torch.randint(2, 101, shape)


def mlp():
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def small(name):
    def build():
        model = models._MODELS[name].build("small")
        models.settle_statistics(model)
        return model

    return build


def transformer(model, config, **arguments):
    def build():
        import transformers

        return getattr(transformers, model)(getattr(transformers, config)(**{**SPECIAL, **arguments}))

    return build


BERT = transformer("BertModel", "BertConfig", hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
GPT2 = transformer("GPT2LMHeadModel", "GPT2Config", n_layer=2, n_head=2, n_embd=32, n_positions=512)
LLAMA = transformer(
    "LlamaForCausalLM", "LlamaConfig", num_hidden_layers=2, hidden_size=32, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2
)
T5 = transformer("T5Model", "T5Config", d_model=32, d_ff=64, d_kv=16, num_layers=2, num_heads=2, decoder_start_token_id=0)


# Sizes of images, multiples of 16 as patches need them, of all proportions.
PIXELS = tuple(itertools.islice(((16 * h, 16 * w) for s in range(4, 20) for h in range(2, 10) for w in (s - h,) if 2 <= w < 10), 0, 60, 3))


def images(**arguments):
    def calls():
        return [{"x": torch.randn(2, 3, h, w), **arguments} for h, w in PIXELS]

    return calls


class InterpolatedPositions(nn.Module):
    """A transformer on patches, whose position embeddings are made for 8 x 8 of them and interpolated for others."""

    def __init__(self, width=32, patch=16, grid=8):
        super().__init__()
        self.embed = nn.Conv2d(3, width, patch, patch)
        self.positions = nn.Parameter(torch.randn(1, width, grid, grid) * 0.1)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 2, 64, dropout=0.0, batch_first=True, norm_first=True) for _ in range(2)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.embed(x)
        positions = F.interpolate(self.positions, size=x.shape[-2:], mode="bicubic", align_corners=False)
        x = (x + positions).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def timm_vit():
    import timm

    return timm.create_model(
        "vit_base_patch16_224", pretrained=False, img_size=128, embed_dim=32, depth=2, num_heads=2, num_classes=10, dynamic_img_size=True
    )


class PackedAttention(nn.Module):
    """Sequences one behind the other in a row; `offsets` says where each begins. Attention stays within them."""

    def __init__(self, width=32, heads=2):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(101, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, ids, offsets):
        x = self.embed(ids)
        total, width = x.shape
        place = torch.arange(total, device=ids.device)
        sequence = torch.searchsorted(offsets, place, right=True) - 1
        mask = (sequence[:, None] == sequence[None, :]) & (place[:, None] >= place[None, :])
        q, k, v = (t.view(total, self.heads, -1).transpose(0, 1) for t in self.qkv(x).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(attended.transpose(0, 1).reshape(total, width))
        count = offsets.size(0) - 1
        sums = x.new_zeros(count, width).index_add(0, sequence, x)
        return x, sums / (offsets[1:] - offsets[:-1])[:, None]


def packed_rows():
    def row(*lengths):
        return {"ids": tokens(sum(lengths)), "offsets": F.pad(torch.tensor(lengths).cumsum(0), (1, 0))}

    generator = torch.Generator().manual_seed(3)
    counts = (3, 5, 2, 8, 1, 4, 12, 7, 6, 9, 10, 3)
    return [row(*torch.randint(1, 60, (count,), generator=generator).tolist()) for count in counts]


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(101, 24)
        self.layer = kind(24, 32, num_layers=2, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, ids):
        outputs, _ = self.layer(self.embed(ids))
        return self.head(outputs[:, -1])


class DetectorHead(nn.Module):
    """What is above a threshold becomes a box: data tell how many there are."""

    def __init__(self, width=16):
        super().__init__()
        self.features = nn.Conv2d(width, width, 3, padding=1)
        self.scores = nn.Conv2d(width, 1, 1)
        self.deltas = nn.Conv2d(width, 4, 1)
        self.classes = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        x = F.relu(self.features(x))
        scores = self.scores(x).squeeze(1).sigmoid()
        found = scores > 0.55
        index = found.nonzero()
        image, row, column = index.unbind(1)
        deltas = self.deltas(x).permute(0, 2, 3, 1)[image, row, column]
        centres = index[:, 1:].to(x.dtype) + 0.5
        boxes = torch.cat([centres - deltas[:, :2].exp(), centres + deltas[:, 2:].exp()], 1)
        kept = scores.masked_select(found)
        classes = self.classes(x.permute(0, 2, 3, 1)[found])
        order = kept.argsort(descending=True)
        return boxes[order], kept[order], classes[order].softmax(-1), image[order]


class Classifier(nn.Module):
    """A loss over a module's logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        return F.cross_entropy(self.model(x), labels)


def loader_with_a_small_last_batch():
    data = torch.utils.data.TensorDataset(torch.randn(54, 3, 64, 64), torch.randint(0, 10, (54,)))
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    return [{"x": x, "labels": labels} for _ in range(3) for x, labels in loader]


class TextClassifier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(101, width, padding_idx=0)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 2, 64, dropout=0.0, batch_first=True) for _ in range(2))
        self.head = nn.Linear(width, 10)

    def forward(self, ids, labels):
        padding = ids == 0
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        counts = (~padding).sum(1, keepdim=True)
        x = x.masked_fill(padding[..., None], 0).sum(1) / counts
        return F.cross_entropy(self.head(x), labels)


def ragged_loader():
    """Texts of 3 to 80 tokens, padded to the longest one of their batch."""
    generator = torch.Generator().manual_seed(4)
    texts = [(tokens(int(n)), int(n) % 10) for n in torch.randint(3, 81, (100,), generator=generator)]

    def collate(items):
        return {"ids": nn.utils.rnn.pad_sequence([ids for ids, _ in items], batch_first=True), "labels": torch.tensor([label for _, label in items])}

    return list(torch.utils.data.DataLoader(texts, batch_size=8, collate_fn=collate))


def over_lengths(batch, *names):
    return lambda: [{name: tokens(batch, length) for name in names} for length in LENGTHS]


def over_both_lengths():
    return [{"input_ids": tokens(2, n), "decoder_input_ids": tokens(2, m)} for n, m in zip(LENGTHS, LENGTHS[7:] + LENGTHS[:7])]


def prompts(*lengths, **arguments):
    return lambda: [{"input_ids": tokens(2, length), **arguments} for length in lengths]


PROGRAMS = {
    "mlp": Program("batches of 1 to 64, an MLP", mlp, lambda: [{"input": torch.randn(n, 32)} for n in BATCHES]),
    "resnet": Program("batches of 1 to 64, a ResNet", small("resnet50"), lambda: [{"x": torch.randn(n, 3, 32, 32)} for n in BATCHES]),
    "bert_batches": Program("batches of 1 to 64, BERT", BERT, lambda: [{"input_ids": tokens(n, 16)} for n in BATCHES]),
    "bert": Program("lengths of 5 to 512, BERT", BERT, over_lengths(2, "input_ids")),
    "gpt2": Program("lengths of 5 to 512, GPT-2", GPT2, over_lengths(2, "input_ids")),
    "llama": Program("lengths of 5 to 512, Llama", LLAMA, over_lengths(2, "input_ids")),
    "t5": Program("lengths of 5 to 512, T5", T5, over_both_lengths),
    "images": Program("20 sizes of images, a ResNet", small("resnet50"), images()),
    "positions": Program("20 sizes of images, interpolated positions", InterpolatedPositions, images()),
    "vit": Program("20 sizes of images, timm's ViT", timm_vit, images()),
    "growing_gpt2": Program("generate(), a growing cache, GPT-2", GPT2, prompts(5, 5), generate),
    "growing_llama": Program("generate(), a growing cache, Llama", LLAMA, prompts(5, 5), generate),
    "static_llama": Program("generate(), a static cache, Llama", LLAMA, prompts(5, 5, cache_implementation="static"), generate),
    # Two graphs, one for prompts and one for steps, each of which has numbers before it has symbols.
    "growing_prompts": Program("generate(), prompts of 4 lengths, a growing cache", LLAMA, prompts(5, 9, 6, 14), generate, most=4),
    "static_prompts": Program(
        "generate(), prompts of 4 lengths, a static cache", LLAMA, prompts(5, 9, 6, 14, cache_implementation="static"), generate, most=4
    ),
    "packed": Program("packed sequences with offsets", PackedAttention, packed_rows),
    "lstm": Program("lengths of 5 to 512, LSTM", lambda: Recurrent(nn.LSTM), over_lengths(4, "ids")),
    "gru": Program("lengths of 5 to 512, GRU", lambda: Recurrent(nn.GRU), over_lengths(4, "ids")),
    "boxes": Program("boxes that data tell, a detector's head", DetectorHead, lambda: [{"x": torch.randn(2, 16, 24, 24) * k} for k in
                                                                                       (1.0, 0.5, 2.0, 1.5, 0.7, 3.0, 1.1, 0.9)]),
    "last_batch": Program(
        "a smaller last batch, training a ResNet", lambda: Classifier(small("resnet50")()), loader_with_a_small_last_batch, train_it, True
    ),
    "ragged": Program("ragged batches, training a transformer", TextClassifier, ragged_loader, train_it, True),
}
