"""The scores of one sample: a question, the reply to it and the document's text.

Pure: no engine, no files. What the numbers mean is said where they are computed; which apply:

- F1 and exact match: every question with a gold answer, and unanswerable ones.
- ROUGE-L, figures, dates, clauses: questions with a gold answer. The three need such items in
  *every* gold answer: where one has none, a right answer may have none either.
- citations and retrieval: answerable questions with gold spans; `citation_verified` every reply
  that cites.
- `refusal_accuracy`: unanswerable questions; `false_refusal`: answerable ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from eval.metrics import citations, overlap
from eval.metrics.facts import Facts, Kind, facts, share
from eval.metrics.names import BY_NAME, METRICS
from eval.metrics.normalisation import (
    rouge_tokens,
    rouge_word_tokens,
    tokens,
    word_tokens,
)
from eval.metrics.retrieval import char_recall, rank_of
from eval.metrics.wrong_figures import wrong_figures
from eval.types import Question, Reply, Scores, Span
from retrieval.types import Language

_CUTS = (1, 5, 10)
_KINDS: tuple[tuple[str, Kind], ...] = (
    ("number_accuracy", "number"),
    ("date_accuracy", "date"),
    ("clause_accuracy", "clause"),
)


def score(question: Question, reply: Reply, text: str, lang: Language) -> Scores:
    """Every metric by name, None where it does not apply. `text` is the whole document."""
    scores = dict.fromkeys(BY_NAME, None) | _agreement(question, reply.prediction, lang)
    refused = float(reply.status == "not_found")
    if question.is_impossible:
        scores["refusal_accuracy"] = refused
    else:
        scores["false_refusal"] = refused
    scores["citation_verified"] = citations.verified(reply.citations, text)
    if not question.is_impossible and question.spans:
        scores["citation_hit"] = citations.hit(reply.citations, question.spans)
        scores["citation_first_hit"] = citations.hit(reply.citations[:1], question.spans)
        scores["citation_precision"] = citations.precision(reply.citations, question.spans)
        scores |= _found(reply.hits, question.spans)
    if question.choices and question.answer:
        right = (reply.choice or "").strip().casefold() == question.answer.strip().casefold()
        scores["choice_accuracy"] = float(right)
    wrong = wrong_figures(reply, question.answers, text)
    scores["unmarked_wrong_figures"] = float(wrong.either)
    scores["wrong_by_product_reader"] = float(wrong.by_product_reader)
    scores["wrong_by_plain_reader"] = float(wrong.by_plain_reader)
    scores["unmarked_wrong_replies"] = float(wrong.either > 0)
    if wrong.not_in_gold is not None:
        scores["figures_not_in_gold"] = float(wrong.not_in_gold)
    if reply.nll is not None:
        finite = math.isfinite(reply.nll)
        scores["answer_nll"] = reply.nll if finite else None
        scores["nll_not_finite"] = float(not finite)
    return scores


def failure_scores(
    gold: Sequence[str], lang: Language, *, answerable: bool, spans: bool, choice: bool
) -> Scores:
    """What a sample without a reply scores: wrong in everything that applies to its question.

    `spans`: it has gold spans; `choice`: it is a multiple-choice question.
    """
    applies = {"false_refusal"} if answerable else {"refusal_accuracy"}
    if gold or not answerable:
        applies |= {"f1", "em"} | ({"f1_words"} if lang == "zh" else set())
    if gold and answerable:
        applies |= {"f1_answerable", "em_answerable", "rouge_l"}
        applies |= {"rouge_l_words"} if lang == "zh" else set()
        found = [facts(answer) for answer in gold]
        applies |= {name for name, kind in _KINDS if _in_every(kind, found)}
    if answerable and spans:
        applies |= {m.name for m in METRICS if m.needs in ("citations", "hits")}
    if choice:
        applies.add("choice_accuracy")
    return {m.name: m.on_failure if m.name in applies else None for m in METRICS}


def _agreement(question: Question, prediction: str, lang: Language) -> Scores:
    if question.is_impossible:
        right = float(not prediction.strip())
        return {"f1": right, "em": right, "f1_words": right if lang == "zh" else None}
    if not question.answers:
        return {}
    mine = tokens(prediction, lang)
    golds = [tokens(answer, lang) for answer in question.answers]
    f1 = max(overlap.f1(mine, gold) for gold in golds)
    em = max(overlap.exact_match(mine, gold) for gold in golds)
    scores: Scores = {
        "f1": f1,
        "em": em,
        "f1_answerable": f1,
        "em_answerable": em,
        "rouge_l": _best_rouge(prediction, question.answers, rouge_tokens),
    }
    if lang == "zh":
        words = word_tokens(prediction, lang)
        gold_words = [word_tokens(answer, lang) for answer in question.answers]
        scores["f1_words"] = max(overlap.f1(words, gold) for gold in gold_words)
        scores["rouge_l_words"] = _best_rouge(prediction, question.answers, rouge_word_tokens)
    return scores | _facts_right(question.answers, prediction)


def _best_rouge(prediction: str, gold: Sequence[str], cut: Callable[[str], list[str]]) -> float:
    mine = cut(prediction)
    return max(overlap.rouge_l(mine, cut(answer)) for answer in gold)


def _facts_right(gold: Sequence[str], prediction: str) -> Scores:
    found = [facts(answer) for answer in gold]
    mine = facts(prediction)
    scores: Scores = {}
    for name, kind in _KINDS:
        if _in_every(kind, found):
            scores[name] = max(share(kind, answer, mine) or 0.0 for answer in found)
    return scores


def _in_every(kind: Kind, gold: Sequence[Facts]) -> bool:
    return all(share(kind, answer, answer) is not None for answer in gold)


def _found(hits: Sequence[Span], golds: Sequence[Span]) -> Scores:
    rank = rank_of(hits, golds)
    scores: Scores = {f"recall_at_{k}": float(0 < rank <= k) for k in _CUTS}
    scores["mrr"] = 1 / rank if rank else 0.0
    return scores | {f"char_recall_at_{k}": char_recall(hits[:k], golds) for k in _CUTS}
