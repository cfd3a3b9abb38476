"""English words of a folded text with their Snowball stems and places.

Words of letters and digits; an apostrophe-s is cut off. It knows no Chinese: those runs are
handled by `tokens`.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import NamedTuple

import snowballstemmer

_WORD = re.compile(r"[a-z][a-z0-9]*")
_local = threading.local()


class Word(NamedTuple):
    """`folded[start:end]` and its stem."""

    stem: str
    start: int
    end: int


@lru_cache(maxsize=131_072)
def stem(word: str) -> str:
    """The Snowball (English) stem of a lower-case word."""
    # A stemmer object holds the word it works on, so each thread has its own.
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        stemmer = _local.stemmer = snowballstemmer.stemmer("english")
    return str(stemmer.stemWord(word))


def words(folded: str) -> list[Word]:
    """All English words, stop words included, in order."""
    return [Word(stem(m.group()), m.start(), m.end()) for m in _WORD.finditer(folded)]
