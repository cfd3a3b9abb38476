"""Percentiles and intervals that don't promise more than the samples hold.

P99 needs 100 samples (below that it is the maximum under another name). Intervals come from
resampling whole groups, because questions on one document are not independent: Field and Welsh,
"Bootstrapping clustered data", J. R. Statist. Soc. B 69 (2007).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

P99_SAMPLES = 100
ROUNDS = 2000


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of `n` samples. All None when there is none; `p99` None below 100 samples."""

    n: int
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95% interval. The interval is None with fewer than two groups: nothing can
    be said then."""

    n: int
    mean: float
    low: float | None
    high: float | None


def percentiles(values: Sequence[float]) -> Percentiles:
    """Linear interpolation between order statistics."""
    if not values:
        return Percentiles(0, None, None, None)
    p50, p95, p99 = (float(value) for value in np.percentile(values, (50, 95, 99)))
    return Percentiles(len(values), p50, p95, p99 if len(values) >= P99_SAMPLES else None)


def estimate(
    values: Sequence[float], groups: Sequence[Hashable] | None = None, *, seed: int = 0
) -> Estimate | None:
    """Mean and 95% percentile-bootstrap interval over groups (default: each value its own group);
    None for no values. Raises ValueError when `groups` has another length."""
    if not values:
        return None
    names = list(groups) if groups is not None else list(range(len(values)))
    if len(names) != len(values):
        raise ValueError(f"{len(values)} values in {len(names)} groups")
    index = {name: place for place, name in enumerate(dict.fromkeys(names))}
    sums, counts = np.zeros(len(index)), np.zeros(len(index))
    for name, value in zip(names, values, strict=True):
        sums[index[name]] += value
        counts[index[name]] += 1
    mean = float(sums.sum() / counts.sum())
    if len(index) < 2:
        return Estimate(len(values), mean, None, None)
    drawn = np.random.default_rng(seed).integers(0, len(index), (ROUNDS, len(index)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = (float(value) for value in np.percentile(means, (2.5, 97.5)))
    return Estimate(len(values), mean, low, high)
