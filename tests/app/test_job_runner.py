"""The threads behind ingestion: what they survive, and what the engine can't hold."""

from __future__ import annotations

import io
import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from sqlalchemy import delete, select, update

import app.runner
from app.db.models import DocumentRow, JobRow, WorkerRow
from app.documents import Waiting
from app.jobs import Job
from app.pace import Throttle, check
from app.runner import Reading
from backend.reading import DocumentReading
from backend.scheduler import Scheduler
from backend.ticket import ReadTicket
from backend.types import DocumentTokens, ReadProgress
from kvstore.store import KVStore
from kvstore.types import PAGE_TOKENS, KVShape

if TYPE_CHECKING:
    from app.services import Services
    from backend.batch import ReadBlocks

Start = Callable[..., "Services"]
TEXT = "SUPPLY AGREEMENT\n\n1. Price\n1.1 The price of the goods is EUR 1,250.00.\n"


def add(services: Services) -> str:
    return services.library.add(io.BytesIO(TEXT.encode()), "supply.txt")[0].id


def test_a_failing_database_ends_no_thread(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    services = start()
    runner = services.library.runner
    failed: list[str] = []

    def fail(name: str) -> Callable[..., Any]:
        def broken(*_arguments: object, **_more: object) -> None:
            failed.append(name)
            raise RuntimeError(f"{name}: the disk is on fire")

        return broken

    with monkeypatch.context() as patch:
        patch.setattr(runner.queue, "claim", fail("claim"))
        patch.setattr(runner.worker, "beat", fail("beat"))
        end = time.monotonic() + 10
        while not {"claim", "beat"} <= set(failed):
            assert time.monotonic() < end, failed
            time.sleep(0.05)
    assert services.library.wait(add(services), 30).status == "completed"
    assert all(thread.is_alive() for thread in runner._threads)


def test_a_document_larger_than_the_engine(start: Start, make_engine: Any) -> None:
    services = start(engine=make_engine(room=10))
    record = services.library.wait(add(services), 30)
    assert (record.status, record.stage, record.ready_tokens) == ("completed", "done", 0)
    assert (record.computed_tokens, record.reused_tokens) == (None, None)
    assert [item.code for item in record.warnings] == ["read_on_demand"]
    assert "Raise the KV budget." in record.warnings[0].message
    assert services.library.load(record.id).index.search("price")


def test_a_document_deleted_while_it_waits_is_not_read(start: Start, make_engine: Any) -> None:
    engine = make_engine(pace=1000.0)
    services = start(engine=engine)
    library, runner = services.library, services.library.runner
    add(services)
    eventually(lambda: len(engine.tickets) == 1)
    waiting = library.add(io.BytesIO(TEXT.replace("goods", "wares").encode()), "wares.txt")[0].id
    eventually(lambda: len(runner._readings) == 2)
    library.delete(waiting)
    engine.tickets[0].pace = 0.0
    eventually(lambda: not runner._readings)
    assert len(engine.tickets) == 1


@pytest.mark.parametrize("given", [True, False])
def test_one_that_waits_and_is_not_ours_any_more_leaves_the_line(
    start: Start, make_engine: Any, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    engine = make_engine(pace=1000.0)
    library = start(engine=engine).library
    runner = library.runner
    queued = ReadProgress("", 0, 20, 0, "queued")
    monkeypatch.setattr(type(engine.read(DocumentTokens("", (), ()))), "progress", lambda _: queued)
    sent = []
    for name in ("first", "second", "third"):
        before = len(runner._readings)
        sent.append(library.add(io.BytesIO(f"{TEXT}{name}".encode()), f"{name}.txt")[0].id)
        eventually(lambda before=before: len(runner._readings) > before)
    eventually(lambda: [one.given for one in runner._readings] == [True, False, False])
    with library.database.write() as session:
        # As another process does it: nobody tells this one.
        gone = sent[0] if given else sent[1]
        session.execute(delete(DocumentRow).where(DocumentRow.id == gone))
    left = [one for one in sent if one != gone]
    eventually(lambda: [one.job.document_id for one in runner._readings] == left)
    eventually(lambda: runner._readings[0].given)
    assert runner.waiting(left[1]) == Waiting("documents", 1)
    assert engine.tickets[1].cancelled.is_set() is given


def test_one_that_is_prepared_says_that_nothing_is_begun_for_now(
    start: Start, make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(pace=1000.0)
    library = start(engine=engine).library
    runner, prepared = library.runner, threading.Event()
    whole = runner.ingestor.prepare
    monkeypatch.setattr(runner, "_may_begin", lambda: not prepared.is_set())

    def prepare(job: Job, stopping: Callable[[], bool]) -> DocumentTokens:
        tokens = whole(job, stopping)
        prepared.set()
        return tokens

    monkeypatch.setattr(runner.ingestor, "prepare", prepare)
    added = library.add(io.BytesIO(TEXT.encode()), "supply.txt")[0].id
    eventually(lambda: len(runner._readings) == 1)
    assert runner.waiting(added) == Waiting("paused", 0)
    prepared.clear()
    eventually(lambda: len(engine.tickets) == 1)
    eventually(lambda: runner.waiting(added) != Waiting("paused", 0))


def test_owners_are_read_side_by_side(start: Start, make_engine: Any) -> None:
    engine = make_engine(pace=1000.0)
    library = start(engine=engine).library
    for number in range(3):
        library.add(io.BytesIO(f"{TEXT}{number}".encode()), f"{number}.txt", owner="Alice")
        eventually(lambda before=number: len(library.runner._readings) == before + 1)
    library.add(io.BytesIO(TEXT.encode()), "supply.txt", owner="Bob")
    eventually(lambda: len(engine.tickets) == 2)
    assert [ticket.document.owner for ticket in engine.tickets] == ["Alice", "Bob"]


LENGTHS = (("long", 400), ("also long", 300), ("short", 40), ("also short", 20), ("shortest", 0))


def test_a_short_document_does_not_wait_for_a_long_one(
    start: Start, make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This engine reads on at once, or never: however slow the machine is, none of them stands.
    monkeypatch.setattr(app.runner, "STANDS_S", math.inf)
    engine = make_engine(pace=1000.0)
    library = start(engine=engine).library
    runner = library.runner

    def give(name: str, times: int) -> str:
        text = f"{TEXT}{name} " + "1.2 The goods are delivered.\n" * times
        before = len(runner._readings)
        document_id = library.add(io.BytesIO(text.encode()), f"{name}.txt")[0].id
        eventually(lambda: len(runner._readings) > before)
        return document_id

    names = {give(name, times): name for name, times in LENGTHS}
    by_name = {name: document_id for document_id, name in names.items()}
    eventually(lambda: len(engine.tickets) == 3)

    def waiting() -> dict[str, tuple[str, int]]:
        found = library.waiting(map(library.get, names))
        return {names[one]: (why.reason, why.documents) for one, why in found.items()}

    eventually(lambda: runner.waiting(by_name["shortest"]) is None)
    assert waiting() == {"also long": ("documents", 1), "also short": ("documents", 1)}
    assert library.get(by_name["also short"]).askable
    for ticket in engine.tickets[1:]:
        ticket.pace = 0.0
    assert library.wait(by_name["short"], 30).status == "completed"
    assert library.wait(by_name["shortest"], 30).status == "completed"
    eventually(lambda: len(engine.tickets) == 4)
    assert engine.tickets[3].document.key == library.load(by_name["also short"]).tokens.key
    eventually(lambda: waiting() == {"also long": ("documents", 1)})


def test_the_first_that_came_is_read_first_however_long_it_takes_to_prepare(
    start: Start, make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(pace=1000.0)
    library = start(engine=engine).library
    runner = library.runner
    whole, go_on = runner.ingestor.prepare, threading.Event()

    def prepare(job: Job, stopping: Callable[[], bool]) -> DocumentTokens:
        tokens = whole(job, stopping)
        if job.document_id == sent[0]:
            assert go_on.wait(30)
        return tokens

    monkeypatch.setattr(runner.ingestor, "prepare", prepare)
    with monkeypatch.context() as patch:
        # Nothing is taken up before all of them are there.
        patch.setattr(runner, "_may_begin", lambda: False)
        sent: list[str] = []
        for name, times in (("first", 400), ("second", 300), ("third", 300)):
            text = f"{TEXT}{name} " + "1.2 The goods are delivered.\n" * times
            sent.append(library.add(io.BytesIO(text.encode()), f"{name}.txt")[0].id)
    runner.look()
    eventually(lambda: len(engine.tickets) == 1 and len(runner._readings) == 2)
    go_on.set()
    eventually(lambda: len(engine.tickets) == 2)
    keys = [library.load(one).tokens.key for one in sent]
    assert [keys.index(ticket.document.key) for ticket in engine.tickets] == [1, 0]
    assert library.waiting([library.get(sent[2])])[sent[2]] == Waiting("documents", 2)


def test_one_that_stands_still_waits_for_the_engine_beside_its_owners_others(
    start: Start, make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = start(engine=make_engine(pace=1000.0)).library
    runner = library.runner
    monkeypatch.setattr(app.runner, "STANDS_S", 0.0)

    def given(name: str, times: int, owner: str) -> str:
        text = f"{TEXT}{name} " + "1.2 The goods are delivered.\n" * times
        return library.add(io.BytesIO(text.encode()), f"{name}.txt", owner=owner)[0].id

    alone = given("alone", 0, "Bob")
    long, short = given("long", 400, "Alice"), given("short", 0, "Alice")
    eventually(lambda: sum(one.begun for one in runner._readings) == 3)
    # What others have there is nobody's business.
    assert runner.waiting(alone) == Waiting("engine", 0)
    assert runner.waiting(long) == runner.waiting(short) == Waiting("engine", 1)
    monkeypatch.setattr(app.runner, "STANDS_S", 3600.0)
    assert [runner.waiting(one) for one in (alone, long, short)] == [None] * 3


def test_one_that_a_step_reads_does_not_stand_however_long_the_step_takes() -> None:
    one = Reading(Job("job_1", "doc_1", 1, 0.0, 0), DocumentTokens("key", (), ()))
    assert one.stands, "it has not begun"
    at_work = ReadProgress("key", 3, 20, 3, "reading", at_work=True)
    still = replace(at_work, at_work=False)
    for progress, stands in (
        (still, False),
        (still, True),
        (at_work, False),
        (at_work, False),
        (still, False),
        (still, True),
        (replace(still, read_tokens=4), False),
    ):
        one.moved = time.monotonic() - 2 * app.runner.STANDS_S
        one.look_at(progress)
        assert one.stands == stands


def test_progress_is_told_from_the_turn_on_and_goes_forward(
    start: Start, make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(pace=1000.0)
    library = start(engine=engine).library
    states = [("queued", 9), ("queued", 3), ("reading", 3), ("reading", 1), ("reading", 7)]
    told: list[tuple[str, int]] = []

    def progress(ticket: Any) -> ReadProgress:
        status, read = states.pop(0) if states else ("done", 20)
        return ReadProgress(ticket.document.key, read, 20, 0, cast("Any", status))

    def report(_job: object, *, stage: str, done: int, **_more: object) -> None:
        told.append((stage, done))

    monkeypatch.setattr(Throttle, "due", lambda _: True)
    monkeypatch.setattr(type(engine.read(DocumentTokens("", (), ()))), "progress", progress)
    monkeypatch.setattr(library.runner.ingestor, "report", report)
    added = library.add(io.BytesIO(TEXT.encode()), "supply.txt")[0]
    assert library.wait(added.id, 30).status == "completed"
    assert [done for stage, done in told if stage == "reading"] == [3, 3, 7]


def test_reading_time_begins_with_the_turn(
    start: Start, make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = KVStore(KVShape(1, 1, 4), 8, torch.float32)
    scheduler = Scheduler(512, PAGE_TOKENS, store.room_for)
    engine = make_engine()
    seconds: list[float] = []

    def read(document: DocumentTokens) -> ReadTicket:
        reading = DocumentReading(document, "model", "format", store)
        store.enrol(document.key, reading.keys)
        reading.want()
        scheduler.add_reading(reading)
        return ReadTicket(reading, lambda: None)

    monkeypatch.setattr(engine, "read", read)
    library = start(engine=engine).library
    runner = library.runner
    monkeypatch.setattr(runner, "on_read", lambda lasted, _: seconds.append(lasted))
    added = library.add(io.BytesIO(TEXT.encode()), "supply.txt")[0].id
    eventually(lambda: bool(scheduler.readings()) and runner.waiting(added) is not None)
    group = cast("ReadBlocks", scheduler.schedule(None))
    assert group.indexes == (0,) and len(group.reading.keys) == 1
    eventually(lambda: runner.waiting(added) is None)
    begun = time.monotonic()
    time.sleep(0.3)
    lasted = time.monotonic() - begun
    ids = group.reading.tokens_of(0)
    store.commit(group.reading.keys[0], ids, store.reserve(len(ids)))
    group.reading.passed(0)
    assert library.wait(added, 30).status == "completed"
    eventually(lambda: len(seconds) == 1)
    assert seconds[0] >= lasted - 0.001, "in whole milliseconds"


def test_owners_take_turns_in_the_line_of_jobs(start: Start) -> None:
    library = start().library
    library.runner._may_begin = lambda: False
    sent = [
        library.add(io.BytesIO(f"{TEXT}{number}".encode()), f"{number}.txt", owner=owner)[0].id
        for number, owner in enumerate(("Alice", "Alice", "Alice", "Bob", "Carol"))
    ]
    claimed = [library.queue.claim(resume=False) for _ in range(6)]
    order = [None if job is None else sent.index(job.document_id) for job in claimed]
    assert order == [0, 3, 4, 1, 2, None]


class Held:
    """Holds the preparing of documents until it is told to go on, and notes in which order it
    began."""

    def __init__(self, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[str] = []
        self._library = services.library
        self._free: set[str] = set()
        self._prepare = services.library.runner.ingestor.prepare
        monkeypatch.setattr(services.library.runner.ingestor, "prepare", self._held)

    def _held(self, job: Job, stopping: Callable[[], bool]) -> DocumentTokens:
        self.begun.append(job.document_id)
        while job.document_id not in self._free:
            check(stopping)
            time.sleep(0.01)
        return self._prepare(job, stopping)

    def add(self, name: str, size: int, owner: str = "local") -> str:
        text = f"{TEXT}{name} ".ljust(size, ".")
        return self._library.add(io.BytesIO(text.encode()), f"{name}.txt", owner=owner)[0].id

    def begins_with(self, documents: list[str]) -> None:
        """Waits for those that are taken up at once: two threads may note them in either order."""
        eventually(lambda: sorted(self.begun) == sorted(documents))

    def go_on(self, *documents: str) -> None:
        self._free.update(documents)


def test_a_short_file_is_prepared_while_others_long_ones_are(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = start()
    held = Held(services, monkeypatch)
    long = [held.add(f"long {number}", 4000 + number, "Alice") for number in range(4)]
    held.begins_with(long[:2])
    short = held.add("short", 2000, "Bob")
    eventually(lambda: held.begun[2:] == [short])
    shortest = held.add("shortest", 1000, "Alice")
    eventually(lambda: held.begun[3:] == [shortest])
    # It would be short enough, but both kept places are taken.
    late = held.add("late", 100, "Alice")
    held.go_on(short)
    eventually(lambda: held.begun[4:] == [late])
    held.go_on(shortest, late)
    for one in (short, shortest, late):
        assert services.library.wait(one, 30).status == "completed"
    assert held.begun[5:] == [], "the long ones stand, and no other long one took a kept place"
    held.go_on(long[1])
    eventually(lambda: held.begun[5:] == [long[2]])
    held.go_on(*long)
    for one in long:
        assert services.library.wait(one, 30).status == "completed"


def test_short_files_that_come_and_come_keep_no_long_one_waiting(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = start()
    held = Held(services, monkeypatch)
    long = [held.add(f"long {number}", 4000 + number) for number in range(4)]
    held.begins_with(long[:2])
    for number in range(3):
        for short in range(4):
            held.go_on(held.add(f"short {number} {short}", 200 + number))
        if number < 2:
            held.go_on(long[number])
            after = 3 + number
            eventually(lambda after=after: sum(one in long for one in held.begun) == after)
    assert sorted(held.begun[:2]) == sorted(long[:2])
    assert [one for one in held.begun[2:] if one in long] == long[2:]
    held.go_on(*long)
    for one in long:
        assert services.library.wait(one, 30).status == "completed"


def test_a_short_file_in_a_kept_place_goes_back_to_the_line_at_a_stop(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = start()
    held = Held(services, monkeypatch)
    sent = [held.add(f"long {number}", 4000) for number in range(2)]
    eventually(lambda: len(held.begun) == 2)
    sent.append(held.add("short", 400))
    eventually(lambda: len(held.begun) == 3)
    services.library.runner.close()
    with services.database.read() as session:
        rows = session.execute(select(JobRow.status, JobRow.attempts, JobRow.worker_id)).all()
    assert [tuple(row) for row in rows] == [("queued", 0, None)] * 3
    again = start(serve=True)
    for one in sent:
        assert again.library.wait(one, 30).status == "completed"


def test_only_short_files_are_claimed_where_the_most_bytes_are_told(start: Start) -> None:
    library = start().library
    library.runner._may_begin = lambda: False
    sent = [
        library.add(io.BytesIO(TEXT.ljust(size, ".").encode()), f"{size}.txt")[0].id
        for size in (400, 300, 200)
    ]
    claimed = [library.queue.claim(resume=False, largest=most) for most in (199, 300, 300, 300)]
    found = [None if job is None else (sent.index(job.document_id), job.size) for job in claimed]
    assert found == [None, (1, 300), (2, 200), None]


def test_only_jobs_that_this_process_takes_up_are_counted_ahead(start: Start) -> None:
    library = start().library
    queue, runner = library.queue, library.runner
    runner._may_begin = lambda: False
    sent = [
        library.add(io.BytesIO(f"{TEXT}{number}".encode()), f"{number}.txt", owner=owner)[0].id
        for number, owner in enumerate(("Alice", "Alice", "Bob", "Alice", "Alice"))
    ]

    def give(number: int, worker: str | None) -> None:
        with library.database.write() as session:
            job = JobRow.document_id == sent[number]
            session.execute(update(JobRow).where(job).values(worker_id=worker))

    def ahead(*numbers: int, **how: Any) -> dict[int, int]:
        found = queue.ahead([sent[number] for number in numbers], **how)
        return {sent.index(document_id): count for document_id, count in found.items()}

    assert ahead(*range(5), resume=False) == {0: 0, 1: 1, 2: 0, 3: 2, 4: 3}
    assert ahead(3, resume=False) == {3: 2}
    give(1, None)
    assert ahead(1, 3, resume=True) == {1: 1, 3: 2}
    assert ahead(1, 3, resume=False) == {3: 1}
    assert ahead(1, 3, resume=False, wanted=[sent[1]]) == {1: 1, 3: 2}
    with library.database.write() as session:
        alive = time.time() + 3600.0
        session.add(
            WorkerRow(id="other", host="elsewhere", pid=1, process_started=0.0, beat_at=alive)
        )
    give(1, "other")
    assert ahead(1, 3, resume=True) == {3: 1}


def eventually(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)
