"""The stream of the model's words, where `ask` as a whole can't show it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app import phrasing
from app.types import AskOptions
from backend.types import EngineTimings, TokenEvent, Usage


class Engine:
    """Waits for blocks until it is told to cancel."""

    def __init__(self) -> None:
        self.known: list[str] = []
        self.told: list[str] = []

    def generate(self, request: Any) -> Iterator[TokenEvent]:
        self.known.append(request.request_id)
        return self._events(request.request_id)

    def _events(self, request_id: str) -> Iterator[TokenEvent]:
        if request_id not in self.told:
            raise AssertionError("it would wait for ever")
        account = Usage(10, 4, 0, 0), EngineTimings(1.0, 2.0, 3.0, 0.0)
        yield TokenEvent(request_id, 0, None, "", "cancelled", *account)

    def cancel(self, request_id: str) -> None:
        assert request_id in self.known, "the engine knows the request by now"
        self.told.append(request_id)


@pytest.mark.parametrize(
    ("ends", "use", "finish"), [("cancelled", "none", "cancelled"), ("brief", "off", "quote")]
)
def test_an_end_before_the_request_reaches_the_engine(
    monkeypatch: pytest.MonkeyPatch, ends: str, use: str, finish: str
) -> None:
    plan = SimpleNamespace(prompt_ids=(1,), document_key=None, evidence=(), sink_len=0, messages=())
    monkeypatch.setattr(phrasing, "plan_phrasing", lambda *_: plan)
    engine, cancelled, brief = Engine(), threading.Event(), threading.Event()
    (cancelled if ends == "cancelled" else brief).set()
    document = SimpleNamespace(record=SimpleNamespace(owner="local"))
    events = phrasing.phrase(
        cast("Any", engine), cast("Any", [document]), cast("Any", SimpleNamespace(best_document=0)),
        (), "q", "en", "r1", cancelled, AskOptions(), offset=0,
        brief=brief,
    )  # fmt: skip
    with pytest.raises(StopIteration) as end:
        next(events)
    assert engine.told == ["r1"]
    assert (end.value.value.use, end.value.value.finish_reason) == (use, finish)
    assert end.value.value.usage == Usage(10, 4, 0, 0), "nothing was worded, and it was spent"
