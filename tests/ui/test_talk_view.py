from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ui.events import StreamEvent
from ui.exchange import Exchange, Piece, Talk, heard
from ui.strings import LANGS, Lang
from ui.talk_view import place_of, talk_html

CITATION: dict[str, Any] = {
    "document_id": "doc_1",
    "document": "a.pdf",
    "quote": "within 42 days",
    "page": 14,
    "page_label": "10",
    "start_char": 5,
    "end_char": 19,
    "clause": "11.3",
    "verified": True,
}
CHECK: dict[str, Any] = {
    "kind": "quote",
    "text": "within 42 days",
    "ok": True,
    "start": 1,
    "end": 15,
    "note": "",
}
RESULT: dict[str, Any] = {
    "state": "completed",
    "status": "answered",
    "answer": "“within 42 days” [1]",
    "citations": [CITATION],
    "checks": [CHECK],
    "coverage": {"read_tokens": 999, "total_tokens": 1000},
    "timings": {"ttft_ms": 120.0, "total_ms": 2345.0},
    "finish_reason": "stop",
    "phrasing": "used",
    "nearest": [],
    "warnings": [],
}  # fmt: skip


def drawn(exchange: Exchange, lang: Lang = "en") -> str:
    return talk_html(Talk((exchange,)), lang)


def answered(**changes: Any) -> Exchange:
    exchange = Exchange("When to pay?", "doc_1", "a.pdf")
    result = RESULT | changes
    events = [
        StreamEvent("answer.created", {"conversation_id": "c"}, 1),
        StreamEvent("answer.delta", {"kind": "quote", "text": result["answer"]}, 2),
        StreamEvent("answer.completed", result, 3),
    ]
    for event in events:
        exchange = heard(exchange, event)
    return exchange


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(
    "phase", ["waiting", "searching", "writing", "reading", "failed", "cancelled"]
)
def test_every_phase_is_drawn_in_both_languages(lang: Lang, phase: Any) -> None:
    html = drawn(replace(Exchange("q", "d", "n"), phase=phase, error="why"), lang)
    assert ("fp-spinner" in html) == (phase not in ("failed", "cancelled"))
    assert ("why" in html) == (phase == "failed")


@pytest.mark.parametrize(
    ("lang", "ahead", "shown"),
    [
        ("en", 3, "Questions that come first: 3"),
        ("zh", 3, "前面还有 3 个问题"),
        ("en", 0, "This question is next"),
        ("zh", 0, "下一个就轮到这个问题"),
        ("en", None, "Waiting for a free place"),
    ],
)
def test_a_question_that_waits_shows_its_place(lang: Lang, ahead: int | None, shown: str) -> None:
    waiting = heard(Exchange("q", "d", "n"), StreamEvent("answer.waiting", {"ahead": ahead}, 0))
    assert waiting.phase == "waiting" and shown in drawn(waiting, lang)
    begun = heard(waiting, StreamEvent("answer.created", {"conversation_id": "c"}, 1))
    assert shown not in drawn(begun, lang) and "fp-spinner" in drawn(begun, lang)


def test_answer_shows_chip_checks_coverage_and_timing() -> None:
    html = drawn(answered())
    assert html.count('data-act="cite"') == 1
    assert 'aria-label="Show source 1: clause 11.3, page 14, printed 10"' in html
    assert "1 checked against the source: quotes 1" in html
    # 99.9% is not everything.
    assert "999 of 1,000 tokens (99%)" in html
    assert "First words after 0.12 s, complete after 2.3 s" in html


def test_unverified_source_is_listed_with_a_warning() -> None:
    html = drawn(answered(citations=[CITATION | {"verified": False}]))
    assert "not verified" in html


def test_failed_check_is_marked_where_it_stands_in_code_points() -> None:
    said = "𠮷 price is USD 7 [1]"
    start = said.index("USD 7")
    check = {
        "kind": "number",
        "text": "USD 7",
        "ok": False,
        "start": start,
        "end": start + 5,
        "note": "no",
    }
    html = drawn(answered(answer=said, checks=[check]))
    assert '<mark class="fp-unverified" title="no">USD 7</mark>' in html
    assert "1 did not check; marked in the answer" in html


