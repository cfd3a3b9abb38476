"""Finds gold answers in a document's text.

The offsets of a question set can be wrong: counted in bytes or UTF-16 units, or in a text that a
parser has changed since. They are used where the answer stands there; otherwise the answer is
looked for, first as it is, then without regard to white space. Knows no form of question sets.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from eval.types import Span

_NO_SPANS = frozenset({"yes", "no", "true", "false", "unanswerable", "是", "否", "不是"})
"""Answers that are a verdict, even where a text happens to hold the word."""


@dataclass(frozen=True, slots=True)
class Gold:
    """Answers, each pair of answer and place once, and the places of those that have one."""

    answers: tuple[str, ...]
    spans: tuple[Span, ...]


class AnswerFinder:
    """Looks for answers in one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._squeezed: tuple[str, array[int]] | None = None

    def near(self, answer: str, start: int) -> Span | None:
        """The place of `answer` at `start`, else the one nearest to it; None when the text does not
        hold it, white space aside."""
        if start >= 0 and self.text.startswith(answer, start):
            return start, start + len(answer)
        at = _nearest(self.text, answer, start)
        if at is not None:
            return at, at + len(answer)
        squeezed, places = self._without_space()
        bare = _squeeze(answer)
        found = squeezed.find(bare, bisect_left(places, start))
        if found < 0:
            found = squeezed.rfind(bare)
        if not bare or found < 0:
            return None
        span = places[found], places[found + len(bare) - 1] + 1
        return None if _inside_word(self.text, *span) else span

    def only(self, answer: str) -> Span | None:
        """The place of `answer` when it stands in the text once, as whole words; None for a
        verdict such as "yes" and where it can't be told which place is meant."""
        if answer.strip().lower() in _NO_SPANS:
            return None
        at = self.text.find(answer)
        if at < 0 or self.text.find(answer, at + 1) >= 0:
            return None
        span = at, at + len(answer)
        return None if _inside_word(self.text, *span) else span

    def locate(self, pairs: Iterable[tuple[str, int]], *, look_for_unplaced: bool) -> Gold:
        """The gold answers of one question, given with their starts (-1: none is given).

        Empty answers are left out. An answer without a start is looked for when
        `look_for_unplaced`. An answer found only without regard to white space is given as the text
        has it, so that every span holds its answer.
        """
        found: dict[tuple[str, Span | None], None] = {}
        for answer, start in pairs:
            if not answer.strip():
                continue
            span = None
            if start >= 0:
                span = self.near(answer, start)
            elif look_for_unplaced:
                span = self.only(answer)
            shown = answer if span is None else self.text[span[0] : span[1]]
            found[shown, span] = None
        answers = tuple(answer for answer, _ in found)
        return Gold(answers, tuple(span for _, span in found if span is not None))

    def _without_space(self) -> tuple[str, array[int]]:
        """The text without white space, and the place of each of its characters."""
        if self._squeezed is None:
            places = array("l", (at for at, c in enumerate(self.text) if not c.isspace()))
            self._squeezed = _squeeze(self.text), places
        return self._squeezed


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _nearest(text: str, wanted: str, start: int) -> int | None:
    """Where `wanted` stands nearest to `start` as whole words."""
    after = text.find(wanted, start)
    while after >= 0 and _inside_word(text, after, after + len(wanted)):
        after = text.find(wanted, after + 1)
    before = text.rfind(wanted, 0, start + len(wanted))
    while before >= 0 and _inside_word(text, before, before + len(wanted)):
        before = text.rfind(wanted, 0, before + len(wanted) - 1)
    found = [at for at in (before, after) if at >= 0]
    return min(found, key=lambda at: abs(at - start)) if found else None


def _inside_word(text: str, start: int, end: int) -> bool:
    """Whether a span begins or ends in the middle of a Latin word or a number."""
    return any(
        0 < at < len(text) and all(c.isascii() and c.isalnum() for c in text[at - 1 : at + 1])
        for at in (start, end)
    )
