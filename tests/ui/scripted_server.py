"""The real server of page, REST API, storage and retrieval, with an engine that reads nothing: for
what the page must show, whatever a model says.

    python scripted_server.py PORT DATA_FOLDER [keys]

With `keys` the server asks for API keys; `fineprint keys` makes them.

A question that begins with "Slowly" is answered word by word for half a minute, unless stopped; one
that begins with "Patiently" until it is stopped, without a word; one that begins with "Misled"
finds something else the first time. Each block of a document takes PACE
seconds to "read". A document with the word HELD is read by a quarter, and to its end when somebody
posts to /held/release; a post to /held/hold holds such documents again.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from app.answer.evidence import Found, find
from app.api import create_app
from app.ask import ask
from app.events import AnswerCompleted, AnswerDelta, AnswerEvent, AnswerFailed
from app.services import open_services
from app.settings import ApiKeyUse, Settings
from app.types import AskOptions
from backend.types import ReadProgress
from ui.app import mount

PACE = 0.02
HELD = "Heldback"
ELSEWHERE = "How long is the term of this agreement?"


def slow_asker(
    engine: Any,
    documents: Sequence[Any],
    question: str,
    *,
    request_id: str,
    history: Sequence[Any] = (),
    cancelled: threading.Event | None = None,
    until_read: bool = False,
    brief: threading.Event | None = None,
) -> Iterator[AnswerEvent]:
    """The real answer without the model's words; slow when asked to be."""
    if question.startswith("Patiently"):
        assert cancelled is not None
        cancelled.wait()
        yield AnswerFailed("cancelled", "The answer was cancelled.")
        return
    slowly, wrong = question.startswith("Slowly"), question.startswith("Misled")
    # Looking again for the words of the question would find the right place at once.
    options = AskOptions(phrase=False, backtrack=not wrong)
    for event in ask(
        engine, documents, question, request_id=request_id, options=options, cancelled=cancelled,
        until_read=until_read and not slowly,
        brief=brief,
        search=misled() if wrong else find,
    ):  # fmt: skip
        if isinstance(event, AnswerCompleted) and slowly:
            assert cancelled is not None
            for word in range(600):
                if cancelled.wait(0.05):
                    yield AnswerFailed("cancelled", "The answer was cancelled.")
                    return
                yield AnswerDelta(f" word{word}", "phrasing")
        yield event


def misled() -> Callable[[Sequence[Any], str], Found]:
    """A search that looks for something else the first time."""
    asked: list[str] = []

    def search(documents: Sequence[Any], question: str) -> Found:
        asked.append(question)
        return find(documents, ELSEWHERE if len(asked) == 1 else question)

    return search


def fake_engine() -> Any:
    """The engine of the storage tests, reading at PACE; `release` ends what is held."""
    path = Path(__file__).parent.parent / "app" / "fake_engine.py"
    spec = importlib.util.spec_from_file_location("fake_engine", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class HeldTicket(module.FakeTicket):  # type: ignore[misc, name-defined]
        def progress(self) -> ReadProgress:
            blocks = self.document.blocks
            if self.cancelled.is_set() or released.is_set():
                told: ReadProgress = super().progress()
                return told
            total, read = blocks[-1][1], blocks[len(blocks) // 4][1]
            return ReadProgress(self.document.key, read, total, read, "reading")

    released = threading.Event()
    word = zlib.crc32(HELD.encode()) % 50_000

    class Reading(module.FakeEngine):  # type: ignore[misc, name-defined]
        def read(self, document: Any, **options: Any) -> Any:
            if word not in document.token_ids:
                return super().read(document, **options)
            self.tickets.append(HeldTicket(document, 0.0, ""))
            return self.tickets[-1]

        def hold(self) -> None:
            released.clear()

        def release(self) -> None:
            released.set()

        def progress(self, key: str) -> Any:
            known = [ticket for ticket in self.tickets if ticket.document.key == key]
            return known[-1].progress() if known else None

    return Reading(pace=PACE)


def main(port: int, folder: Path, *, keys: bool) -> None:
    """Serve until stopped."""
    needed: ApiKeyUse = "required" if keys else "off"
    settings = Settings(data_dir=folder, heartbeat_s=0.5, api_keys=needed)
    engine = fake_engine()
    with open_services(settings, engine=engine, serve=True) as services:
        app = create_app(services, asker=slow_asker, local_only=True)
        app.post("/held/hold")(engine.hold)
        app.post("/held/release")(engine.release)
        mount(app, f"http://127.0.0.1:{port}/api/v1", settings)
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), keys="keys" in sys.argv[3:])
