"""Programs of one operator each whose rules have to know symbols, with the sizes that follow the first one of their argument."""

import torch
import torch.nn.functional as F

ROWS, IMAGES, VOLUMES = (4,), (4, 6, 6), (4, 6, 6, 6)


def classes(x):
    return torch.arange(x.size(0), device=x.device) % 4


def unpooled(x):
    return F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)


PROGRAMS = [
    (lambda x: 2**x, ROWS),
    (lambda x: torch.ldexp(x, x), ROWS),
    (lambda x: torch.ldexp(x, torch.arange(4, device=x.device)), ROWS),
    (lambda x: torch.linalg.vector_norm(x, dim=1), ROWS),
    (lambda x: torch.linalg.vector_norm(x[:, :0], dim=1) + x[:, 0], ROWS),
    (lambda x: torch.linalg.vector_norm(x, float("inf")), ROWS),
    (lambda x: F.normalize(x), ROWS),
    (lambda x: F.cosine_similarity(x, x + 1), ROWS),
    (lambda x: torch.dist(x, x.flip(0)), ROWS),
    (lambda x: F.multi_margin_loss(x, classes(x)), ROWS),
    (lambda x: F.multi_margin_loss(x, classes(x), p=2, reduction="none"), ROWS),
    (lambda x: F.multilabel_margin_loss(x, classes(x)[:, None].expand(-1, 4).contiguous()), ROWS),
    (lambda x: F.cross_entropy(x, classes(x), label_smoothing=0.1), ROWS),
    (lambda x: F.prelu(x, torch.full((4,), 0.3, device=x.device)), IMAGES),
    (lambda x: F.glu(x, 1), ROWS),
    (unpooled, IMAGES),
    (lambda x: F.max_pool3d(x, 2), VOLUMES),
    (lambda x: F.avg_pool3d(x, 2), VOLUMES),
    (lambda x: F.adaptive_max_pool2d(x, 2), IMAGES),
    (lambda x: F.adaptive_max_pool3d(x, 2), VOLUMES),
    (lambda x: F.adaptive_avg_pool3d(x, 2), VOLUMES),
    (lambda x: F.local_response_norm(x, 2), IMAGES),
    (lambda x: F.channel_shuffle(x, 2), IMAGES),
    (lambda x: F.pad(x, (1, 2), mode="reflect"), (4, 6)),
    (lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"), IMAGES),
    (lambda x: F.pad(x, (1, 2, 0, 1), mode="replicate"), IMAGES),
    (lambda x: F.pad(x, (1, 2, 0, 1, 1, 1), mode="replicate"), VOLUMES),
]
