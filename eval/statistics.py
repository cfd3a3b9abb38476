"""Percentiles and intervals that don't promise more than the samples hold.

P99 needs 100 samples (below that it is the maximum under another name). Intervals come from
resampling whole groups, because questions on one document are not independent: Field and Welsh,
"Bootstrapping clustered data", J. R. Statist. Soc. B 69 (2007). A plain percentile interval is too
narrow when the groups are few, so its ends are moved outwards as t quantiles are: Hesterberg, "What
Teachers Should Know About the Bootstrap", The American Statistician 69 (2015), section 5.2.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

P99_SAMPLES = 100
FEWEST_GROUPS = 5
"""Of 1,000 samples of normal values, the interval held the true mean in 51, 75, 87, 93, 93 and 95%
with 2, 3, 4, 5, 8 and 30 groups; the plain percentile interval in 84% with 5 and 87% with 8."""
ROUNDS = 2000
_TAIL = 0.025
_BATCH = 4_000_000
"""Draws held at once, so that many groups don't need memory for all rounds."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of `n` samples. All None when there is none; `p99` None below 100 samples."""

    n: int
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95% interval. The interval is None with fewer than `FEWEST_GROUPS` groups:
    resampling two documents gives three means, and whatever lies between them is no interval."""

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
    values: Sequence[float],
    groups: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
    share: bool = False,
) -> Estimate | None:
    """Mean and 95% bootstrap interval over groups (default: each value its own group); None for no
    values.

    With `share` the values lie in 0 to 1. If all of them are 0 or all are 1, resampling sees no
    spread, so the open end is the exact binomial one (Clopper and Pearson, Biometrika 26, 1934)
    with each group as one trial. Raises ValueError when `groups` has another length or a value is
    not finite.
    """
    if not values:
        return None
    if not np.isfinite(values).all():
        raise ValueError("a value is not a finite number")
    names = list(groups) if groups is not None else list(range(len(values)))
    if len(names) != len(values):
        raise ValueError(f"{len(values)} values in {len(names)} groups")
    index = {name: place for place, name in enumerate(dict.fromkeys(names))}
    sums, counts = np.zeros(len(index)), np.zeros(len(index))
    for name, value in zip(names, values, strict=True):
        sums[index[name]] += value
        counts[index[name]] += 1
    mean = float(sums.sum() / counts.sum())
    if len(index) < FEWEST_GROUPS:
        return Estimate(len(values), mean, None, None)
    if share and min(values) == max(values) and mean in (0.0, 1.0):
        reach = 1 - float(_TAIL ** (1 / len(index)))
        low, high = (0.0, reach) if mean == 0.0 else (1 - reach, 1.0)
        return Estimate(len(values), mean, low, high)
    tail = 100 * tail_probability(len(index))
    means = np.concatenate(list(_resampled(sums, counts, seed)))
    low, high = (float(value) for value in np.percentile(means, (tail, 100 - tail)))
    return Estimate(len(values), mean, low, high)


def tail_probability(groups: int) -> float:
    """What is cut off at each end of the resampled means, for a 95% interval from so many groups:
    0.025 for many, less for few."""
    quantile = stats.t.ppf(1 - _TAIL, groups - 1) * np.sqrt(groups / (groups - 1))
    return float(stats.norm.sf(quantile))


def _resampled(
    sums: NDArray[np.float64], counts: NDArray[np.float64], seed: int
) -> Iterator[NDArray[np.float64]]:
    """Means of `ROUNDS` resamples, in batches."""
    source = np.random.default_rng(seed)
    size = max(1, _BATCH // len(sums))
    for done in range(0, ROUNDS, size):
        drawn = source.integers(0, len(sums), (min(size, ROUNDS - done), len(sums)))
        yield sums[drawn].sum(1) / counts[drawn].sum(1)
