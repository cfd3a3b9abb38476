"""Guesses the next tokens from what the request has already seen (prompt lookup).

Source: Saxena, Prompt Lookup Decoding (2023), and Yang et al., LLMA (arXiv 2304.04487): an answer
that quotes its source repeats it, so the tokens that followed the last three before are a good
guess. A guess is checked by the model in the same step as the next token; greedy answers stay the
same, token for token, up to the rounding of a product over several rows.
"""

from __future__ import annotations

from collections.abc import Iterable

MATCH = 3
GUESSED = 3
"""Tokens that must match, and tokens guessed. On the default model three more rows in a step cost
about a quarter more time, so one guess in four must come true to pay."""

GUESSED_IN_PAGES = 7
"""Tokens guessed on a GPU, where a step of eight rows reads the same weights as one: on an H200
quoting answers of the default model were 2.4 times as fast with 3, 3.4 with 7 and 4.6 with 15,
which changed 6 answers of 20 (docs/benchmarks/decode-h200.md)."""


MOST_GUESSED = 15
"""A step in pages scores sixteen rows."""


class PromptLookup:
    """Where each run of `MATCH` tokens was last seen."""

    def __init__(self, seen: Iterable[int], guessed: int = GUESSED) -> None:
        """At most `MOST_GUESSED` tokens are guessed, however many are wanted."""
        self._guessed = min(guessed, MOST_GUESSED)
        self._tokens: list[int] = []
        self._places: dict[tuple[int, ...], int] = {}
        for token in seen:
            self.add(token)

    def add(self, token: int) -> None:
        """One more token has been seen."""
        # The run that ends before `token` is entered now that something follows it.
        if len(self._tokens) >= MATCH:
            self._places[tuple(self._tokens[-MATCH:])] = len(self._tokens)
        self._tokens.append(token)

    def guess(self) -> list[int]:
        """The tokens that followed when the last `MATCH` tokens were seen before; often empty."""
        place = self._places.get(tuple(self._tokens[-MATCH:]))
        return [] if place is None else self._tokens[place : place + self._guessed]
