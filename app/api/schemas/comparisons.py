"""Comparisons of two versions as the REST API shows them; `fineprint compare --json` has the same
fields."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.api.schemas.common import Body, Public, WarningPublic
from retrieval.compare.types import Category, ChangeKind
from retrieval.types import Language

Id = Annotated[str, Field(max_length=64)]


class ComparisonCreate(Body):
    """The two documents, both askable."""

    old_document_id: Id
    new_document_id: Id


class ComparedDocumentPublic(Public):
    """One of the two versions."""

    document_id: str | None
    name: str
    language: Language
    pages: int
    characters: int


class PlacePublic(Public):
    """`text` is exactly `text[start:end]` of the version's text, in code points; empty where words
    are missing. `clause` is null outside of all clauses, `page` in a file without pages."""

    start: int
    end: int
    text: str
    clause: str | None
    page: int | None
    page_label: str | None


class EditPublic(Public):
    """Words that differ. `old_values` and `new_values` are normalised; `others` counts further
    places with the same replacement of a party's name."""

    category: Category
    old: PlacePublic
    new: PlacePublic
    old_values: list[str]
    new_values: list[str]
    others: int


class ConsequencePublic(Public):
    """A number or a reference that changed only because clauses were renumbered, or an entry of the
    table of contents."""

    kind: Literal["renumbered", "reference", "contents"]
    old: PlacePublic
    new: PlacePublic


class ChangePublic(Public):
    """What happened to one clause or unnumbered paragraph. `old` is null for an addition, `new` for
    a deletion. `category` is the weightiest of its edits; null without edits."""

    kind: ChangeKind
    category: Category | None
    old: PlacePublic | None
    new: PlacePublic | None
    edits: list[EditPublic]
    follows: list[ConsequencePublic]


class TotalsPublic(Public):
    """Counts. The clauses of the old version are same, changed, moved, renumbered or deleted, those
    new in the other are added. `formatting` and `furniture` were left out as meaning nothing."""

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


class ComparisonPublic(Public):
    """All differences, those of figures, dates, parties and notice periods first. `restated` are
    values written another way. `identical`: nothing differs but formatting."""

    object: Literal["comparison"] = "comparison"
    old: ComparedDocumentPublic
    new: ComparedDocumentPublic
    identical: bool
    changes: list[ChangePublic]
    restated: list[EditPublic]
    totals: TotalsPublic
    warnings: list[WarningPublic]
    compare_ms: float
