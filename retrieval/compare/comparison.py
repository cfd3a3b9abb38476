"""The comparison of two versions, top to bottom: words, differences, moved clauses, numbers, what
each difference means, and the order in which a reader wants them.

Knows no files and no database; `read` gives it figures, dates and references.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from retrieval.compare.alignment import Hunk, Range, align
from retrieval.compare.contents import follow_contents
from retrieval.compare.edits import Changed, EditReader, Followed, Formatting, Restated
from retrieval.compare.letters import letter_case
from retrieval.compare.moves import Sorted, sort_hunks
from retrieval.compare.numbering import (
    Numbering,
    Renumbered,
    Run,
    WordMap,
    find_numbering,
    style_of,
)
from retrieval.compare.places import Places
from retrieval.compare.renumbering import Labels, NewNumbers
from retrieval.compare.totals import count
from retrieval.compare.types import (
    Category,
    Change,
    ChangeKind,
    Comparison,
    Consequence,
    Edit,
    FactReader,
    Place,
    Version,
)
from retrieval.compare.words import numbers_of, read_words
from retrieval.types import Clause

_ORDER: tuple[Category, ...] = (
    "figure", "date", "notice_period", "party", "negation", "wording", "reference", "case",
    "punctuation",
)  # fmt: skip
_FIRST = {"figure": 0, "date": 0, "notice_period": 0, "party": 0, "negation": 1}
_KINDS: dict[ChangeKind, int] = {
    "deleted": 2, "added": 2, "moved": 3, "changed": 4, "renumbered": 5,
}  # fmt: skip
_LONG_CLAUSE = 600
"""Words from which a clause is shown paragraph by paragraph."""


@dataclass(slots=True)
class Draft:
    """A change while it is put together. `old_words` and `new_words` are whole clauses."""

    kind: ChangeKind
    old: Place | None = None
    new: Place | None = None
    old_words: Range | None = None
    new_words: Range | None = None
    edits: list[Edit] = field(default_factory=list)
    follows: list[Consequence] = field(default_factory=list)


def compare(old_version: Version, new_version: Version, read: FactReader) -> Comparison:
    """All differences between two versions of one contract."""
    known = numbers_of(old_version) | numbers_of(new_version)
    old, new = Places(read_words(old_version, known)), Places(read_words(new_version, known))
    hunks = align(old.words, new.words)
    found = sort_hunks(hunks, old, new)
    words = WordMap(len(old.words), len(new.words), hunks, found.moves)
    numbering = find_numbering(old, new, words, found.edits, found.moves)
    drafts = _passages(found, old, new)
    numbers = NewNumbers(read)
    _place_numbers(numbering, found, drafts, numbers, old, new)
    labels = Labels(old, new, numbering)
    reader = EditReader(old, new, words, read, numbers, labels)
    formatting = 0
    restated: list[Edit] = []
    changed: dict[tuple[int, int], Draft] = {}
    moved_at = len(found.deleted) + len(found.added)
    inside = [(move.hunks, drafts[moved_at + at]) for at, move in enumerate(found.moves)]
    kept = [hunk for hunk in found.edits if hunk not in numbering.taken]
    for group, draft in [(kept, None), *inside]:
        for outcome in reader.read(group):
            match outcome:
                case Formatting():
                    formatting += 1
                case Restated(edit):
                    restated.append(edit)
                case Followed(holder, consequence):
                    drafts[holder].follows.append(consequence)
                case Changed(hunk, edit):
                    (draft or _holder(changed, hunk, old, new, labels)).edits.append(edit)
    for hunk in letter_case(old, new, words):
        places = labels.agreed(
            old.of_words(hunk.old_start, hunk.old_end),
            new.of_words(hunk.new_start, hunk.new_end),
        )
        _holder(changed, hunk, old, new, labels).edits.append(Edit("case", *places))
    drafts, tables = follow_contents([*drafts, *changed.values()], old, new)
    totals = count(old, new, words, found, numbering, set(changed), formatting + tables)
    changes = _names_together([_finished(draft) for draft in drafts])
    return Comparison(tuple(sorted(changes, key=_rank)), tuple(restated), totals)


def _passages(found: Sorted, old: Places, new: Places) -> list[Draft]:
    """Deleted, added and moved clauses, in this order."""
    drafts = [
        Draft("deleted", old=old.of_block(*span), old_words=span, new_words=(at, at))
        for span, at in found.deleted
    ]
    drafts += [
        Draft("added", new=new.of_block(*span), old_words=(at, at), new_words=span)
        for span, at in found.added
    ]
    drafts += [
        Draft("moved", old.of_block(*move.old), new.of_block(*move.new), move.old, move.new)
        for move in found.moves
    ]
    return drafts


def _place_numbers(
    numbering: Numbering,
    found: Sorted,
    drafts: list[Draft],
    numbers: NewNumbers,
    old: Places,
    new: Places,
) -> None:
    """Gives every renumbering to the change that brought it about, or makes it a change itself."""
    moved_at = len(drafts) - len(found.moves)
    for at, members in enumerate(numbering.moved):
        for item in members:
            drafts[moved_at + at].follows.append(_consequence(item))
            numbers.add(item, old, new, moved_at + at)
    for run in numbering.runs:
        cause = _cause(run, drafts, old, new)
        own = 0 if cause is not None else 1
        if cause is None:
            cause = len(drafts)
            first = run.members[0]
            drafts.append(Draft("renumbered", first.old_place, first.new_place))
        drafts[cause].follows += map(_consequence, run.members[own:])
        for item in run.members:
            numbers.add(item, old, new, cause)


def _consequence(item: Renumbered) -> Consequence:
    return Consequence("renumbered", item.old_place, item.new_place)


def _cause(run: Run, drafts: Sequence[Draft], old: Places, new: Places) -> int | None:
    """The deleted, added or moved clause right before a run of renumbered ones."""
    first = run.members[0]
    step = run.step
    for index, draft in enumerate(drafts):
        sides: list[tuple[Places, Clause | None, Range | None]] = []
        if draft.kind in ("deleted", "moved") and step < 0:
            sides.append((old, first.old, draft.old_words))
        if draft.kind in ("added", "moved") and step > 0:
            sides.append((new, first.new, draft.new_words))
        for places, clause, span in sides:
            if clause is None or span is None or clause.index >= len(places.firsts):
                continue
            start = places.firsts[clause.index]
            between = (
                style_of(other.number) == run.style
                and other.level <= clause.level
                and span[1] <= places.firsts[other.index] < start
                for other in places.version.clauses
            )
            if span[1] <= start and not any(between):
                return index
    return None


def _holder(
    changed: dict[tuple[int, int], Draft], hunk: Hunk, old: Places, new: Places, labels: Labels
) -> Draft:
    """The draft of the clause, or of the paragraph outside of clauses, that holds a difference."""
    old_clause, old_span = _around(old, hunk.old_start, hunk.old_end)
    new_clause, new_span = _around(new, hunk.new_start, hunk.new_end)
    key = (-1 if old_clause is None else old_clause.index, old_span[0])
    if key not in changed:
        places = old.place(*old_span, old_clause), new.place(*new_span, new_clause)
        changed[key] = Draft("changed", *labels.agreed(*places))
    return changed[key]


def _around(places: Places, first: int, last: int) -> tuple[Clause | None, Range]:
    """The clause around words and the span to show for it. Missing words belong to the text before
    them, unless they stand at the head of a clause."""
    words = places.words
    if not len(words):
        return None, (0, 0)
    at = min(first, len(words) - 1)
    if first == last and at and not words.heads[at]:
        at -= 1
    clause = places.clause_of(at)
    own = range(0) if clause is None else places.own_words(clause)
    if clause is not None and own and len(own) <= _LONG_CLAUSE and at in own:
        start, end = words.span(own.start, max(own.stop, last))
        return clause, (clause.start, end)
    start = stop = at
    while start and not words.heads[start]:
        start -= 1
    stop = max(last, at + 1)
    while stop < len(words) and not words.heads[stop]:
        stop += 1
    return clause, words.span(start, stop)


def _finished(draft: Draft) -> Change:
    categories = {edit.category for edit in draft.edits}
    category = next((one for one in _ORDER if one in categories), None)
    return Change(
        draft.kind, category, draft.old, draft.new, tuple(draft.edits), tuple(draft.follows)
    )


def _names_together(changes: Sequence[Change]) -> list[Change]:
    """One change for a party's name that was replaced in many places in the same way."""
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    kept: list[Change] = []
    for change in changes:
        edits: list[Edit] = []
        for edit in change.edits:
            key = (edit.old.text.casefold(), edit.new.text.casefold())
            if edit.category != "party" or not all(key) or change.kind != "changed":
                edits.append(edit)
            elif key in seen:
                at, place = seen[key]
                holder = edits if at == len(kept) else list(kept[at].edits)
                holder[place] = replace(holder[place], others=holder[place].others + 1)
                if at < len(kept):
                    kept[at] = replace(kept[at], edits=tuple(holder))
            else:
                seen[key] = (len(kept), len(edits))
                edits.append(edit)
        if edits or not change.edits:
            categories = {edit.category for edit in edits}
            category = next((one for one in _ORDER if one in categories), None)
            kept.append(replace(change, edits=tuple(edits), category=category))
    return kept


def _rank(change: Change) -> tuple[int, int, int]:
    first = _FIRST.get(change.category or "", 9)
    place = change.new or change.old
    assert place is not None
    late = change.category in ("reference", "case", "punctuation")
    return min(first, _KINDS[change.kind] + 2 * late), late, place.start
