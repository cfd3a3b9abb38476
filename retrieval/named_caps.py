"""Which of several caps a question names: the general cap is not the super cap.

Where a contract has a general cap, a super cap and claims without one, their sentences share all
words but one. It knows caps by the word before "cap", in English; a cap that a contract only
describes ("for all other claims") it does not tell apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from retrieval.folding import fold
from retrieval.query import Query
from retrieval.types import Sentence

_ASKED = re.compile(r"\b(?:the|a|an|our|my)\s+(?P<name>[a-z]+)[\s-](?:liability\s+)?cap\b")
_ANY = frozenset(("liability", "total", "overall", "aggregate", "maximum", "same", "applicable"))
"""Words before "cap" that name none."""
_FIGURE = re.compile(
    r"\d|\b(?:hundred|thousand|million|billion|times|per\s?cent|unlimited|uncapped|no cap)\b"
)


def named_cap_first(text: str, query: Query, ranked: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The ranked sentences, before them the first that names the cap asked for and says how high it
    is, where the first one does not name it."""
    asked = _ASKED.search(fold(query.text))
    if asked is None or asked["name"] in _ANY or not ranked:
        return tuple(ranked)
    named = re.compile(rf"\b{asked['name']}[\s-](?:liability\s+)?cap\b")
    for place, one in enumerate(ranked):
        said = fold(text[one.start : one.end])
        if named.search(said):
            if place == 0:
                break
            if not _FIGURE.search(said):
                continue
            likely = None if one.likely is None else max(one.likely, ranked[0].likely or 0.0)
            moved = replace(one, score=ranked[0].score + 1e-6, likely=likely)
            return (moved, *ranked[:place], *ranked[place + 1 :])
    return tuple(ranked)
