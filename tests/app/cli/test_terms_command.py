"""`fineprint terms`: a file in, a table or one JSON object out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

TEXT = (
    "LEASE AGREEMENT\n\n1. Rent\nThe rent is EUR 1,200.00 per month.\n\n"
    "2. Law\nThis Agreement is governed by the laws of Ireland.\n"
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "lease.txt"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


def test_json_is_one_object_with_places(run: Any, file: str) -> None:
    result = run("terms", file, "--json")
    assert result.exit_code == 0
    body = json.loads(result.stdout)
    assert body["object"] == "key_terms" and body["document_id"] is None
    found = {term["name"]: term for term in body["terms"]}
    (law,) = found["governing_law"]["values"]
    assert law["value"] == "Ireland"
    words = law["words"]
    assert TEXT.strip()[words["start"] : words["end"]] == words["text"] == "Ireland"
    assert (words["clause"], words["page"]) == ("2", None)
    assert found["renewal"]["state"] == "not_stated" and found["renewal"]["values"] == []


def test_table_says_not_stated(
    run: Any, file: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown = run("terms", file).stdout
    assert "1200 EUR" in shown and "not stated" in shown
    assert not data_dir.exists()


def test_bad_input(run: Any, tmp_path: Path) -> None:
    result = run("terms", str(tmp_path / "none.pdf"), "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == "file_not_found"
