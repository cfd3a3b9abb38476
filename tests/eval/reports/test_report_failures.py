"""Failures by reason, and the worst samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eval.reports.failures import WORST, failure_groups, worst_samples

Make = Callable[..., Any]


def test_failures_are_grouped_by_run_status_and_reason(
    write_run: Make, open_runs: Make, one_record: Make, one_failure: Make
) -> None:
    entries = open_runs(
        write_run(
            "one",
            [
                one_record(0),
                one_failure(1, error="timeout"),
                one_failure(2, error="too long", status="unfit"),
                one_failure(3, error="too long", status="unfit"),
                one_failure(4, error=""),
            ],
        )
    )
    found = [(g.run, g.status, g.reason, g.count, g.qids) for g in failure_groups(entries)]
    assert found == [
        ("A one", "unfit", "too long", 2, ("q2", "q3")),
        ("A one", "failed", "timeout", 1, ("q1",)),
        ("A one", "failed", "no reason recorded", 1, ("q4",)),
    ]


def test_the_worst_come_first_and_say_why(
    write_run: Make, open_runs: Make, one_record: Make, one_failure: Make
) -> None:
    def sample(number: int, *, answerable: bool = True, **scores: float) -> Any:
        blank = dict.fromkeys(one_record(number).scores, None) | {"f1": 0.9}
        return one_record(number, answerable=answerable, scores=blank | scores)

    entries = open_runs(
        write_run(
            "one",
            [
                sample(0, citation_hit=1.0),
                sample(1, f1=0.2),
                sample(2, citation_hit=0.0),
                sample(3, false_refusal=1.0, citation_hit=0.0),
                sample(4, answerable=False, f1=0.0, refusal_accuracy=0.0),
                sample(5, unmarked_wrong_figures=2.0),
                one_failure(6),
            ],
        )
    )
    (worst,) = worst_samples(entries)
    assert [(s.qid, s.why) for s in worst.samples] == [
        ("q5", "2 unmarked wrong figures"),
        ("q4", "answered though nothing is stated"),
        ("q3", "refused though an answer is there, cites the wrong place"),
        ("q2", "cites the wrong place"),
        ("q1", "token F1 20%"),
    ]
    assert worst.samples[0].cited == ("The Supplier delivers within 8 days.",)


def test_no_more_than_the_limit_and_no_endless_texts(
    write_run: Make, open_runs: Make, one_record: Make
) -> None:
    scores = one_record(0).scores | {"citation_hit": 0.0}
    records = [one_record(n, scores=scores, question="x" * 5000) for n in range(WORST + 10)]
    (worst,) = worst_samples(open_runs(write_run("one", records)))
    assert len(worst.samples) == WORST
    assert worst.samples[0].question.endswith("… (5,000 characters)")
