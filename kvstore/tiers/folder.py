"""The folder of the disk tier: its lock, what is found in it at start, what is cleared away.

One process at a time keeps pages in a folder; the operating system frees the lock of one that was
killed. Knows no blocks.
"""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path

from kvstore.errors import BadKVFile, KVFolderBusy
from kvstore.tiers.document_file import DATA_SUFFIX, DocumentFile
from kvstore.tiers.manifest import SUFFIX, document_name

_log = logging.getLogger(__name__)
_LOCK = "lock"


class FolderLock:
    """Held from the start until `release`."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if need be. Raises KVFolderBusy, OSError."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._handle)
            raise KVFolderBusy(folder) from error

    def release(self) -> None:
        """Let others in."""
        os.close(self._handle)


def found_files(folder: Path) -> tuple[list[DocumentFile], list[BadKVFile]]:
    """The whole files, least recently used first, and why the others were refused. What belongs to
    no whole file is removed: refused ones, and what a killed process had begun."""
    whole: list[tuple[float, DocumentFile]] = []
    refused = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            file = DocumentFile.opened(path)
            whole.append((path.stat().st_mtime, file))
        except BadKVFile as error:
            _log.warning("%s; the text is read again", error)
            refused.append(error)
    kept = {path for _, file in whole for path in (file.manifest, file.data)}
    for path in folder.iterdir():
        if path.suffix in (SUFFIX, DATA_SUFFIX, ".tmp") and path not in kept:
            path.unlink(missing_ok=True)
    whole.sort(key=lambda pair: pair[0])
    return [file for _, file in whole], refused


def remove_document(folder: Path, document: str) -> None:
    """Remove a document's files from a folder that another process may be using; it will find them
    gone."""
    if folder.is_dir():
        for path in folder.glob(f"{document_name(document)}.*"):
            path.unlink(missing_ok=True)


def clear_folder(folder: Path) -> None:
    """Remove all files of pages, for one who wants none kept. Harmless where nothing is; one that
    another process uses is left alone."""
    if not folder.is_dir():
        return
    try:
        lock = FolderLock(folder)
    except KVFolderBusy:
        return
    try:
        for path in folder.iterdir():
            if path.suffix in (SUFFIX, DATA_SUFFIX, ".tmp"):
                path.unlink(missing_ok=True)
    finally:
        lock.release()
