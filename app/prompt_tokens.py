"""The tokens of a prompt that may be far too long: a text of megabytes costs no more than one that
fills the model's window.

A tokenizer takes seconds and hundreds of megabytes for a text of 15 MB, only for it to be refused.
Here such a text is counted piece by piece, until it is sure that it does not fit.
"""

from __future__ import annotations

from typing import Protocol

SURE = 2
"""A text whose pieces have more tokens than this many times the limit is over it: cutting a text
adds a few tokens at each cut, and never half of them."""
SHORT_CHARS = 4
"""For each token of the limit: a text that is no longer is not counted before."""
LEAST_PIECE = 16_384
"""Characters."""


class Encoder(Protocol):
    """The part of a tokenizer that is needed here."""

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The tokens of `text`; with `special` control tokens written out in it too."""


def encoded_within(tokenizer: Encoder, text: str, limit: int) -> list[int] | None:
    """The tokens of `text`, control tokens included; None where they are surely more than `limit`.
    One that is given may still have some more than that."""
    piece = max(SHORT_CHARS * limit, LEAST_PIECE)
    if len(text) > piece:
        count = 0
        for start in range(0, len(text), piece):
            count += len(tokenizer.encode(text[start : start + piece], special=True))
            if count > SURE * limit:
                return None
    return tokenizer.encode(text, special=True)
