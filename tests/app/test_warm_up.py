"""The first prompt, of an engine here and of servers elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.warm_up import PROMPT, warm_up
from backend.errors import BackendError
from backend.types import TokenEvent


class Engine:
    """Fails with `failure`, before the first event or in the last."""

    def __init__(self, *, here: bool, failure: str = "", late: bool = False) -> None:
        self.attends_pages = here
        self.tokenizer = SimpleNamespace(encode=lambda text: [len(word) for word in text.split()])
        self.failure, self.late = failure, late
        self.requests: list[Any] = []

    def generate(self, request: Any) -> Iterator[TokenEvent]:
        self.requests.append(request)
        if self.failure and not self.late:
            raise BackendError(self.failure)
        finish: Any = "error" if self.failure else "length"
        return iter([TokenEvent("warm-up", 0, 1, "a", finish, error=self.failure)])


def test_both_kinds_of_engine_get_what_they_take() -> None:
    engine = Engine(here=False)
    warm_up(cast("Any", engine))
    (request,) = engine.requests
    assert request.prompt_ids and request.messages == (("user", PROMPT),)
    assert request.sampling.max_tokens == 2


@pytest.mark.parametrize("late", [False, True])
def test_a_failure_here_is_raised(late: bool) -> None:
    with pytest.raises(BackendError, match="no memory"):
        warm_up(cast("Any", Engine(here=True, failure="no memory", late=late)))


def test_servers_that_are_down_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warm_up(cast("Any", Engine(here=False, failure="refused")))
    assert "refused" in caplog.text
