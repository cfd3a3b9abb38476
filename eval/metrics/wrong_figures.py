"""Figures, dates and clause numbers of a reply that stand nowhere they could come from.

Judged are the quotes as shown and the model's own words (`Reply.claims`), never the page and
clause labels beside a quote. A reply with citations is right where the text of the document at a
cited span (not the shown quote) has the same figure; a clause number also where the span lies in
that clause. A reply without citations is right where a gold answer or any place of the document
has it. What the reply marks as unverified is not counted: it told the reader.

Each place is read twice, by the product's readers (`facts`, with units) and by a plain reading
that shares no code with them (`plain`), and is wrong when either says so. Both counts are kept
apart as well, so that a hole in the product's reader shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from app.answer.citations import without_markers
from eval.metrics import plain
from eval.metrics.facts import (
    Facts,
    clause_labels,
    document_facts,
    facts,
    figure_stands,
    labels_at,
)
from eval.types import CitedSpan, Reply, Span

_LIST_NUMBER = re.compile(r"^[^\S\n]*\(?[0-9]{1,2}[.)][^\S\n]+(?=\S)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WrongFigures:
    """Places of a reply: wrong by either reading, by the product's readers, by the plain one; and
    for a reply without citations those that stand in no gold answer, wrong or not."""

    either: int
    by_product_reader: int
    by_plain_reader: int
    not_in_gold: int | None


@dataclass(slots=True)
class _Sources:
    """What a reply may say: the finds of both readings in the texts it may draw on."""

    facts: Facts
    values: frozenset[Decimal]
    labels: frozenset[str] = field(default_factory=frozenset)

    def wrong(self, text: str) -> tuple[list[Span], list[Span]]:
        """Places of `text` that are wrong by the product's readers and by the plain reading."""
        mine = facts(text)
        by_product = [
            (figure.start, figure.end)
            for figure in mine.figures
            if not figure_stands(figure, self.facts.figures, self.facts.dates)
        ]
        by_product += [
            (date.start, date.end)
            for date in mine.dates
            if not any(date.within(other) for other in self.facts.dates)
        ]
        known = {clause.key for clause in self.facts.clauses}
        labelled = []
        for clause in mine.clauses:
            if clause.known_in(known):
                continue
            if clause.known_in(self.labels):
                labelled.append((clause.start, clause.end))
            else:
                by_product.append((clause.start, clause.end))
        by_plain = [
            (number.start, number.end)
            for number in plain.numbers(text)
            if not number.readings & self.values
            and not any(_touch((number.start, number.end), span) for span in labelled)
        ]
        return by_product, by_plain


def wrong_figures(reply: Reply, gold: Sequence[str], text: str) -> WrongFigures:
    """Counts for one reply to a question on `text`."""
    claims = _without_labels(reply.claims, len(reply.citations))
    if not reply.citations:
        judged = claims or _without_labels(reply.prediction, 0)
        if not plain.numbers(judged) and not facts(judged):
            return WrongFigures(0, 0, 0, 0)
        from_gold = _sources(gold)
        anywhere = _Sources(
            _joined([from_gold.facts, document_facts(text)]),
            from_gold.values | plain.document_values(text),
            frozenset().union(*(keys for _, _, keys in clause_labels(text))),
        )
        counts = _count([(judged, anywhere, reply.marked)])
        outside = len(_places(*from_gold.wrong(judged)))
        return WrongFigures(*counts, outside)
    cited = [text[slice(*_inside(citation, text))] for citation in reply.citations]
    sources = _sources(cited)
    if _names_clause(claims):
        sources.labels = frozenset().union(
            *(labels_at(text, *_inside(citation, text)) for citation in reply.citations)
        )
    pieces = [(claims, sources, reply.marked)]
    # A quote that is the document's text holds nothing else; one shown as unverified is marked.
    pieces += [
        (citation.quote, sources, reply.marked)
        for citation, source in zip(reply.citations, cited, strict=True)
        if citation.quote != source and citation.verified
    ]
    return WrongFigures(*_count(pieces), None)


def _count(pieces: Sequence[tuple[str, _Sources, Sequence[str]]]) -> tuple[int, int, int]:
    either = product = by_plain = 0
    for text, sources, marked in pieces:
        if not text:
            continue
        told = list(_marked(text, marked))
        found = [
            [span for span in spans if not any(_touch(span, mark) for mark in told)]
            for spans in sources.wrong(text)
        ]
        either += len(_places(*found))
        product += len(found[0])
        by_plain += len(found[1])
    return either, product, by_plain


def _marked(text: str, marked: Sequence[str]) -> Iterator[Span]:
    """Places of the marked words; "5" is not found inside "15" or "5.5"."""
    for words in marked:
        if words:
            pattern = rf"(?<![\d])(?<!\d[.,]){re.escape(words)}(?!\d|[.,]\d)"
            yield from (match.span() for match in re.finditer(pattern, text))


def _places(by_product: Sequence[Span], by_plain: Sequence[Span]) -> list[Span]:
    """Places that either reading found, those that touch counted once."""
    alone = [span for span in by_plain if not any(_touch(span, other) for other in by_product)]
    return [*by_product, *alone]


def _sources(texts: Sequence[str]) -> _Sources:
    return _Sources(
        _joined([facts(text) for text in texts]),
        frozenset().union(*(plain.values(text) for text in texts)),
    )


def _joined(found: Sequence[Facts]) -> Facts:
    return Facts(
        tuple(figure for one in found for figure in one.figures),
        tuple(date for one in found for date in one.dates),
        tuple(clause for one in found for clause in one.clauses),
    )


def _without_labels(text: str, citations: int) -> str:
    """The text with spaces in place of citation markers and of numbers that only count a list."""
    return _LIST_NUMBER.sub(lambda found: " " * len(found[0]), without_markers(text, citations))


def _names_clause(text: str) -> bool:
    return bool(facts(text).clauses)


def _inside(citation: CitedSpan, text: str) -> Span:
    """The cited span; empty when it lies outside of the document."""
    if 0 <= citation.start < citation.end <= len(text):
        return citation.start, citation.end
    return 0, 0


def _touch(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
