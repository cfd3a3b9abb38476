"""`fineprint receipt`: a file in, a table or one JSON object out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

TEXT = (
    "SUPPLY AGREEMENT\n\n1. Price\nThe price is EUR 1,250,000.00.\n\n"
    "2. Term\nThe term is 24 months.\n"
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "supply.txt"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


def test_json_is_one_object(run: Any, file: str, data_dir: Path) -> None:
    result = run("receipt", file, "--json")
    assert result.exit_code == 0
    body = json.loads(result.stdout)
    assert body["object"] == "receipt" and body["name"] == "supply.txt"
    assert body["clauses"] >= 2 and body["chunks"] >= 1 and body["empty_pages"] == []
    figures = body["figures"]
    # 1. and 2. are figures of the text as well.
    assert figures["in_file"] == figures["in_text"] == figures["in_index"] == 4
    assert (figures["left_out"], figures["missing_count"], figures["missing"]) == (0, 0, [])
    assert body["pages"][0]["characters"] == len(TEXT.strip())
    assert not data_dir.exists()


def test_people_read_totals_warnings_and_pages(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    path = tmp_path / "page.html"
    path.write_text("<p>The fee is USD 90.</p><p style='display:none'>USD 7</p>", encoding="utf-8")
    result = run("receipt", str(path))
    assert "figures: 2 in the file, 1 in the index, 1 left out on purpose, 0 missing" in (
        result.stdout
    )
    assert "Hidden text" in result.stderr


def test_bad_input(run: Any, tmp_path: Path) -> None:
    result = run("receipt", str(tmp_path / "none.pdf"), "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == "file_not_found"
