"""Questions that are very long or ask many things: what is left out for that is said."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.answer.evidence import Found, find
from app.ask import LONG_TOKENS, ask
from app.documents import LoadedDocument
from app.events import AnswerCompleted
from app.settings import Settings
from app.types import Answer
from backend.errors import BackendError
from backend.types import ReadProgress

NDA = (
    "NON-DISCLOSURE AGREEMENT\n\n"
    "1. Term\nThis Agreement runs for two years from 1 March 2024.\n\n"
    "2. Liability\nThe total liability of the Recipient shall not exceed USD 2,000,000.\n\n"
    "3. Law\nThis Agreement is governed by the laws of Sweden.\n"
)


class Asked:
    """One document and an engine that words nothing; `worded` counts what was asked of it."""

    def __init__(self, start: Callable[..., Any], make_engine: Callable[..., Any]) -> None:
        self.engine = make_engine()
        self.engine.progress = lambda key: ReadProgress(key, 100, 100, 100, "done")
        self.engine.generate = self._generate
        services = start(engine=self.engine, serve=True)
        record, _ = services.library.add(io.BytesIO(NDA.encode()), "nda.txt")
        services.library.wait(record.id, timeout=60)
        self._document = services.library.load(record.id)
        self.worded = 0
        self.searched: list[str] = []

    def _generate(self, _: object) -> Iterator[Any]:
        self.worded += 1
        raise BackendError("The model is away.")

    def _search(self, documents: Sequence[LoadedDocument], question: str) -> Found:
        self.searched.append(question)
        return find(documents, question)

    def answer(self, question: str) -> Answer:
        events = list(
            ask(self.engine, [self._document], question, request_id="r1", search=self._search)
        )
        assert isinstance(events[-1], AnswerCompleted)
        return events[-1].answer


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", heartbeat_s=0.5)


@pytest.fixture
def asked(start: Callable[..., Any], make_engine: Callable[..., Any]) -> Asked:
    return Asked(start, make_engine)


@pytest.mark.parametrize(("times", "codes", "searches"), [(1, [], 3), (3, ["many_parts"], 1)])
def test_many_things_are_looked_for_together_which_is_said(
    asked: Asked, times: int, codes: list[str], searches: int
) -> None:
    answer = asked.answer("What is the cap on liability? What is the governing law? " * times)
    told = [one for one in answer.warnings if one.code == "many_parts"]
    assert [one.code for one in told] == codes
    assert all("asks 6 things" in one.message for one in told)
    assert len(asked.searched) == searches


@pytest.mark.parametrize("pages", [True, False])
def test_a_very_long_question_is_worded_by_servers_elsewhere_alone(
    asked: Asked, pages: bool
) -> None:
    asked.engine.attends_pages = pages
    question = "What is the cap on the liability of the Recipient" + " or of him" * 360 + "?"
    assert len(asked.engine.tokenizer.encode(question)) > LONG_TOKENS
    answer = asked.answer(question)
    assert "USD 2,000,000" in answer.citations[0].quote
    assert asked.worded == (0 if pages else 1)
    told = [one.code for one in answer.warnings]
    assert told == (["long_question"] if pages else ["phrasing_failed"])
    assert answer.status == "answered"


def test_a_usual_question_is_worded(asked: Asked) -> None:
    assert [one.code for one in asked.answer("What is the cap on liability?").warnings] == [
        "phrasing_failed"
    ]
    assert asked.worded == 1
