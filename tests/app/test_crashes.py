"""Processes that are killed or overtaken: nothing is lost, stuck, or done twice."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from app.db.models import ChunkRow, DocumentRow, JobRow, VersionRow, WorkerRow
from app.db.session import Database
from app.errors import AlreadyServing
from app.services import Services
from app.settings import Settings

Start = Callable[..., Services]
Crash = Callable[..., subprocess.Popen[str]]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def process(settings: Settings) -> Iterator[Crash]:
    """Starts ingest_process.py and returns it once it hangs at the point."""
    running: list[subprocess.Popen[str]] = []

    def started(point: str, count: int = 1, serve: str = "serve") -> subprocess.Popen[str]:
        script = Path(__file__).parent / "ingest_process.py"
        arguments = [str(settings.data_dir), settings.database, point, str(count), serve]
        child = subprocess.Popen(
            [sys.executable, str(script), *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(child)
        assert child.stdout is not None
        expected = "done" if point == "none" else f"at {point}"
        assert child.stdout.readline().strip() == expected
        return child

    yield started
    for child in running:
        kill(child)


def kill(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        os.kill(child.pid, signal.SIGKILL)
    child.wait(30)
    if child.stdout is not None:
        child.stdout.close()


def chunk_counts(services: Services) -> set[int]:
    query = (
        select(func.count())
        .select_from(VersionRow)
        .join(ChunkRow, ChunkRow.version_id == VersionRow.id)
        .group_by(VersionRow.document_id)
    )
    with services.database.read() as session:
        return set(session.execute(query).scalars())


def documents(services: Services) -> list[str]:
    with services.database.read() as session:
        return list(session.execute(select(DocumentRow.id)).scalars())


@pytest.mark.parametrize("point", ["parsing", "indexing", "saving", "reading"])
def test_killed_and_started_again(process: Crash, start: Start, point: str) -> None:
    kill(process(point, count=5))
    services = start(serve=True)
    ids = documents(services)
    assert len(ids) == 5
    for document_id in ids:
        services.library.retry(document_id)  # pressed twice, while it goes on
        services.library.retry(document_id)
    records = [services.library.wait(document_id, 60) for document_id in ids]
    assert {record.status for record in records} == {"completed"}, records
    assert len(chunk_counts(services)) == 1
    with services.database.read() as session:
        jobs = session.execute(select(JobRow.status, JobRow.attempts)).all()
        versions = session.execute(select(func.count()).select_from(VersionRow)).scalar_one()
    assert len(jobs) == len(ids) == versions
    assert {status for status, _ in jobs} == {"completed"}
    assert max(attempts for _, attempts in jobs) == 2
    clean, _ = services.library.add(io.BytesIO(b"1. Term\nTwo years."), "clean.txt")
    assert services.library.wait(clean.id, 30).status == "completed"


def test_killed_again_and_again(process: Crash, start: Start, settings: Settings) -> None:
    kill(process("parsing"))
    database = Database(settings.database)
    with database.write() as session:
        session.execute(update(JobRow).values(attempts=3))
    database.close()
    services = start(serve=True)
    (document_id,) = documents(services)
    record = services.library.wait(document_id, 30)
    assert (record.status, record.error_code) == ("failed", "interrupted")
    assert "Press retry" in (record.error_message or "")
    services.library.retry(document_id)
    services.library.retry(document_id)
    record = services.library.wait(document_id, 60)
    assert (record.status, record.error_code) == ("completed", None)


def test_documents_and_history_stay(process: Crash, start: Start, make_engine: Any) -> None:
    kill(process("answering", count=2))
    engine = make_engine()
    services = start(serve=True, engine=engine)
    for document_id in documents(services):
        assert services.library.get(document_id).status == "completed"
        assert services.library.load(document_id).index.search("price of obligation 12")
    assert engine.tickets == []  # read again when it is asked, not before
    assert engine.tokenizer.calls == 0
    message = services.conversations.message("ans_1")
    assert (message.status, message.error_code) == ("failed", "interrupted")
    (conversation,) = services.conversations.list().data
    question, answer = services.conversations.messages(conversation.id)
    assert (question.content, question.status) == ("What is the price?", "completed")
    assert answer.id == "ans_1"


def test_a_living_process_keeps_its_job(process: Crash, start: Start, settings: Settings) -> None:
    child = process("parsing")
    with pytest.raises(AlreadyServing, match="FINEPRINT_DATA_DIR"):
        start(serve=True)
    services = start()
    (document_id,) = documents(services)
    time.sleep(1.5)
    assert services.library.get(document_id).stage == "parsing"
    kill(child)
    # A single command does not take over what it did not ask for...
    time.sleep(2.5)
    assert services.library.get(document_id).status == "in_progress"
    # ...but goes on with a file that it is given again.
    text = services.library.file_path(document_id).read_bytes()
    record, duplicate = services.library.add(io.BytesIO(text), "contract 0.txt")
    assert duplicate and record.id == document_id
    assert services.library.wait(document_id, 60).status == "completed"


def test_a_command_works_beside_a_server(process: Crash, start: Start) -> None:
    process("reading")
    services = start()
    (document_id,) = documents(services)
    own, _ = services.library.add(io.BytesIO(b"1. Term\nTwo years."), "own.txt")
    assert services.library.wait(own.id, 30).status == "completed"
    began = time.monotonic()
    services.library.cancel(document_id)
    record = services.library.wait(document_id, 10)
    assert record.status == "cancelled" and time.monotonic() - began < 9


def test_a_process_taken_for_dead_writes_nothing_more(
    start: Start, make_engine: Any, settings: Settings
) -> None:
    """A paused machine wakes up after another process has taken its job."""
    slow = start(engine=make_engine(pace=3600.0))
    record, _ = slow.library.add(io.BytesIO(b"1. Term\nTwo years."), "a.txt")
    slow.library.wait(record.id, 30, until="askable")
    with slow.database.write() as session:
        session.execute(update(WorkerRow).values(host="elsewhere", beat_at=1.0))
    other = start(serve=True)
    assert other.library.wait(record.id, 30).status == "completed"
    time.sleep(1.5)  # the slow one beats, reports and finds out
    record = other.library.get(record.id)
    assert (record.status, record.ready_tokens) == ("completed", record.total_tokens)
    again, _ = slow.library.add(io.BytesIO(b"1. Price\nTwo euros."), "b.txt")
    assert slow.library.wait(again.id, 30, until="askable").askable


def test_an_orderly_stop_costs_no_attempt(
    start: Start, make_engine: Any, settings: Settings
) -> None:
    from app.services import open_services

    with open_services(settings, engine=make_engine(pace=3600.0)) as services:
        record, _ = services.library.add(io.BytesIO(b"1. Term\nTwo years."), "a.txt")
        services.library.wait(record.id, 30, until="askable")
    after = start(serve=True)
    assert after.library.wait(record.id, 30).status == "completed"
    with after.database.read() as session:
        assert session.execute(select(JobRow.attempts)).scalar_one() == 1
        assert session.execute(select(func.count()).select_from(WorkerRow)).scalar_one() == 1


def test_twenty_uploads_from_two_processes_while_questions_run(
    start: Start, make_engine: Any
) -> None:
    """Every upload is ready, no "database is locked", and nobody who reads waits for writers."""
    first, second = start(serve=True), start()
    known, _ = first.library.add(io.BytesIO(b"1. Term\nThis lasts two years."), "known.txt")
    first.library.wait(known.id, 30)
    finished = threading.Event()
    slowest = []

    def ask() -> int:
        asked = 0
        while not finished.is_set():
            began = time.monotonic()
            assert second.library.load(known.id).index.search("How long does it last?")
            conversation = second.conversations.create(document_ids=[known.id])
            second.conversations.start_answer(conversation.id, question="How long?")
            slowest.append(time.monotonic() - began)
            asked += 1
        return asked

    def upload(number: int) -> str:
        body = "\n".join(f"{n}. Price of lot {n}: EUR {number + n}." for n in range(300))
        services = (first, second)[number % 2]
        return services.library.add(io.BytesIO(body.encode()), f"{number}.txt")[0].id

    with ThreadPoolExecutor(24) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        ids = list(pool.map(upload, range(20)))
        try:
            records = [first.library.wait(document_id, 120) for document_id in ids]
        finally:
            finished.set()
        assert sum(future.result() for future in asking) > 10
    assert {record.status for record in records} == {"completed"}, records
    assert chunk_counts(first) and len(documents(first)) == 21
    assert max(slowest) < 10


def test_stray_files_are_swept(start: Start, settings: Settings) -> None:
    services = start()
    record, _ = services.library.add(io.BytesIO(b"1. Term\nTwo years."), "a.txt")
    stray = settings.files_dir / "ab" / ("ab" * 32)
    stray.parent.mkdir()
    stray.write_bytes(b"left by a crash")
    half = settings.files_dir / "incoming" / "upload-half"
    half.write_bytes(b"left by a crash")
    start(serve=True)
    assert not stray.exists()
    assert services.library.file_path(record.id).exists()


def test_rows_of_other_workers_are_left_alone(start: Start) -> None:
    services = start()
    with services.database.write() as session:
        now = services.database.now(session)
        session.add(
            WorkerRow(id="w", host="elsewhere", pid=1, process_started=1.0, beat_at=now + 60)
        )
    start()
    with services.database.read() as session:
        assert session.get(WorkerRow, "w") is not None
