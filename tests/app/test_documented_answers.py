"""The answers and offsets that the documentation shows are those that the samples give."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from app.ask import ask
from app.events import AnswerCompleted
from app.settings import Settings
from app.types import Answer, AskOptions

if TYPE_CHECKING:
    from app.services import Services

Start = Callable[..., "Services"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", heartbeat_s=0.5)


def answer_on(services: Services, sample: str, question: str) -> Answer:
    """What is answered by the quotes alone, which no model changes."""
    record, _ = services.library.add(ROOT / sample, Path(sample).name)
    assert services.library.wait(record.id, 60).status == "completed"
    # What was read is on record: nothing else is asked of it.
    engine: Any = SimpleNamespace(progress=lambda _: None)
    documents = [services.library.load(record.id)]
    options = AskOptions(phrase=False)
    *_, last = ask(engine, documents, question, request_id="r1", options=options)
    assert isinstance(last, AnswerCompleted)
    return last.answer


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_what_the_readme_shows_is_what_is_quoted(start: Start, readme: str) -> None:
    text = (ROOT / readme).read_text("utf-8")
    shown = re.search(r'fineprint ask (\S+) -q "([^"]+)"\n```\n\n((?:>.*\n)+)', text)
    assert shown is not None
    sample, question, quoted = shown.groups()
    lines = [line.removeprefix(">").strip() for line in quoted.splitlines()]
    answer = answer_on(start(), sample, question)
    assert [line for line in lines if line] == answer.answer.splitlines()


def test_the_page_in_the_first_steps_is_that_of_the_first_quote(start: Start) -> None:
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    sample = re.search(r"file=@(\S+)", text)
    question = re.search(r'"question": "([^"]+)"', text)
    page = re.search(r"pages/(\d+)\.png\?start=(\d+)&end=(\d+)", text)
    assert sample and question and page
    [quote, *_] = answer_on(start(), sample[1], question[1]).citations
    assert (quote.page, quote.start_char, quote.end_char) == tuple(map(int, page.groups()))
