"""What the documents hold for a question: candidates from each document, joined and chosen.

Knows retrieval's evidence and the outline; does not know the engine. Scores of different documents
are comparable through `Evidence.support` only, so documents are ordered by it before sentences are
ordered by their own score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.answer import notices
from app.answer.citations import cite
from app.answer.clause_numbers import find_clause_numbers
from app.types import AskOptions, Citation
from retrieval.backtrack import brought_in, missed
from retrieval.bridging import bridged
from retrieval.clauses import label
from retrieval.opposites import asked_roots, denied, stated
from retrieval.parts import parts_of
from retrieval.plan import find_evidence
from retrieval.query import read_question
from retrieval.ranking import is_fragment, rank_sentences
from retrieval.showing import worth_showing
from retrieval.types import Chunk, Evidence, Language, Sentence

if TYPE_CHECKING:
    from app.documents import LoadedDocument


_SAME_MATTER, _LEAST_LIKELY = 0.5, 0.05
"""Share of the best score, or likelihood, from which on a candidate may deny what the best says."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence of document number `document` (its place in the list that was asked)."""

    document: int
    sentence: Sentence


@dataclass(frozen=True, slots=True)
class Found:
    """Evidence of each document, in the order asked, and the candidates of the documents that can
    answer, best first. Of a question that asks several things, `heads` are the best candidates of
    its parts, in their order, and `unanswered` the parts to which nothing answers."""

    evidence: tuple[Evidence, ...]
    candidates: tuple[Candidate, ...]
    heads: tuple[Candidate, ...] = ()
    unanswered: tuple[str, ...] = ()

    @property
    def answerable(self) -> bool:
        return bool(self.candidates)

    @property
    def best_document(self) -> int:
        """The document with the best support."""
        if self.candidates:
            return self.candidates[0].document
        return max(range(len(self.evidence)), key=lambda index: self.evidence[index].support)

    @property
    def absent(self) -> tuple[str, ...]:
        """What the question names exactly and none of the documents speaks of."""
        first, *others = self.evidence
        return tuple(
            thing for thing in first.absent if all(thing in other.absent for other in others)
        )

    def chunks(self, document: int) -> tuple[Chunk, ...]:
        """Chunks of one document, best first: those of its candidates, then the other hits."""
        ordered: dict[int, Chunk] = {}
        for candidate in self.candidates:
            if candidate.document == document:
                ordered.setdefault(candidate.sentence.chunk.index, candidate.sentence.chunk)
        for hit in self.evidence[document].hits:
            ordered.setdefault(hit.chunk.index, hit.chunk)
        return tuple(ordered.values())

    def ordered(self, candidates: Sequence[Candidate]) -> Found:
        """The same evidence with the candidates in another order."""
        return replace(self, candidates=tuple(candidates))


def find(documents: Sequence[LoadedDocument], question: str) -> Found:
    """Search every document and join what was found."""
    evidence = tuple(
        find_evidence(document.index, bridged(question, document.index.language))
        for document in documents
    )
    return _joined(evidence, documents, question)


def find_parts(
    search: Callable[[Sequence[LoadedDocument], str], Found],
    documents: Sequence[LoadedDocument],
    question: str,
) -> Found:
    """Searches the question, and where it asks several things each of them as well: one that is
    answered must not keep the others from their quotes."""
    whole = search(documents, question)
    asked = parts_of(question)
    if len(asked) == 1:
        return whole
    parts = [(part, search(documents, part)) for part in asked]
    answered = [found for _, found in parts if found.candidates]
    if not answered:
        return whole
    heads: list[Candidate] = []
    for found in answered:
        if not any(_overlap(found.candidates[0], other) for other in heads):
            heads.append(found.candidates[0])
    base = whole if whole.candidates else answered[0]
    missing = tuple(part for part, found in parts if not found.candidates)
    return replace(base, heads=tuple(heads), unanswered=missing)


def look_again(found: Found, documents: Sequence[LoadedDocument], question: str) -> Found:
    """The evidence with the chunks that hold a telling word which no chosen chunk has; whether a
    document answers is not judged again."""
    evidence = []
    for document, one in zip(documents, found.evidence, strict=True):
        query = read_question(bridged(question, document.index.language))
        # Of a statute every article was scored: there is no chunk that was left out.
        whole = document.index.article_scores(query) is not None
        more = missed(document.index, query, one.hits) if one.answerable and not whole else ()
        if more:
            hits = brought_in(one.hits, more)
            sentences = rank_sentences(document.index, document.index.worded(query), hits)
            one = replace(one, hits=hits, sentences=sentences)
        evidence.append(one)
    if all(one is before for one, before in zip(evidence, found.evidence, strict=True)):
        return found
    again = _joined(evidence, documents, question)
    return replace(again, heads=found.heads, unanswered=found.unanswered)


