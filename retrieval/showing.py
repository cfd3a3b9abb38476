"""Which of the ranked sentences are worth showing: as many as it takes, and no more.

A reader wants one quote. A further one is shown while it is still open whether those before it
answer, and only when it may answer itself. It knows the order and the likelihood of sentences, not
their words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from retrieval.types import Sentence

MOST = 5
"""Quotes shown at most."""
_MOST_UNSURE = 3
"""Quotes shown at most where no likelihood is known."""
_SURE = 0.05
"""Chance that none of the quotes before answers, below which no more are shown."""
_LEAST = 0.05
"""Likelihood below which a further quote is not shown."""


def worth_showing(sentence: Sentence, before: Sequence[Sentence], closeness: float) -> bool:
    """Whether `sentence` should be shown after those `before` it. Where no likelihood is known it
    must score at least `closeness` of the first one's score."""
    if not before:
        return True
    if sentence.likely is None:
        return len(before) < _MOST_UNSURE and sentence.score >= closeness * before[0].score
    missed = math.prod(1 - (one.likely or 0.0) for one in before)
    return sentence.likely >= _LEAST and missed >= _SURE


def shown(
    sentences: Sequence[Sentence], limit: int = MOST, closeness: float = 0.75
) -> tuple[Sentence, ...]:
    """The sentences of one document, best first, that are worth showing."""
    chosen: list[Sentence] = []
    for sentence in sentences:
        if len(chosen) < limit and worth_showing(sentence, chosen, closeness):
            chosen.append(sentence)
    return tuple(chosen)
