"""Which defined terms decide an answer: a quote that limits something to "the Cap" says nothing
without the definition of the Cap.

Knows the kinds of fact that a question asks for, and the definitions of one document. Does not
know meaning: a definition counts when it states a fact of the kind asked for, or when the question
itself uses the term.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retrieval.asked import AskedKind
from retrieval.definitions import Definition, find_definitions
from retrieval.facts import FactKind, states
from retrieval.folding import fold_in_place
from retrieval.query import Query

_FACTS: dict[AskedKind, tuple[FactKind, ...]] = {
    "amount": ("amount", "percent"), "percent": ("percent",), "duration": ("duration", "date"),
    "date": ("date",),
}  # fmt: skip
_CONTENT = 0.9
"""Weight of a word from which on it is part of what is asked about."""
_MAX_OTHERS = 1
"""Definitions that are shown although the answer holds what was asked for."""


def deciding_definitions(text: str, quotes: Sequence[str], query: Query) -> Iterator[Definition]:
    """Definitions of `text` that a reader of `quotes` needs, the most needed first."""
    definitions = find_definitions(text)
    wanted = {fact for kind in query.asked for fact in _FACTS.get(kind, ())}
    folded = [fold_in_place(quote) for quote in quotes]
    if wanted and not any(states(quote, fact) for quote in folded[:1] for fact in wanted):
        yield from _leading_to(definitions, quotes[:1], text, wanted)
        return
    if wanted:
        return
    asked = [
        d
        for d in definitions
        if d.stated
        and d.stands_in(query.text, any_case=True)
        and any(d.stands_in(quote) for quote in quotes[:1])
        and _is_content(d.term, query)
    ]
    yield from sorted(asked, key=lambda d: -len(d.term))[:_MAX_OTHERS]


def _is_content(term: str, query: Query) -> bool:
    """Whether a term is a content word of the question and no word of asking ("Details")."""
    folded = fold_in_place(term)
    return any(unit.weight >= _CONTENT and unit.surface in folded for unit in query.units)


def _leading_to(
    definitions: Sequence[Definition], quotes: Sequence[str], text: str, wanted: set[FactKind]
) -> Iterator[Definition]:
    """Definitions of terms in the quotes that state a wanted fact, or that lead to one."""
    used = [d for d in definitions if any(d.stands_in(quote) for quote in quotes)]
    for definition in used:
        body = text[definition.start : definition.end]
        if _states_any(body, wanted):
            yield definition
            continue
        for further in definitions:
            if (
                definition.stated
                and further is not definition
                and further not in used
                and further.stands_in(body)
                and _states_any(text[further.start : further.end], wanted)
            ):
                yield definition
                yield further
                break


def _states_any(body: str, wanted: set[FactKind]) -> bool:
    folded = fold_in_place(body)
    return any(states(folded, fact) for fact in wanted)
