"""`fineprint keys`: make, list, revoke; the key on stdout alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.api_keys import ApiKeys
from app.cli.keys import expiry
from app.db.session import Database
from app.errors import Unauthorized
from app.settings import load_settings


def owner_of(key: str) -> str:
    database = Database(load_settings().database)
    try:
        return ApiKeys(database).authenticate(key).owner
    finally:
        database.close()


def test_a_key_is_made_listed_and_revoked(run: Any) -> None:
    made = run("keys", "create", "--owner", "Legal", "--expires", "90d", "--json")
    assert made.exit_code == 0, made.stderr
    body = json.loads(made.stdout)
    key = body.pop("key")
    assert owner_of(key) == "Legal"
    assert body["role"] == "user" and body["active"] is True and body["expires_at"]

    listed = json.loads(run("keys", "list", "--json").stdout)
    (entry,) = listed["data"]
    assert entry == body | {"last_used_at": entry["last_used_at"]}
    assert entry["last_used_at"] is not None and listed["total"] == 1
    assert key not in json.dumps(listed)

    revoked = run("keys", "revoke", body["id"], "--json")
    assert json.loads(revoked.stdout)["active"] is False
    with pytest.raises(Unauthorized):
        owner_of(key)


def test_people_see_the_key_once(run: Any) -> None:
    made = run("keys", "create", "--owner", "Ops", "--admin")
    key = made.stdout.strip()
    assert owner_of(key) == "Ops"
    assert key not in made.stderr and "Keep it now" in made.stderr
    shown = run("keys", "list").stdout
    assert "admin" in shown and "active" in shown and key[:9] in shown and key not in shown
    assert "1 keys" in shown
    assert "revoked key_" in run("keys", "revoke", key[:9]).stdout
    assert "revoked" in run("keys", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["create", "--owner", " "], "bad_owner"),
        (["create", "--owner", "A", "--expires", "soon"], "bad_expiry"),
        (["create", "--owner", "A", "--expires", "2001-01-01"], "bad_expiry"),
        (["create", "--owner", "A", "--expires", "0d"], "bad_expiry"),
        (["revoke", "key_1"], "not_found"),
    ],
)
def test_wrong_calls_exit_2(run: Any, data_dir: Path, arguments: list[str], code: str) -> None:
    result = run("keys", *arguments, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == code


def test_times_of_expiry() -> None:
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert expiry("1d", now) == datetime(2026, 2, 1, 12, tzinfo=UTC)
    assert expiry(" 2027-03-04 ", now) == datetime(2027, 3, 4, tzinfo=UTC)
