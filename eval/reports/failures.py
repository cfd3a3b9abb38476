"""What went wrong: samples without a score grouped by reason, and the worst of those with one."""

from __future__ import annotations

from collections.abc import Sequence

from eval.reports.entries import Entry
from eval.reports.types import FailureGroup, WorstOfRun, WorstSample
from eval.types import SampleRecord

WORST = 20
WORST_RULE = (
    "Worst first: unmarked wrong figures, then answers where the document states none, then "
    "refusals and answers that cite the wrong place, then low token F1."
)
_MOST_CHARACTERS = 1200


def failure_groups(entries: Sequence[Entry]) -> tuple[FailureGroup, ...]:
    """Failed and unfit samples of each run, the most frequent reason first."""
    groups = []
    for entry in entries:
        found: dict[tuple[str, str], list[str]] = {}
        for record in entry.records:
            if record.status != "done":
                reason = record.error or "no reason recorded"
                found.setdefault((record.status, reason), []).append(record.qid)
        for (status, reason), qids in sorted(found.items(), key=lambda item: -len(item[1])):
            groups.append(FailureGroup(entry.label, status, reason, len(qids), tuple(qids)))
    return tuple(groups)


def worst_samples(entries: Sequence[Entry]) -> tuple[WorstOfRun, ...]:
    """At most `WORST` scored samples of each run that were wrong in something."""
    return tuple(WorstOfRun(entry.label, _worst(entry.records)) for entry in entries)


def _worst(records: Sequence[SampleRecord]) -> tuple[WorstSample, ...]:
    judged = []
    for place, record in enumerate(records):
        faults = _faults(record)
        if record.status == "done" and faults:
            severity = max(weight for weight, _ in faults)
            why = ", ".join(words for _, words in faults)
            judged.append((-severity, record.scores.get("f1") or 0.0, place, why))
    judged.sort()
    return tuple(_sample(records[place], why) for _, _, place, why in judged[:WORST])


def _faults(record: SampleRecord) -> list[tuple[int, str]]:
    scores = record.scores
    wrong = scores.get("unmarked_wrong_figures") or 0
    f1 = scores.get("f1")
    # A question that nothing answers has an F1 of 1 or 0, which says what refusal says.
    low = record.answerable and f1 is not None and f1 < 0.5
    found = (
        (5, f"{wrong:.0f} unmarked wrong figures", wrong > 0),
        (4, "answered though nothing is stated", scores.get("refusal_accuracy") == 0),
        (3, "refused though an answer is there", scores.get("false_refusal") == 1),
        (2, "cites the wrong place", scores.get("citation_hit") == 0),
        (2, "wrong choice", scores.get("choice_accuracy") == 0),
        (1, f"token F1 {100 * (f1 or 0):.0f}%", low),
    )
    return [(weight, words) for weight, words, there in found if there]


def _sample(record: SampleRecord, why: str) -> WorstSample:
    reply = record.reply
    return WorstSample(
        qid=record.qid,
        why=why,
        question=_shortened(record.question),
        gold=tuple(_shortened(answer) for answer in record.gold),
        shown=_shortened(reply.shown) if reply else "",
        cited=tuple(_shortened(citation.quote) for citation in reply.citations) if reply else (),
    )


def _shortened(text: str) -> str:
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[:_MOST_CHARACTERS]} … ({len(text):,} characters)"
