from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from huggingface_hub import errors

from eval.datasets import open_dataset
from eval.datasets.conversion import convert_from_hub
from eval.datasets.hub import fetch, pick
from eval.errors import DatasetError, HubUnavailable

RECORD = {"input": "When?", "context": "Within 30 days.", "answers": ["30 days"], "_id": "x"}


def snapshot(folder: Path, asked: list[dict[str, Any]]) -> Callable[..., str]:
    def take(**wanted: Any) -> str:
        asked.append(wanted)
        return str(folder)

    return take


def raising(error: Exception) -> Callable[..., str]:
    def take(**wanted: Any) -> str:
        raise error

    return take


def test_an_archive_is_unpacked_and_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("data/qasper.jsonl", json.dumps(RECORD))
        archive.writestr("data/trec.jsonl", json.dumps(RECORD | {"_id": "y"}))
        archive.writestr("data/run.py", "raise SystemExit")
        archive.writestr("../../outside.jsonl", json.dumps(RECORD | {"_id": "z"}))
    asked: list[dict[str, Any]] = []
    take = snapshot(tmp_path, asked)
    out = tmp_path / "out" / "set.jsonl"
    form, written = convert_from_hub("O/LB", out, "longbench", revision="r", snapshot=take)
    assert (form, written.documents, written.unplaced) == ("longbench", 3, 3)
    assert sorted(document.doc_id for document in open_dataset(out)) == ["x", "y", "z"]
    assert not (tmp_path.parent / "outside.jsonl").exists()
    assert asked[0]["repo_id"] == "O/LB"
    assert (asked[0]["repo_type"], asked[0]["revision"]) == ("dataset", "r")
    one = convert_from_hub("O/LB", out, "longbench", file="trec.jsonl", snapshot=take)[1]
    assert one.documents == 1


def test_the_file_is_picked_or_asked_for(tmp_path: Path) -> None:
    for name in ("a/dev.json", "a/test.json", "b/dev.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}", "utf-8")
    assert pick(tmp_path, None, whole=True) == tmp_path
    assert pick(tmp_path, "test.json", whole=False) == tmp_path / "a" / "test.json"
    assert pick(tmp_path, "b/dev.json", whole=True) == tmp_path / "b" / "dev.json"
    for name, words in [
        (None, r"3 files.*a/dev\.json, a/test\.json, b/dev\.json"),
        ("dev.json", r"2 of its files fit.*: a/dev\.json, b/dev\.json\."),
        ("ev.json", r"0 of its files fit.*a/test\.json"),
    ]:
        with pytest.raises(DatasetError, match=words):
            pick(tmp_path, name, whole=False)


def response(status: int) -> httpx.Response:
    return httpx.Response(status, request=httpx.Request("GET", "https://hub.invalid"))


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (errors.LocalEntryNotFoundError("no net\nmore"), HubUnavailable, r"\(no net\).*network"),
        (OSError("disk"), HubUnavailable, "disk"),
        (errors.HfHubHTTPError("busy", response=response(503)), HubUnavailable, "busy"),
        (
            errors.RepositoryNotFoundError("404", response=response(404)),
            DatasetError,
            "no data set",
        ),
        (errors.RevisionNotFoundError("404", response=response(404)), DatasetError, "at main"),
        (errors.HFValidationError("bad name"), DatasetError, "OWNER/NAME"),
    ],
)
def test_errors_say_whose_fault_it_is(
    tmp_path: Path, error: Exception, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        fetch("O/N", tmp_path, revision="main", snapshot=raising(error))
    assert type(caught.value) is kind
    assert caught.value.__cause__ is error


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "data.zip").write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(DatasetError, match=r"data\.zip is a damaged archive"):
        fetch("O/N", tmp_path / "x", snapshot=snapshot(tmp_path, []))


def test_an_archive_that_is_too_large_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval.datasets.hub.MAX_UNPACKED_BYTES", 10)
    with zipfile.ZipFile(tmp_path / "data.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", " " * 1000)
    with pytest.raises(DatasetError, match="would unpack to 1,000 bytes"):
        fetch("O/N", tmp_path / "x", snapshot=snapshot(tmp_path, []))
    assert not (tmp_path / "x").exists()
