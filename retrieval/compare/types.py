"""Values of a comparison. Offsets are half-open code points of the text of the version they are
about; pages are physical and start at 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from retrieval.types import Clause, DocumentPage, Language

ChangeKind = Literal["changed", "added", "deleted", "moved", "renumbered"]
Category = Literal[
    "figure", "date", "notice_period", "party", "negation", "reference", "wording", "case",
    "punctuation",
]  # fmt: skip
FactKind = Literal["figure", "date", "reference"]


@dataclass(frozen=True, slots=True)
class Version:
    """One of the two texts with its outline (`retrieval.clauses.outline`) and page map. `paged`:
    its pages are some that anyone could turn to."""

    text: str
    clauses: tuple[Clause, ...]
    pages: tuple[DocumentPage, ...]
    language: Language
    paged: bool = True


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure, date or reference at `text[start:end]`. `key` is equal for facts that say the same;
    `period`: it is a length of time."""

    start: int
    end: int
    kind: FactKind
    key: str
    period: bool = False


FactReader = Callable[[str], Sequence[Fact]]


@dataclass(frozen=True, slots=True)
class Place:
    """`text` is exactly `text[start:end]` of the version; empty (start == end) where words are
    missing. `clause` is how the clause is cited, None outside of all clauses; `page` is None in a
    file without pages."""

    start: int
    end: int
    text: str
    clause: str | None
    page: int | None
    page_label: str | None


@dataclass(frozen=True, slots=True)
class Edit:
    """Words that differ. `old_values` and `new_values` are the normalised figures, dates or
    references that the words belong to. `others` counts further places with the same replacement
    of a party's name."""

    category: Category
    old: Place
    new: Place
    old_values: tuple[str, ...] = ()
    new_values: tuple[str, ...] = ()
    others: int = 0


@dataclass(frozen=True, slots=True)
class Consequence:
    """A number or a reference that changed only because clauses were renumbered."""

    kind: Literal["renumbered", "reference", "contents"]
    old: Place
    new: Place


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one clause or unnumbered paragraph.

    `old` is None for an addition, `new` for a deletion; both are whole clauses or paragraphs.
    `edits` are the differing words of a changed or moved clause. `follows` are renumberings and
    references that this change brought about.
    """

    kind: ChangeKind
    category: Category | None
    old: Place | None
    new: Place | None
    edits: tuple[Edit, ...] = ()
    follows: tuple[Consequence, ...] = ()


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts. Clauses of the old version are the same, changed, moved, renumbered or deleted (the
    first that applies of: deleted, moved, changed, renumbered, same); those of the new one that
    have no counterpart are added. `formatting` counts differences that mean nothing, `furniture`
    the lines of page headers, footers and page numbers left out, in both versions."""

    old_clauses: int
    new_clauses: int
    same: int
    changed: int
    moved: int
    renumbered: int
    deleted: int
    added: int
    old_words: int
    new_words: int
    equal_words: int
    formatting: int
    furniture: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """All differences: `changes` with figures first, `restated` values that are written another way
    and mean the same."""

    changes: tuple[Change, ...]
    restated: tuple[Edit, ...]
    totals: Totals
