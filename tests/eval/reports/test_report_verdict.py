"""The rule that names the default mode, step by step."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eval.reports.verdict import decide

Make = Callable[..., Any]
Run = Callable[..., Any]


@pytest.fixture
def run(write_run: Make, one_record: Make) -> Run:
    """run(name, mode=, hit=, refusal=, nll=, wrong=, ttft=, total=, spread=, **config): a run of 40
    like questions on 10 documents, with a noise that all runs share."""

    def made(
        name: str,
        *,
        hit: float = 0.8,
        refusal: float = 0.5,
        nll: float | None = 0.7,
        wrong: float = 0.0,
        ttft: float = 20.0,
        total: float = 900.0,
        spread: float = 0.1,
        **config: Any,
    ) -> Any:
        dice = random.Random(5)
        records = []
        for number in range(40):
            record = one_record(number)
            share = dice.random()
            scores = dict.fromkeys(record.scores, None) | {
                "citation_hit": float(share < hit) if record.answerable else None,
                "refusal_accuracy": None if record.answerable else float(share < refusal),
                "answer_nll": nll + spread * share if nll and record.answerable else None,
                "unmarked_wrong_figures": wrong if number == 0 else 0.0,
            }
            timings = replace(
                record.reply.timings, ttft_ms=ttft + share, total_ms=total + share, decode_ms=0
            )
            records.append(
                replace(record, scores=scores, reply=replace(record.reply, timings=timings))
            )
        return write_run(name, records, **config)

    return made


def verdict(open_runs: Make, *folders: Any) -> Any:
    entries = open_runs(*folders)
    return decide(entries, entries[0])


def winner(open_runs: Make, *folders: Any) -> str:
    found = verdict(open_runs, *folders)
    assert found is not None
    return found.run


def test_a_wrong_figure_is_worse_than_anything(run: Run, open_runs: Make) -> None:
    folders = run("good", hit=1.0, nll=0.2, wrong=1.0), run("safe", mode="text", hit=0.1, nll=2.0)
    assert winner(open_runs, *folders) == "B safe"


def test_then_citations_count(run: Run, open_runs: Make) -> None:
    folders = run("a", hit=0.2, nll=0.1, ttft=1), run("b", mode="text", hit=0.9, nll=2.0, ttft=900)
    assert winner(open_runs, *folders) == "B b"


def test_then_refusals(run: Run, open_runs: Make) -> None:
    folders = run("a", refusal=0.0, nll=0.1), run("b", mode="text", refusal=1.0, nll=2.0)
    assert winner(open_runs, *folders) == "B b"


def test_then_likelihood_and_none_is_no_value(run: Run, open_runs: Make) -> None:
    folders = (
        run("bm25", mode="bm25", nll=None, ttft=1),
        run("worse", mode="text", nll=0.9),
        run("better", nll=0.7, ttft=500),
    )
    found = verdict(open_runs, *folders)
    assert found is not None
    assert (found.run, found.mode) == ("C better", "evidence")
    assert "A bm25 no value" in found.sentence
    assert "A bm25: no value" in found.steps[-1].lines


def test_questions_that_differ_much_hide_no_difference_between_runs(
    run: Run, open_runs: Make
) -> None:
    far, near = run("far", nll=0.72, spread=5.0, total=1.0), run("near", nll=0.7, spread=5.0)
    assert winner(open_runs, far, near) == "B near"


def test_then_time(run: Run, open_runs: Make) -> None:
    assert winner(open_runs, run("a", ttft=50), run("b", mode="text", ttft=20)) == "B b"


def test_then_total_time(run: Run, open_runs: Make) -> None:
    assert winner(open_runs, run("a", total=950), run("b", mode="text", total=900)) == "B b"


def test_equals_are_named(run: Run, open_runs: Make) -> None:
    found = verdict(open_runs, run("a"), run("b", mode="text"))
    assert found is not None
    assert found.run == "A a"
    assert "can't tell it from B b" in found.sentence


def test_peers_and_controls_are_no_candidates(run: Run, open_runs: Make) -> None:
    folders = (
        run("peer", mode="peer", hit=1.0, nll=0.1),
        run("gold", switches={"evidence": "gold"}, hit=1.0, nll=0.1),
        run("a", hit=0.5),
    )
    assert verdict(open_runs, *folders) is None
    assert winner(open_runs, *folders, run("b", mode="text", hit=0.4, nll=3.0)) == "C a"


def test_runs_on_other_questions_are_no_candidates(run: Run, open_runs: Make) -> None:
    other = run("other", mode="text", hit=1.0, sample={"questions": 40, "sha256": "ff" * 32})
    assert winner(open_runs, run("a"), run("b", mode="text", hit=0.1), other) == "A a"


def test_without_a_clean_candidate_no_default_is_called_safe(run: Run, open_runs: Make) -> None:
    found = verdict(open_runs, run("a", wrong=1.0), run("b", mode="text", wrong=40.0))
    assert found is not None
    assert "no default is safe yet" in found.sentence
    clean = verdict(open_runs, run("c"), run("d", mode="text"))
    assert clean is not None and "safe" not in clean.sentence


def test_few_documents_are_said(write_run: Make, open_runs: Make, one_record: Make) -> None:
    records = [one_record(n, documents=2) for n in range(20)]
    found = verdict(open_runs, write_run("a", records), write_run("b", records, mode="text"))
    assert found is not None
    assert "Only 2 documents" in found.sentence


def test_failed_samples_count_against_a_mode(
    run: Run, open_runs: Make, write_run: Make, one_failure: Make, one_record: Make
) -> None:
    good = [
        one_record(n, scores=one_record(n).scores | {"citation_hit": 1.0})
        if one_record(n).answerable
        else one_record(n)
        for n in range(10)
    ]
    half = write_run("half", good + [one_failure(n) for n in range(10, 40)], mode="dense")
    assert winner(open_runs, half, run("whole", hit=0.6)) == "B whole"


def test_nothing_in_common_names_no_default(
    run: Run, open_runs: Make, write_run: Make, one_record: Make
) -> None:
    other = write_run("other", [one_record(n, dataset="else") for n in range(5)], mode="text")
    found = verdict(open_runs, run("a"), other)
    assert found is not None
    assert (found.mode, found.run) == ("", "")
    assert "no question in common" in found.sentence
