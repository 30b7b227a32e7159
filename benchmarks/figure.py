"""Draws the figure of README.md from the table of inference in docs/benchmarks.md.

    python benchmarks/figure.py            # writes docs/images/inference.svg
    python benchmarks/figure.py --check    # fails if that is not what the table says
"""

import sys
from html import escape
from math import log10
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE, FIGURE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "images" / "inference.svg"
HEADING = "## Inference, batch 1, inference_mode"
LABELS = {"bert": "BERT", "distilbert": "DistilBERT", "gpt2": "GPT-2", "llama": "Llama", "t5": "T5", "resnet50": "ResNet-50",
          "vit": "ViT", "mobilenetv3": "MobileNetV3", "convnext": "ConvNeXt"}
COLORS = {"eager": "#9aa0a6", "torch.compile": "#4c78a8", "Oxyfuel": "#e4572e"}
BAR, GAP, LEFT, PANEL, TOP = 9, 9, 92, 290, 62


def rows(text):
    """(model, {column: number}) for each row of the first table behind the heading."""
    lines = text[text.index(HEADING):].splitlines()
    table = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    columns = table[0]
    for cells in table[2:]:
        if len(cells) != len(columns):
            return
        yield cells[0].split()[0], {name: cell.split()[0] for name, cell in zip(columns, cells)}


def bars_of(table):
    """For each model its label, the times of a call as shares of eager's, and the seconds of the first call."""
    for model, row in table:
        eager = float(row["eager ms"])
        steady = {"eager": 1.0, "torch.compile": float(row["torch.compile ms"]) / eager,
                  "Oxyfuel": float(row["oxyfuel ms"]) / eager}
        first = {"torch.compile": float(row["torch.compile first call s"]), "Oxyfuel": float(row["oxyfuel first call s"])}
        yield LABELS[model], steady, first


def draw(table):
    models = list(bars_of(table))
    step = 3 * BAR + GAP
    height, width = TOP + len(models) * step + 22, LEFT + 2 * PANEL + 90
    right = LEFT + PANEL + 60
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>']

    def text(x, y, words, anchor="start", weight="normal", size=12):
        parts.append(f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-weight="{weight}" font-size="{size}" '
                     f'fill="#202124">{escape(words)}</text>')

    def bar(x, y, length, name, words):
        parts.append(f'<rect x="{x}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{COLORS[name]}"/>')
        text(x + length + 4, y + BAR - 1, words, size=9)

    for i, name in enumerate(COLORS):
        parts.append(f'<rect x="{LEFT + 130 * i}" y="10" width="12" height="12" fill="{COLORS[name]}"/>')
        text(LEFT + 130 * i + 18, 20, name)
    text(LEFT, 48, "Time of a call, as a share of eager's", weight="bold")
    text(right, 48, "First call in seconds (logarithmic)", weight="bold")
    lowest, highest = 0.02, max(max(first.values()) for _, _, first in models)
    for i, (label, steady, first) in enumerate(models):
        y = TOP + i * step
        text(LEFT - 8, y + 2 * BAR, label, "end")
        for k, (name, share) in enumerate(steady.items()):
            bar(LEFT, y + k * BAR, PANEL * share / 1.1, name, f"{share:.2f}")
        for k, (name, seconds) in enumerate(first.items()):
            length = (PANEL - 30) * log10(seconds / lowest) / log10(highest / lowest)
            bar(right, y + k * BAR + BAR / 2, length, name, f"{seconds:.2f}")
    text(LEFT, height - 8, "Inference, batch 1, float32, two cores of an AMD EPYC. Shorter is better.", size=10)
    return "\n".join([*parts, "</svg>", ""])


def main():
    figure = draw(rows(TABLE.read_text()))
    if sys.argv[1:] == ["--check"]:
        return FIGURE.read_text() != figure and f"{FIGURE} is not what {TABLE} says; run {sys.argv[0]}"
    FIGURE.write_text(figure)


if __name__ == "__main__":
    sys.exit(main())
