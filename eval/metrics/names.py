"""What each metric is called, which way is better and what a failed sample scores.

The keys of a sample's `scores` and of a summary come from here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Needs = Literal["reply", "citations", "hits", "choice"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a sample.

    `better`: which way is better. `total`: summed over samples, else averaged. `on_failure`: what a
    failed or unfit sample scores where the metric applies to its question; None leaves it out.
    `needs`: what a run must give for the metric to say anything; a run of which no reply has it
    gets null. `share`: every value lies in 0 to 1.
    """

    name: str
    better: Literal["more", "less"] = "more"
    total: bool = False
    on_failure: float | None = 0.0
    needs: Needs = "reply"
    share: bool = True


METRICS: tuple[Metric, ...] = (
    Metric("f1"),
    Metric("em"),
    Metric("f1_words"),
    Metric("f1_answerable"),
    Metric("em_answerable"),
    Metric("rouge_l"),
    Metric("rouge_l_words"),
    Metric("number_accuracy"),
    Metric("date_accuracy"),
    Metric("clause_accuracy"),
    Metric("unmarked_wrong_figures", "less", total=True, on_failure=None, share=False),
    Metric("wrong_by_product_reader", "less", total=True, on_failure=None, share=False),
    Metric("wrong_by_plain_reader", "less", total=True, on_failure=None, share=False),
    Metric("unmarked_wrong_replies", "less", on_failure=None),
    Metric("figures_not_in_gold", "less", total=True, on_failure=None, share=False),
    Metric("citation_hit", needs="citations"),
    Metric("citation_first_hit", needs="citations"),
    Metric("citation_precision", needs="citations"),
    Metric("citation_verified", needs="citations"),
    Metric("refusal_accuracy"),
    Metric("false_refusal", "less"),
    Metric("recall_at_1", needs="hits"),
    Metric("recall_at_5", needs="hits"),
    Metric("recall_at_10", needs="hits"),
    Metric("mrr", needs="hits"),
    Metric("char_recall_at_1", needs="hits"),
    Metric("char_recall_at_5", needs="hits"),
    Metric("char_recall_at_10", needs="hits"),
    Metric("choice_accuracy", needs="choice"),
    Metric("answer_nll", "less", on_failure=None, share=False),
    Metric("nll_not_finite", "less", total=True, on_failure=None, share=False),
)

BY_NAME = {metric.name: metric for metric in METRICS}

STABLE_KEYS = (
    "n",
    "f1",
    "em",
    "rouge_l",
    "number_accuracy",
    "unmarked_wrong_figures",
    "citation_hit",
    "citation_verified",
    "refusal_accuracy",
    "false_refusal",
    "recall_at_1",
    "recall_at_5",
    "recall_at_10",
    "answer_nll",
    "failed",
    "ttft_ms",
)
"""Present in every summary, null where nothing applies."""

GROUP_INTERVALS = (
    "f1",
    "rouge_l",
    "number_accuracy",
    "citation_hit",
    "refusal_accuracy",
    "false_refusal",
    "recall_at_1",
    "recall_at_5",
    "choice_accuracy",
    "answer_nll",
)
"""Metrics that have an interval in a breakdown; the whole run has one for every mean."""
