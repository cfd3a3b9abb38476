"""The REST application over real storage, with an engine that reads nothing and
scripted answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from app.events import (
    AnswerCompleted,
    AnswerCreated,
    AnswerDelta,
    AnswerEvent,
    AnswerFailed,
    CheckDone,
    CitationFound,
    CoverageChanged,
)
from app.settings import Settings
from app.types import Answer, AnswerUsage, Check, Citation, Coverage, PageBox, Timings

if TYPE_CHECKING:
    from app.services import Services

CONTRACT = (
    "SUPPLY AGREEMENT\n\n"
    "1. Term\nThis Agreement runs for two years from 1 March 2024.\n\n"
    "2. Price\nThe total price is EUR 1,250,000.00, payable within thirty days.\n\n"
    "3. Liability\nThe liability of the Supplier is capped at USD 2,000,000.\n"
)
QUOTE = "The total price is EUR 1,250,000.00, payable within thirty days."


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A temporary installation on SQLite, whose streams may be taken up again on a busy machine."""
    return Settings(
        data_dir=tmp_path / "data", max_upload_mb=2, heartbeat_s=0.5, stream_grace_s=5.0
    )


def completed(document_ids: Sequence[str], *, finish_reason: str = "quote") -> Answer:
    """An answer with one citation and one check."""
    return Answer(
        answer=f"“{QUOTE}” [1]",
        status="answered",
        language="en",
        citations=(
            Citation(
                quote=QUOTE,
                document_id=document_ids[0],
                document="contract.txt",
                page=1,
                page_label=None,
                start_char=CONTRACT.index(QUOTE),
                end_char=CONTRACT.index(QUOTE) + len(QUOTE),
                clause="2",
                boxes=(PageBox(1, 0.1, 0.2, 0.9, 0.3),),
                verified=True,
            ),
        ),
        checks=(Check("number", "1,250,000.00", True, 24, 36),),
        coverage=Coverage(40, 40),
        timings=Timings(1, 2, 0, 3, 4, 5, 6),
        usage=AnswerUsage(10, 8, 0, 5),
        finish_reason=finish_reason,
    )


class ScriptedAsker:
    """Answers when told to. `gate` holds every answer after its first delta until it is set;
    `fails` is raised instead; `started` counts answers under way; `change` is made to each answer.
    """

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.fails: Exception | None = None
        self.started = threading.Semaphore(0)
        self.histories: list[Any] = []
        self.waited: list[bool] = []
        self.cancelled = threading.Semaphore(0)
        self.change: Callable[[Answer], Answer] = lambda answer: answer

    def __call__(
        self,
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
        assert cancelled is not None
        self.waited.append(until_read)
        self.histories.append(tuple(history))
        ids = tuple(document.record.id for document in documents)
        answer = self.change(completed(ids))
        yield AnswerCreated(request_id, question, "en", ids)
        if self.fails is not None:
            raise self.fails
        yield CoverageChanged(answer.coverage)
        yield AnswerDelta(answer.answer, "quote")
        self.started.release()
        while not self.gate.wait(0.01):
            if cancelled.is_set():
                self.cancelled.release()
                yield AnswerFailed("cancelled", "The answer was cancelled.")
                return
        yield CitationFound(1, answer.citations[0])
        yield CheckDone(answer.checks[0])
        yield AnswerCompleted(answer)


@pytest.fixture
def asker() -> ScriptedAsker:
    return ScriptedAsker()


@pytest.fixture
def services(start: Callable[..., Services], make_engine: Callable[..., Any]) -> Services:
    engine = make_engine()

    def progress(key: str) -> Any:
        known = [ticket for ticket in engine.tickets if ticket.document.key == key]
        return known[-1].progress() if known else None

    engine.progress = progress
    engine.alive = True
    return start(engine=engine)


@pytest.fixture
def client(services: Services, asker: ScriptedAsker) -> Iterator[TestClient]:
    from app.api import create_app

    application = create_app(services, asker=asker)
    with TestClient(application, raise_server_exceptions=False) as opened:
        yield opened


Upload = Callable[..., dict[str, Any]]


@pytest.fixture
def upload(client: TestClient) -> Upload:
    """upload(text, name) -> the document's JSON once its ingestion is over."""

    def send(content: str | bytes = CONTRACT, name: str = "contract.txt") -> dict[str, Any]:
        data = content.encode() if isinstance(content, str) else content
        reply = client.post("/api/v1/documents", files={"file": (name, data)})
        assert reply.status_code in (200, 202), reply.text
        return wait_final(client, reply.json()["id"])

    return send


@pytest.fixture(scope="session")
def tiny_engine(tiny_llama: Path) -> Iterator[Any]:
    """A real engine over the tiny random model; leave it open."""
    from backend.engine import Engine
    from backend.engine_config import EngineConfig

    engine = Engine.open(
        EngineConfig(model=tiny_llama, precision="float32", block_tokens=128, kv_budget=8 << 20)
    )
    yield engine
    engine.close()


@pytest.fixture
def tiny_services(
    start: Callable[..., Services], settings: Settings, tiny_engine: Any, tiny_llama: Path
) -> Services:
    """Services over the tiny engine; its model is called by its folder's name."""
    chosen = settings.model_copy(update={"model": str(tiny_llama)})
    return start(settings=chosen, engine=tiny_engine)


@pytest.fixture
def tiny(tiny_services: Services) -> Iterator[TestClient]:
    """A client whose POSTs to /v1 name the tiny model."""
    from app.api import create_app

    application = create_app(tiny_services)
    with TestClient(application, raise_server_exceptions=False) as opened:
        yield opened


def wait_final(client: TestClient, document_id: str, seconds: float = 20.0) -> dict[str, Any]:
    """The document's JSON once nothing changes any more."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        body: dict[str, Any] = client.get(f"/api/v1/documents/{document_id}").json()
        if body["status"] in ("completed", "failed", "cancelled"):
            return body
        time.sleep(0.02)
    raise AssertionError(f"{document_id} is still {body['status']}")
