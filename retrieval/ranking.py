"""Which sentence of the best chunks answers the question: the quote that a user sees.

Lexical: coverage of the question's words, the kind of fact asked for, the rank of the chunk. A
heading or a fragment is a bad quote and ranks low; a list item takes its lead-in along when both
are short. It does not know meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval import tokens
from retrieval.asked import holds
from retrieval.coverage import coverage
from retrieval.folding import fold_width
from retrieval.index import SearchIndex
from retrieval.query import Query
from retrieval.sentences import Span, split
from retrieval.types import Hit, Sentence

_TOP_CHUNKS = 6
_MAX_QUOTE = 420
_ITEM = re.compile(r"\s*(?:[(（][^)）]{1,4}[)）]|[①-⑳]|\d{1,2}[、.)）．]|[a-z]\)|[-–•])")
_NUMBER_ONLY = re.compile(r"^[\s\d.()（）a-zA-Z第一二三四五六七八九十百条章节、．:：-]{0,14}$")


def _is_fragment(text: str) -> bool:
    """A heading, a lone number, a signature line or a blank form field."""
    body = text.strip()
    if len(body) < 6 or _NUMBER_ONLY.match(body):
        return True
    if re.search("[\u4e00-\u9fff]", body):
        return len(body) < 16 and not re.search(r"[。；;，,]", body)
    return len(body.split()) < 6 or (body.isupper() and len(body) < 100)


def _with_lead_in(text: str, spans: Sequence[Span], place: int) -> Span:
    """The span of a sentence, begun at the lead-in of its list when the whole stays short."""
    start, end = spans[place]
    if not _ITEM.match(text[start:end]):
        return start, end
    for back in range(place - 1, max(-1, place - 8), -1):
        left, right = spans[back]
        if end - left > _MAX_QUOTE:
            break
        if text[left:right].rstrip().endswith((":", "：")):
            return left, end
        if not _ITEM.match(text[left:right]):
            break
    return start, end


def rank_sentences(
    index: SearchIndex, query: Query, hits: Sequence[Hit], limit: int = 12
) -> tuple[Sentence, ...]:
    """The best sentences of the first chunks in `hits`, best first."""
    starts = [clause.start for clause in index.clauses]
    found: dict[Span, Sentence] = {}
    if not hits:
        return ()
    top = hits[0].score or 1.0
    for hit in hits[:_TOP_CHUNKS]:
        inside = [s for s in starts if hit.chunk.start < s < hit.chunk.end]
        spans = split(index.text, hit.chunk.start, hit.chunk.end, inside)
        heading = frozenset(tokens.terms(hit.chunk.heading))
        for place in range(len(spans)):
            span = _with_lead_in(index.text, spans, place)
            score = _score(index, query, hit, span, heading, top)
            known = found.get(span)
            if score > 0 and (known is None or known.score < score):
                found[span] = Sentence(span[0], span[1], hit.chunk, score)
    ordered = sorted(found.values(), key=lambda s: (-s.score, s.start))
    return tuple(ordered[:limit])


def _score(
    index: SearchIndex, query: Query, hit: Hit, span: Span, heading: frozenset[str], top: float
) -> float:
    body = index.text[span[0] : span[1]]
    own = frozenset(tokens.terms(body))
    idf = index.keywords.idf
    score = coverage(query.units, own, idf) + 0.3 * coverage(query.units, own | heading, idf)
    score += (
        0.15 * sum(concept.term in own for concept in query.concepts) / max(1, len(query.concepts))
    )
    score += 0.35 * hit.score / top
    if query.asked:
        score += 0.25 if holds(fold_width(body), query.asked) else -0.1
    if _is_fragment(body):
        score *= 0.4
    return score
