"""Which documents the engine is told of before a question, and how."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from app.readiness import start_reading
from backend.errors import RequestTooLarge


class Engine:
    """Knows some documents and holds only small ones."""

    def __init__(self, known: str) -> None:
        self.known = known
        self.asked: list[tuple[str, bool]] = []

    def progress(self, key: str) -> str | None:
        return "known" if key == self.known else None

    def read(self, tokens: Any, *, lazy: bool = False) -> str:
        self.asked.append((tokens.key, lazy))
        if tokens.key == "large" and not lazy:
            raise RequestTooLarge("Raise the KV budget.")
        return f"ticket of {tokens.key}"


def test_a_document_too_large_to_be_read_ahead_can_be_asked() -> None:
    engine = Engine(known="old")
    documents = [SimpleNamespace(tokens=SimpleNamespace(key=key)) for key in ("old", "large", "s")]
    tickets = start_reading(cast("Any", engine), cast("Any", documents))
    assert engine.asked == [("large", False), ("large", True), ("s", False)]
    assert cast("Any", tickets) == ("ticket of s",), "nobody may wait for what is read on demand"


def test_a_question_asked_early_does_not_move_its_document_up_the_line() -> None:
    engine = Engine(known="old")
    documents = [
        SimpleNamespace(tokens=SimpleNamespace(key=key), record=SimpleNamespace(final=final))
        for key, final in (("being taken in", False), ("complete", True))
    ]
    start_reading(cast("Any", engine), cast("Any", documents), ingesting_here=True)
    assert engine.asked == [("being taken in", True), ("complete", False)]
