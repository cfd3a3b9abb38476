"""A database that is away: documents outlive it, and ends that it did not take come later."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.exc import OperationalError

import app.returns
import app.runner
from app.documents import Waiting
from app.errors import DatabaseBusy, NotFound, StorageFull
from app.returns import Returns
from app.unwritten import GIVEN_UP_S, Unwritten

if TYPE_CHECKING:
    from app.jobs import Job
    from app.library import Library
    from app.services import Services
    from backend.types import DocumentTokens

Start = Callable[..., "Services"]
TEXT = "SUPPLY AGREEMENT\n\n1. Price\n1.1 The price of the goods is EUR 1,250.00.\n"


class Away:
    """Until it is `back` the database refuses what is guarded, with `error`."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        self.error = error
        self.back = threading.Event()
        self.refused = threading.Semaphore(0)

    def guarded(self, call: Callable[..., Any], thread: str = "") -> Callable[..., Any]:
        """With `thread`: only in threads of such a name."""

        def guard(*arguments: Any, **more: Any) -> Any:
            if not self.back.is_set() and threading.current_thread().name.startswith(thread):
                self.refused.release()
                raise self.error()
            return call(*arguments, **more)

        return guard

    def refuses(self, times: int) -> None:
        """Waits until it has refused so many times more."""
        for _ in range(times):
            assert self.refused.acquire(timeout=60)


ERRORS: dict[str, Callable[[], Exception]] = {
    "busy": lambda: DatabaseBusy("away"),
    "gone": lambda: OperationalError("", None, Exception("gone")),
}


