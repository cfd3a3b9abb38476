import json
import random
from dataclasses import replace
from typing import Any

import pytest

from eval.metrics import sample_scores, score, summarise
from eval.metrics.breakdown import by_depth, by_length, length_unit
from eval.metrics.names import METRICS, STABLE_KEYS
from eval.types import (
    CitedSpan,
    Question,
    Reply,
    ReplyTimings,
    ReplyUsage,
    SampleRecord,
    SampleStatus,
)

TEXT = "The Buyer shall pay within 42 days after receipt. Nothing else is said."
GOLD = (0, 49)


def record(
    number: int,
    *,
    right: bool = True,
    answerable: bool = True,
    status: SampleStatus = "done",
    cites: bool = True,
    ttft: float | None = 10.0,
    read: int = 0,
    **changes: Any,
) -> SampleRecord:
    """A sample of document `number // 5`; a right one quotes the gold span or refuses."""
    question = Question(
        str(number),
        "?",
        (TEXT[slice(*GOLD)],) if answerable else (),
        (GOLD,) if answerable else (),
        is_impossible=not answerable,
    )  # fmt: skip
    reply = None
    if status == "done":
        refuses = right != answerable
        span = GOLD if right else (50, 60)
        reply = Reply(
            "not_found" if refuses else "answered",
            "",
            "" if refuses else TEXT[slice(*span)],
            ReplyTimings(ttft, 20.0),
            (CitedSpan(*span, TEXT[slice(*span)], True),) if cites and not refuses else (),
            hits=(GOLD,) if answerable and right else (),
            usage=ReplyUsage(read_tokens=read),
        )
    made = SampleRecord(
        str(number), f"d{number // 5}", "set", "en", f"c{number % 3}", answerable, 6000, 2000,
        0.1 * (number % 10) if answerable else None, status, gold=question.answers, reply=reply,
        scores=score(question, reply, TEXT, "en") if reply else {},
    )  # fmt: skip
    return replace(made, **changes)


def mixed() -> list[SampleRecord]:
    return [
        record(
            n, right=n % 4 > 0, answerable=n % 5 > 0, status="failed" if n % 11 == 10 else "done"
        )
        for n in range(60)
    ]


def test_stable_keys_are_there_even_with_nothing_to_say() -> None:
    for records in ([], [record(0, status="failed")], mixed()):
        summary = summarise(records)
        assert set(STABLE_KEYS) <= set(summary)
        assert {metric.name for metric in METRICS} <= set(summary)
        assert {"p50", "p95"} <= set(summary["ttft_ms"])  # type: ignore[call-overload]
        json.dumps(summary, allow_nan=False)
    empty = summarise([])
    assert empty["n"] == empty["failed"] == 0
    assert all(empty[key] is None for key in STABLE_KEYS if key not in ("n", "failed", "ttft_ms"))


def test_means_by_hand() -> None:
    missed = record(4, right=False, answerable=False)
    summary = summarise(
        [record(0), record(1, right=False), record(2), record(3, answerable=False), missed]
    )
    assert (summary["n"], summary["failed"], summary["unfit"]) == (5, 0, 0)
    assert summary["em"] == 0.6
    assert summary["citation_hit"] == pytest.approx(2 / 3, abs=1e-4)
    assert summary["refusal_accuracy"] == 0.5
    assert summary["false_refusal"] == pytest.approx(1 / 3, abs=1e-4)
    assert summary["unmarked_wrong_figures"] == 0


@pytest.mark.parametrize("status", ["failed", "unfit"])
def test_what_failed_stays_in_the_denominators(status: SampleStatus) -> None:
    good = [record(0), record(1), record(2, answerable=False)]
    lost = [record(3, status=status), record(4, status=status, answerable=False)]
    summary = summarise([*good, *lost])
    assert summary[status] == 2
    assert summary["f1"] == 0.6
    assert summary["rouge_l"] == summary["citation_hit"] == summary["recall_at_1"] == 0.6667
    assert summary["citation_verified"] == summary["number_accuracy"] == 0.6667
    assert summary["refusal_accuracy"] == 0.5
    assert summary["false_refusal"] == 0.0
    scored = summary["counts"]["scored"]  # type: ignore[index]
    assert scored["false_refusal"] == 3
    assert scored["f1"] == 5
    assert scored["answer_nll"] == 0


def test_a_failed_choice_is_a_wrong_choice() -> None:
    failed = record(0, status="failed", gold=(), depth=None)
    assert sample_scores(failed)["choice_accuracy"] == 0.0
    assert sample_scores(failed)["f1"] is None
    told = record(0, status="unfit", scores={"choice_accuracy": 0.0}, depth=None)
    assert sample_scores(told)["choice_accuracy"] == 0.0
    assert summarise([told, record(1)])["choice_accuracy"] == 0.0


