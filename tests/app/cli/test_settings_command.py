"""`fineprint settings`: each setting with its value and meaning, passwords left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.cli.settings import shown
from app.settings import Settings


def test_each_setting_is_listed_with_what_it_means_and_takes(run: Any) -> None:
    listed = json.loads(run("settings", "--json").stdout)["settings"]
    assert [row["variable"] for row in listed] == [
        f"FINEPRINT_{name.upper()}" for name in Settings.model_fields
    ]
    for row in listed:
        assert row["meaning"] and row["takes"], row["variable"]
    by_name = {row["variable"]: row for row in listed}
    assert by_name["FINEPRINT_PORT"]["value"] == 8000
    assert by_name["FINEPRINT_PORT"]["takes"] == "whole number"
    assert by_name["FINEPRINT_LINEAR_FORMAT"]["takes"] == "dense, fp8"
    assert by_name["FINEPRINT_FEW_ROWS"]["takes"] == "library, fp8, all"
    assert by_name["FINEPRINT_DATABASE_URL"]["value"] is None


def test_only_what_was_changed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINEPRINT_PORT", "8123")
    listed = json.loads(run("settings", "--changed", "--json").stdout)["settings"]
    # The other three are of this test's own folder and precision.
    assert {row["variable"]: row["value"] for row in listed}["FINEPRINT_PORT"] == 8123
    assert len(listed) == 4
    text = run("settings", "--changed").stdout
    assert "FINEPRINT_PORT: 8123 (changed)\n    Port that the server listens on" in text
    assert "FINEPRINT_HOST" not in text


def test_a_password_is_not_shown(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINEPRINT_DATABASE_URL", "postgresql://me:hush:h@sh@host/db?password=hush")
    for arguments in (("settings",), ("settings", "--json")):
        text = run(*arguments).stdout
        assert "hush" not in text and "h@sh" not in text
        assert "postgresql+psycopg://me:***@host/db?password=***" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("http://a:8000/v1", "http://a:8000/v1"),
        ("postgresql://u:a,b@h/db", "postgresql://u:***@h/db"),
        ("postgresql://h/db?password=a,b", "postgresql://h/db?password=***"),
        ("postgresql://h/db?a=1&SSLPassword=x", "postgresql://h/db?a=1&SSLPassword=***"),
        ("/home/a:b@c/d", "/home/a:b@c/d"),
        ("postgresql://h/db?a=1&password=x&b=2", "postgresql://h/db?a=1&password=***&b=2"),
        (True, True),
        (None, None),
        (0.5, 0.5),
    ],
)
def test_what_is_shown(value: object, text: object) -> None:
    assert shown(value) == text


def test_each_url_of_a_list_is_looked_at() -> None:
    given = "http://a:8000/v1,http://u:p/q@b/v1,https://c:8/v1"
    assert shown(given, several=True) == "http://a:8000/v1,http://u:***@b/v1,https://c:8/v1"


def test_a_wrong_setting_ends_the_command(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINEPRINT_PORT", "high")
    done = run("settings", "--json")
    assert done.exit_code == 2 and "FINEPRINT_PORT" in json.loads(done.stdout)["error"]["message"]
