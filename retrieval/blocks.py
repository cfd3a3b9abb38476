"""Where a document is cut into blocks of reading: at clauses, by what the text says there.

A cut depends on the text around it and not on what stands far before it. So a clause that is
changed or put in moves the cuts beside it at most, and all other blocks of the new version are
those of the old one, token for token.

The range is halved again and again, as a treap is built of random priorities (Seidel and Aragon,
"Randomized Search Trees", Algorithmica 16, 1996), until no part is too long: each time at the best
place, and among equals at the one whose following words have the smallest hash. Cutting from
the left, each time at the best place in reach, was tried on 18 long documents: where 540 paragraphs
were put in, more than three blocks changed in 4 to 22% of cases, here in 0.9%
(docs/benchmarks/kv-versions.md).

It knows no tokenizer: token places come as character spans.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval.clauses import outline

Range = tuple[int, int]

_SPACES = re.compile(r"\s+")
_SENTENCE = re.compile(r"[.;:!?]\s+|[。；！？]")
_LEAST_SHARE = 3 / 8
"""Of the longest block is the shortest. With a quarter, blocks are shorter on average; with seven
sixteenths there is little choice left where a part is just too long, and a paragraph put in changed
up to eight blocks."""
_HASHED = 32
"""Characters that decide between equal places. An edit there may move the cut."""
_CLAUSE, _LINE_START, _SENTENCE_START, _ANY = range(4)


def cut_blocks(text: str, token_spans: Sequence[Range], most: int) -> tuple[Range, ...]:
    """Half-open token ranges that cover the tokens in order, of at most `most` tokens each and, but
    for a short document, at least three eighths of that.

    `token_spans` are code point ranges of `text`, one per token. The choice depends on the
    arguments alone.
    """
    count = len(token_spans)
    if count == 0:
        return ()
    starts = np.fromiter((first for first, _ in token_spans), dtype=np.int64, count=count)
    kinds = _kinds(text, starts)
    least = max(int(most * _LEAST_SHARE), 1)
    ends = [count]
    left = [(0, count)]
    while left:
        first, last = left.pop()
        if last - first <= most:
            continue
        cut = _best(text, starts, kinds, first + least, last - least + 1)
        ends.append(cut)
        left += [(first, cut), (cut, last)]
    ends.sort()
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


def _kinds(text: str, starts: NDArray[np.int64]) -> NDArray[np.int8]:
    """What begins at each token."""
    kinds = np.full(len(starts), _ANY, dtype=np.int8)
    places: list[tuple[int, Iterable[int]]] = [
        (_SENTENCE_START, (match.end() for match in _SENTENCE.finditer(text))),
        (
            _LINE_START,
            (match.end() for match in _SPACES.finditer(text) if "\n" in match.group()),
        ),
        (_CLAUSE, (clause.start for clause in outline(text))),
    ]
    for kind, characters in places:
        tokens = np.searchsorted(starts, np.fromiter(characters, dtype=np.int64))
        kinds[tokens[tokens < len(starts)]] = kind
    return kinds


def _best(
    text: str, starts: NDArray[np.int64], kinds: NDArray[np.int8], first: int, last: int
) -> int:
    """The token of [first, last) to cut before; where several are equal (the same words again and
    again), the one nearest to the middle, or short pieces would be cut off one after another."""
    among = kinds[first:last]
    tokens = np.flatnonzero(among == among.min()) + first
    middle = first + last
    return int(
        min(tokens, key=lambda token: (_hash(text, int(starts[token])), abs(2 * token - middle)))
    )


def _hash(text: str, start: int) -> int:
    return zlib.crc32(text[start : start + _HASHED].encode("utf-8", "surrogatepass"))
