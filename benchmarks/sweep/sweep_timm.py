"""timm's architecture families, each by its smallest model: the one that has the fewest parameters at its published size.

names() lists one model a family (a module of timm.models); build(name) gives it with an input.
"""

from functools import cache

import torch

import torchvision_operators  # noqa: F401  isort: skip (before timm)

SMALL_WORDS = ("femto", "atto", "pico", "nano", "test", "xxs", "xx_small", "xxsmall", "tiny", "_t0", "_xs", "_050", "_small", "_s")
CLASSES = 10
BATCH = 2
PIXELS = (64, 96, 128, 224)  # tried in turn
MOST_PARAMETERS = 100_000_000
CANDIDATES = 4  # models of a family whose parameters are counted


def families():
    """Family -> names of its models, those that sound small first."""
    import timm

    def likely_size(name):
        return min((rank for rank, word in enumerate(SMALL_WORDS) if word in name), default=len(SMALL_WORDS))

    return {module: sorted(timm.list_models(module=module), key=lambda n: (likely_size(n), len(n), n)) for module in timm.list_modules()}


@cache
def names():
    """The families that have models."""
    return [family for family, models in families().items() if models]


def _parameter_count(name):
    import timm

    try:
        with torch.device("meta"):
            return sum(p.numel() for p in timm.create_model(name, pretrained=False, num_classes=CLASSES).parameters())
    except Exception:
        return float("inf")


def smallest(family):
    """The model of a family with the fewest parameters among those that sound smallest."""
    return min(families()[family][:CANDIDATES], key=_parameter_count)


def build(family):
    """(model in eval mode, keyword arguments, the model's name)."""
    import timm
    from sweep_transformers import NotBuilt

    name, first = smallest(family), None
    for pixels in PIXELS:
        for sized in ({"img_size": pixels}, {}):
            try:
                torch.manual_seed(0)
                model = timm.create_model(name, pretrained=False, num_classes=CLASSES, **sized).eval()
                generator = torch.Generator().manual_seed(1)
                image = torch.randn(BATCH, model.default_cfg["input_size"][0], pixels, pixels, generator=generator)
                with torch.no_grad():
                    model(image)
                return model, {"x": image}, name
            except Exception as error:
                first = first or error
    raise NotBuilt(f"{name}: {type(first).__name__}: {str(first).splitlines()[0][:160]}")


def resized(model, arguments, batch, step):
    """The image that build() gave, of another size."""
    _, channels, height, width = arguments["x"].shape
    generator = torch.Generator().manual_seed(1)
    return {"x": torch.randn(batch, channels, height + 32 * step, width + 32 * step, generator=generator)}
