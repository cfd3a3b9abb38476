"""Orders the best sentences by how likely the model finds the question after each of them.

P(question | sentence) asks little of a model: it need not answer, only be less surprised. It joins
the order of retrieval by reciprocal ranks and never brings in a sentence that retrieval did not
find. Does not decide whether a document answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answer.evidence import Candidate, Found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.documents import LoadedDocument
    from app.engines import AnyEngine

RANK_CONSTANT = 2
"""Added to each rank before its reciprocal is taken: small, because only few sentences compete."""


def rerank(
    engine: AnyEngine,
    found: Found,
    documents: Sequence[LoadedDocument],
    question: str,
    *,
    limit: int = 10,
) -> Found:
    """The same evidence with its best `limit` candidates in the joined order."""
    candidates = found.candidates[:limit]
    scores = [question_likelihood(engine, c, documents, question) for c in candidates]
    by_model = sorted(range(len(candidates)), key=lambda index: -scores[index])
    place = {index: rank for rank, index in enumerate(by_model)}

    def joined(index: int) -> float:
        return 1 / (RANK_CONSTANT + index) + 1 / (RANK_CONSTANT + place[index])

    order = sorted(range(len(candidates)), key=lambda index: -joined(index))
    return found.ordered([*(candidates[index] for index in order), *found.candidates[limit:]])


def question_likelihood(
    engine: AnyEngine, candidate: Candidate, documents: Sequence[LoadedDocument], question: str
) -> float:
    """Mean log-probability (nats a token) of the question after the sentence."""
    sentence = candidate.sentence
    words = documents[candidate.document].text[sentence.start : sentence.end]
    heading = f"{sentence.chunk.heading}\n" if sentence.chunk.heading else ""
    prompt = engine.tokenizer.encode(f"{heading}{words}\n\nQuestion:")
    continuation = engine.tokenizer.encode(f" {question}")
    scores = engine.score(prompt, continuation)
    return sum(scores) / len(scores)
