"""Counts of a comparison, so that a reader sees what was compared and what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrieval.compare.alignment import Range
from retrieval.compare.moves import Sorted
from retrieval.compare.numbering import Numbering, WordMap
from retrieval.compare.places import Places
from retrieval.compare.types import Totals


def count(
    old: Places,
    new: Places,
    words: WordMap,
    found: Sorted,
    numbering: Numbering,
    changed: Iterable[tuple[int, int]],
    formatting: int,
) -> Totals:
    """The totals. `changed` are (old clause or -1, paragraph) of the differences inside clauses."""
    deleted = [span for span, _ in found.deleted]
    moved = [move.old for move in found.moves]
    touched = {index for index, _ in changed}
    items = [item for run in numbering.runs for item in run.members]
    numbered = {item.old.index for item in items if item.old is not None}
    counts = dict.fromkeys(("same", "changed", "moved", "renumbered", "deleted"), 0)
    for clause in old.version.clauses:
        first = old.firsts[clause.index]
        if _inside(first, deleted):
            counts["deleted"] += 1
        elif _inside(first, moved):
            counts["moved"] += 1
        elif clause.index in touched:
            counts["changed"] += 1
        elif clause.index in numbered:
            counts["renumbered"] += 1
        else:
            counts["same"] += 1
    added = [span for span, _ in found.added]
    return Totals(
        old_clauses=len(old.version.clauses),
        new_clauses=len(new.version.clauses),
        added=sum(_inside(first, added) for first in new.firsts),
        old_words=len(old.words),
        new_words=len(new.words),
        equal_words=sum(place >= 0 for place in words.to_new),
        formatting=formatting,
        furniture=len(old.words.furniture.spans) + len(new.words.furniture.spans),
        **counts,
    )


def _inside(word: int, spans: Sequence[Range]) -> bool:
    return any(start <= word < end for start, end in spans)
