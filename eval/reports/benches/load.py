"""`bench mixed`: many documents at once. Each cell has its measured label; short and long requests
are never in one figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eval.reports.benches.record import BenchRecord
from eval.reports.charts import latency
from eval.reports.charts.latency import DECODE, FIRST, QUEUE, READ, REST
from eval.reports.charts.points import Bar, Sample
from eval.reports.measures import milliseconds
from eval.reports.types import Cell, Chart, Row, Table

Json = Mapping[str, Any]

KINDS = ("short", "long")
_TIMES = (
    ("ttft_any_ms", "TTFT of anything, from arrival"),
    ("ttft_any_from_question_ms", "TTFT of anything, from the question"),
    ("read_ms", "document read"),
    ("ttft_grounded_ms", "TTFT grounded, from arrival"),
    ("ttft_warm_ms", "TTFT warm"),
    ("total_ms", "everything"),
)
_SPREAD = (("ttft_any_ms", "any"), ("ttft_grounded_ms", "grounded"))
_STAGES = ("wait", "read", "first token", "answers", "upload", "failed")
_MARKS = (
    (QUEUE, "arrival", "sent"),
    (REST, "sent", "accepted"),
    (READ, "accepted", "read_complete"),
    (FIRST, "read_complete", "grounded_text"),
    (DECODE, "grounded_text", "done"),
)


def load_parts(record: BenchRecord, number: int) -> Iterator[Table | Chart]:
    """A table, the distribution and the timeline of each cell."""
    for place, (cell, figures) in enumerate(record.results.items(), start=1):
        rate = figures["hit_rate"]
        state = "hit rate not told" if rate is None else f"hit rate {rate:.3f}"
        what = f"{cell} load, measured {figures['label']} ({state}): {record.name}"
        yield _table(f"Mixed traffic, {what}", figures)
        rounds = [
            one["requests"]
            for done in record.rounds
            for one in done["cells"]
            if one["cell"] == cell
        ]
        requests = [request for one in rounds for request in one]
        samples = list(_samples(requests))
        if samples:
            yield Chart(
                f"TTFT in the {what}",
                "From arrival, over all rounds; short and long requests apart. Any: the first text "
                "of anything. Grounded: the first text of an answer asked when the whole document "
                "was read. " + _legend(requests),
                latency.cumulative(f"load-{number}-{place}-cdf", samples, "TTFT from arrival"),
            )
        if rounds and rounds[0]:
            yield Chart(
                f"Requests of the {what}",
                "First round. Dot: first text of anything, while reading goes on. Answers: from "
                "the first grounded text to the end of the last answer. Cross: failed.",
                latency.timeline(
                    f"load-{number}-{place}-time",
                    [_bar(request["timeline"], request["status"]) for request in rounds[0]],
                    "time since the load began",
                    _STAGES,
                ),
            )


def _samples(requests: list[Json]) -> Iterator[Sample]:
    places = 0
    for kind in KINDS:
        for key, name in _SPREAD:
            values = tuple(
                float(request[key])
                for request in requests
                if request["kind"] == kind and request["status"] == "done" and request[key]
            )
            if values:
                yield Sample(f"{kind}, {name}", places, values)
            places += 1


def _legend(requests: list[Json]) -> str:
    lengths = {
        kind: [request["planned_tokens"] for request in requests if request["kind"] == kind]
        for kind in KINDS
    }
    return " ".join(
        f"{kind.capitalize()}: {_reach(found)} tokens." for kind, found in lengths.items() if found
    )


def _reach(lengths: list[int]) -> str:
    low, high = min(lengths), max(lengths)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _bar(timeline: Json, status: str) -> Bar:
    """The stages that a request reached; a mark that is missing ends it."""
    stages = []
    for stage, start, end in _MARKS:
        if start not in timeline or end not in timeline:
            break
        stages.append((stage, max(0.0, timeline[end] - timeline[start])))
    return Bar(
        tuple(stages),
        start=timeline["arrival"],
        mark=timeline.get("first_text"),
        failed=status != "done",
    )


def _table(title: str, figures: Json) -> Table:
    kinds = [kind for kind in KINDS if figures["kinds"][kind]["requests"]]
    rows = [
        Row("requests", tuple(Cell(str(figures["kinds"][kind]["requests"])) for kind in kinds)),
        Row("failed", tuple(Cell(str(figures["kinds"][kind]["failed"])) for kind in kinds)),
    ]
    for key, name in _TIMES:
        metrics = [figures["kinds"][kind]["metrics"][key] for kind in kinds]
        rows.append(Row(f"{name}: median ↓", tuple(map(_time, metrics))))
    notes = [
        f"Medians of {figures['rounds']} rounds; P99 is over all rounds together, from 100 samples "
        "on.",
    ]
    if figures["answers"]["asked"]:
        right, asked = figures["answers"]["right"], figures["answers"]["asked"]
        notes.append(f"{right} of {asked} answers hold the right amount.")
    if figures["faults"]:
        faults = ", ".join(f"{fault} ({count})" for fault, count in figures["faults"].items())
        notes.append(f"Failures: {faults}.")
    return Table(title, "requests", tuple(kinds), tuple(rows), notes=tuple(notes))


def _time(metric: Json) -> Cell:
    if metric["p50"] is None:
        return Cell("–", note=f"n = {metric['n']}")
    tail = f"P95 {milliseconds(metric['p95'])}"
    if metric["p99_all_rounds"] is not None:
        tail += f", P99 {milliseconds(metric['p99_all_rounds'])}"
    return Cell(milliseconds(metric["p50"]), note=f"{tail}, n = {metric['n']}")
