"""Where a contract names itself, its parties and its date: passages near its start.

Such questions share few words with the answer ("What is this contract called?" – "CO-BRANDING
AGREEMENT"), so the look of the passage decides. It does not know which of several dates is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from retrieval.contents import in_contents
from retrieval.folding import fold_width
from retrieval.types import Chunk

_LOOKED_AT, _BEHIND_CONTENTS = 12, 40
"""Chunks at the start of the document that are considered, without and with those that are mostly
its table of contents."""

_TITLE = re.compile(
    r"\b[A-Z][A-Z&,'/ -]{0,60}(?:AGREEMENT|CONTRACT|LEASE|AMENDMENT|DEED|LICENSE|PLAN)\b"
    r"|\b[Tt]his (?:[A-Z][\w&-]+ ){1,6}Agreement\b"
    r"|^[^\n。，]{1,30}(?:合同|协议书?|法|条例|解释)\s*$",
    re.MULTILINE,
)
_PARTIES = re.compile(
    r"by and (?:between|among)|\bbetween\b[^.]{5,400}\band\b|hereinafter"
    r"|[(](?:the|each|collectively)?"
    r'[^)]{0,30}"[A-Z][^")]{1,40}"[^)]{0,30}[)]'
    r"|(?:甲|乙|[买卖供受需]|发包|承包|出租|承租|委托|受托|许可|保管|存货|贷款|借款)[方人]?\s*(?:[(][^)]{1,12}[)])?\s*:"
    r"|以下简称|下称"
)
_DATE = re.compile(
    r"(?:dated|entered into|made|effective|executed|signed|as of)[^.\n]{0,60}\d"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)"
    r"\s+\d{1,2},?\s+\d{4}|\d{4}\s*年\s*\d{1,2}\s*月|签订(?:时间|日期|于)|签署日期"
)
_KINDS = {"title": (_TITLE, 1.2), "parties": (_PARTIES, 0.7), "date": (_DATE, 0.6)}


def front_chunks(text: str, chunks: Sequence[Chunk]) -> Mapping[str, Mapping[int, float]]:
    """For each kind of passage, the chunks near the start that look like it, with a bonus that
    falls with the distance."""
    found: dict[str, dict[int, float]] = {kind: {} for kind in _KINDS}
    looked_at = 0
    for place, chunk in enumerate(chunks[:_BEHIND_CONTENTS]):
        if looked_at == _LOOKED_AT:
            break
        # The preamble may stand behind a table of contents as long as the first ten chunks.
        looked_at += not in_contents(text, (chunk.start + chunk.end) // 2)
        part = fold_width(text[chunk.start : chunk.end])
        for kind, (pattern, weight) in _KINDS.items():
            if pattern.search(part):
                found[kind][place] = weight / (1 + 0.5 * len(found[kind]))
    return found


def looks_like(kind: str, sentence: str) -> bool:
    """Whether a sentence (width folded) looks like a title, a list of parties or a date."""
    return bool(_KINDS[kind][0].search(sentence))
