"""English words of a folded text with their Snowball stems and places.

Words of letters and digits; an apostrophe-s is cut off. It knows no Chinese: those runs are
handled by `tokens`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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


class _OwnStems(dict[str, str]):
    """Stems by word, each found once."""

    def __missing__(self, word: str) -> str:
        found = self[word] = stem.__wrapped__(word)
        return found


_stemming: ContextVar[Callable[[str], str]] = ContextVar("stemming", default=stem)


def stemming() -> Callable[[str], str]:
    """What gives the stems of words here: `stem`, but within `own_stems`."""
    return _stemming.get()


@contextmanager
def own_stems() -> Iterator[None]:
    """Within the block stems are found anew and kept for the block alone. A contract's first words
    would else be found the sooner, the more of them another contract had: by 5 to 15% of the time
    of an index, which told that somebody had uploaded the same text."""
    token = _stemming.set(_OwnStems().__getitem__)
    try:
        yield
    finally:
        _stemming.reset(token)


def words(folded: str) -> list[Word]:
    """All English words, stop words included, in order."""
    of = stemming()
    return [Word(of(m.group()), m.start(), m.end()) for m in _WORD.finditer(folded)]
