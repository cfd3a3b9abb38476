"""What follows from a renumbering: how places are labelled in both versions, and which references
changed only to keep pointing at the same clause."""

from __future__ import annotations

from dataclasses import replace

from retrieval.compare.numbering import Numbering, Renumbered
from retrieval.compare.places import Places
from retrieval.compare.types import FactReader, Place
from retrieval.types import Clause


class Labels:
    """One label for both places of words whose clause kept its number and its place.

    A clause that is gone can break the sequence that an outline follows; then the outline with more
    clauses knows better which clause the words are in.
    """

    def __init__(self, old: Places, new: Places, numbering: Numbering) -> None:
        items = [item for run in numbering.runs for item in run.members]
        items += [item for members in numbering.moved for item in members]
        self._spans = (
            [_extent(old, item.old, item.old_place) for item in items],
            [_extent(new, item.new, item.new_place) for item in items],
        )
        self._old_knows = len(old.version.clauses) >= len(new.version.clauses)

    def agreed(self, old: Place, new: Place) -> tuple[Place, Place]:
        """The places with the same label, unless their clause was renumbered."""
        for spans, place in zip(self._spans, (old, new), strict=True):
            if any(start <= place.start < end for start, end in spans):
                return old, new
        label = old.clause if self._old_knows else new.clause
        return replace(old, clause=label), replace(new, clause=label)


def _extent(places: Places, clause: Clause | None, place: Place) -> tuple[int, int]:
    return (place.start, place.end) if clause is None else (clause.start, clause.end)


class NewNumbers:
    """Where a reference to a renumbered clause must point now."""

    def __init__(self, read: FactReader) -> None:
        self._read = read
        self._known: dict[str, dict[str, int]] = {}

    def add(self, item: Renumbered, old: Places, new: Places, holder: int) -> None:
        """Learns a renumbering. `holder` is the change that references to it belong to."""
        pairs = {(item.old_place.text, item.new_place.text)}
        if item.old is not None and item.new is not None:
            pairs.add((old.label(item.old) or "", new.label(item.new) or ""))
        for before, after in pairs:
            left, right = self.key(before), self.key(after)
            if left and right and left != right:
                self._known.setdefault(left, {}).setdefault(right, holder)

    def key(self, label: str) -> str | None:
        """The key of a clause label or number, as `FactReader` gives it for a reference."""
        for text in (label, f"Section {label}"):
            for fact in self._read(text):
                if fact.kind == "reference":
                    return fact.key
        return None

    def holder(self, old_key: str, new_key: str) -> int | None:
        """The change that explains why a reference went from `old_key` to `new_key`."""
        for size in range(len(old_key), 0, -1):
            rest = old_key[size:]
            if rest[:1].isalnum():
                continue
            for target, holder in self._known.get(old_key[:size], {}).items():
                if target + rest == new_key:
                    return holder
        return None
