"""The same questions in several runs: which all of them finished, means, paired differences.

Two runs answered the same question when data set, document and question have the same names.
Intervals resample whole documents, since questions on one document are not independent (see
`eval.statistics`). Knows no layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eval.reports.measures import Measure
from eval.statistics import FEWEST_GROUPS, ROUNDS, Estimate, estimate, tail_probability
from eval.types import SampleRecord

SampleId = tuple[str, str]
"""Data set and document, question."""

Samples = Mapping[SampleId, SampleRecord]
_BATCH = 4_000_000
"""Counts held at once while medians are resampled."""


def by_sample(records: Iterable[SampleRecord]) -> dict[SampleId, SampleRecord]:
    """The records of one run by what they answer."""
    return {(f"{r.dataset}/{r.doc_id}", r.qid): r for r in records}


def value_of(record: SampleRecord, measure: Measure) -> float | None:
    """What a sample counts for; None where the measure does not apply to it."""
    return record.scores.get(measure.key)


def finished_by_all(runs: Sequence[Samples]) -> tuple[SampleId, ...]:
    """What every run answered and scored, in the order of the first run."""
    return _kept(runs, finished=True)


def recorded_by_all(runs: Sequence[Samples]) -> tuple[SampleId, ...]:
    """What every run has a record of, failed and unfit ones included."""
    return _kept(runs, finished=False)


def _kept(runs: Sequence[Samples], *, finished: bool) -> tuple[SampleId, ...]:
    if not runs:
        return ()
    return tuple(
        sample
        for sample in runs[0]
        if all(sample in run and (not finished or run[sample].status == "done") for run in runs)
    )


def mean(run: Samples, measure: Measure, over: Iterable[SampleId]) -> Estimate | None:
    """Mean and interval over the samples that the measure applies to; None when it applies to
    none."""
    found = {s: value for s in over if (value := value_of(run[s], measure)) is not None}
    return estimate(
        list(found.values()), [document for document, _ in found], share=measure.percent
    )


def paired_difference(
    run: Samples, base: Samples, measure: Measure, over: Iterable[SampleId]
) -> Estimate | None:
    """Mean of `run - base`, question by question, over those that both have a value for."""
    differences, documents = [], []
    for sample in over:
        value, other = value_of(run[sample], measure), value_of(base[sample], measure)
        if value is not None and other is not None:
            differences.append(value - other)
            documents.append(sample[0])
    return estimate(differences, documents)


def median(values: Sequence[float], groups: Sequence[str], *, seed: int = 0) -> Estimate | None:
    """As `eval.statistics.estimate`, of the median: for times, whose mean one slow sample moves."""
    if not values:
        return None
    middle = float(np.median(values))
    index = {name: place for place, name in enumerate(dict.fromkeys(groups))}
    if len(index) < FEWEST_GROUPS:
        return Estimate(len(values), middle, None, None)
    order = np.argsort(values)
    ranked = np.asarray(values, dtype=float)[order]
    owner = np.array([index[group] for group in groups])[order]
    medians = np.concatenate(list(_resampled_medians(ranked, owner, len(index), seed)))
    tail = 100 * tail_probability(len(index))
    low, high = (float(value) for value in np.percentile(medians, (tail, 100 - tail)))
    return Estimate(len(values), middle, low, high)


def _resampled_medians(
    ranked: NDArray[np.float64], owner: NDArray[np.int64], groups: int, seed: int
) -> Iterator[NDArray[np.float64]]:
    """Medians of `ROUNDS` draws of whole groups, in batches. A value counts as often as its group
    was drawn, so the median stands where these counts reach one half."""
    source = np.random.default_rng(seed)
    size = max(1, _BATCH // len(ranked))
    for done in range(0, ROUNDS, size):
        rounds = min(size, ROUNDS - done)
        drawn = source.multinomial(groups, np.full(groups, 1 / groups), rounds)
        reached = drawn[:, owner].cumsum(1)
        total = reached[:, -1:]
        lower = (reached > (total - 1) // 2).argmax(1)
        upper = (reached > total // 2).argmax(1)
        yield (ranked[lower] + ranked[upper]) / 2