def test_failed_check_of_a_later_piece_counts_from_the_answer() -> None:
    pieces = (Piece("quote", "“a”"), Piece("phrasing", "\n\nIt is 9."))
    check = {"kind": "number", "text": "9", "ok": False, "start": 11, "end": 12, "note": ""}
    html = drawn(replace(answered(), pieces=pieces, checks=(check,)))
    assert 'It is <mark class="fp-unverified" title="not verified">9</mark>.' in html


def test_markers_without_a_source_stay_text() -> None:
    html = drawn(answered(answer="see [1] and [2] and [1999]"))
    assert html.count('class="fp-chip"') == 1
    assert "[2]" in html and "[1999]" in html


@pytest.mark.parametrize(
    "bad", ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '" onmouseover="alert(1)']
)
def test_nothing_from_outside_becomes_markup(bad: str) -> None:
    hostile = CITATION | {"clause": bad, "document": bad, "page_label": bad, "verified": False}
    near = {"clause": bad, "heading": bad, "page": 1, "start_char": 0, "end_char": 1}
    warning = {"code": "x", "message": bad, "pages": []}
    exchange = answered(
        answer=f"{bad} [1]",
        citations=[hostile],
        nearest=[near],
        status="not_found",
        warnings=[warning],
    )
    html = drawn(replace(exchange, question=bad, document_name=bad))
    assert bad not in html
    assert "<script" not in html and "<img" not in html
    failed = drawn(replace(exchange, phase="failed", error=bad))
    assert bad not in failed


def test_not_found_offers_the_nearest_clauses() -> None:
    near = {"clause": "4", "heading": "4 Scope", "page": 3, "start_char": 0, "end_char": 1}
    html = drawn(answered(status="not_found", citations=[], nearest=[near], answer="Not found."))
    assert "Not found in this document" in html
    assert 'data-act="near"' in html and "4 Scope" in html


def test_cut_answers_say_so() -> None:
    phrased = (Piece("quote", "“a” [1]"), Piece("phrasing", " It is b"))
    for reason, words in (("length", "cut at the length limit"), ("repetition", "repeat itself")):
        exchange = answered(finish_reason=reason)
        assert words in drawn(replace(exchange, pieces=phrased))
        assert words not in drawn(exchange), "nothing was shown that could have been cut"
    assert "is not shown" in drawn(answered(phrasing="dropped"))


@pytest.mark.parametrize(
    ("clause", "lang", "words"),
    [("11.3", "en", "clause 11.3"), ("Schedule 2", "en", "Schedule 2"), ("(a)", "en", "clause (a)"),
     ("第十二条", "zh", "第十二条"), ("11.3", "zh", "第 11.3 条")],
)  # fmt: skip
def test_places_name_their_clause(clause: str, lang: Lang, words: str) -> None:
    assert place_of({"clause": clause, "page": None}, lang) == words


def test_deltas_of_one_kind_are_joined_and_cancelling_is_told_from_failing() -> None:
    exchange = Exchange("q", "d", "n")
    for kind, word in (("quote", "a"), ("quote", "b"), ("phrasing", "c")):
        exchange = heard(exchange, StreamEvent("answer.delta", {"kind": kind, "text": word}, 1))
    assert exchange.pieces == (Piece("quote", "ab"), Piece("phrasing", "c"))
    gone = heard(exchange, StreamEvent("error", {"code": "cancelled", "message": "m"}, 2))
    broken = heard(exchange, StreamEvent("error", {"code": "engine_error", "message": "m"}, 2))
    assert (gone.phase, broken.phase) == ("cancelled", "failed")
    assert heard(exchange, StreamEvent("answer.unknown", {}, 3)) == exchange


