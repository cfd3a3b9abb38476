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
    go.set()
    for thread in (*threads, *late):
        thread.join(30)
        assert not thread.is_alive()
    assert len(count) == SEARCHES
