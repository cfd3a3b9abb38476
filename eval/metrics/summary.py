"""The summary of a run: means with intervals, counts, times and breakdowns, ready for JSON.

Failed and unfit samples stay in every denominator as wrong; only a likelihood can't be given to
them. The order of the records makes no difference, so a resumed run sums up as an unbroken one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval.metrics import breakdown
from eval.metrics.names import BY_NAME, GROUP_INTERVALS, METRICS, Metric, Needs
from eval.metrics.sample import failure_scores
from eval.metrics.timing import first_token_times
from eval.statistics import estimate
from eval.types import SampleRecord, Scores

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class _Scored:
    """A record and its scores, those of a failed one filled in."""

    record: SampleRecord
    scores: Scores


def summarise(records: Sequence[SampleRecord], *, seed: int = 0) -> dict[str, object]:
    """All metrics of a run by name.

    Always there: `names.STABLE_KEYS`, null where nothing applies. `failed` and `unfit` are counts,
    `unmarked_wrong_figures` and the other totals are sums over all samples, the rest are means.
    `intervals` holds {"low", "high"}, 95% bounds of each mean from resampling documents, null for
    fewer than five documents; `counts["scored"]` the number of samples behind each. `by_*` map a
    group's name to the same values with the intervals of `names.GROUP_INTERVALS`; `length_unit`
    says what `by_length` is measured in.
    """
    ordered = sorted(records, key=lambda r: (r.dataset, r.doc_id, r.qid))
    given = _given(ordered)
    scored = [_Scored(record, sample_scores(record)) for record in ordered]
    by_record = {id(one.record): one for one in scored}

    def groups(found: breakdown.Groups) -> dict[str, object]:
        return {
            name: _group([by_record[id(r)] for r in members], given, GROUP_INTERVALS, seed)
            for name, members in found.items()
        }

    return _group(scored, given, tuple(BY_NAME), seed) | {
        "counts": _counts(scored, given),
        "length_unit": breakdown.length_unit(ordered),
        "by_category": groups(breakdown.by_category(ordered)),
        "by_language": groups(breakdown.by_language(ordered)),
        "by_length": groups(breakdown.by_length(ordered)),
        "by_depth": groups(breakdown.by_depth(ordered)),
    }


def values_of(
    name: str, scored: Sequence[tuple[SampleRecord, Mapping[str, float | None]]]
) -> list[tuple[str, float]]:
    """(document, value) of each sample that a metric applies to, for estimates of a caller."""
    found = []
    for record, scores in scored:
        value = scores.get(name)
        if value is not None:
            found.append((f"{record.dataset}/{record.doc_id}", value))
    return found


def sample_scores(record: SampleRecord) -> Scores:
    """The scores of a record; a failed or unfit one gets those of a wrong answer."""
    if record.status == "done":
        return record.scores
    told = record.scores.get("choice_accuracy") is not None
    # An answerable question without a gold answer in words can only be a choice.
    choice = told or (record.answerable and not record.gold)
    return failure_scores(
        record.gold,
        record.lang,
        answerable=record.answerable,
        spans=record.depth is not None,
        choice=choice,
    )


def _given(records: Sequence[SampleRecord]) -> frozenset[Needs]:
    """What this run gives at all: a mode that answers without ever citing is not wrong in it."""
    done = [(record, record.reply) for record in records if record.reply is not None]
    answers = [reply for _, reply in done if reply.status != "not_found"]
    asked = [reply for r, reply in done if r.scores.get("choice_accuracy") is not None]
    given: set[Needs] = {"reply"}
    if not answers or any(reply.citations for reply in answers):
        given.add("citations")
    if not done or any(reply.hits for _, reply in done):
        given.add("hits")
    if not asked or any(reply.choice is not None for reply in asked):
        given.add("choice")
    return frozenset(given)


def _group(
    scored: Sequence[_Scored], given: frozenset[Needs], with_interval: Sequence[str], seed: int
) -> dict[str, object]:
    status = Counter(one.record.status for one in scored)
    row: dict[str, object] = {"n": len(scored)}
    intervals: dict[str, dict[str, float] | None] = {}
    for metric in METRICS:
        found = _values(metric, scored, given)
        row[metric.name] = _value(metric, [value for _, value in found])
        if found and not metric.total and metric.name in with_interval:
            intervals[metric.name] = _interval(metric, found, seed)
    row |= {"failed": status["failed"], "unfit": status["unfit"]}
    return row | first_token_times([one.record for one in scored]) | {"intervals": intervals}


def _values(
    metric: Metric, scored: Sequence[_Scored], given: frozenset[Needs]
) -> list[tuple[str, float]]:
    if metric.needs not in given:
        return []
    return values_of(metric.name, [(one.record, one.scores) for one in scored])


def _value(metric: Metric, values: Sequence[float]) -> float | int | None:
    if not values:
        return None
    if metric.total:
        return round(sum(values))
    return round(sum(values) / len(values), _DIGITS)


def _interval(
    metric: Metric, found: Sequence[tuple[str, float]], seed: int
) -> dict[str, float] | None:
    groups, values = [group for group, _ in found], [value for _, value in found]
    result = estimate(values, groups, seed=seed, share=metric.share)
    if result is None or result.low is None or result.high is None:
        return None
    return {"low": round(result.low, _DIGITS), "high": round(result.high, _DIGITS)}


def _counts(scored: Sequence[_Scored], given: frozenset[Needs]) -> dict[str, object]:
    status = Counter(one.record.status for one in scored)
    answerable = sum(one.record.answerable for one in scored)
    return {
        "documents": len({(one.record.dataset, one.record.doc_id) for one in scored}),
        "answerable": answerable,
        "unanswerable": len(scored) - answerable,
        "done": status["done"],
        "failed": status["failed"],
        "unfit": status["unfit"],
        "scored": {metric.name: len(_values(metric, scored, given)) for metric in METRICS},
    }
