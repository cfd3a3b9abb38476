"""API keys: made, shown once, found by their hash, over when they are over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from app.api_keys import USED_EVERY_S, ApiKeys, Caller
from app.db.schema import downgrade, upgrade
from app.db.session import Database
from app.errors import BadParameter, DatabaseBusy, NotFound, Unauthorized
from app.owners import LOCAL, owner_name, section_of


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    upgrade(database)
    yield database
    database.close()


@pytest.fixture
def keys(database: Database) -> ApiKeys:
    return ApiKeys(database)


def rows(database: Database) -> list[dict[str, Any]]:
    with database.read() as session:
        return [dict(row) for row in session.execute(text("SELECT * FROM api_keys")).mappings()]


def test_a_key_opens_the_door_of_its_owner(keys: ApiKeys) -> None:
    made, key = keys.create("Legal")
    boss, other = keys.create("Ops", role="admin")
    assert key.startswith("fp_") and len(key) == 46 and key != other
    assert keys.authenticate(key) == Caller("Legal", "user")
    assert keys.authenticate(other) == Caller("Ops", "admin")
    assert made.active and made.prefix == key[:9] and boss.id != made.id


def test_the_key_itself_is_kept_nowhere(keys: ApiKeys, database: Database) -> None:
    _, key = keys.create("Legal")
    (row,) = rows(database)
    assert key not in str(row) and key[9:] not in str(row)
    assert len(row["sha256"]) == 64


def test_keys_are_over_when_revoked_or_expired(keys: ApiKeys, database: Database) -> None:
    soon = datetime.now(UTC) + timedelta(days=1)
    made, key = keys.create("Legal", expires_at=soon)
    assert keys.authenticate(key).owner == "Legal"
    with database.write() as session:
        session.execute(text("UPDATE api_keys SET expires_at = 1.0"))
    assert not keys.get(made.id).active
    told = []
    with pytest.raises(Unauthorized) as expired:
        keys.authenticate(key)
    told.append(expired.value.message)

    other, key = keys.create("Legal")
    revoked = keys.revoke(other.id)
    assert revoked.revoked_at is not None and not revoked.active
    assert keys.revoke(other.prefix) == revoked, "twice changes nothing"
    for wrong in (key, "fp_" + "a" * 43, "fp_", "x", key + "x", key.upper()):
        with pytest.raises(Unauthorized) as refused:
            keys.authenticate(wrong)
        told.append(refused.value.message)
    assert len(set(told)) == 1, "which of the reasons it is stays untold"


def test_no_key_is_told_apart(keys: ApiKeys) -> None:
    with pytest.raises(Unauthorized, match="Authorization: Bearer") as none:
        keys.authenticate(None)
    assert none.value.code == "missing_api_key"


def test_use_is_noted_by_the_hour(keys: ApiKeys, database: Database) -> None:
    made, key = keys.create("Legal")
    assert made.last_used_at is None
    keys.authenticate(key)
    noted = keys.get(made.id).last_used_at
    assert noted is not None and noted.timestamp() % USED_EVERY_S == 0
    with database.write() as session:
        session.execute(text("UPDATE api_keys SET last_used_at = 7200.0"))
    keys.authenticate(key)
    again = keys.get(made.id).last_used_at
    assert again is not None and again >= noted


def test_a_busy_database_does_not_refuse_a_good_key(
    keys: ApiKeys, database: Database, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    made, key = keys.create("Legal")

    def busy() -> AbstractContextManager[Any]:
        raise DatabaseBusy("The database is busy.")

    monkeypatch.setattr(database, "write", busy)
    with caplog.at_level(logging.WARNING):
        assert keys.authenticate(key).owner == "Legal"
    assert made.id in caplog.text and key not in caplog.text


def test_listing_goes_by_time_and_in_stretches(keys: ApiKeys) -> None:
    made = [keys.create(f"Owner {number}")[0] for number in range(3)]
    page = keys.list(2)
    assert [key.id for key in page.data] == [made[2].id, made[1].id]
    assert page.has_more and page.total == 3
    rest = keys.list(2, page.data[-1].id)
    assert [key.id for key in rest.data] == [made[0].id] and not rest.has_more
    assert [key.id for key in keys.list(order="asc").data] == [key.id for key in made]


def test_what_is_not_there_is_said(keys: ApiKeys, database: Database) -> None:
    keys.create("Legal")
    keys.create("Legal")
    for call in (keys.get, keys.revoke, lambda name: keys.list(after=name)):
        with pytest.raises(NotFound, match="no key key_1"):
            call("key_1")
    with database.write() as session:
        session.execute(text("UPDATE api_keys SET prefix = 'fp_same'"))
    with pytest.raises(NotFound, match="2 keys begin with fp_same"):
        keys.revoke("fp_same")


@pytest.mark.parametrize("name", ["", "  ", "x" * 65, "a\nb", "a\x00b", "a\u202eb"])
def test_names_of_owners_are_readable(keys: ApiKeys, name: str) -> None:
    with pytest.raises(BadParameter, match="printable"):
        keys.create(name)
    assert keys.list().total == 0


def test_one_name_is_one_owner() -> None:
    assert owner_name(" Cafe\u0301 ") == owner_name("Caf\u00e9") == "Caf\u00e9"
    assert section_of(LOCAL) == ""
    assert section_of("A") != section_of("B") and "A" not in section_of("A").partition("/")[2]


def test_a_key_that_is_over_is_not_made(keys: ApiKeys) -> None:
    with pytest.raises(BadParameter, match="expired already"):
        keys.create("Legal", expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert keys.list().total == 0


def test_a_database_from_before_keys_gets_the_table(
    database: Database, start: Callable[..., Any], settings: Any
) -> None:
    downgrade(database, "0003")
    with database.write() as session:
        session.execute(
            text("INSERT INTO conversations VALUES ('conv_1', 'local', 'Old', '[]', 1.0, 1.0)")
        )
    services = start(settings=settings)
    assert services.conversations.get("conv_1", owner=LOCAL).title == "Old"
    keys = ApiKeys(services.database)
    assert keys.authenticate(keys.create(LOCAL)[1]).owner == LOCAL
