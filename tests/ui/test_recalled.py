"""A kept conversation as the talk it was."""

from __future__ import annotations

from typing import Any

import pytest

from ui.exchange import Exchange, Piece, Talk
from ui.recalled import cited_names, found_in, pieces_of, recalled
from ui.talk_view import talk_html

CITED = ("within 42 days", "two\nyears")
LINES = tuple(f"“{quote}” [{number}]" for number, quote in enumerate(CITED, 1))
QUOTED = "\n".join(LINES)


def citation(quote: str) -> dict[str, Any]:
    return {
        "document_id": "doc_1",
        "document": "a.pdf",
        "quote": quote,
        "page": 14,
        "page_label": "10",
        "start_char": 5,
        "end_char": 5 + len(quote),
        "clause": "11.3",
        "verified": True,
    }


def result(said: str, *, cited: tuple[str, ...] = CITED, **changes: Any) -> dict[str, Any]:
    checks = [
        {"kind": "quote", "text": one, "ok": True, "start": at, "end": at + len(one), "note": ""}
        for one in cited
        for at in [said.index(one)]
    ]
    return {
        "answer": said,
        "status": "answered",
        "citations": [citation(quote) for quote in cited],
        "checks": checks,
        "coverage": {"read_tokens": 999, "total_tokens": 1000},
        "timings": {"ttft_ms": 120.0, "total_ms": 2345.0},
        "finish_reason": "stop",
        "phrasing": "none",
        "nearest": [],
        "warnings": [],
        "standalone_question": None,
    } | changes


def asked(question: str) -> dict[str, Any]:
    return {
        "role": "user",
        "status": "completed",
        "content": question,
        "result": None,
        "error": None,
    }


def given(status: str, content: str = "", **changes: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "status": status,
        "content": content,
        "result": None,
        "error": None,
    } | changes


def opened(*messages: dict[str, Any]) -> tuple[Exchange, ...]:
    kept = {"id": "conv_1", "document_ids": ["doc_1"], "messages": list(messages)}
    talk = recalled(kept, "doc_1", {"doc_1": "a.pdf"})
    assert talk.conversations == {"doc_1": "conv_1"}
    assert not any(one.running for one in talk.exchanges)
    return talk.exchanges


def test_an_answer_has_its_citations_checks_and_what_it_was_read_as() -> None:
    kept = result(QUOTED, standalone_question="When must the Buyer pay?")
    (exchange,) = opened(asked("When?"), given("completed", QUOTED, result=kept))
    assert (exchange.question, exchange.document_id, exchange.phase) == ("When?", "doc_1", "done")
    assert exchange.read_as == "When must the Buyer pay?"
    assert exchange.pieces == (Piece("quote", QUOTED),)
    assert list(exchange.citations) == kept["citations"] and exchange.result == kept
    html = talk_html(Talk((exchange,)), "en")
    assert html.count('class="fp-chip"') == 2 and "Answered from the document" in html


@pytest.mark.parametrize(
    ("parts", "changes"),
    [
        ([("quote", QUOTED)], {}),
        ([("notice", "2 places:\n"), ("quote", QUOTED), ("notice", "\nNot in b.pdf.")], {}),
        ([("quote", QUOTED), ("phrasing", "\n\nIt is 42 days.\n\nYes.")], {"phrasing": "used"}),
        (
            [
                ("quote", QUOTED),
                ("notice", "\nIn all 44."),
                ("phrasing", "\n\nIt is 42 days [1]."),
                ("notice", "\n\nThe document is still being read."),
            ],
            {"phrasing": "used", "status": "partial"},
        ),
        ([("quote", QUOTED), ("notice", "\n\nStill being read.")], {"status": "partial"}),
        ([("quote", QUOTED), ("phrasing", "\n\nNot confirmed: 7.")], {"phrasing": "marked"}),
        ([("quote", QUOTED)], {"phrasing": "used"}),
    ],
)
def test_text_is_told_apart_by_kind_and_none_is_lost(
    parts: list[tuple[str, str]], changes: dict[str, Any]
) -> None:
    said = "".join(text for _, text in parts)
    pieces = pieces_of(result(said, **changes))
    assert pieces == tuple(Piece(kind, text) for kind, text in parts)


@pytest.mark.parametrize(
    "kept",
    [
        result("It is not there.", cited=(), status="not_found"),
        result(QUOTED, checks=[]),
        result(QUOTED, checks=[{"kind": "number", "start": 8, "end": 10}] * 2),
    ],
)
def test_without_checks_of_quotes_all_is_the_servers_own(kept: dict[str, Any]) -> None:
    assert pieces_of(kept) == (Piece("notice", kept["answer"]),)


def test_where_nothing_was_said_there_is_nothing() -> None:
    assert pieces_of(result("", cited=())) == ()
    assert opened() == ()


def test_other_ends_are_as_they_were() -> None:
    fault = {"code": "engine_busy", "message": "The engine is busy."}
    cut = result(QUOTED, finish_reason="cancelled", status="partial")
    exchanges = opened(
        asked("not there?"),
        given("completed", "No.", result=result("No.", cited=(), status="not_found")),
        asked("fails?"),
        given("failed", "The pri", error=fault),
        asked("stopped early?"),
        given("cancelled", error={"code": "cancelled", "message": "The answer was cancelled."}),
        asked("stopped later?"),
        given("completed", QUOTED, result=cut),
        asked("elsewhere?"),
        given("in_progress"),
        asked("never?"),
    )
    assert [one.phase for one in exchanges] == [
        "done", "failed", "cancelled", "cancelled", "under_way", "failed",
    ]  # fmt: skip
    assert exchanges[1].pieces == (Piece("notice", "The pri"),)
    shown = [talk_html(Talk((one,)), "en") for one in exchanges]
    for html, words in zip(
        shown,
        (
            "Not found in this document",
            "The engine is busy.",
            "Stopped before it was complete",
            "Stopped before it was complete",
            "Still being answered",
            "its answer never began",
        ),
        strict=True,
    ):
        assert words in html and "fp-spinner" not in html
    assert "没有开始作答" in talk_html(Talk(exchanges[-1:]), "zh")


def test_a_question_whose_answer_never_began_takes_no_other_answer() -> None:
    first, second = opened(
        asked("lost?"), asked("When?"), given("completed", QUOTED, result=result(QUOTED))
    )
    assert (first.question, first.phase, first.said) == ("lost?", "failed", "")
    assert (second.question, second.said) == ("When?", QUOTED)


def test_an_answer_from_another_document_is_told_as_that() -> None:
    elsewhere = {"document_id": "doc_2", "document": "b.pdf"}
    kept = result(QUOTED)
    kept["citations"] = [one | elsewhere for one in kept["citations"]]
    conversation = {
        "id": "conv_1",
        "document_ids": ["doc_1"],
        "messages": [asked("When?"), given("completed", QUOTED, result=kept), asked("And?")],
    }
    assert found_in(conversation) == {"doc_2"} and cited_names(conversation) == {"doc_2": "b.pdf"}
    names = {"doc_1": "a.pdf", "doc_2": "b.pdf"}
    first, second = recalled(conversation, "doc_1", names).exchanges
    assert (first.document_name, second.document_name) == ("b.pdf", "a.pdf")
