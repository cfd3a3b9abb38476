"""Planted changes stand where they are said to stand, and reprinting says the same."""

from __future__ import annotations

import re

import pytest

from eval.planted_changes import plant
from eval.reformatting import reprint

TEXT = "\n".join(
    f"{n}. Clause\n{n}.1 The Supplier shall provide item {n} within thirty (30) days after order.\n"
    f"{n}.2 The fee of USD {n},000 is due on March {n}, 2025, subject to Section {n}.1; it is 5%."
    for n in range(1, 25)
)


@pytest.mark.parametrize("seed", range(5))
def test_spans_hold_what_was_planted(seed: int) -> None:
    new, plants = plant(TEXT, "en", seed)
    assert len(plants) >= 9
    for one in plants:
        for (a, b), (c, d) in zip(one.old, one.new, strict=True):
            assert TEXT[a:b] != new[c:d]
    # Outside of the planted places both texts are the same.
    olds = sorted(span for one in plants for span in one.old)
    news = sorted(span for one in plants for span in one.new)
    x = y = 0
    for (a, b), (c, d) in zip(olds, news, strict=True):
        assert TEXT[x:a] == new[y:c]
        x, y = b, d
    assert TEXT[x:] == new[y:]


def test_reprinting_keeps_the_words_and_their_places() -> None:
    printed = reprint(TEXT * 4, "en", 3)
    bare = re.sub(r"\n\n- \d+ -\n\nEXECUTION COPY\n\n", " ", printed.text)
    assert bare.split() == (TEXT * 4).split()
    at = TEXT.index("USD 7,000")
    start, end = printed.span(at, at + 9)
    assert printed.text[start:end].split() == ["USD", "7,000"]
