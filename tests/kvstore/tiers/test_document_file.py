"""One document's file: whole or refused, never wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from kvstore.errors import BadKVFile
from kvstore.tiers.document_file import DocumentFile
from kvstore.tiers.folder import found_files
from kvstore.tiers.manifest import read_manifest
from kvstore.tiers.types import DocumentLayout, Stamp
from kvstore.types import PAGE_TOKENS

STAMP = Stamp("model", "bfloat16/independent", 96)
TOKENS = tuple(range(7, 7 + 4 * PAGE_TOKENS + 5))
LAYOUT = DocumentLayout(
    "contract",
    (b"a" * 32, b"b" * 32, b"a" * 32, b"c" * 32),
    ((0, 128), (128, 192), (0, 128), (192, 261)),
    TOKENS,
    sinks=(1, 2),
)
PAGES = (2, 1, 2)


def pages_of(index: int, seed: int = 0) -> memoryview:
    random = np.random.default_rng((seed, index))
    return memoryview(random.bytes(PAGES[index] * STAMP.page_bytes))


def written(folder: Path, *indexes: int) -> DocumentFile:
    file = DocumentFile.planned(folder, STAMP, LAYOUT)
    file.create()
    file.write([(index, pages_of(index)) for index in indexes])
    return file


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    file = written(tmp_path, 2)
    file.write([(0, pages_of(0))])
    for again in (file, DocumentFile.opened(file.manifest)):
        pages, tokens = again.read(2)
        assert bytes(pages) == bytes(pages_of(2))
        assert tuple(tokens) == TOKENS[192:]
        assert tuple(again.read(0)[1]) == TOKENS[:128]
        with pytest.raises(BadKVFile, match="missing"):
            again.read(1)
        assert again.identity.sinks == (1, 2)
    assert (file.data.stat().st_mode & 0o777, file.manifest.stat().st_mode & 0o777) == (0o600,) * 2
    assert file.data.stat().st_size == file.size


def test_other_programs_can_read_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, 0, 1, 2)
    with safe_open(file.data, framework="np") as stored:
        assert stored.metadata()["model"] == "model"
        assert stored.metadata()["kv_format"] == STAMP.kv_format
        assert tuple(stored.get_tensor("tokens").tolist()) == TOKENS
        for index in range(3):
            found = stored.get_tensor(f"block.{index}")
            assert found.shape == (PAGES[index], STAMP.page_bytes)
            assert found.tobytes() == bytes(pages_of(index))


def test_blocks_are_aligned(tmp_path: Path) -> None:
    file = written(tmp_path, 0)
    assert file._offsets[0] % 4096 == 0


def test_a_struck_block_is_gone_after_a_restart(tmp_path: Path) -> None:
    file = written(tmp_path, 0, 1)
    file.strike(0)
    again = DocumentFile.opened(file.manifest)
    with pytest.raises(BadKVFile, match="missing"):
        again.read(0)
    assert bytes(again.read(1)[0]) == bytes(pages_of(1))


@settings(max_examples=150)
@given(st.data())
def test_any_changed_byte_of_the_pages_is_seen(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file = written(tmp_path_factory.mktemp("kv"), 0, 1, 2)
    at = data.draw(st.integers(0, file.size - 1))
    with file.data.open("r+b") as stored:
        stored.seek(at)
        old = stored.read(1)[0]
        stored.seek(at)
        stored.write(bytes([old ^ data.draw(st.integers(1, 255))]))
    refused = 0
    try:
        again = DocumentFile.opened(file.manifest)
    except BadKVFile as error:
        assert error.reason == "foreign"
        return
    for index in range(3):
        try:
            pages, tokens = again.read(index)
        except BadKVFile as error:
            assert error.reason in ("checksum", "tokens")
            refused += 1
        else:
            assert bytes(pages) == bytes(pages_of(index))
            assert tuple(tokens) == TOKENS[slice(*again.identity.blocks[index][1:])]
    assert refused in (1, 3), "one block, or all of them when the tokens are hit"


@settings(max_examples=60)
@given(st.data())
def test_a_cut_file_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("kv")
    file = written(folder, 0, 1, 2)
    path = data.draw(st.sampled_from((file.data, file.manifest)))
    keep = data.draw(st.integers(0, path.stat().st_size - 1))
    with path.open("r+b") as stored:
        stored.truncate(keep)
    with pytest.raises(BadKVFile) as refused:
        DocumentFile.opened(file.manifest)
    assert refused.value.reason == ("truncated" if path == file.data else "manifest")
    whole, errors = found_files(folder)
    assert (whole, [error.reason for error in errors]) == ([], [refused.value.reason])
    assert list(folder.iterdir()) == []


def test_a_file_cut_after_it_was_opened_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, 0, 1, 2)
    opened = DocumentFile.opened(file.manifest)
    opened.read(0)
    with file.data.open("r+b") as stored:
        stored.truncate(file._offsets[2] + 3)
    with pytest.raises(BadKVFile, match="truncated"):
        opened.read(2)
    file.data.unlink()
    with pytest.raises(BadKVFile, match="missing"):
        opened.read(0)


def test_a_manifest_of_another_format_or_name_is_refused(tmp_path: Path) -> None:
    import hashlib

    file = written(tmp_path, 0)
    body = json.loads(file.manifest.read_bytes().partition(b"\n")[0])
    for change, reason in ((("format", 999), "version"), (("document", "other"), "manifest")):
        changed = json.dumps({**body, change[0]: change[1]}).encode()
        digest = hashlib.sha256(changed).hexdigest().encode()
        file.manifest.write_bytes(changed + b"\n" + digest + b"\n")
        with pytest.raises(BadKVFile) as refused:
            read_manifest(file.manifest)
        assert refused.value.reason == reason


def test_pages_of_another_document_under_this_name_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path, 0, 1, 2)
    layout = DocumentLayout("other", LAYOUT.keys, LAYOUT.blocks, LAYOUT.token_ids, LAYOUT.sinks)
    other = DocumentFile.planned(tmp_path, STAMP, layout)
    other.create()
    other.write([(0, pages_of(0, seed=9))])
    file.data.write_bytes(other.data.read_bytes())
    with pytest.raises(BadKVFile, match="foreign|truncated"):
        DocumentFile.opened(file.manifest)


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    file = written(tmp_path, 1)
    (tmp_path / "half.tmp").write_bytes(b"{")
    (tmp_path / "nobody.safetensors").write_bytes(b"x" * 100)
    (tmp_path / "readme").write_bytes(b"not ours")
    whole, errors = found_files(tmp_path)
    assert [one.identity for one in whole] == [file.identity]
    assert errors == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [file.data.name, file.manifest.name, "readme"]
    )
