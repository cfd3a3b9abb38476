"""Quotes with words left out: true where the words say little, a lie where they hold a negation or
a figure."""

from __future__ import annotations

import random
import re

from retrieval.types import Language

_WEIGHTY = {
    "en": re.compile(
        r"\d|\b(?:not|no|never|nor|neither|without|unless|except|excluding|only|cannot|provided|"
        r"subject|other|save|but|if|one|two|three|four|five|six|seven|eight|nine|ten|\w+teen|\w+ty)\b"
        r"|%|\bpercent|none|any\b|un\w+|in\w+able|prohibit|refus|fail|den[iy]|less|more|most|least",
        re.IGNORECASE,
    ),
    "zh": re.compile(r"\d|[零一二三四五六七八九十百千万两半不未无非没勿除但仅禁止免否拒停解少多]"),
}
_LIES = {
    "en": re.compile(
        r"\b(?:shall|will|may|must|does|do|is|are) (not)\b|\b(without|unless|except)\b[^.;]{4,60}"
        r"|(?<= )(\$?\d[\d,.]* (?:days|percent|dollars|months|years|million)?)",
    ),
    "zh": re.compile(r"(不(?:得|能|予|承担|超过))|(未[经按])|(\d[\d.,]*(?:元|%|日|个月|年|万元))"),
}


def left_out(
    text: str, language: Language, chance: random.Random, *, lie: bool
) -> tuple[str, str] | None:
    """(the text with an ellipsis, the words left out), None when the text has no such place."""
    spans = _lies(text, language) if lie else _harmless(text, language)
    # Words must stand on both sides, else nothing is left out of the middle.
    spans = [(a, b) for a, b in spans if text[:a].strip() and text[b:].strip(" .。;；,，")]
    if not spans:
        return None
    start, end = chance.choice(spans)
    mark = chance.choice((" … ", " ... ", " [...] ") if language == "en" else ("……", "…"))
    return text[:start].rstrip() + mark + text[end:].lstrip(), text[start:end]


def _lies(text: str, language: Language) -> list[tuple[int, int]]:
    found = []
    for match in _LIES[language].finditer(text):
        group = next(i for i, words in enumerate(match.groups(), start=1) if words)
        found.append(match.span(group))
    return found


def _harmless(text: str, language: Language) -> list[tuple[int, int]]:
    gap = r"(?<= )(?:[A-Za-z]+ ){2,6}" if language == "en" else "[\u4e00-\u9fff]{3,8}"
    return [
        match.span()
        for match in re.finditer(gap, text)
        if not _WEIGHTY[language].search(match[0])
        and not re.search(r"[\d《(]\s*$", text[: match.start()])
        and not re.match(r"\s*[\d》)]", text[match.end() :])
    ]
