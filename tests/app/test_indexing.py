"""With several owners an index is built without a look at the words of other documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.indexing import build_index
from app.settings import ApiKeyUse, Settings
from retrieval import stems
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.parse import parse_file

CONTRACT = "1. Termination\nEither party terminates on notice.\n\n2. Price\nThe prices are fixed.\n"


@pytest.mark.parametrize("keys", ["off", "required"])
def test_each_document_finds_its_stems_itself(
    tmp_path: Path, keys: ApiKeyUse, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text(CONTRACT, "utf-8")
    document = parse_file(path, path.name)
    clauses = outline(document.text)
    chunks = split(document, clauses)
    settings = Settings(data_dir=tmp_path, api_keys=keys)
    stems.stem.cache_clear()
    plain = build_index(settings, document.text, chunks, clauses)
    before = stems.stem.cache_info()
    again = build_index(settings, document.text, chunks, clauses)
    after = stems.stem.cache_info()
    assert plain.terms == again.terms
    assert [hit.chunk for hit in plain.search("the price")] == [
        hit.chunk for hit in again.search("the price")
    ]
    if keys == "required":
        assert (before.hits, before.misses) == (after.hits, after.misses) == (0, 0)
    else:
        assert after.misses == before.misses > 0 and after.hits > before.hits


def test_own_stems_are_the_same_stems() -> None:
    words = [
        "terminated",
        "terminates",
        "parties",
        "obligations",
        "indemnification",
        "price",
        "prices",
    ]
    with stems.own_stems():
        of = stems.stemming()
        assert of is not stems.stem
        assert [of(word) for word in words] == [stems.stem(word) for word in words]
    assert stems.stemming() is stems.stem
