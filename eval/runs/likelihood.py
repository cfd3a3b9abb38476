"""How likely the model finds an answer in a given context.

Mean negative log-likelihood of the gold answer, the measure of Press et al., "Train Short, Test
Long" (2022), restricted to the answer's tokens: it moves long before an answer turns from wrong to
right. Choices are compared by log-likelihood per token, as in Brown et al., "Language Models are
Few-Shot Learners" (2020), section 2.4.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from app.prompt import PromptPlan
from backend.errors import BackendError
from eval.types import Question

if TYPE_CHECKING:
    from backend.engine import Engine

ANSWER_TOKENS = 400
"""A longer gold answer is cut to its first tokens."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


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


def best_choice(engine: Engine, plan: PromptPlan, question: Question) -> str | None:
    """The letter of the likeliest choice; the first of equals. None without choices."""
    scored = [(_nll(engine, plan, words), words) for words in question.choices]
    known = [
        (nll, letter) for (nll, _), letter in zip(scored, LETTERS, strict=False) if nll is not None
    ]
    return min(known)[1] if known else None


def _nll(engine: Engine, plan: PromptPlan, answer: str) -> float | None:
    tokens = engine.tokenizer.encode(answer)[:ANSWER_TOKENS]
    if not tokens:
        return None
    scores = engine.score(
        plan.prompt_ids,
        tokens,
        document_key=plan.document_key,
        evidence=plan.evidence,
        sink_len=plan.sink_len,
    )
    nll = -statistics.fmean(scores)
    if not math.isfinite(nll):
        raise BackendError(f"The model gives the answer {answer[:40]!r} a likelihood of {nll}")
    return nll