@pytest.fixture(params=ERRORS)
def away(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Away:
    monkeypatch.setattr(app.runner, "IDLE_S", 0.02)
    return Away(ERRORS[request.param])


def add(library: Library) -> str:
    return library.add(io.BytesIO(TEXT.encode()), "supply.txt")[0].id


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_a_document_outlives_a_database_that_is_away_while_it_is_read(
    start: Start, make_engine: Any, monkeypatch: pytest.MonkeyPatch, away: Away
) -> None:
    monkeypatch.setattr(app.runner, "PROGRESS_S", 0.0)
    engine = make_engine(pace=1000.0)
    library = start(engine=engine).library
    document = add(library)
    eventually(lambda: len(engine.tickets) == 1)
    write = away.guarded(library.database.write, "read-follower")
    monkeypatch.setattr(library.database, "write", write)
    away.refuses(3)
    engine.tickets[0].pace = 0.0
    away.refuses(3)
    assert library.get(document).status == "in_progress"
    away.back.set()
    assert library.wait(document, 60).status == "completed"
    assert len(engine.tickets) == 1 and not engine.tickets[0].cancelled.is_set()


def test_the_time_that_the_database_is_away_is_no_reading_time(
    start: Start, monkeypatch: pytest.MonkeyPatch, away: Away
) -> None:
    library = start().library
    ingestor = library.runner.ingestor
    complete = ingestor.complete
    told: list[float] = []

    def completing(job: Job, total: int, computed: int, read_ms: float) -> None:
        told.append(read_ms)
        away.guarded(complete)(job, total, computed, read_ms)

    monkeypatch.setattr(ingestor, "complete", completing)
    document = add(library)
    away.refuses(3)
    away.back.set()
    assert library.wait(document, 60).status == "completed"
    assert len(told) > 3 and len(set(told)) == 1


def test_a_document_that_is_read_while_the_disk_is_full_says_so_until_there_is_space(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = start().library
    full = Away(lambda: StorageFull("No space left."))
    monkeypatch.setattr(
        library.runner.ingestor, "complete", full.guarded(library.runner.ingestor.complete)
    )
    document = add(library)
    full.refuses(2)
    assert library.waiting([library.get(document)]) == {document: Waiting("storage", 0)}
    full.back.set()
    assert library.wait(document, 60).status == "completed"
    assert library.waiting([library.get(document)]) == {}


def test_a_document_is_cancelled_when_the_database_takes_it(
    start: Start, make_engine: Any, monkeypatch: pytest.MonkeyPatch, away: Away
) -> None:
    engine = make_engine(pace=1000.0)
    library = start(engine=engine).library
    document = add(library)
    eventually(lambda: len(engine.tickets) == 1)
    ingestor = library.runner.ingestor
    monkeypatch.setattr(ingestor, "cancel", away.guarded(ingestor.cancel))
    library.cancel(document)
    away.refuses(4)
    assert library.get(document).status == "in_progress"
    assert engine.tickets[0].cancelled.is_set() and not library.runner._readings
    away.back.set()
    assert library.wait(document, 60).status == "cancelled"


def test_a_document_goes_back_to_the_line_when_the_database_is_away_while_it_is_prepared(
    start: Start, monkeypatch: pytest.MonkeyPatch, away: Away
) -> None:
    library = start().library
    runner = library.runner
    for part, name in ((runner.ingestor, "prepare"), (runner.queue, "release")):
        monkeypatch.setattr(part, name, away.guarded(getattr(part, name)))
    document = add(library)
    away.refuses(5)
    assert library.get(document).status == "queued"
    away.back.set()
    assert library.wait(document, 60).status == "completed"


def test_a_job_that_is_claimed_again_before_it_has_left_its_place_ends_no_thread(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.runner, "IDLE_S", 0.02)
    library = start().library
    runner = library.runner
    prepare, release = runner.ingestor.prepare, runner.queue.release
    prepared: list[str] = []
    both, left = threading.Event(), threading.Event()

    def prepare_twice(job: Job, stopping: Callable[[], bool]) -> DocumentTokens:
        prepared.append(job.id)
        if len(prepared) == 1:
            raise DatabaseBusy("away")
        both.set()
        assert left.wait(60)
        return prepare(job, stopping)

    def release_slowly(job: Job) -> None:
        release(job)
        assert both.wait(60), "another thread has claimed it"

    leave = runner._places.leave

    def leave_first(place: Any) -> None:
        leave(place)
        left.set()

    monkeypatch.setattr(runner.ingestor, "prepare", prepare_twice)
    monkeypatch.setattr(runner.queue, "release", release_slowly)
    monkeypatch.setattr(runner._places, "leave", leave_first)
    document = add(library)
    assert library.wait(document, 60).status == "completed"
    eventually(lambda: not runner._places._sizes)
    assert len(set(prepared)) == 1 and not runner.problem


def test_a_document_that_the_database_never_takes_fails_after_some_attempts(
    start: Start, monkeypatch: pytest.MonkeyPatch, away: Away
) -> None:
    monkeypatch.setattr(app.returns, "LONGEST_S", 0.01)
    library = start().library
    ingestor = library.runner.ingestor
    monkeypatch.setattr(ingestor, "_save_version", away.guarded(ingestor._save_version))
    failed = library.wait(add(library), 60)
    assert (failed.status, failed.error_code) == ("failed", "database_busy")
    away.refuses(app.returns.MOST + 1)
    assert not away.refused.acquire(timeout=0.2)
    away.back.set()
    assert library.wait(library.retry(failed.id).id, 60).status == "completed"


def test_a_job_that_goes_back_pauses_longer_each_time_for_ten_minutes_in_all() -> None:
    now = [100.0]
    returns, pauses = Returns(lambda: now[0]), []
    while returns.admits("job_1"):
        assert returns.pausing == {"job_1"}
        pauses.append(0)
        while returns.pausing:
            now[0] += 1.0
            pauses[-1] += 1
    assert pauses == [1, 2, 4, 8, 16, 32, *[60] * 9]
    assert returns.admits("job_1"), "after a retry it begins anew"
    returns.forget("job_1")
    assert not returns.pausing


def test_ends_that_nobody_wants_any_more_are_not_tried_for_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unwritten, written = Unwritten(), []

    def gone() -> None:
        raise NotFound("There is no answer ans_1.")

    unwritten.keep("ans_1", gone)
    unwritten.keep("ans_2", lambda: written.append("ans_2"))
    unwritten.write()
    unwritten.write()
    assert written == ["ans_2"] and "ans_1" not in unwritten and "ans_2" not in unwritten
    assert "There is no answer ans_1." in caplog.text


def test_a_database_that_is_away_is_asked_twice_a_round_until_it_takes_them() -> None:
    unwritten, away, asked = Unwritten(), [True], []

    def end(name: str) -> None:
        asked.append(name)
        if away[0]:
            raise DatabaseBusy("away")

    for name in "abc":
        unwritten.keep(name, partial(end, name))
    unwritten.write()
    unwritten.write()
    assert "".join(asked) == "abca" and all(name in unwritten for name in "abc")
    away[0] = False
    unwritten.write()
    unwritten.write()
    assert "".join(asked) == "abcabca" and not any(name in unwritten for name in "abc")


def test_ends_that_the_database_never_takes_keep_no_other_waiting_and_are_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    unwritten = Unwritten(lambda: now[0])
    asked: list[str] = []
    written: list[str] = []

    def never(name: str) -> None:
        asked.append(name)
        raise DatabaseBusy("too long a statement")

    for name in ("never 1", "never 2", "never 3"):
        unwritten.keep(name, partial(never, name))
    for name in ("good 1", "good 2"):
        unwritten.keep(name, partial(written.append, name))
    unwritten.write()
    unwritten.write()
    assert written == ["good 1", "good 2"]
    now[0] = GIVEN_UP_S
    unwritten.write()
    assert not any(name in unwritten for name in asked)
    assert "the end of never 1 is given up after 24 hours" in caplog.text


def test_an_end_that_is_kept_anew_while_the_old_one_is_written_stays() -> None:
    unwritten = Unwritten()
    written: list[str] = []

    def old() -> None:
        unwritten.keep("a", lambda: written.append("new"))

    unwritten.keep("a", old)
    unwritten.write()
    assert "a" in unwritten
    unwritten.write()
    assert written == ["new"] and "a" not in unwritten
