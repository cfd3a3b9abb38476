"""The questions within a question: "What is the cap, and within how many days is it paid?".

A question is taken apart only where each part asks by itself, with a question word of its own. It
knows wording, not meaning: what a part leans on from the one before is not written out.
"""

from __future__ import annotations

import re

from retrieval.language import detect

MOST = 4
"""More parts than this are no question but a list; it is then asked as it stands."""

_ASKING_EN = (
    r"(?:what|which|who|whom|whose|when|where|why|how|(?:with)?in how|by when|by how|until when|"
    r"since when|for how|at what|on what|in what|to whom|for what|under which|under what|from when)"
)
_CUT_EN = re.compile(
    rf"\?\s+(?:and\s+)?(?=\S)|[,;]\s*(?:and\s+)?(?={_ASKING_EN}\b)|\s+and\s+(?={_ASKING_EN}\b)",
    re.IGNORECASE,
)
_ASKS_EN = re.compile(
    rf"^(?:and\s+)?(?:{_ASKING_EN}|is|are|was|were|does|do|did|can|may|must|shall|should|will|"
    r"would|has|have)\b",
    re.IGNORECASE,
)
_CUT_ZH = re.compile(r"[？?；;，,]\s*(?:以及|并且|另外|还有|同时)?")
_ASKS_ZH = re.compile(
    r"多少|多久|多长|几[天日年月个次时]|什么|谁|哪|何[时地处人]|是否|吗|如何|怎[么样]|有没有|能否|可否"
)
_LEAST_EN, _LEAST_ZH = 3, 4
"""Words, characters of a part: shorter ones say too little to be looked for."""


def parts_of(question: str) -> tuple[str, ...]:
    """The questions within `question`, in order; the question alone when it asks one thing, or more
    than `MOST`."""
    parts = _asked(question)
    if not 2 <= len(parts) <= MOST:
        return (question,)
    mark = "？" if detect(question) == "zh" else "?"
    return tuple(part + mark for part in parts)


def count_of_list(question: str) -> int:
    """How many questions there are in one that is a list of them and is asked as it stands; 0 for
    any other."""
    count = len(_asked(question))
    return count if count > MOST else 0


def _asked(question: str) -> list[str]:
    """The parts, without their marks; none where one of them asks nothing by itself."""
    chinese = detect(question) == "zh"
    cut = _CUT_ZH if chinese else _CUT_EN
    parts = [part.strip(" \t\n?？,，;；。") for part in cut.split(question)]
    parts = [part for part in parts if part]
    return parts if all(_asks(part, chinese) for part in parts) else []


def _asks(part: str, chinese: bool) -> bool:
    if chinese:
        return len(part) >= _LEAST_ZH and _ASKS_ZH.search(part) is not None
    return len(part.split()) >= _LEAST_EN and _ASKS_EN.search(part) is not None
