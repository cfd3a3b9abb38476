"""Reads the key terms of one document: rules over all its sentences, joined with retrieval.

A term is stated when a sentence is worded as its rules say. Where a wording is weak, retrieval must
have found the sentence too. "Not stated" is said only after every sentence was looked at; the
reason and the nearest passage come from retrieval. It never asks a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from app.terms.blanks import is_left_open
from app.terms.front import agreement_dates, effective_dates
from app.terms.parties import find_parties
from app.terms.passages import Passage, Places, passages
from app.terms.rules import Rule, rules
from app.terms.types import KeyTerm, State, TermName, TermValue
from app.terms.values import Found, read_values
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.types import Clause, DocumentPage, Evidence

_NEAR = 5
"""Quotes of retrieval in which a weak wording counts."""
_AHEAD = 200
"""Characters behind a sentence in which its value may stand."""
_FRONT_QUESTIONS = {
    "parties": ("Who are the parties?", "合同双方是谁？"),
    "agreement_date": ("What is the date of this agreement?", "合同签订日期是哪天？"),
    "effective_date": ("When does this agreement take effect?", "合同何时生效？"),
}
_MISSING = "no sentence of the document is worded as one"


@dataclass(frozen=True, slots=True)
class _Reader:
    """One document with what every term needs of it."""

    text: str
    index: SearchIndex
    places: Places
    sentences: tuple[Passage, ...]


def find_terms(
    index: SearchIndex, clauses: Sequence[Clause], pages: Sequence[DocumentPage]
) -> tuple[KeyTerm, ...]:
    """All key terms of the indexed document, in the order of `TermName`. A file without pages has
    empty `pages`."""
    text = index.text
    reader = _Reader(text, index, Places(text, clauses, pages), passages(text, clauses))
    return tuple(_term(reader, name) for name in get_args(TermName))


def _term(reader: _Reader, name: TermName) -> KeyTerm:
    if name == "parties":
        return _finished(reader, name, _parties(reader))
    if name == "agreement_date":
        return _dated(reader, name, agreement_dates(reader.text, reader.sentences))
    if name == "effective_date":
        return _dated(reader, name, effective_dates(reader.text, reader.sentences))
    rule = rules()[name]
    evidence: Evidence | None = None
    values: list[TermValue] = []
    wordings = rule.wordings[reader.index.language]
    for one in reader.sentences:
        fitting = [wording for wording in wordings if wording.fits(one.plain)]
        if not fitting:
            continue
        if all(wording.near for wording in fitting):
            evidence = evidence or _evidence(reader, name)
            if not _found_by(evidence, one):
                continue
        values += _values(reader, rule, one)
    return _finished(reader, name, values, evidence, single=rule.single)


def _values(reader: _Reader, rule: Rule, one: Passage) -> Iterable[TermValue]:
    found = read_values(reader.text[one.start : one.end], rule.kind)
    length = one.end - one.start
    following = reader.text[one.end : one.end + _AHEAD]
    if not found and rule.kind != "text" and is_left_open(one.plain, following):
        # "合同有效期限为：" and nothing behind it.
        found = (Found(None, length, length, True),)
    elif not found and not rule.needs_value:
        found = (Found(None, 0, length),)
    return [_value(reader, one, value) for value in found]


def _value(reader: _Reader, one: Passage, found: Found) -> TermValue:
    words = reader.places.place(one.start + found.start, one.start + found.end)
    return TermValue(found.value, words, reader.places.place(one.start, one.end), found.blank)


def _dated(reader: _Reader, name: TermName, found: Sequence[tuple[Passage, Found]]) -> KeyTerm:
    return _finished(
        reader, name, [_value(reader, one, value) for one, value in found], single=True
    )


def _parties(reader: _Reader) -> list[TermValue]:
    values = []
    for party in find_parties(reader.text, reader.index.language):
        place = reader.places.place
        start = min([party.name[0], *(span[0] for span in party.names)])
        end = max([party.name[1], *(span[1] for span in party.names)])
        name = " ".join(reader.text[slice(*party.name)].split())
        names = tuple(place(*span) for span in party.names)
        value = None if party.blank else name
        values.append(TermValue(value, place(*party.name), place(start, end), party.blank, names))
    return values


def _finished(
    reader: _Reader,
    name: TermName,
    values: Sequence[TermValue],
    evidence: Evidence | None = None,
    *,
    single: bool = False,
) -> KeyTerm:
    if not values:
        evidence = evidence or _evidence(reader, name)
        best = evidence.sentences[0] if evidence.sentences else None
        nearest = reader.places.place(best.start, best.end) if best else None
        return KeyTerm(name, "not_stated", (), False, evidence.reason or _MISSING, nearest)
    filled = [value for value in values if not value.blank]
    # A sentence often gives more than one figure; the first is what it states.
    first = {value.passage.start: value for value in reversed(filled) if value.value is not None}
    different = {value.value for value in first.values()}
    conflicting = single and len(different) > 1
    state: State = "stated" if filled else "left_blank"
    return KeyTerm(name, state, tuple(values), conflicting)


def _evidence(reader: _Reader, name: TermName) -> Evidence:
    if name in _FRONT_QUESTIONS:
        english, chinese = _FRONT_QUESTIONS[name]
    else:
        asked = rules()[name].questions
        english, chinese = asked["en"], asked["zh"]
    return find_evidence(reader.index, chinese if reader.index.language == "zh" else english)


def _found_by(evidence: Evidence, one: Passage) -> bool:
    """Whether retrieval took the question as answerable and quotes this sentence."""
    return evidence.answerable and any(
        quote.start < one.end and one.start < quote.end for quote in evidence.sentences[:_NEAR]
    )
