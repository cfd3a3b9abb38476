"""Whether a sentence of the model may stand beside the quotes.

Knows the sentence, its checks, the quotes and the question; knows no engine and no document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from app.answer.checks import foreign_words
from app.types import Check
from retrieval.language import detect
from retrieval.types import Language

MAX_FOREIGN_WORDS = 0.25
"""Share of content words foreign to the quotes above which a sentence is not shown."""
MIN_NEW_WORDS = 0.25
"""Share of content words that must be more than an echo of the question."""
REPEATS = 0.8
"""Similarity to a quote above which a sentence tells the reader nothing new."""

_YES_NO = re.compile(r"^\s*(?:yes|no)\b[,.!]?|^\s*(?:是的|不是|否|对)[，。,.]", re.IGNORECASE)


def acceptable(
    words: str, checks: Sequence[Check], spans: Sequence[str], question: str, language: Language
) -> bool:
    """Whether a sentence may be shown: every check passes, it answers (see `answers`), and its
    words are mostly the quotes'."""
    if any(not check.ok for check in checks):
        return False
    return answers(words, question, language) and foreign_words(words, spans) <= MAX_FOREIGN_WORDS


def answers(words: str, question: str, language: Language) -> bool:
    """Whether a sentence says something of its own: in the question's language, no bare yes or no,
    no echo of the question."""
    if _YES_NO.match(words) or detect(words) != language:
        return False
    return foreign_words(words, [question]) >= MIN_NEW_WORDS


def repeats(sentence: str, spans: Sequence[str]) -> bool:
    """Whether a sentence is a quote, or a part of one, and tells the reader nothing new."""
    squeezed = re.sub(r"\W", "", sentence).lower()
    for span in spans:
        source = re.sub(r"\W", "", span).lower()
        if squeezed in source or SequenceMatcher(None, source, squeezed).ratio() > REPEATS:
            return True
    return False
