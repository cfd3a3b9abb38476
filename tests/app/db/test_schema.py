"""Migrations: up, down, up again; the same tables as the models; several processes at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from app.db.models import Base
from app.db.schema import current, downgrade, newest, upgrade
from app.db.session import Database
from app.errors import Conflict

ROOT = Path(__file__).parents[3]


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


def tables(database: Database) -> set[str]:
    return set(inspect(database.engine).get_table_names()) - {"alembic_version"}


def test_migrations_make_the_tables_of_the_models(database: Database) -> None:
    upgrade(database)
    assert tables(database) == set(Base.metadata.tables)
    with database.connection() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_down_and_up_again(database: Database) -> None:
    assert current(database) is None
    upgrade(database)
    assert current(database) == newest()
    downgrade(database, "base")
    assert tables(database) == set()
    assert current(database) is None
    upgrade(database)
    assert tables(database) == set(Base.metadata.tables)


def test_upgrade_twice_changes_nothing(database: Database) -> None:
    upgrade(database)
    with database.write() as session:
        session.execute(text("INSERT INTO workers VALUES ('w', 'h', 1, 1.0, 1.0)"))
    upgrade(database)
    with database.read() as session:
        assert session.execute(text("SELECT count(*) FROM workers")).scalar_one() == 1


def test_several_processes_upgrade_at_once(database_url: str) -> None:
    program = (
        "import sys; from app.db.session import Database; from app.db.schema import upgrade; "
        "upgrade(Database(sys.argv[1]))"
    )
    command = [sys.executable, "-c", program, database_url]
    running = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]
    database = Database(database_url)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(upgrade, [database, database]))
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert tables(database) == set(Base.metadata.tables)
    database.close()


def test_a_newer_database_is_refused(database: Database) -> None:
    upgrade(database)
    with database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Conflict, match="newer version"):
        upgrade(database)


def test_a_failed_migration_leaves_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade(database)
    downgrade(database, "base")
    with database.write() as session:
        session.execute(text("CREATE TABLE pages (id INTEGER)"))  # stands in the way of the last
    with pytest.raises(Exception, match="already exists"):
        upgrade(database)
    assert tables(database) == {"pages"}
