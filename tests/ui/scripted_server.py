"""The real server of page, REST API, storage and retrieval, with an engine that reads nothing: for
what the page must show, whatever a model says.

    python scripted_server.py PORT DATA_FOLDER [keys]

With `keys` the server asks for API keys; `fineprint keys` makes them.

A question that begins with "Slowly" is answered word by word for half a minute, unless stopped.
Each block of a document takes PACE seconds to "read".
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from app.api import create_app
from app.ask import ask
from app.events import AnswerCompleted, AnswerDelta, AnswerEvent, AnswerFailed
from app.services import open_services
from app.settings import ApiKeyUse, Settings
from app.types import AskOptions
from ui.app import mount

PACE = 0.02


def slow_asker(
    engine: Any,
    documents: Sequence[Any],
    question: str,
    *,
    request_id: str,
    history: Sequence[Any] = (),
    cancelled: threading.Event | None = None,
    until_read: bool = False,
) -> Iterator[AnswerEvent]:
    """The real answer without the model's words; slow when asked to be."""
    options = AskOptions(phrase=False)
    for event in ask(engine, documents, question, request_id=request_id, options=options):
        if isinstance(event, AnswerCompleted) and question.startswith("Slowly"):
            assert cancelled is not None
            for word in range(600):
                if cancelled.wait(0.05):
                    yield AnswerFailed("cancelled", "The answer was cancelled.")
                    return
                yield AnswerDelta(f" word{word}", "phrasing")
        yield event


def fake_engine() -> Any:
    """The engine of the storage tests, reading at PACE."""
    path = Path(__file__).parent.parent / "app" / "fake_engine.py"
    spec = importlib.util.spec_from_file_location("fake_engine", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Reading(module.FakeEngine):  # type: ignore[misc, name-defined]
        def progress(self, key: str) -> Any:
            known = [ticket for ticket in self.tickets if ticket.document.key == key]
            return known[-1].progress() if known else None

    return Reading(pace=PACE)


def main(port: int, folder: Path, *, keys: bool) -> None:
    """Serve until stopped."""
    needed: ApiKeyUse = "required" if keys else "off"
    settings = Settings(data_dir=folder, heartbeat_s=0.5, api_keys=needed)
    with open_services(settings, engine=fake_engine(), serve=True) as services:
        app = create_app(services, asker=slow_asker, local_only=True)
        mount(app, f"http://127.0.0.1:{port}/api/v1", keys=keys)
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), keys="keys" in sys.argv[3:])
