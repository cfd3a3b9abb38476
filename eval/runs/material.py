"""What of a document reaches the model: what retrieval found, or a control in its place.

    retrieved   as the product finds it
    gold        the chunks of the gold spans first, then what retrieval found (an upper bound)
    random      chunks drawn from the document by the run's seed (what any company is worth)
    none        nothing of the document

Whether a document answers at all stays retrieval's decision, but for `gold`: it answers what can be
answered. Knows no engine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from app.answer.evidence import Candidate, Found, find
from app.ask import MAX_QUESTION_CHARS
from app.documents import LoadedDocument
from app.prompt import evidence_ranges
from eval.errors import Unfit
from eval.types import Question
from retrieval.sentences import split as split_sentences
from retrieval.types import Chunk, Evidence, Hit, Language, Sentence

Source = Literal["retrieved", "gold", "random", "none"]
Search = Callable[[Sequence[LoadedDocument], str], Found]

HITS = 10
CHARS_A_TOKEN: dict[Language, float] = {"en": 4.0, "zh": 1.0}
"""Stands in for a tokenizer where there is none or where none may decide. Measured with the default
model's tokenizer: 4.3 (CUAD), 4.9 (ContractNLI) and 4.4 (MAUD) characters a token; Chinese 0.6, for
a vocabulary that was hardly trained on it; others need about one token a character."""


def search_of(source: Source, question: Question, seed: int) -> Search:
    """The search that `app.ask.ask` is given for this question. It raises Unfit for one that the
    product refuses for its length: searching for a book takes minutes."""

    def search(documents: Sequence[LoadedDocument], words: str) -> Found:
        if len(words) > MAX_QUESTION_CHARS:
            raise Unfit(
                f"The question has {len(words):,} characters; Fineprint takes "
                f"{MAX_QUESTION_CHARS:,} at most."
            )
        found = find(documents, words)
        if source == "retrieved":
            return found
        (document,) = documents
        evidence = found.evidence[0]
        if source == "gold":
            if not question.spans:
                return found
            evidence = _gold(document, question, evidence)
            return Found((evidence,), _candidates(evidence))
        if source == "random":
            evidence = _drawn(document, evidence, random.Random(f"{seed}/{question.qid}"))
        else:
            evidence = replace(evidence, hits=(), sentences=())
        return Found((evidence,), _candidates(evidence) if found.answerable else ())

    return search


def unrefused(found: Found) -> Found:
    """The same evidence with its candidates even where retrieval would refuse to answer."""
    return found if found.candidates else Found(found.evidence, _candidates(found.evidence[0]))


def passages_by_tokens(document: LoadedDocument, found: Found, max_tokens: int) -> tuple[str, ...]:
    """The text of exactly the token ranges that KV pages would be given for, best last."""
    spans = document.token_spans
    return tuple(
        document.text[int(spans[first][0]) : int(spans[last - 1][1])]
        for first, last in evidence_ranges(document, found.chunks(0), max_tokens=max_tokens)
    )


def passages_by_chars(document: LoadedDocument, found: Found, max_tokens: int) -> tuple[str, ...]:
    """The best chunks within a budget of estimated tokens (the best one always), best last."""
    chosen: list[str] = []
    left = float(max_tokens)
    for chunk in found.chunks(0):
        words = document.text[chunk.start : chunk.end]
        left -= estimated_tokens(len(words), document.index.language)
        if chosen and left < 0:
            break
        chosen.append(words)
    return tuple(reversed(chosen))


def estimated_tokens(chars: int, language: Language) -> int:
    """Tokens of a text by its length alone: the same for every model and mode."""
    return round(chars / CHARS_A_TOKEN[language])


def _gold(document: LoadedDocument, question: Question, evidence: Evidence) -> Evidence:
    sentences = []
    chunks: dict[int, Chunk] = {}
    for start, end in question.spans:
        touched = [c for c in document.index.chunks if c.start < end and start < c.end]
        if touched:
            sentences.append(Sentence(start, end, touched[0], 1.0))
        chunks |= {chunk.index: chunk for chunk in touched}
    best = evidence.hits[0].score if evidence.hits else 1.0
    others = [hit for hit in evidence.hits if hit.chunk.index not in chunks]
    hits = [*(Hit(chunk, best, 0, ()) for chunk in chunks.values()), *others][:HITS]
    return replace(evidence, hits=_ranked(hits), sentences=tuple(sentences), answerable=True)


def _drawn(document: LoadedDocument, evidence: Evidence, source: random.Random) -> Evidence:
    chunks = document.index.chunks
    drawn = source.sample(chunks, min(HITS, len(chunks)))
    sentences = []
    for chunk in drawn:
        if spans := split_sentences(document.text, chunk.start, chunk.end):
            sentences.append(Sentence(*source.choice(spans), chunk, 1.0))
    hits = _ranked([Hit(chunk, 1.0, 0, ()) for chunk in drawn])
    return replace(evidence, hits=hits, sentences=tuple(sentences))


def _ranked(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1))


def _candidates(evidence: Evidence) -> tuple[Candidate, ...]:
    return tuple(Candidate(0, sentence) for sentence in evidence.sentences)
