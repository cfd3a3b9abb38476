"""A question that leans on earlier ones, rewritten so that it stands alone.

"And for the second year?", "what about the supplier?", "why?", 那第二年呢？ get their missing words
from the last questions, by rules over wording; each language has its own (`followup_english`,
`followup_chinese`). A question that no rule resolves is asked as it stands. No model is asked, and
meaning is not known: the rewritten question is shown, so that a wrong one is seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from app import followup_chinese, followup_english
from app.listing_request import continuation
from app.types import Turn
from retrieval.language import detect

MAX_TURNS = 8
"""Earlier questions that are looked at: what lies further back is seldom meant."""
MAX_CHARS = 600
"""A question that grew longer than this by rewriting is not carried on."""

_CITED_CLAUSE = re.compile(r"\b(Clause [\w.()]+)[,)]|（(第[^，（）]{1,12}条[^，（）]{0,8})[，）]")


def standalone(question: str, history: Sequence[Turn], *, list_limit: int) -> str | None:
    """`question` with what it leans on put in; None when it stands alone or can't be resolved.

    Earlier questions are read in the same way first, so that "and for the third?" follows "and for
    the second?". `list_limit` is how many clauses a list shows at once ("the rest?").
    """
    before: str | None = None
    clause: str | None = None
    for turn in history[-MAX_TURNS:]:
        before = _rewritten(turn.question, before, clause, list_limit) or turn.question
        found = _CITED_CLAUSE.search(turn.answer)
        clause = (found[1] or found[2]) if found else None
        if len(before) > MAX_CHARS:
            before = turn.question
    return _rewritten(question, before, clause, list_limit)


def _rewritten(
    question: str, before: str | None, clause: str | None, list_limit: int
) -> str | None:
    """The standalone form given the question before and the first clause cited in its answer."""
    if before is None:
        return None
    rest = continuation(question, before, list_limit)
    if rest is not None:
        return rest
    chinese = detect(question) == "zh"
    # A bare "why?" asks on in its own language; what it leans on keeps its own words.
    rules = followup_chinese if chinese else followup_english
    found = rules.rewritten(question, before, clause)
    return None if found is None or found.strip() == question.strip() else found
