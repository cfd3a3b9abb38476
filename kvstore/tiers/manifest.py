"""The manifest of a document's file: what the file is and which of its blocks are whole.

It is written last and replaces its predecessor by a rename, so it never names a block that is not
on the disk. Knows no tensors and reads no pages.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from kvstore.errors import BadKVFile
from kvstore.tiers.types import Stamp

FORMAT = 1
"""Raised when the layout of the files or the meaning of a page's bytes changes, a mended error in
how documents are read among them: older files are then refused."""
SUFFIX = ".json"
MODE = 0o600
"""A page tells what its contract says: it is for the owner of the folder alone."""

Checksums = tuple[int, ...]
"""CRC-32 of each page of one block."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a file is, fixed when it is made: one document in one stamp. `blocks` are (content key,
    first, last) of the document's distinct blocks, `tokens` the count and CRC-32 of its tokens."""

    stamp: Stamp
    document: str
    sinks: tuple[int, ...]
    blocks: tuple[tuple[bytes, int, int], ...]
    tokens: tuple[int, int]

    @property
    def name(self) -> str:
        """Name of the file without suffix: the document first, so that all its files are found."""
        digest = hashlib.sha256(b"".join(key for key, _, _ in self.blocks))
        return f"{document_name(self.document)}.{digest.hexdigest()[:16]}"


def document_name(document: str) -> str:
    """How the names of all files of a document begin. A caller's key never becomes a path."""
    return hashlib.sha256(document.encode()).hexdigest()[:32]


def write_manifest(path: Path, identity: Identity, present: dict[int, Checksums]) -> None:
    """Replace the manifest: synced, renamed, and the folder synced. Raises OSError."""
    stamp = identity.stamp
    body = json.dumps(
        {
            "format": FORMAT,
            "model": stamp.model,
            "kv_format": stamp.kv_format,
            "page_bytes": stamp.page_bytes,
            "document": identity.document,
            "sinks": identity.sinks,
            "blocks": [(key.hex(), first, last) for key, first, last in identity.blocks],
            "tokens": identity.tokens,
            "present": sorted(present.items()),
        }
    ).encode()
    beside = path.with_suffix(".tmp")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)
    with os.fdopen(handle, "wb") as file:
        file.write(body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    sync_folder(path.parent)


def read_manifest(path: Path) -> tuple[Identity, dict[int, Checksums]]:
    """Raises BadKVFile for a manifest that is damaged or of another format."""
    try:
        body, _, rest = path.read_bytes().partition(b"\n")
    except FileNotFoundError as error:
        raise BadKVFile(path, "missing", "it is gone") from error
    except OSError as error:
        raise BadKVFile(path, "unreadable", str(error)) from error
    if rest != hashlib.sha256(body).hexdigest().encode() + b"\n":
        raise BadKVFile(path, "manifest", "its checksum does not fit")
    with contextlib.suppress(ValueError, KeyError, TypeError):
        found = json.loads(body)
        if found["format"] != FORMAT:
            raise BadKVFile(path, "version", f"it has format {found['format']}, not {FORMAT}")
        identity = Identity(
            stamp=Stamp(found["model"], found["kv_format"], found["page_bytes"]),
            document=found["document"],
            sinks=tuple(found["sinks"]),
            blocks=tuple((bytes.fromhex(key), a, b) for key, a, b in found["blocks"]),
            tokens=(found["tokens"][0], found["tokens"][1]),
        )
        present = {index: tuple(sums) for index, sums in found["present"]}
        if identity.name == path.stem and present.keys() <= set(range(len(identity.blocks))):
            return identity, present
    raise BadKVFile(path, "manifest", "it is not what its name says")


def sync_folder(folder: Path) -> None:
    """Make renames and removals in `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
