"""How well the retrieved chunks cover the gold spans, per chunk and per character.

A chunk is a hit when it holds at least half of a gold span. All spans are half-open, in characters
of the document. Knows no text.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval.types import Span


def holds_half(chunk: Span, golds: Sequence[Span]) -> bool:
    """Whether `chunk` holds at least half of one gold span."""
    return any(2 * (min(chunk[1], b) - max(chunk[0], a)) >= b - a for a, b in golds if a < b)


def rank_of(chunks: Sequence[Span], golds: Sequence[Span]) -> int:
    """1-based rank of the first hit, 0 when there is none."""
    return next((i for i, span in enumerate(chunks, 1) if holds_half(span, golds)), 0)


def overlaps(span: Span, golds: Sequence[Span]) -> bool:
    """Whether `span` shares a character with a gold span."""
    return any(max(span[0], a) < min(span[1], b) for a, b in golds)


def char_recall(chunks: Sequence[Span], golds: Sequence[Span]) -> float:
    """Share of the characters of all gold spans that lie inside the chunks."""
    wanted = _union(golds)
    found = sum(
        max(0, min(end, b) - max(start, a)) for start, end in _union(chunks) for a, b in wanted
    )
    total = sum(b - a for a, b in wanted)
    return found / total if total else 0.0


def _union(spans: Sequence[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
