"""Plain questions of daily work and the sentences that answer them in a contract's words.

"By how much can the rent go up?" shares a word or two with "the rent is adjusted each year by the
index", so likeness alone can refuse it. Each kind of question here has wordings that answer it and
little else. It knows wordings of a few kinds, no meaning: what it does not recognise is judged as
any other question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from retrieval.asked import holds
from retrieval.folding import fold_width
from retrieval.named_sums import states_before, states_sum
from retrieval.plain_kinds import KINDS
from retrieval.query import Query
from retrieval.types import Sentence

_PLAIN_CHARS = 120
"""A longer question is no plain one: it is judged by all of its words."""
_LOOKED_AT = 5
"""Of the ranked sentences, how many may answer."""
_SURE = 0.5
"""Likelihood from which on the first sentence stays the first."""
_BEGINNING = re.compile(
    r"^\W*(?:[\d.]+\s+)?[\"“](?:[\w-]+\s+)?(?:commencement|effective|start(?:ing)?|beginning)\s+date"
    r"[\"”]\s+means\b",
    re.IGNORECASE,
)
"""A definition that lawyers count to how long a contract runs, and that tells no end."""


def answering(query: Query) -> Callable[[str], bool] | None:
    """What tells the sentences that answer a question of one of the kinds; None for any other."""
    if len(query.text) > _PLAIN_CHARS:
        return None
    by_name = states_sum(query)
    asked = fold_width(query.text).strip()
    kinds = [kind for kind in KINDS if kind.asked.fullmatch(asked)]
    if by_name is None and not kinds:
        return None

    def answers(body: str) -> bool:
        if by_name is not None and by_name(body):
            return True
        wide = fold_width(body)
        return any(kind.answers(asked, wide) for kind in kinds)

    return answers


def answering_first(text: str, query: Query, ranked: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The ranked sentences, before them the first of those that answer a question of a known kind,
    as far as it stands among the best and the first is not sure to answer; of a sum asked for by
    its name, the first that puts a figure to it (see `named_sums`), wherever it stands."""
    answers = answering(query)
    if answers is None or not ranked:
        return tuple(ranked)
    first = text[ranked[0].start : ranked[0].end]
    sure = (ranked[0].likely or 0.0) >= _SURE and not _BEGINNING.match(first)
    by_name = states_before(query, first)
    if by_name is not None:
        answers = by_name
    elif sure or states_sum(query) is not None:
        return tuple(ranked)
    for place, one in enumerate(ranked[:_LOOKED_AT] if by_name is None else ranked):
        if answers(text[one.start : one.end]):
            if place == 0:
                break
            likely = None if one.likely is None else max(one.likely, ranked[0].likely or 0.0)
            return _led_by(replace(one, likely=likely), place, ranked)
    return tuple(ranked)


def stating_first(text: str, query: Query, ranked: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Of a plain question for an amount, the first likely sentence that states one, or a share,
    before a first one that states none: what lawyers count to "cap on liability" excludes whole
    kinds of loss, too, and "What is the liability cap?" asks for the figure."""
    if len(query.text) > _PLAIN_CHARS or query.asked != ("amount",):
        return tuple(ranked)
    for place, one in enumerate(ranked[:_LOOKED_AT]):
        if (one.likely or 0.0) < _SURE:
            break
        if holds(fold_width(text[one.start : one.end]), query.asked) > 0.0:
            if place == 0:
                break
            return _led_by(one, place, ranked)
    return tuple(ranked)


def _led_by(one: Sentence, place: int, ranked: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The ranked sentences, the one at `place` before all others, as `one`."""
    moved = replace(one, score=ranked[0].score + 1e-6)
    return (moved, *ranked[:place], *ranked[place + 1 :])


def is_answered(text: str, query: Query, ranked: Sequence[Sentence]) -> bool:
    """Whether the first sentence answers a question of a known kind."""
    answers = answering(query)
    return bool(ranked) and answers is not None and answers(text[ranked[0].start : ranked[0].end])
