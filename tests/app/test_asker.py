"""Questions of one process are searched for in turn, so that the engine's thread has its own."""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app import ask as asking
from app.asker import SEARCHES, asker_for
from app.pace import Stopped
from app.settings import Settings
from app.types import AskOptions


@pytest.fixture
def asker(monkeypatch: pytest.MonkeyPatch) -> partial[Any]:
    """What the server asks with, on documents that were read."""
    monkeypatch.setattr(asking, "coverage", lambda *_: None)
    monkeypatch.setattr(asking, "will_be_read", lambda *_: False)
    made = asker_for(Settings())
    assert isinstance(made, partial)
    return made


def ask(asker: partial[Any], cancelled: threading.Event) -> None:
    document = SimpleNamespace(record=SimpleNamespace(id="d"))
    with pytest.raises(Stopped):
        list(asker(None, [cast("Any", document)], "Who?", request_id="r", cancelled=cancelled))


def test_only_so_many_are_searched_for_at_once_and_who_left_is_not(
    asker: partial[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, count = threading.Semaphore(0), threading.Event(), []
    lock = threading.Lock()

    def find(*_: object) -> None:
        with lock:
            count.append(1)
        begun.release()
        assert go.wait(30)
        raise Stopped

    monkeypatch.setattr(asking, "find_parts", find)
    stays = [threading.Event() for _ in range(SEARCHES)]
    leaves = [threading.Event() for _ in range(5)]
    threads = [threading.Thread(target=ask, args=(asker, one)) for one in stays]
    for thread in threads:
        thread.start()
    for _ in stays:
        assert begun.acquire(timeout=30)
    late = [threading.Thread(target=ask, args=(asker, one)) for one in leaves]
    for thread in late:
        thread.start()
    for one in leaves:
        one.set()
    for thread in late:
        thread.join(30)
        assert not thread.is_alive(), "who left waits for no turn"
    go.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert len(count) == SEARCHES


def test_the_model_orders_sentences_out_of_turn(
    asker: partial[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, free = asker.keywords["turn"], []

    def rerank(*_: object) -> None:
        free.append([turn.acquire(blocking=False) for _ in range(SEARCHES)])
        for _ in range(SEARCHES):
            turn.release()

    def open_answer(*_: object) -> None:
        free.append([turn.acquire(blocking=False) for _ in range(SEARCHES)])
        for _ in range(SEARCHES - 1):
            turn.release()
        raise Stopped

    monkeypatch.setattr(asking, "find_parts", lambda *_: SimpleNamespace(answerable=True))
    monkeypatch.setattr(asking, "missing_clauses", lambda *_: ())
    monkeypatch.setattr(asking, "open_list", lambda *_: None)
    monkeypatch.setattr(asking, "rerank", rerank)
    monkeypatch.setattr(asking, "open_answer", open_answer)
    options = AskOptions(rerank=True, backtrack=False)
    ask(partial(asker, options=options), threading.Event())
    assert free == [[True] * SEARCHES, [True] * (SEARCHES - 1) + [False]]
