"""Real text of a wanted number of tokens: windows over texts, and places where a sentence may be
put between two others.

A token has no meaning here beyond its place in the text. Knows no tasks.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.tokenizer import Tokenizer
from eval.errors import DatasetError
from retrieval.types import Language

# The next line's indentation stays with it.
_PARAGRAPH = re.compile(r"[.;:!?。；：！？][\"”’」』)）\]]*[^\S\n]*\n(?:[^\S\n]*\n)*")
_LINE = re.compile(r"\n(?:[^\S\n]*\n)*")
_SENTENCE = re.compile(r"[.;!?]\s+|[。；！？]")
_NEAR_TOKENS = 200
"""How far from the wanted place a better border is looked for, at most; a contract's paragraph has
about a hundred tokens."""
JOINT = "\n\n"


class Text:
    """A named text. Its tokens are made when they are asked for, once."""

    def __init__(self, name: str, text: str, lang: Language, tokenizer: Tokenizer) -> None:
        self.name = name
        self.text = text.strip() + JOINT
        self.lang = lang
        self._tokenizer = tokenizer

    @functools.cached_property
    def starts(self) -> NDArray[np.int32]:
        """The first character of each token."""
        _, spans = self._tokenizer.encode_with_spans(self.text)
        return np.asarray(spans, dtype=np.int32).reshape(-1, 2)[:, 0]


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of text with the first character of each token; `rounds` is how often the texts
    had to be gone through."""

    text: str
    starts: NDArray[np.int32]
    names: tuple[str, ...]
    rounds: int

    def cut(self, tokens: int) -> Window:
        """About the first `tokens` tokens, up to the border of a paragraph if one is near."""
        if tokens >= len(self.starts):
            return self
        reach = min(_NEAR_TOKENS, tokens // 200)
        end = self.border(tokens, reach)
        count = int(np.searchsorted(self.starts, end))
        return Window(self.text[:end], self.starts[:count], self.names, self.rounds)

    def place(self, depth: float) -> int:
        """The character before which a sentence may stand, near `depth` (0 to 1) in tokens."""
        if depth <= 0:
            return 0
        if depth >= 1:
            return len(self.text)
        return self.border(int(depth * len(self.starts)), _NEAR_TOKENS)

    def border(self, token: int, reach: int) -> int:
        """The start of a paragraph within `reach` tokens of `token`, else of a line, else of a
        sentence, else of the token."""
        token = min(max(token, 0), len(self.starts) - 1)
        wanted = int(self.starts[token])
        first = int(self.starts[max(0, token - reach)])
        last = int(self.starts[min(len(self.starts) - 1, token + reach)])
        for pattern in (_PARAGRAPH, _LINE, _SENTENCE):
            found = [match.end() for match in pattern.finditer(self.text, first, last + 1)]
            inside = [at for at in found if at <= last]
            if inside:
                return min(inside, key=lambda at: abs(at - wanted))
        return wanted


def window(texts: Sequence[Text], tokens: int, rng: random.Random, *, repeat: bool) -> Window:
    """At least `tokens` tokens of texts in random order, beginning somewhere in the first.

    Raises DatasetError when the texts hold too few, unless `repeat`.
    """
    order = list(texts)
    rng.shuffle(order)
    taken: list[Text] = []
    total, rounds = 0, 1
    while total < tokens:
        if len(taken) == rounds * len(order):
            if not repeat or total == 0:
                raise DatasetError(
                    f"The texts hold {total:,} tokens in this language and {tokens:,} are wanted. "
                    "Give more texts, ask for shorter documents, or allow --repeat."
                )
            rounds += 1
        taken.append(order[len(taken) % len(order)])
        total += len(taken[-1].starts)
    starts, parts, offset = [], [], 0
    for text in taken:
        starts.append(text.starts.astype(np.int32) + np.int32(offset))
        parts.append(text.text)
        offset += len(text.text)
    names = tuple(dict.fromkeys(text.name for text in taken))
    whole = Window("".join(parts), np.concatenate(starts), names, rounds)
    spare = min(total - tokens, len(taken[0].starts) // 2)
    if spare < 2 * _NEAR_TOKENS:
        return whole
    begin = whole.border(rng.randrange(spare - _NEAR_TOKENS), _NEAR_TOKENS // 2)
    skipped = int(np.searchsorted(whole.starts, begin))
    return Window(whole.text[begin:], whole.starts[skipped:] - begin, names, rounds)
