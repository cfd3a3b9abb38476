"""One document's pages in one format: a safetensors file and its manifest.

The file has its full size from the start and holds a tensor of bytes [pages, page_bytes] for each
block, then the document's tokens. Blocks are filled in any order, each synced before the manifest
names it. A block is never written again while the manifest names it, so that a process may be
killed at any point. Not thread-safe for writing; knows no budget and no other document.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvstore.errors import BadKVFile
from kvstore.tiers.manifest import (
    FORMAT,
    MODE,
    SUFFIX,
    Checksums,
    Identity,
    read_manifest,
    sync_folder,
    write_manifest,
)
from kvstore.tiers.types import DocumentLayout, Stamp
from kvstore.types import PAGE_TOKENS

DATA_SUFFIX = ".safetensors"
_ALIGNMENT = 4096
"""Of the first block: whole sectors, and more than the 128 bytes that kernels want."""
_TOKEN = "i"
"""Token ids are stored as int32."""


class DocumentFile:
    """`present` says which blocks (by index in `identity.blocks`) are whole, with the CRC-32 of
    their pages."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        """Use `planned` or `opened`."""
        self.identity = identity
        self.present: dict[int, Checksums] = {}
        self.manifest = folder / f"{identity.name}{SUFFIX}"
        self.data = folder / f"{identity.name}{DATA_SUFFIX}"
        self._header, self._offsets = _header(identity)
        self.size = self._offsets[-1] + 4 * identity.tokens[0]
        self._tokens: array[int] | None = None

    @classmethod
    def planned(cls, folder: Path, stamp: Stamp, layout: DocumentLayout) -> DocumentFile:
        """The file of a document, whether it is there or not. Writes nothing."""
        tokens = array(_TOKEN, layout.token_ids)
        file = cls(
            folder,
            Identity(
                stamp=stamp,
                document=layout.document,
                sinks=layout.sinks,
                blocks=layout.distinct(),
                tokens=(len(tokens), zlib.crc32(tokens.tobytes())),
            ),
        )
        file._tokens = tokens
        return file

    @classmethod
    def opened(cls, manifest: Path) -> DocumentFile:
        """A file that is there. Raises BadKVFile for one that is damaged, cut or not what its
        manifest says; its pages are checked when they are read."""
        identity, present = read_manifest(manifest)
        file = cls(manifest.parent, identity)
        file.present = present
        try:
            with file.data.open("rb") as data:
                size = os.fstat(data.fileno()).st_size
                if size != file.size:
                    raise BadKVFile(file.data, "truncated", f"{size} bytes instead of {file.size}")
                if data.read(len(file._header)) != file._header:
                    raise BadKVFile(file.data, "foreign", "it belongs to another manifest")
        except FileNotFoundError as error:
            raise BadKVFile(file.data, "missing", "it is gone") from error
        except OSError as error:
            raise BadKVFile(file.data, "unreadable", str(error)) from error
        return file

    def know(self, planned: DocumentFile) -> None:
        """Take the tokens from the plan of the same document; they need not be read then."""
        self._tokens = planned._tokens

    def anew(self) -> DocumentFile:
        """The same file, planned once more, to take the place of one that is refused."""
        fresh = DocumentFile(self.data.parent, self.identity)
        fresh._tokens = self._tokens
        return fresh

    def create(self) -> None:
        """Make the file, without blocks. Raises OSError."""
        if self._tokens is None:
            raise BadKVFile(self.data, "missing", "its tokens are not known")
        self.manifest.unlink(missing_ok=True)
        self.present = {}
        handle = os.open(self.data, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)
        try:
            _write(handle, self._header, 0)
            _write(handle, self._tokens.tobytes(), self._offsets[-1])
        finally:
            os.close(handle)

    def write(self, blocks: Sequence[tuple[int, memoryview]]) -> None:
        """Add whole blocks, each (index, its pages' bytes), durably. Raises OSError."""
        sums = {index: _checksums(data, self._page_bytes) for index, data in blocks}
        handle = os.open(self.data, os.O_WRONLY)
        try:
            for index, data in blocks:
                _write(handle, data, self._offsets[index])
            os.fsync(handle)
        finally:
            os.close(handle)
        self.present = {**self.present, **sums}
        write_manifest(self.manifest, self.identity, self.present)

    def strike(self, index: int) -> None:
        """Name block `index` no longer. Raises OSError."""
        self.present = {kept: sums for kept, sums in self.present.items() if kept != index}
        write_manifest(self.manifest, self.identity, self.present)

    def read(self, index: int) -> tuple[bytearray, array[int]]:
        """The pages of a block and its tokens, checked. Raises BadKVFile."""
        sums = self.present.get(index)
        if sums is None:
            raise BadKVFile(self.data, "missing", f"block {index} is not in it")
        try:
            handle = os.open(self.data, os.O_RDONLY)
        except FileNotFoundError as error:
            raise BadKVFile(self.data, "missing", "it is gone") from error
        except OSError as error:
            raise BadKVFile(self.data, "unreadable", str(error)) from error
        try:
            if self._tokens is None:
                self._tokens = self._read_tokens(handle)
            pages = self._read(handle, self._offsets[index], len(sums) * self._page_bytes)
        finally:
            os.close(handle)
        if _checksums(memoryview(pages), self._page_bytes) != sums:
            raise BadKVFile(self.data, "checksum", f"block {index} is damaged")
        _, first, last = self.identity.blocks[index]
        return pages, self._tokens[first:last]

    def touch(self) -> None:
        """Note the time of use in the manifest's time of change, from which the order of use is
        known after a restart."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.manifest)

    def remove(self) -> None:
        """Remove it: first the manifest, so that what is left is nobody's. Raises OSError."""
        self.manifest.unlink(missing_ok=True)
        self.data.unlink(missing_ok=True)
        sync_folder(self.manifest.parent)

    @property
    def _page_bytes(self) -> int:
        return self.identity.stamp.page_bytes

    def _read_tokens(self, handle: int) -> array[int]:
        count, checksum = self.identity.tokens
        raw = self._read(handle, self._offsets[-1], 4 * count)
        if zlib.crc32(raw) != checksum:
            raise BadKVFile(self.data, "tokens", "its tokens are damaged")
        return array(_TOKEN, bytes(raw))

    def _read(self, handle: int, offset: int, size: int) -> bytearray:
        buffer = bytearray(size)
        left = memoryview(buffer)
        try:
            while left:
                count = os.preadv(handle, [left], offset)
                if count == 0:
                    raise BadKVFile(self.data, "truncated", "it ends too early")
                left, offset = left[count:], offset + count
        except OSError as error:
            raise BadKVFile(self.data, "unreadable", str(error)) from error
        return buffer


def _header(identity: Identity) -> tuple[bytes, tuple[int, ...]]:
    """The safetensors header, and where in the file each block and then the tokens begin."""
    width = identity.stamp.page_bytes
    entries: dict[str, Any] = {
        "__metadata__": {
            "format": str(FORMAT),
            "model": identity.stamp.model,
            "kv_format": identity.stamp.kv_format,
            "document": identity.document,
            "sinks": json.dumps(identity.sinks),
        }
    }
    starts, place = [], 0
    for index, (_, first, last) in enumerate(identity.blocks):
        pages = -(-(last - first) // PAGE_TOKENS)
        starts.append(place)
        end = place + pages * width
        entries[f"block.{index}"] = _tensor("U8", [pages, width], place, end)
        place = end
    starts.append(place)
    count = identity.tokens[0]
    entries["tokens"] = _tensor("I32", [count], place, place + 4 * count)
    text = json.dumps(entries).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    header = len(text).to_bytes(8, "little") + text
    return header, tuple(len(header) + start for start in starts)


def _tensor(dtype: str, shape: list[int], first: int, last: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


def _checksums(pages: memoryview, width: int) -> Checksums:
    return tuple(zlib.crc32(pages[at : at + width]) for at in range(0, len(pages), width))


def _write(handle: int, data: bytes | memoryview, offset: int) -> None:
    left = memoryview(data)
    while left:
        count = os.pwrite(handle, left, offset)
        left, offset = left[count:], offset + count
