"""The catalogue, what the cache holds, and what a name or path resolves to."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from app import models
from app.errors import ModelUnavailable, UnknownModel
from app.models import (
    CATALOGUE,
    catalogue_model,
    find_model,
    list_models,
    model_path,
    resolve,
    resolve_model,
    sha256_of,
)
from app.settings import DEFAULT_MODEL, load_settings

CONTENT = b"GGUF" + bytes(range(256)) * 8


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> models.CatalogueModel:
    """The default model's entry with a file of 2 KB."""
    model = replace(
        CATALOGUE[0],
        member_bytes=len(CONTENT),
        member_sha256=hashlib.sha256(CONTENT).hexdigest(),
    )
    monkeypatch.setattr(models, "CATALOGUE", (model,))
    return model


def put(model: models.CatalogueModel, cache_dir: Path, content: bytes = CONTENT) -> Path:
    path = model_path(model, cache_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_default_is_in_the_catalogue() -> None:
    model = catalogue_model(DEFAULT_MODEL)
    assert model is not None
    assert catalogue_model("SmolLM2-135M") is model
    assert model.file_name == "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_a_cached_file_is_found(small: models.CatalogueModel, tmp_path: Path) -> None:
    path = put(small, tmp_path)
    assert resolve_model(small.name, tmp_path) == path
    assert resolve_model(small.aliases[0], tmp_path) == path
    assert [state.path for state in list_models(tmp_path)] == [path]


def test_a_verified_file_is_not_hashed_again(
    small: models.CatalogueModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(small, tmp_path)
    find_model(small.name, tmp_path)
    hashed: list[Path] = []
    monkeypatch.setattr(models, "sha256_of", lambda path: hashed.append(path) or sha256_of(path))
    assert find_model(small.name, tmp_path) == path
    assert hashed == []
    os.utime(path, ns=(1, 1))
    assert find_model(small.name, tmp_path) == path
    assert hashed == [path]


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[:-1] + b"x", b""])
def test_a_damaged_file_is_not_used(
    small: models.CatalogueModel, tmp_path: Path, content: bytes
) -> None:
    path = put(small, tmp_path)
    assert find_model(small.name, tmp_path) == path
    before = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(before + 1, before + 1))
    assert find_model(small.name, tmp_path) is None
    assert [state.damaged for state in list_models(tmp_path)] == [True]
    with pytest.raises(ModelUnavailable, match="damaged.*fineprint models pull"):
        resolve_model(small.name, tmp_path)


def test_a_missing_model_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"fineprint models pull.*--model"):
        resolve(load_settings(cache_dir=tmp_path))


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "own.gguf"
    file.write_bytes(b"GGUF")
    assert resolve_model(str(file), tmp_path / "cache") == file
    assert resolve_model(str(tmp_path), tmp_path / "cache") == tmp_path


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match=r"'llama-9'.*smollm2-135m-instruct"):
        resolve_model("llama-9", tmp_path)


@pytest.mark.model
def test_the_real_file_is_the_pinned_one(default_model: Path) -> None:
    assert sha256_of(default_model) == CATALOGUE[0].member_sha256
    assert default_model.stat().st_size == CATALOGUE[0].member_bytes
