"""An `Answer` as JSON in the database, without what has its own columns (text and citations)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.types import Answer, AnswerUsage, Check, Citation, Coverage, NearestClause, Timings
from retrieval.types import DocumentWarning

OWN_COLUMNS = ("answer", "citations")


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Everything of `answer` but its text and its citations."""
    stored = asdict(answer)
    for name in OWN_COLUMNS:
        del stored[name]
    return stored


def answer_from(stored: dict[str, Any], text: str, citations: tuple[Citation, ...]) -> Answer:
    """The answer that was stored."""
    return Answer(
        answer=text,
        status=stored["status"],
        language=stored["language"],
        citations=citations,
        checks=tuple(Check(**item) for item in stored["checks"]),
        coverage=Coverage(**stored["coverage"]),
        timings=Timings(**stored["timings"]),
        usage=AnswerUsage(**stored["usage"]),
        finish_reason=stored["finish_reason"],
        nearest=tuple(NearestClause(**item) for item in stored["nearest"]),
        warnings=tuple(
            DocumentWarning(item["code"], item["message"], tuple(item["pages"]))
            for item in stored["warnings"]
        ),
        phrasing=stored.get("phrasing", "off"),
    )
