"""Comparisons of short texts, with the readers that the product uses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.comparison_facts import read_facts
from retrieval.clauses import outline
from retrieval.compare import Comparison, Version, compare
from retrieval.language import detect
from retrieval.types import DocumentPage

Compare = Callable[[str, str], Comparison]


def version(text: str) -> Version:
    """A text on one page."""
    return Version(text, outline(text), (DocumentPage(1, 0, len(text)),), detect(text))


@pytest.fixture
def compared() -> Compare:
    """compared(old, new) with every quoted place checked against its text."""

    def run(old: str, new: str) -> Comparison:
        found = compare(version(old), version(new), read_facts)
        places = [(old, one.old) for one in found.changes] + [
            (new, one.new) for one in found.changes
        ]
        edits = [edit for one in found.changes for edit in one.edits]
        for pair in [*edits, *found.restated, *(f for one in found.changes for f in one.follows)]:
            places += [(old, pair.old), (new, pair.new)]
        for text, place in places:
            assert place is None or text[place.start : place.end] == place.text
        return found

    return run
