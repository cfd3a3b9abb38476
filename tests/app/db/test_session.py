"""Transactions: pragmas, one writer at a time, readers not blocked, errors with a remedy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from app.db.schema import upgrade
from app.db.session import Database
from app.errors import DatabaseBusy, StorageFull

INSERT = text("INSERT INTO workers VALUES (:id, 'h', 1, 1.0, 1.0)")
COUNT = text("SELECT count(*) FROM workers")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    upgrade(database)
    yield database
    database.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 'one.sqlite'}", busy_timeout_s=0.2)
    upgrade(database)
    yield database
    database.close()


def count(database: Database) -> int:
    with database.read() as session:
        return int(session.execute(COUNT).scalar_one())


def test_sqlite_is_opened_with_wal_and_foreign_keys(sqlite: Database) -> None:
    with sqlite.read() as session:
        assert session.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
        assert session.execute(text("PRAGMA foreign_keys")).scalar_one() == 1
        assert session.execute(text("PRAGMA busy_timeout")).scalar_one() == 200


def test_foreign_keys_are_enforced(database: Database) -> None:
    with pytest.raises(IntegrityError), database.write() as session:
        session.execute(
            text(
                "INSERT INTO jobs (id, document_id, status, attempts, cancel_requested, created_at)"
                " VALUES ('j', 'nowhere', 'queued', 0, false, 1.0)"
            )
        )


def test_a_write_that_fails_leaves_nothing(database: Database) -> None:
    with pytest.raises(RuntimeError), database.write() as session:
        session.execute(INSERT, {"id": "a"})
        raise RuntimeError
    assert count(database) == 0


def test_a_reader_is_not_blocked_and_sees_one_snapshot(database: Database) -> None:
    with database.read() as reader:
        assert reader.execute(COUNT).scalar_one() == 0
        with database.write() as writer:
            writer.execute(INSERT, {"id": "a"})
            assert count(database) == 0
        assert reader.execute(COUNT).scalar_one() == 0
    assert count(database) == 1


def test_read_then_write_never_fails_as_locked(database: Database) -> None:
    """Deferred transactions that are upgraded to writes fail at once, whatever the timeout."""

    def one(number: int) -> None:
        with database.write() as session:
            seen = session.execute(COUNT).scalar_one()
            session.execute(INSERT, {"id": f"{number}-{seen}"})

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(80)))
    assert count(database) == 80


def test_a_lock_held_too_long_is_named(sqlite: Database) -> None:
    release = threading.Event()
    locked = threading.Event()

    def hold() -> None:
        with sqlite.write() as session:
            session.execute(INSERT, {"id": "a"})
            locked.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    locked.wait(10)
    with pytest.raises(DatabaseBusy, match="busy"), sqlite.write():
        pass
    release.set()
    thread.join()
    assert count(sqlite) == 1


def test_a_full_disk_is_named(sqlite: Database) -> None:
    with pytest.raises(StorageFull, match="Free some space"), sqlite.write() as session:
        pages = session.execute(text("PRAGMA page_count")).scalar_one()
        session.execute(text(f"PRAGMA max_page_count={pages}"))
        for number in range(200):
            session.execute(INSERT, {"id": f"{number}" * 500})
    assert count(sqlite) == 0
