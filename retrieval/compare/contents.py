"""Lines of a table of contents that came, went or changed with the clause that they name.

They are listed with that clause's change, not beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrieval.compare.places import Places
from retrieval.compare.types import Consequence, Place
from retrieval.compare.words import holds
from retrieval.folding import fold

if TYPE_CHECKING:
    from retrieval.compare.comparison import Draft

_MIN_TABLE = 3
_MAX_REST = 0.2
"""Share of a table of contents that is no entry: its heading, line breaks."""


def follow_contents(drafts: Sequence[Draft], old: Places, new: Places) -> tuple[list[Draft], int]:
    """The drafts without those that are only an entry of the table of contents for another one, and
    the number of whole tables that one version does not have at all: they are made, not agreed."""
    tables = [draft for draft in drafts if _is_table(draft, old, new)]
    drafts = [draft for draft in drafts if draft not in tables]
    titles: dict[str, Draft] = {}
    for draft in drafts:
        for places, place in ((old, draft.old), (new, draft.new)):
            if place is None or draft.kind == "changed" or _in_contents(places, place):
                continue
            clause = places.clause_at(place.start)
            if clause is not None and clause.title:
                titles.setdefault(_plain(clause.title), draft)
    kept: list[Draft] = []
    for draft in drafts:
        holder = _entry_of(draft, titles, old, new)
        if holder is None:
            kept.append(draft)
            continue
        for edit in draft.edits:
            holder.follows.append(Consequence("contents", edit.old, edit.new))
        if not draft.edits:
            place = draft.old or draft.new
            assert place is not None
            empty = Place(place.start, place.start, "", None, place.page, place.page_label)
            holder.follows.append(Consequence("contents", draft.old or empty, draft.new or empty))
    return kept, len(tables)


def _is_table(draft: Draft, old: Places, new: Places) -> bool:
    for places, other, place in ((old, new, draft.old), (new, old, draft.new)):
        entries = places.words.furniture.contents
        if place is None or draft.kind not in ("added", "deleted"):
            continue
        if len(entries) >= _MIN_TABLE and not other.words.furniture.contents:
            rest = len(place.text) - sum(
                end - start for start, end in entries if place.start <= start and end <= place.end
            )
            return rest <= _MAX_REST * len(place.text)
    return False


def _entry_of(draft: Draft, titles: dict[str, Draft], old: Places, new: Places) -> Draft | None:
    sides = [(old, draft.old), (new, draft.new)]
    if not all(place is None or _in_contents(places, place) for places, place in sides):
        return None
    texts = [edit.old.text or edit.new.text for edit in draft.edits] or [
        place.text for _, place in sides if place is not None
    ]
    for text in texts:
        plain = _plain(text)
        for title, holder in titles.items():
            if holder is not draft and title and title in plain:
                return holder
    return None


def _in_contents(places: Places, place: Place) -> bool:
    return holds(places.words.furniture.contents, place.start)


def _plain(text: str) -> str:
    return " ".join(fold(text).split())