def test_a_mode_that_never_chooses_has_no_choice_figure() -> None:
    asked = record(0)
    asked.scores["choice_accuracy"] = 0.0
    assert summarise([asked, record(1)])["choice_accuracy"] is None
    assert asked.reply is not None
    chosen = replace(record(1), reply=replace(asked.reply, choice="A"))
    chosen.scores["choice_accuracy"] = 1.0
    assert summarise([asked, chosen])["choice_accuracy"] == 0.5


def test_scores_of_a_failed_record_are_not_believed() -> None:
    lying = record(0, status="failed", scores={"f1": 1.0, "em": 1.0})
    assert summarise([lying])["f1"] == 0.0


def test_a_mode_that_never_cites_has_no_citation_figures() -> None:
    records = [record(n, cites=False) for n in range(4)]
    summary = summarise([*records, record(4, status="failed")])
    assert summary["citation_hit"] is None
    assert summary["recall_at_1"] == 0.8
    assert summary["choice_accuracy"] is None
    refusals = [record(n, right=False) for n in range(3)]
    assert summarise(refusals)["citation_hit"] == 0.0
    # A group of which nothing was cited counts as wrong where the mode does cite.
    refused = replace(record(5, right=False), category="refused")
    groups = summarise([record(0), refused])["by_category"]
    assert groups["refused"]["citation_hit"] == 0.0  # type: ignore[index]


def test_order_makes_no_difference() -> None:
    records = mixed()
    expected = summarise(records, seed=3)
    shuffled = random.Random(1).sample(records, len(records))
    assert summarise(shuffled, seed=3) == expected


def test_intervals_hold_the_mean_and_need_five_documents() -> None:
    summary = summarise(mixed())
    for name, bounds in summary["intervals"].items():  # type: ignore[attr-defined]
        assert bounds["low"] <= summary[name] <= bounds["high"]
    assert "unmarked_wrong_figures" not in summary["intervals"]  # type: ignore[operator]
    four = summarise([record(n, right=n % 2 > 0) for n in range(20)])
    assert four["intervals"]["f1"] is None  # type: ignore[index]
    five = summarise([record(n, right=n % 2 > 0) for n in range(25)])
    assert five["intervals"]["f1"] is not None  # type: ignore[index]


def test_cold_and_warm_are_apart() -> None:
    cold = [record(n, ttft=1000.0, read=500) for n in range(5)]
    warm = [record(n, ttft=10.0) for n in range(5, 10)]
    summary = summarise([*cold, *warm, record(10, ttft=None), record(11, status="failed")])
    assert summary["ttft_cold_ms"] == {"n": 5, "p50": 1000.0, "p95": 1000.0}
    assert summary["ttft_warm_ms"] == {"n": 5, "p50": 10.0, "p95": 10.0}
    assert summary["ttft_ms"]["n"] == 10  # type: ignore[index]
    assert summary["ttft_kind"] == "mixed"
    assert summarise(cold)["ttft_kind"] == "cold"
    # Retrieval alone reads nothing and holds nothing: it is not warm.
    assert summarise([record(0, doc_tokens=None)])["ttft_kind"] is None


def test_p99_needs_a_hundred_samples() -> None:
    assert "p99" not in summarise([record(n) for n in range(99)])["ttft_ms"]  # type: ignore[operator]
    assert "p99" in summarise([record(n) for n in range(100)])["ttft_ms"]  # type: ignore[operator]


def test_lengths_never_mix_units() -> None:
    sizes = [0, 4095, 4096, 16_384, 65_536, 262_144]
    known = [record(n, doc_tokens=size, doc_chars=9) for n, size in enumerate(sizes)]
    assert length_unit(known) == "tokens"
    assert [(name, len(found)) for name, found in by_length(known).items()] == [
        ("under 4K", 2), ("4K-16K", 1), ("16K-64K", 1), ("64K-256K", 1), ("over 256K", 1),
    ]  # fmt: skip
    partly = [*known, record(9, doc_tokens=None, doc_chars=70_000)]
    assert length_unit(partly) == "characters"
    assert list(by_length(partly)) == ["under 4K", "64K-256K"]
    assert summarise(partly)["length_unit"] == "characters"


def test_depth_in_fifths() -> None:
    records = [record(n, depth=depth) for n, depth in enumerate([0.0, 0.2, 0.99, 1.0, None])]
    assert {name: len(found) for name, found in by_depth(records).items()} == {
        "0-20%": 1, "20-40%": 1, "80-100%": 2,
    }  # fmt: skip


def test_groups_add_up() -> None:
    summary = summarise(mixed())
    for name in ("by_category", "by_language", "by_length"):
        groups = summary[name]
        assert sum(group["n"] for group in groups.values()) == 60  # type: ignore[attr-defined]
        assert sum(group["failed"] for group in groups.values()) == summary["failed"]  # type: ignore[attr-defined]
