"""Medians of interleaved measurements and what can be said of their ratios."""

import math
import random
from statistics import median

CONFIDENCE = 0.95
RESAMPLES = 2000


def ratio_interval(numerators, denominators, seed=0):
    """(ratio of medians, lower, upper): a bootstrap interval over rounds, each of which measured both."""
    if len(numerators) != len(denominators) or not numerators:
        raise ValueError("expected as many numerators as denominators, and at least one")
    rounds = list(zip(numerators, denominators))
    generator = random.Random(seed)
    ratios = []
    for _ in range(RESAMPLES):
        sample = generator.choices(rounds, k=len(rounds))
        ratios.append(median(a for a, _ in sample) / median(b for _, b in sample))
    ratios.sort()
    tail = (1 - CONFIDENCE) / 2
    lower = ratios[int(tail * RESAMPLES)]
    upper = ratios[min(RESAMPLES - 1, int((1 - tail) * RESAMPLES))]
    return median(numerators) / median(denominators), lower, upper


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))
