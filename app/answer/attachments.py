"""What is shown beside the answers: clauses they refer to, definitions that decide them, and what
amends them or was amended by them.

Each comes as a further citation with its role. Knows documents and the wording of references,
definitions and amendments; does not know the engine. What a search missed is not made good here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.answer.citations import cite
from app.types import AskOptions, Citation, CitationRole
from retrieval import tokens
from retrieval.amendments import (
    Amendment,
    amendment_number,
    amendments_of,
    find_amendments,
    is_amendment,
)
from retrieval.clauses import around, label, path
from retrieval.contents import is_contents
from retrieval.coverage import coverage
from retrieval.deciding import deciding_definitions
from retrieval.query import Query, read_question
from retrieval.references import find_references, normal
from retrieval.sentences import Span, split
from retrieval.types import Clause

if TYPE_CHECKING:
    from app.documents import LoadedDocument

MAX_REFERENCES, MAX_DEFINITIONS = 2, 2
MAX_CHAIN = 4
"""Amendments of amendments that are followed."""
_WHOLE = {"en": 420, "zh": 220}
"""Characters up to which a clause is shown whole; of a longer one the best sentence is."""


@dataclass(frozen=True, slots=True)
class _Place:
    """`documents[document].text[start:end]`."""

    document: int
    start: int
    end: int

    def overlaps(self, other: _Place) -> bool:
        same = self.document == other.document
        return same and self.start < other.end and other.start < self.end


class Attachments:
    """The answers of one question with what belongs to them, in the order in which they are shown:
    amendments stand before the text that they change, definitions and references at the end."""

    def __init__(
        self, answers: Sequence[Citation], documents: Sequence[LoadedDocument], question: str
    ) -> None:
        self._documents = documents
        self._numbers = [amendment_number(document.text) for document in documents]
        self._query = read_question(question)
        numbers = {document.record.id: place for place, document in enumerate(documents)}
        self._answers = answers
        self._places = [
            _Place(numbers[one.document_id], one.start_char, one.end_char) for one in answers
        ]

    def shown(self, options: AskOptions) -> tuple[Citation, ...]:
        """Every citation, as far as the options ask for more than the answers."""
        listed = list(zip(self._answers, self._places, strict=True))
        if options.amendments:
            listed = self._with_amendments(listed)
        if options.definitions:
            listed += self._extra(listed, self._definitions(listed), "definition", MAX_DEFINITIONS)
        if options.references:
            listed += self._extra(listed, self._references(), "reference", MAX_REFERENCES)
        return tuple(citation for citation, _ in listed)

    def _cite(self, place: _Place, role: CitationRole, *, replaced: bool = False) -> Citation:
        cited = cite(self._documents[place.document], place.start, place.end)
        return replace(cited, role=role, replaced=replaced)

    def _extra(
        self,
        listed: Sequence[tuple[Citation, _Place]],
        places: Iterator[_Place],
        role: CitationRole,
        limit: int,
    ) -> list[tuple[Citation, _Place]]:
        kept: list[tuple[Citation, _Place]] = []
        for place in places:
            if len(kept) == limit:
                break
            if not any(place.overlaps(other) for _, other in (*listed, *kept)):
                kept.append((self._cite(place, role), place))
        return kept

    def _with_amendments(
        self, listed: Sequence[tuple[Citation, _Place]]
    ) -> list[tuple[Citation, _Place]]:
        """Newer text first, what it replaces right behind it and marked."""
        shown: list[tuple[Citation, _Place]] = []
        brought: list[_Place] = []
        changes = [list(self._amending(place)) for _, place in listed]

        def bring(place: _Place, role: CitationRole, *, replaced: bool) -> None:
            if not any(place.overlaps(other) for _, other in shown):
                role = self._answering(place) or role
                shown.append((self._cite(place, role, replaced=replaced), place))
                brought.append(place)

        for (citation, place), amending in zip(listed, changes, strict=True):
            if any(place.overlaps(other) for other in brought):
                continue
            for newer, again in self._chain_of(amending, set()):
                bring(newer, "amendment", replaced=again)
            gone = any(amendment.replaces for _, amendment in amending)
            shown.append((replace(citation, replaced=gone), place))
            for older, gone in self._older_of(place, set()):
                # What is only added to stays in force: it is no amendment, but referred to by one.
                bring(older, "amendment" if gone else "reference", replaced=gone)
        return shown

    def _chain_of(
        self,
        amending: Sequence[tuple[_Place, Amendment]],
        followed: set[_Place],
        depth: int = 1,
    ) -> Iterator[tuple[_Place, bool]]:
        """The amendments of a place with those that amend them in turn, the newest first, and
        whether each is replaced itself: by another or by a later one of the same clause. Those in
        `followed` are left out, and what is told goes there: some amend each other."""
        for place, amendment in amending:
            if place in followed:
                continue
            followed.add(place)
            newer = list(self._amending(place)) if depth < MAX_CHAIN else []
            yield from self._chain_of(newer, followed, depth + 1)
            later = (
                other.replaces
                for at, other in amending
                if other.target == amendment.target and self._number(at) > self._number(place)
            )
            yield place, any(later) or any(other.replaces for _, other in newer)

    def _number(self, place: _Place) -> int:
        return self._numbers[place.document]

    def _older_of(
        self, place: _Place, followed: set[_Place], depth: int = 1
    ) -> Iterator[tuple[_Place, bool]]:
        """What a place amends, what that amends in turn, and so on, the newest first. `followed`:
        as in `_chain_of`."""
        for older, gone in self._amended(place):
            if older in followed:
                continue
            followed.add(older)
            yield older, gone
            if depth < MAX_CHAIN:
                yield from self._older_of(older, followed, depth + 1)

    def _answering(self, place: _Place) -> CitationRole | None:
        """`answer` for what is an answer as well: it stays one."""
        return "answer" if any(place.overlaps(answer) for answer in self._places) else None

    def _amending(self, place: _Place) -> Iterator[tuple[_Place, Amendment]]:
        """Amendments of the clauses around a place, those of later amendments first."""
        own = self._documents[place.document]
        # A quote of several short clauses is amended with any of them.
        numbers = [
            name
            for clause in dict.fromkeys((*_chain(own, place.start), *_within(own, place)))
            for name in _names(own.clauses, clause)
        ]
        changed = {
            amendment.target
            for amendment in find_amendments(own.text, own.clauses)
            if place.overlaps(_Place(place.document, amendment.start, amendment.end))
        }
        latest_first = sorted(enumerate(self._documents), key=lambda one: -self._numbers[one[0]])
        for number, document in latest_first:
            same = number == place.document
            for amendment in amendments_of(
                find_amendments(document.text, document.clauses), numbers, same_document=same
            ):
                where = _Place(number, amendment.start, amendment.end)
                if not where.overlaps(place) and self._may_change(amendment, own, same=same):
                    yield where, amendment
            if 0 < self._numbers[place.document] < self._numbers[number]:
                # A later amendment of what the place amends.
                yield from (
                    (_Place(number, amendment.start, amendment.end), amendment)
                    for amendment in find_amendments(document.text, document.clauses)
                    if amendment.target in changed and not amendment.of_amendment
                )

    def _may_change(self, amendment: Amendment, document: LoadedDocument, *, same: bool) -> bool:
        """Whether an amendment can mean `document`: "Section 3 of the First Amendment" means an
        amendment, and "Section 3" none as long as there is a contract beside it."""
        if same:
            return True
        amends = is_amendment(document.text)
        if amendment.of_amendment or not amends:
            return amendment.of_amendment == amends
        return all(is_amendment(other.text) for other in self._documents)

    def _amended(self, place: _Place) -> Iterator[tuple[_Place, bool]]:
        """The clauses that an answer amends, and whether it replaces their text."""
        own = self._documents[place.document]
        for amendment in find_amendments(own.text, own.clauses):
            if not place.overlaps(_Place(place.document, amendment.start, amendment.end)):
                continue
            for number, document in enumerate(self._documents):
                same = number == place.document
                if amendment.elsewhere is same or not self._may_change(
                    amendment, document, same=same
                ):
                    continue
                clause = self._old_clause(document, amendment, same_document=same)
                if clause is not None:
                    old = _Place(number, *self._passage(document, clause))
                    yield old, amendment.replaces

    def _old_clause(
        self, document: LoadedDocument, amendment: Amendment, *, same_document: bool
    ) -> Clause | None:
        for clause in document.index.numbers.find(amendment.target):
            if is_contents(document.text[clause.start : min(clause.end, clause.start + 600)]):
                continue
            if not (same_document and clause.start <= amendment.start < clause.end):
                return clause
        return None

    def _definitions(self, listed: Sequence[tuple[Citation, _Place]]) -> Iterator[_Place]:
        for number, document in enumerate(self._documents):
            quotes = [c.quote for c, place in listed if place.document == number and not c.replaced]
            if quotes:
                for found in deciding_definitions(document.text, quotes, self._query):
                    yield _Place(number, found.start, found.end)

    def _references(self) -> Iterator[_Place]:
        """Of the best answer of each document: what the others refer to is seldom what is asked."""
        seen: set[int] = set()
        for citation, place in zip(self._answers, self._places, strict=True):
            document = self._documents[place.document]
            if place.document in seen or self._amends(place):
                continue
            seen.add(place.document)
            own = {clause.index for clause in _chain(document, place.start)}
            for reference in find_references(citation.quote):
                for clause in document.index.numbers.find(reference):
                    span = self._passage(document, clause)
                    # An outline may have taken the table of contents for clauses.
                    if not is_contents(document.text[slice(*span)]):
                        if clause.index not in own:
                            yield _Place(place.document, *span)
                        break

    def _amends(self, place: _Place) -> bool:
        """Whether a quote is an amendment, whose references are those to what it amends."""
        document = self._documents[place.document]
        return any(
            place.overlaps(_Place(place.document, amendment.start, amendment.end))
            for amendment in find_amendments(document.text, document.clauses)
        )

    def _passage(self, document: LoadedDocument, clause: Clause) -> Span:
        """What to show of a clause: all of a short one, else its best sentence."""
        text = document.text
        end = clause.end
        while end > clause.start and text[end - 1].isspace():
            end -= 1
        limit = _WHOLE[document.index.language]
        if end - clause.start <= limit:
            return clause.start, end
        starts = [one.start for one in document.clauses if clause.start < one.start < end]
        sentences = split(text, clause.start, min(end, clause.start + 6000), starts)
        return max(sentences, key=lambda span: self._rating(document, span, self._query))

    def _rating(self, document: LoadedDocument, span: Span, query: Query) -> tuple[float, int]:
        body = document.text[span[0] : span[1]]
        covered = coverage(query.units, frozenset(tokens.terms(body)), document.index.keywords.idf)
        # A heading alone tells nothing; of equals the first one is taken.
        return (covered if len(body) > 40 else -1.0, -span[0])


def _chain(document: LoadedDocument, position: int) -> tuple[Clause, ...]:
    """The clauses around a place, outermost first."""
    inside = around(document.clauses, position)
    return () if inside is None else path(document.clauses, inside.index)


def _within(document: LoadedDocument, place: _Place) -> Iterator[Clause]:
    """The clauses that begin inside a place."""
    return (clause for clause in document.clauses if place.start <= clause.start < place.end)


def _names(clauses: Sequence[Clause], clause: Clause) -> Iterator[str]:
    for name in {normal(label(clauses, clause.index)), normal(clause.number)} - {""}:
        # "(b)" alone is a clause of many: only its full label names it.
        if name == normal(label(clauses, clause.index)) or not clause.number.startswith(
            ("(", "（")
        ):
            yield name
