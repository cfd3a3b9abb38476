"""Token F1, exact match and ROUGE-L of a prediction against gold answers, best over these.

F1 and exact match as in SQuAD v2 (Rajpurkar, Jia, Liang, ACL 2018): an unanswerable question is
right with an empty prediction and wrong with any other. ROUGE-L is the F-measure of the longest
common subsequence with equal weight of precision and recall (Lin, "ROUGE", 2004). Does not stem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rapidfuzz.distance import LCSseq


def f1(prediction: Sequence[str], gold: Sequence[str]) -> float:
    """Harmonic mean of the shares of common tokens; of two texts one without tokens, whether the
    other has none either."""
    if not prediction or not gold:
        return float(list(prediction) == list(gold))
    return _f_measure((Counter(prediction) & Counter(gold)).total(), len(prediction), len(gold))


def exact_match(prediction: Sequence[str], gold: Sequence[str]) -> float:
    """1.0 for the same tokens in the same order."""
    return float(list(prediction) == list(gold))


def rouge_l(prediction: Sequence[str], gold: Sequence[str]) -> float:
    """ROUGE-L F-measure; 0.0 when either has no tokens."""
    if not prediction or not gold:
        return 0.0
    return _f_measure(LCSseq.similarity(prediction, gold), len(prediction), len(gold))


def _f_measure(common: int, predicted: int, expected: int) -> float:
    return 2 * common / (predicted + expected)
