"""`fineprint compare`: two files in, a table or one JSON object out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

OLD = (
    "SUPPLY AGREEMENT\n\n1. Term\nThis Agreement runs for two years from 1 March 2024.\n\n"
    "2. Price\nThe total price is EUR 1,250,000.00, payable within thirty days.\n\n"
    "3. Law\nEnglish law applies to this Agreement.\n"
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text(OLD, encoding="utf-8")
    changed = OLD.replace("1,250,000.00", "1,350,000.00").replace("English", "Welsh")
    new.write_text(changed.replace("thirty days", "30 days"), encoding="utf-8")
    return str(old), str(new)


def test_json_is_one_object_with_places_in_both_texts(run: Any, files: tuple[str, str]) -> None:
    result = run("compare", *files, "--json")
    assert result.exit_code == 0
    body = json.loads(result.stdout)
    assert set(body) == {
        "object", "old", "new", "identical", "changes", "restated", "totals", "warnings",
        "compare_ms",
    }  # fmt: skip
    assert body["object"] == "comparison" and body["identical"] is False
    first, second = body["changes"]
    assert (first["category"], second["category"]) == ("figure", "wording")
    (edit,) = first["edits"]
    assert edit["old_values"] == ["1250000 EUR"] and edit["new_values"] == ["1350000 EUR"]
    for side, path in zip(("old", "new"), files, strict=True):
        text = Path(path).read_text(encoding="utf-8").strip()
        place = edit[side]
        assert text[place["start"] : place["end"]] == place["text"]
        assert (place["clause"], place["page"]) == ("2", None)
    assert [one["new"]["text"] for one in body["restated"]] == ["30 days"]
    assert body["old"]["document_id"] is None and body["old"]["name"] == "old.txt"


def test_table_shows_figures_first_and_the_totals(run: Any, files: tuple[str, str]) -> None:
    shown = run("compare", *files).stdout
    assert shown.index("Figures, dates") < shown.index("Other changes") < shown.index("Written")
    assert "same, 2 changed, 0 moved" in shown
    assert "All words compared" in shown


def test_nothing_changed(run: Any, files: tuple[str, str]) -> None:
    result = run("compare", files[0], files[0])
    assert result.exit_code == 0
    assert "No changes." in result.stdout
    assert "compared with itself" in result.stderr


def test_bad_input(run: Any, files: tuple[str, str], tmp_path: Path) -> None:
    result = run("compare", files[0], str(tmp_path / "none.pdf"), "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == "file_not_found"
    chinese = tmp_path / "zh.txt"
    chinese.write_text("第一条 甲方应于收到发票后三十日内付款。", encoding="utf-8")
    result = run("compare", files[0], str(chinese))
    assert result.exit_code == 2 and "one language" in result.stderr
    empty = tmp_path / "empty.txt"
    empty.write_bytes(b"")
    assert run("compare", str(empty), files[0]).exit_code == 2


def test_no_database_is_made(run: Any, files: tuple[str, str], data_dir: Path) -> None:
    run("compare", *files)
    assert not data_dir.exists()
