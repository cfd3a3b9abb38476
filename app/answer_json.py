"""An `Answer` as JSON in the database, without what has its own columns (text and citations).

Roles of citations came after their table and stand in the JSON, one entry a citation.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from app.types import Answer, AnswerUsage, Check, Citation, Coverage, NearestClause, Timings
from retrieval.types import DocumentWarning

OWN_COLUMNS = ("answer", "citations")


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Everything of `answer` but its text and its citations."""
    stored = asdict(answer)
    for name in OWN_COLUMNS:
        del stored[name]
    stored["roles"] = [[citation.role, citation.replaced] for citation in answer.citations]
    return stored


def citation_columns(citation: Citation) -> dict[str, Any]:
    """What the table of citations holds of `citation`."""
    columns = asdict(citation)
    del columns["role"], columns["replaced"]
    return columns


def answer_from(stored: dict[str, Any], text: str, citations: tuple[Citation, ...]) -> Answer:
    """The answer that was stored; one of an older release has citations of the role `answer`."""
    roles = stored.get("roles", [["answer", False]] * len(citations))
    citations = tuple(
        replace(citation, role=role, replaced=replaced)
        for citation, (role, replaced) in zip(citations, roles, strict=True)
    )
    return Answer(
        answer=text,
        status=stored["status"],
        language=stored["language"],
        citations=citations,
        checks=tuple(
            Check(**item | {"operands": tuple(item.get("operands", ()))})
            for item in stored["checks"]
        ),
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
        standalone_question=stored.get("standalone_question"),
    )
