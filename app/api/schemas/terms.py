"""Key terms as the REST API shows them; `fineprint terms --json` has the same fields."""

from __future__ import annotations

from typing import Literal

from app.api.schemas.common import Public, WarningPublic
from app.api.schemas.comparisons import PlacePublic
from app.terms.types import State, TermName
from retrieval.types import Language


class TermValuePublic(Public):
    """One thing that the document says about a term. `value` is the normal form of `words`, null
    when there is none; `passage` is the sentence around them. `blank`: the place is left empty or
    blacked out. `names`: roles and defined names of a party."""

    value: str | None
    words: PlacePublic
    passage: PlacePublic
    blank: bool
    names: list[PlacePublic]


class KeyTermPublic(Public):
    """A term with all its values. `conflicting`: it should have one and the document gives several.
    When it is not stated, `reason` says why and `nearest` is the closest passage."""

    name: TermName
    state: State
    values: list[TermValuePublic]
    conflicting: bool
    reason: str
    nearest: PlacePublic | None


class DocumentTermsPublic(Public):
    """The key terms of one document, always all of them, in a fixed order."""

    object: Literal["key_terms"] = "key_terms"
    document_id: str | None
    name: str
    language: Language
    pages: int
    characters: int
    terms: list[KeyTermPublic]
    warnings: list[WarningPublic]
    terms_ms: float
