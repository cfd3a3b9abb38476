"""Original files, stored once in a section by the SHA-256 of their bytes. A user's name never
becomes a path.

A file is either there whole or not there: it is written beside its place, synced and renamed. Does
not know documents or owners; who may remove a file decides `app.library`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from app.db.session import make_folder, translate_os_error
from app.errors import Corrupted, EmptyUpload, NotFound, StorageFull, TooLargeUpload

READ_BYTES = 1 << 20
SHA256 = re.compile(r"[0-9a-f]{64}")
_FOLDERS = "[0-9a-f][0-9a-f]/*"


@dataclass(frozen=True, slots=True)
class Stored:
    """A file that is there. `section` is the part of the store that holds it, "" the first."""

    section: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Incoming:
    """Received bytes that have no place yet."""

    path: Path
    sha256: str
    size: int


class FileStore:
    """A folder of files named by their SHA-256, two levels deep; each further section (a path such
    as `app.owners.section_of` gives) has a folder of its own in it. Safe for several processes.
    Whatever is received, `reserve_bytes` of the disk stay free: a database that can't write fails
    for everybody."""

    def __init__(self, folder: Path, *, max_bytes: int, reserve_bytes: int = 0) -> None:
        self.folder = folder
        self.incoming = folder / "incoming"
        self.max_bytes = max_bytes
        self.reserve_bytes = reserve_bytes
        self._writing = 0
        self._lock = threading.Lock()
        make_folder(self.incoming)

    @contextmanager
    def receive(self, stream: BinaryIO) -> Iterator[Incoming]:
        """Copy `stream` to a temporary file, which is gone after the block unless `place`d.

        Raises TooLargeUpload at the first byte over the limit, EmptyUpload, StorageFull before the
        first byte that would be taken of the reserve.
        """
        try:
            handle, name = tempfile.mkstemp(prefix="upload-", dir=self.incoming)
        except OSError as error:
            raise translate_os_error(error, self.incoming) from error
        path = Path(name)
        try:
            # Unbuffered: on a full disk a buffer would fail once more when the file is closed.
            with os.fdopen(handle, "wb", buffering=0) as file:
                sha256, size = self._copy(stream, file)
            yield Incoming(path, sha256, size)
        finally:
            path.unlink(missing_ok=True)

    def _copy(self, stream: BinaryIO, file: FileIO) -> tuple[str, int]:
        digest = hashlib.sha256()
        size = 0
        while part := stream.read(READ_BYTES):
            size += len(part)
            if size > self.max_bytes:
                raise TooLargeUpload(
                    f"The file is larger than {self.max_bytes / 1e6:g} MB. Split it, or raise "
                    "FINEPRINT_MAX_UPLOAD_MB."
                )
            digest.update(part)
            try:
                with self._room_for(len(part)):
                    _write_all(file, part)
            except OSError as error:
                raise translate_os_error(error, self.folder) from error
        if size == 0:
            raise EmptyUpload("The file is empty (0 bytes). Choose another file.")
        try:
            os.fsync(file.fileno())
        except OSError as error:
            raise translate_os_error(error, self.folder) from error
        return digest.hexdigest(), size

    @contextmanager
    def _room_for(self, size: int) -> Iterator[None]:
        """Room on the disk for a write. What others are writing at this moment counts too: the disk
        may not know of it yet."""
        with self._lock:
            free = shutil.disk_usage(self.incoming).free
            if self.reserve_bytes and free - self._writing - size < self.reserve_bytes:
                raise StorageFull(
                    f"Only {free / 1e6:,.0f} MB are free at {self.folder}, and uploads leave "
                    f"{self.reserve_bytes / 1e6:,.0f} MB of the disk free "
                    "(FINEPRINT_DISK_RESERVE_MB). Free some space, or move the data with "
                    "FINEPRINT_DATA_DIR."
                )
            self._writing += size
        try:
            yield
        finally:
            with self._lock:
                self._writing -= size

    def place(self, incoming: Incoming, section: str = "") -> Path:
        """Move received bytes to their place; the same bytes may be there already."""
        target = self._target(incoming.sha256, section)
        if target.is_file() and target.stat().st_size == incoming.size:
            return target
        make_folder(target.parent)
        try:
            os.replace(incoming.path, target)
            sync_folder(target.parent)
        except OSError as error:
            raise translate_os_error(error, target) from error
        return target

    def path(self, sha256: str, section: str = "") -> Path:
        """Where the file lies. Raises NotFound when it is gone."""
        target = self._target(sha256, section)
        if not target.is_file():
            raise NotFound(
                f"The stored file {sha256[:12]} is missing from {self.folder}. Upload it again.",
                code="file_missing",
            )
        return target

    def verify(self, sha256: str) -> None:
        """Raises Corrupted when the bytes no longer match their name."""
        if sha256_file(self.path(sha256)) != sha256:
            raise Corrupted(
                f"The stored file {sha256[:12]} is damaged. Delete the document and upload it "
                "again."
            )

    def remove(self, sha256: str, section: str = "") -> None:
        """Remove the file if it is there."""
        self._target(sha256, section).unlink(missing_ok=True)

    def stored(self) -> Iterator[Stored]:
        """Every file of every section."""
        for pattern in (_FOLDERS, f"*/*/{_FOLDERS}"):
            for path in self.folder.glob(pattern):
                if SHA256.fullmatch(path.name):
                    section = path.parent.parent.relative_to(self.folder).as_posix()
                    yield Stored("" if section == "." else section, path.name)

    def _target(self, sha256: str, section: str) -> Path:
        if not SHA256.fullmatch(sha256):
            raise NotFound("Not a SHA-256.")
        return self.folder / section / sha256[:2] / sha256


def _write_all(file: FileIO, part: bytes) -> None:
    left = memoryview(part)
    while left:
        left = left[file.write(left) :]


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_write(target: Path) -> Iterator[BinaryIO]:
    """A file that replaces `target` when the block ends well, and leaves nothing when it does not.

    Raises StorageFull.
    """
    make_folder(target.parent)
    path: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=".tmp-", dir=target.parent)
        path = Path(name)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(path, target)
        sync_folder(target.parent)
    except OSError as error:
        raise translate_os_error(error, target) from error
    finally:
        if path is not None:
            path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
