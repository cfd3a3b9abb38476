"""Scores what a comparison reports against the changes that were planted in the text.

A report counts for a planted change when it touches its place and has the right kind; one that
touches no planted place is wrong. Consequences of a renumbering count as reports too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval.planted_changes import Plant, PlantKind, Span
from retrieval.compare import Comparison
from retrieval.compare.types import Place


@dataclass(frozen=True, slots=True)
class Score:
    """`found` of `planted` changes were reported; `wrong` describes reports that touch none."""

    planted: tuple[PlantKind, ...]
    found: tuple[PlantKind, ...]
    wrong: tuple[str, ...]
    reported: int


_ACCEPTED: dict[PlantKind, frozenset[str]] = {
    "figure": frozenset({"figure"}),
    "date": frozenset({"date", "figure"}),
    "unit": frozenset({"figure", "notice_period"}),
    "negation": frozenset({"negation"}),
    "party": frozenset({"party"}),
    "word": frozenset({"wording"}),
    "notice": frozenset({"figure", "notice_period"}),
    "reference": frozenset({"reference"}),
}


def score(comparison: Comparison, plants: Sequence[Plant]) -> Score:
    """What of the planted was found, and what else was reported."""
    found: list[PlantKind] = []
    wrong: list[str] = []
    reports = list(_reports(comparison))
    for kind, what, places in reports:
        hits = [one for one in plants if _hits(one, places)]
        right = [one.kind for one in hits if _fits(one.kind, kind, what)]
        found += right
        if not hits:
            old, new = places
            wrong.append(f"{kind} {what}: {old and old.text[:60]!r} -> {new and new.text[:60]!r}")
    planted = tuple(one.kind for one in plants)
    seen = tuple(kind for kind in planted if kind in found)
    return Score(planted, seen, tuple(wrong), len(reports))


def _reports(
    comparison: Comparison,
) -> Iterator[tuple[str, str, tuple[Place | None, Place | None]]]:
    for change in comparison.changes:
        if change.kind != "changed":
            yield change.kind, "", (change.old, change.new)
        for edit in change.edits:
            yield "edit", edit.category, (edit.old, edit.new)
        for follow in change.follows:
            yield "follows", follow.kind, (follow.old, follow.new)


def _hits(plant_: Plant, places: tuple[Place | None, Place | None]) -> bool:
    return any(
        place is not None and any(_overlap(place, span) for span in spans)
        for place, spans in zip(places, (plant_.old, plant_.new), strict=True)
    )


def _overlap(place: Place, span: Span) -> bool:
    if place.start == place.end or span[0] == span[1]:
        return False
    return place.start < span[1] and span[0] < place.end


def _fits(kind: PlantKind, reported: str, category: str) -> bool:
    if kind in _ACCEPTED:
        return reported == "edit" and category in _ACCEPTED[kind]
    return reported == kind
