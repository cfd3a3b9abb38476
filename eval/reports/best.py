"""When a value may be called the best of its row."""

from __future__ import annotations

from collections.abc import Sequence

from eval.reports.entries import Entry
from eval.reports.measures import Measure
from eval.reports.samples import SampleId, mean, paired_difference, value_of

MIN_DOCUMENTS = 6
"""With fewer documents even a difference of one sign in all of them is chance more often than one
time in twenty (sign test: 2 / 2**5 = 0.06)."""
BEST_NOTE = (
    f"★ marks a value only when it rests on {MIN_DOCUMENTS} documents or more and is better than "
    "every other one of its row beyond chance: "
)


def apart(
    entries: Sequence[Entry], measure: Measure, over: Sequence[Sequence[SampleId]]
) -> Entry | None:
    """The run whose interval lies beyond those of all others, each over its own samples; None when
    there is none."""
    there = []
    for entry, ids in zip(entries, over, strict=True):
        value = mean(entry.samples, measure, ids)
        if value is None:
            continue
        if (
            value.low is None
            or value.high is None
            or _documents(entry, measure, ids) < MIN_DOCUMENTS
        ):
            return None
        there.append((entry, value.mean, value.low, value.high))
    if len(there) < 2:
        return None
    top = measure.best([value for _, value, _, _ in there])
    best, _, low, high = next(item for item in there if item[1] == top)
    others = [item for item in there if item[0] is not best]
    if measure.better == "higher":
        return best if all(low > other_high for _, _, _, other_high in others) else None
    return best if all(high < other_low for _, _, other_low, _ in others) else None


def paired_best(
    entries: Sequence[Entry], measure: Measure, over: Sequence[SampleId]
) -> Entry | None:
    """The run that is better than every other one by paired differences; None when there is
    none."""
    there = [e for e in entries if mean(e.samples, measure, over) is not None]
    if len(there) < 2 or len({sample[0] for sample in over}) < MIN_DOCUMENTS:
        return None
    for entry in there:
        if all(_beats(entry, other, measure, over) for other in there if other is not entry):
            return entry
    return None


def _beats(entry: Entry, other: Entry, measure: Measure, over: Sequence[SampleId]) -> bool:
    found = paired_difference(entry.samples, other.samples, measure, over)
    if found is None or found.low is None or found.high is None:
        return False
    return found.low > 0 if measure.better == "higher" else found.high < 0


def _documents(entry: Entry, measure: Measure, ids: Sequence[SampleId]) -> int:
    return len({s[0] for s in ids if value_of(entry.samples[s], measure) is not None})
