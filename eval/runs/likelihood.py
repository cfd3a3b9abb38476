"""How likely the model finds an answer in a given context, and which of its figures it would say.

Mean negative log-likelihood of the gold answer, the measure of Press et al., "Train Short, Test
Long" (2022), restricted to the answer's tokens: it moves long before an answer turns from wrong to
right. A figure of the gold answer (an amount, share, duration, date or clause number, as the
answer checks find them) is right when each of its tokens is the greedy choice after the gold text
before it: what a small model says by itself wanders off, and then nothing can be compared. Choices
are compared by log-likelihood per token, as in Brown et al., "Language Models are Few-Shot
Learners" (2020), section 2.4.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.answer.items import ItemKind, find_items
from app.prompt import PromptPlan
from backend.errors import BackendError
from eval.types import Question, Span

if TYPE_CHECKING:
    from backend.engine import Engine

ANSWER_TOKENS = 400
"""A longer gold answer is cut to its first tokens."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class GoldFigure:
    """A figure of the gold answer; `right` when greedy decoding gives all its tokens."""

    kind: ItemKind
    right: bool


@dataclass(frozen=True, slots=True)
class GoldScore:
    """Nats per token of a gold answer, and its figures that stand in the tokens scored."""

    nll: float
    figures: tuple[GoldFigure, ...]


def gold_answer(question: Question) -> str:
    """The first gold answer, or the text of the right choice; empty where there is none."""
    if question.is_impossible:
        return ""
    if question.answers:
        return question.answers[0]
    place = LETTERS.find(question.answer.strip().upper()) if question.answer.strip() else -1
    return question.choices[place] if 0 <= place < len(question.choices) else ""


def answer_nll(engine: Engine, plan: PromptPlan, question: Question) -> float | None:
    """Nats per token of the gold answer after the prompt; None for a question without one. Raises
    BackendError."""
    return _nll(engine, plan, gold_answer(question))


def gold_score(engine: Engine, plan: PromptPlan, question: Question) -> GoldScore | None:
    """As `answer_nll`, with the answer's figures. Raises BackendError."""
    # Only those who ask for figures need the engine's modules.
    from backend.scoring import Scores

    answer = gold_answer(question)
    tokens, spans = engine.tokenizer.encode_with_spans(answer)
    if not tokens:
        return None
    scores = _scores(engine, plan, tokens[:ANSWER_TOKENS])
    if not isinstance(scores, Scores):
        raise BackendError("This engine does not tell which tokens it would have chosen")
    places = [(kind, _tokens(spans, (start, end))) for start, end, kind, _ in
              find_items(answer).keyed()]  # fmt: skip
    figures = tuple(
        GoldFigure(kind, all(scores.greedy[first:last]))
        for kind, (first, last) in places
        if last <= len(scores)
    )
    return GoldScore(_mean(scores, answer), figures)


def best_choice(engine: Engine, plan: PromptPlan, question: Question) -> str | None:
    """The letter of the likeliest choice; the first of equals. None without choices."""
    scored = [(_nll(engine, plan, words), words) for words in question.choices]
    known = [
        (nll, letter) for (nll, _), letter in zip(scored, LETTERS, strict=False) if nll is not None
    ]
    return min(known)[1] if known else None


def _nll(engine: Engine, plan: PromptPlan, answer: str) -> float | None:
    tokens = engine.tokenizer.encode(answer)[:ANSWER_TOKENS]
    return _mean(_scores(engine, plan, tokens), answer) if tokens else None


def _scores(engine: Engine, plan: PromptPlan, tokens: Sequence[int]) -> tuple[float, ...]:
    return engine.score(
        plan.prompt_ids,
        tokens,
        document_key=plan.document_key,
        evidence=plan.evidence,
        sink_len=plan.sink_len,
    )


def _mean(scores: tuple[float, ...], answer: str) -> float:
    nll = -statistics.fmean(scores)
    if not math.isfinite(nll):
        raise BackendError(f"The model gives the answer {answer[:40]!r} a likelihood of {nll}")
    return nll


def _tokens(spans: Sequence[Span], place: Span) -> Span:
    """The half-open range of tokens that hold any of the text at `place`."""
    held = [i for i, (start, end) in enumerate(spans) if start < place[1] and place[0] < end]
    return held[0], held[-1] + 1
