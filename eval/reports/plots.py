"""Which charts a report on runs has, and what each one shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from eval.metrics import breakdown
from eval.reports.charts import latency, quality
from eval.reports.charts.points import Bar, Line, Point, Sample
from eval.reports.entries import (
    STATE_NAMES,
    STATES,
    Entry,
    State,
    first_token_times,
    median_time,
    state_of,
)
from eval.reports.measures import BY_KEY, Measure
from eval.reports.samples import by_sample, mean
from eval.reports.types import Chart
from eval.statistics import FEWEST_GROUPS
from eval.types import Reply, SampleRecord

Grouping = Callable[[Sequence[SampleRecord]], Mapping[str, list[SampleRecord]]]
_MIN_FOR_SPREAD = 5
"""With fewer times a distribution is a few steps that say nothing."""


def charts(entries: Sequence[Entry]) -> tuple[Chart, ...]:
    """All charts that the runs have samples for, in reading order."""
    return tuple(
        chart
        for part in (_scatters, _by_class, _distributions, _timelines)
        for chart in part(entries)
    )


def _scatters(entries: Sequence[Entry]) -> Iterator[Chart]:
    for measure in (_accuracy(entries), BY_KEY["answer_nll"]):
        for state in STATES:
            points = [p for e in entries if (p := _point(e, measure, state)) is not None]
            if points:
                name = STATE_NAMES[state]
                yield Chart(
                    f"{_sentence(measure.title)} against speed, {name}",
                    f"Quality over all questions of a run, time over its {name} ones. Bars are 95% "
                    "intervals.",
                    quality.scatter(
                        f"scatter-{measure.key}-{state}",
                        points,
                        measure,
                        f"time to first token, {name}: median",
                    ),
                )


def _point(entry: Entry, measure: Measure, state: State) -> Point | None:
    speed = median_time(first_token_times(entry, state))
    value = mean(entry.samples, measure, tuple(entry.samples))
    if speed is None or value is None or speed.mean <= 0:
        return None
    return Point(entry.letter, entry.place, speed, value)


def _by_class(entries: Sequence[Entry]) -> Iterator[Chart]:
    measured = _measured_alike(entries)
    everything = [record for records in measured for record in records]
    unit = breakdown.length_unit(everything)
    shown = [_accuracy(entries)]
    if shown[0].key != "f1":
        shown.append(BY_KEY["f1"])
    for measure in shown:
        for axis, group in (
            (f"length of the document, {unit}", breakdown.by_length),
            ("depth of the evidence in the document", breakdown.by_depth),
        ):
            classes = list(group(everything))
            if len(classes) > 1:
                yield from _line_chart(entries, measured, measure, axis, classes, group)


def _measured_alike(entries: Sequence[Entry]) -> list[list[SampleRecord]]:
    """The records with one unit of length for all runs: a mode without a model takes a document's
    tokens from a run that counted them; if one stays unknown, all are measured in characters."""
    known = {
        record.doc_id: record.doc_tokens
        for entry in entries
        for record in entry.records
        if record.doc_tokens is not None
    }
    every = all(record.doc_id in known for entry in entries for record in entry.records)
    return [
        [
            replace(r, doc_tokens=(r.doc_tokens or known[r.doc_id]) if every else None)
            for r in entry.records
        ]
        for entry in entries
    ]


def _line_chart(
    entries: Sequence[Entry],
    measured: Sequence[Sequence[SampleRecord]],
    measure: Measure,
    axis: str,
    classes: list[str],
    group: Grouping,
) -> Iterator[Chart]:
    rows, counts = [], dict.fromkeys(classes, 0)
    for entry, records in zip(entries, measured, strict=True):
        groups = {name: by_sample(members) for name, members in group(records).items()}
        found = {name: mean(members, measure, tuple(members)) for name, members in groups.items()}
        for name, value in found.items():
            counts[name] = max(counts[name], value.n if value else 0)
        if any(found.values()):
            rows.append(Line(entry.letter, entry.place, tuple(found.get(c) for c in classes)))
    if not rows:
        return
    name = f"{measure.key}-by-{axis.split()[0]}"
    most = ", ".join(f"{counts[c]} at {c}" for c in classes)
    yield Chart(
        f"{_sentence(measure.title)} by {axis.partition(',')[0]}",
        f"Bars are 95% intervals over documents, where a class has {FEWEST_GROUPS} of them. Most "
        f"questions of a run in a class: {most}.",
        quality.lines(name, rows, classes, measure, axis),
    )


def _distributions(entries: Sequence[Entry]) -> Iterator[Chart]:
    for state in STATES:
        samples = []
        for entry in entries:
            values = tuple(ms for _, ms in first_token_times(entry, state) if ms > 0)
            if len(values) >= _MIN_FOR_SPREAD:
                samples.append(Sample(entry.letter, entry.place, values))
        if samples:
            name = STATE_NAMES[state]
            yield Chart(
                f"Time to first token, {name}",
                f"Share of the {name} questions that had their first token by then; runs with "
                f"fewer than {_MIN_FOR_SPREAD} are left out.",
                latency.cumulative(f"cdf-{state}", samples, f"time to first token, {name}"),
            )


def _timelines(entries: Sequence[Entry]) -> Iterator[Chart]:
    for entry in entries:
        bars = [bar_of(r.reply) for r in entry.records if r.reply is not None]
        if bars:
            states = {state_of(record) for record in entry.records}
            names = " and ".join(STATE_NAMES[state] for state in STATES if state in states)
            yield Chart(
                f"Where the time went: {entry.letter}",
                f"{min(len(bars), latency.MAX_REQUESTS)} of {len(bars)} requests ({names}) spread "
                "evenly over the run. First token: to the first words shown; quotes come before "
                "the engine's queue. Rest: what the run does not tell apart, such as pages read "
                "for the question, its prompt, checks, a phrasing that was dropped.",
                latency.timeline(f"timeline-{entry.place}", bars, "time since the question"),
            )


def bar_of(reply: Reply) -> Bar:
    """The stages in the order they happened. Quotes are shown before the engine is asked: then the
    first token comes first, and what is not told apart lies before decoding."""
    times = reply.timings
    first = times.ttft_ms or 0.0
    before = times.queue_ms + times.read_ms
    opening = [(latency.QUEUE, times.queue_ms), (latency.READ, times.read_ms)]
    decode = (latency.DECODE, times.decode_ms)
    quoted = bool(reply.citations) or first < before
    told = first + times.decode_ms + (before if quoted else 0.0)
    rest = (latency.REST, max(0.0, times.total_ms - told))
    if quoted:
        return Bar(((latency.FIRST, first), *opening, rest, decode))
    return Bar((*opening, (latency.FIRST, first - before), decode, rest))


def _accuracy(entries: Sequence[Entry]) -> Measure:
    """Citation hit where a run cites, else token F1."""
    hit = BY_KEY["citation_hit"]
    cites = any(entry.summary.get(hit.key) is not None for entry in entries)
    return hit if cites else BY_KEY["f1"]


def _sentence(title: str) -> str:
    return title[:1].upper() + title[1:]
