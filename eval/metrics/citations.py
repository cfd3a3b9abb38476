"""Whether what a reply cites overlaps the gold spans, and whether its quotes are the document's.

Does not believe a reply's `verified`: each quote is compared with the document here.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.metrics.retrieval import overlaps
from eval.types import CitedSpan, Span


def is_verbatim(citation: CitedSpan, text: str) -> bool:
    """Whether the quote equals `text[start:end]`, character by character, and is not empty."""
    inside = 0 <= citation.start < citation.end <= len(text)
    return inside and citation.quote == text[citation.start : citation.end]


def verified(citations: Sequence[CitedSpan], text: str) -> float | None:
    """Share of verbatim quotes; None without citations."""
    if not citations:
        return None
    return sum(is_verbatim(citation, text) for citation in citations) / len(citations)


def hit(citations: Sequence[CitedSpan], golds: Sequence[Span]) -> float:
    """1.0 when any span cited as an answer overlaps a gold span."""
    return float(any(_on(citation, golds) for citation in _answers(citations)))


def precision(citations: Sequence[CitedSpan], golds: Sequence[Span]) -> float | None:
    """Share of the spans cited as answers that overlap a gold span; None without citations."""
    answers = _answers(citations)
    if not answers:
        return None
    return sum(_on(citation, golds) for citation in answers) / len(answers)


def _answers(citations: Sequence[CitedSpan]) -> list[CitedSpan]:
    """Without what is shown beside the answers: definitions, clauses referred to, amendments."""
    return [citation for citation in citations if citation.role == "answer"]


def _on(citation: CitedSpan, golds: Sequence[Span]) -> bool:
    return overlaps((citation.start, citation.end), golds)