def _joined(
    evidence: Sequence[Evidence], documents: Sequence[LoadedDocument], question: str
) -> Found:
    order = sorted(range(len(documents)), key=lambda index: -evidence[index].support)
    candidates = [
        Candidate(index, sentence)
        for index in order
        if evidence[index].answerable
        for sentence in evidence[index].sentences
    ]
    return Found(tuple(evidence), _named_first(candidates, documents, question))


def quote_lines(
    language: Language, citations: Sequence[Citation], *, several: bool
) -> tuple[str, ...]:
    """One line a citation, numbered from 1; `several`: more than one document was asked."""
    return tuple(
        notices.quote_line(language, citation, number, several=several)
        for number, citation in enumerate(citations, start=1)
    )


def answers(
    found: Found, documents: Sequence[LoadedDocument], options: AskOptions
) -> tuple[Citation, ...]:
    """The quotes that answer, best first.

    One document is answered from its best sentence and those that are worth showing after it; of
    several documents, each one that can answer is quoted at least once. Each part of a question
    that asks several things has its best quote, on top of those, and so has a clause that denies
    by a prefix what a quote states ("nonexclusive" beside "exclusive").
    """
    chosen = list(found.heads)
    before: dict[int, list[Sentence]] = {}
    for candidate in found.candidates:
        own = before.setdefault(candidate.document, [])
        worth = worth_showing(candidate.sentence, own, options.closeness)
        if found.heads and is_fragment(_text(documents, candidate)):
            # Where the parts have their quotes, a heading adds nothing to them.
            continue
        if worth and not any(_overlap(candidate, other) for other in chosen):
            chosen.append(candidate)
            own.append(candidate.sentence)
    most = max(1, options.quotes, len(before)) + max(0, len(found.heads) - 1)
    chosen = _spread(chosen, most)
    chosen += _denials(found, documents, chosen)
    return tuple(
        cite(documents[candidate.document], candidate.sentence.start, candidate.sentence.end)
        for candidate in chosen
    )


def _denials(
    found: Found, documents: Sequence[LoadedDocument], chosen: Sequence[Candidate]
) -> Iterator[Candidate]:
    """Of each document the best candidate that denies by a prefix a word of the question which the
    chosen ones state: whether something is exclusive can't be told from the exception alone."""
    for document in dict.fromkeys(candidate.document for candidate in chosen):
        shown = [one for one in chosen if one.document == document]
        said = "\n".join(_text(documents, one) for one in shown)
        asked = asked_roots(read_question(found.evidence[document].question))
        open_ = {root for root in asked - denied(said) if stated(said, root)}
        for candidate in found.candidates if open_ else ():
            fits = candidate.document == document and _near_enough(candidate, shown[0])
            if fits and denied(_text(documents, candidate)) & open_:
                yield candidate
                break


def _near_enough(candidate: Candidate, best: Candidate) -> bool:
    """Whether a candidate is likely enough to be about the same as the best one."""
    likely = candidate.sentence.likely
    if likely is None:
        return candidate.sentence.score >= _SAME_MATTER * best.sentence.score
    return likely >= _LEAST_LIKELY


def missing_clauses(documents: Sequence[LoadedDocument], question: str) -> tuple[str, ...]:
    """Clauses that the question names and that stand nowhere: neither in the outline of a document
    nor as a reference in its text. They are given as the question writes them."""
    named = find_clause_numbers(question)
    if not named:
        return ()
    known = {
        number.key
        for document in documents
        for clause in document.clauses
        for name in (clause.number, label(document.clauses, clause.index))
        for number in find_clause_numbers(name, bare=True)
    }
    absent = [number for number in named if not number.known_in(known)]
    if not absent:
        return ()
    mentioned = {
        number.key for document in documents for number in find_clause_numbers(document.text)
    }
    return tuple(number.text for number in absent if number.key not in mentioned)


def _named_first(
    candidates: Sequence[Candidate], documents: Sequence[LoadedDocument], question: str
) -> tuple[Candidate, ...]:
    """Sentences of a clause that the question names before all others."""
    named = find_clause_numbers(question)
    if not named:
        return tuple(candidates)
    spans = [
        [
            (clause.start, clause.end)
            for clause in document.clauses
            for number in find_clause_numbers(label(document.clauses, clause.index), bare=True)
            if any(number.key == asked.key for asked in named)
        ]
        for document in documents
    ]

    def outside(candidate: Candidate) -> bool:
        start = candidate.sentence.start
        return not any(a <= start < b for a, b in spans[candidate.document])

    return tuple(sorted(candidates, key=outside))


def _text(documents: Sequence[LoadedDocument], candidate: Candidate) -> str:
    sentence = candidate.sentence
    return documents[candidate.document].text[sentence.start : sentence.end]


def _overlap(one: Candidate, other: Candidate) -> bool:
    return (
        one.document == other.document
        and one.sentence.start < other.sentence.end
        and other.sentence.start < one.sentence.end
    )


def _spread(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """At most `limit` candidates: the first of each document, then the others in their order."""
    first: dict[int, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.document, candidate)
    heads = list(first.values())[:limit]
    rest = [candidate for candidate in candidates if candidate not in heads]
    return heads + rest[: limit - len(heads)]