def test_a_follow_up_shows_what_it_was_taken_for() -> None:
    created = {"conversation_id": "c", "standalone_question": "What is the fee in <2026>?"}
    exchange = heard(
        Exchange("and in 2026?", "d", "a.pdf"), StreamEvent("answer.created", created, 1)
    )
    assert "Read as: What is the fee in &lt;2026&gt;?" in drawn(exchange)
    assert "理解为：" in drawn(exchange, "zh")
    assert "Read as" not in drawn(answered())


def test_a_computed_figure_is_counted_with_the_checks() -> None:
    computed = CHECK | {"kind": "computed", "operands": ["1 day", "2 days"]}
    assert "computed figures 1" in drawn(answered(checks=[computed]))
    assert "计算 1" in drawn(answered(checks=[computed]), "zh")


def share(read: int) -> dict[str, int]:
    return {"read_tokens": read, "total_tokens": 1000}


def early(*more: StreamEvent) -> Exchange:
    """An answer that came when 23.9% was read, and what was heard since."""
    exchange = Exchange("When to pay?", "doc_1", "a.pdf")
    first = [
        StreamEvent("answer.created", {"conversation_id": "c"}, 1),
        StreamEvent("answer.coverage", share(239), 2),
        StreamEvent("answer.delta", {"kind": "quote", "text": "within <7> days [1]"}, 3),
    ]
    for event in (*first, *more):
        exchange = heard(exchange, event)
    return exchange


FRAMEWORK = StreamEvent("answer.framework", {"coverage": share(239), "status": "partial"}, 4)
ON = StreamEvent("answer.coverage", share(640), 5)


def test_an_answer_from_a_part_of_the_document_says_how_much_was_read() -> None:
    assert "Read so far 23%" in drawn(early())
    told = drawn(early(FRAMEWORK))
    assert "Framework answer, read so far 23%" in told and "Reading on" in told
    assert "Framework answer, read so far 64%" in drawn(early(FRAMEWORK, ON))
    assert "框架回答，目前已读 64%" in drawn(early(FRAMEWORK, ON), "zh")
    assert "fp-stand" not in drawn(answered()), "no framework was told of"


def test_a_confirmed_answer_stays_as_it_was() -> None:
    confirmed = StreamEvent("answer.confirmed", {"coverage": share(1000)}, 6)
    result = RESULT | {"answer": "within <7> days [1]", "coverage": share(1000)}
    exchange = early(FRAMEWORK, ON, confirmed, StreamEvent("answer.completed", result, 7))
    html = drawn(exchange)
    assert "Confirmed: the document is read to its end" in html
    assert "Framework" not in html and "fp-earlier" not in html
    assert html.count("within &lt;7&gt; days") == 1


def test_a_revised_answer_says_what_changed_and_keeps_the_first_one_folded() -> None:
    changed = {"coverage": share(1000), "changed": ["citations", "wording"]}
    revised = early(FRAMEWORK, ON, StreamEvent("answer.revised", changed, 6))
    assert (revised.phase, revised.pieces) == ("writing", ())
    again = StreamEvent("answer.delta", {"kind": "quote", "text": RESULT["answer"]}, 7)
    result = StreamEvent("answer.completed", RESULT | {"coverage": share(1000)}, 8)
    html = drawn(heard(heard(revised, again), result))
    assert "What changed: the quoted places, the wording" in html
    assert "<summary>The first answer, when 23% was read</summary>" in html
    before, _, after = html.partition("</details>")
    assert "within &lt;7&gt; days" in before and "within &lt;7&gt;" not in after
    assert "within 42 days" in after and "within 42 days" not in before


def test_a_framework_answer_that_was_stopped_is_neither() -> None:
    result = RESULT | {"state": "cancelled", "status": "partial", "coverage": share(640)}
    html = drawn(early(FRAMEWORK, ON, StreamEvent("answer.completed", result, 6)))
    assert "read so far 64%. Neither confirmed nor revised" in html
    assert "Stopped before it was complete" in html and "fp-spinner" not in html
