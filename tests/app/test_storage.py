"""Files by SHA-256: whole or not there, never outside their folder."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.errors import Corrupted, EmptyUpload, NotFound, StorageFull, TooLargeUpload
from app.storage import READ_BYTES, FileStore, Stored, atomic_write


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files", max_bytes=3 * READ_BYTES)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def put(store: FileStore, data: bytes) -> str:
    with store.receive(io.BytesIO(data)) as incoming:
        store.place(incoming)
        return incoming.sha256


def test_a_file_lies_under_its_hash(store: FileStore) -> None:
    data = b"Clause 1. Term: two years" * 100_000
    sha256 = put(store, data)
    assert sha256 == hashlib.sha256(data).hexdigest()
    assert store.path(sha256).read_bytes() == data
    assert list(store.stored()) == [Stored("", sha256)]
    assert len(files(store.folder)) == 1
    store.verify(sha256)


def test_the_same_bytes_are_stored_once(store: FileStore) -> None:
    assert put(store, b"same") == put(store, b"same")
    assert len(files(store.folder)) == 1


def test_sections_have_files_of_their_own(store: FileStore) -> None:
    sha256 = put(store, b"same")
    for section in ("owners/a", "owners/b"):
        with store.receive(io.BytesIO(b"same")) as incoming:
            placed = store.place(incoming, section)
        assert placed == store.path(sha256, section) != store.path(sha256)
    assert set(store.stored()) == {Stored(name, sha256) for name in ("", "owners/a", "owners/b")}
    store.remove(sha256, "owners/a")
    with pytest.raises(NotFound):
        store.path(sha256, "owners/a")
    assert store.path(sha256, "owners/b").is_file() and store.path(sha256).is_file()


def test_received_but_not_placed_leaves_nothing(store: FileStore) -> None:
    with store.receive(io.BytesIO(b"data")) as incoming:
        assert incoming.path.is_file()
    assert files(store.folder) == []


def test_one_byte_over_the_limit(store: FileStore) -> None:
    put(store, b"x" * store.max_bytes)
    with (
        pytest.raises(TooLargeUpload, match="FINEPRINT_MAX_UPLOAD_MB"),
        store.receive(io.BytesIO(b"x" * (store.max_bytes + 1))),
    ):
        pass
    assert len(files(store.folder)) == 1


def test_a_large_upload_is_refused_while_it_streams(store: FileStore) -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            return b"x" * size

    stream = Endless()
    with pytest.raises(TooLargeUpload), store.receive(stream):  # type: ignore[arg-type]
        pass
    assert stream.given <= store.max_bytes + READ_BYTES
    assert files(store.folder) == []


def test_empty(store: FileStore) -> None:
    with pytest.raises(EmptyUpload, match="empty"), store.receive(io.BytesIO(b"")):
        pass
    assert files(store.folder) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_full_disk_leaves_nothing(
    store: FileStore, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(StorageFull, match="FINEPRINT_DATA_DIR"):
        put(store, b"data")
    assert files(store.folder) == []


def test_a_small_file_on_a_full_disk_is_refused_as_such(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A buffered file would fail a second time, untranslated, when it is closed."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")

    def full(**_options: object) -> tuple[int, str]:
        return os.open("/dev/full", os.O_WRONLY), str(store.incoming / "upload-1")

    monkeypatch.setattr("tempfile.mkstemp", full)
    with pytest.raises(StorageFull, match="FINEPRINT_DATA_DIR"):
        put(store, b"a few bytes")
    assert files(store.folder) == []


def test_a_really_full_disk_leaves_nothing(store: FileStore) -> None:
    """/dev/full refuses every write as a full disk does."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "wb", buffering=0) as device, pytest.raises(StorageFull):
        store._copy(io.BytesIO(b"data"), device)


def test_removed_twice(store: FileStore) -> None:
    sha256 = put(store, b"data")
    store.remove(sha256)
    store.remove(sha256)
    with pytest.raises(NotFound, match="Upload it again"):
        store.path(sha256)


@pytest.mark.parametrize("name", ["../../etc/passwd", "", ".", "a" * 63, "A" * 64, "/abs"])
def test_only_a_hash_names_a_file(store: FileStore, name: str) -> None:
    for call in (store.path, store.remove):
        with pytest.raises(NotFound):
            call(name)


def test_damage_is_found(store: FileStore) -> None:
    sha256 = put(store, b"data")
    store.path(sha256).write_bytes(b"dato")
    with pytest.raises(Corrupted, match="damaged"):
        store.verify(sha256)


def test_a_cut_short_file_is_put_right_by_the_next_upload(store: FileStore) -> None:
    sha256 = put(store, b"data")
    store.path(sha256).write_bytes(b"da")
    put(store, b"data")
    store.verify(sha256)


def test_atomic_write_keeps_the_old_file_when_it_fails(tmp_path: Path) -> None:
    target = tmp_path / "derived" / "tokens.npz"
    with atomic_write(target) as file:
        file.write(b"old")
    with pytest.raises(StorageFull), atomic_write(target) as file:
        file.write(b"new")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert target.read_bytes() == b"old"
    assert files(tmp_path) == [target]


def test_atomic_write_leaves_nothing_after_another_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), atomic_write(tmp_path / "x") as file:
        file.write(b"half")
        raise RuntimeError
    assert files(tmp_path) == []


class Disk:
    """A disk of `size` bytes with nothing but these files."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self._size = size

    def usage(self, _: object) -> SimpleNamespace:
        return SimpleNamespace(
            free=self._size - sum(one.stat().st_size for one in files(self._folder))
        )


def test_the_reserve_of_the_disk_stays_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path / "files", max_bytes=9 * READ_BYTES, reserve_bytes=READ_BYTES)
    monkeypatch.setattr(shutil, "disk_usage", Disk(store.folder, 4 * READ_BYTES).usage)
    with pytest.raises(StorageFull, match="FINEPRINT_DISK_RESERVE_MB"):
        put(store, b"x" * (3 * READ_BYTES + 1))
    assert files(store.folder) == []
    put(store, b"x" * 3 * READ_BYTES)
    with pytest.raises(StorageFull):
        put(store, b"y")


def test_uploads_side_by_side_leave_the_reserve_in_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them ask the disk before any of them has written, and it says the same to each."""
    store = FileStore(tmp_path / "files", max_bytes=READ_BYTES, reserve_bytes=READ_BYTES)
    room = READ_BYTES + 5 * 1000
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=room))
    together = threading.Barrier(8, timeout=60)
    written: list[int] = []
    refused: list[str] = []

    def write(_: object, part: bytes) -> None:
        written.append(len(part))
        together.wait()

    monkeypatch.setattr("app.storage._write_all", write)

    def upload(number: int) -> None:
        try:
            put(store, bytes([number]) * 1000)
        except StorageFull as error:
            refused.append(error.code)
            together.wait()

    threads = [threading.Thread(target=upload, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(written), len(refused)) == (5000, 3)
    assert store._writing == 0
