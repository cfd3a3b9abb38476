"""Opens a ZIP-packed Office file and unpacks its parts within limits.

Only the parts asked for are unpacked, so pictures cost nothing; what is unpacked is counted as it
comes, never by the sizes that the archive declares. It knows no Word or Excel markup.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from types import TracebackType
from typing import Self

from lxml import etree

from retrieval.errors import Damaged, Encrypted, TooLarge
from retrieval.parse.limits import MIB, ParseLimits

_CHUNK = 1 << 16
_RATIO_COUNTS_FROM = 8 * MIB
RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"


class Archive:
    """A packed Office file as a context manager. All methods raise Damaged, Encrypted, TooLarge.

    `what` is what the file should be ("Word document"), `resave` what the user can do about it.
    """

    def __init__(self, data: bytes, name: str, limits: ParseLimits, what: str, resave: str) -> None:
        self._name = name
        self._limits = limits
        self._left = limits.max_inflated_bytes
        self._what = what
        self._resave = resave
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise self.damaged(str(error)) from error
        if len(self._zip.infolist()) > limits.max_members:
            raise TooLarge(
                f"“{name}” holds {len(self._zip.infolist())} packed files; at most "
                f"{limits.max_members} are read. {resave}"
            )
        self.members = tuple(self._zip.namelist())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()

    def tree(self, part: str) -> etree._Element | None:
        """The root of an XML part, None when the archive lacks it."""
        data = self.read(part)
        if data is None:
            return None
        if b"<!DOCTYPE" in data[:4096] or b"<!ENTITY" in data[:4096]:
            raise self.damaged(f"the part {part} declares entities, which Office never does")
        # huge_tree stays off: libxml2 then caps depth at 256 and one text node at 10 MB.
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True
        )
        try:
            return etree.fromstring(data, parser)
        except etree.XMLSyntaxError as error:
            raise self.damaged(f"the part {part} is not well-formed: {error.msg}") from error

    def read(self, part: str) -> bytes | None:
        """The bytes of a part, None when the archive lacks it."""
        try:
            info = self._zip.getinfo(part)
        except KeyError:
            return None
        pieces: list[bytes] = []
        size = 0
        try:
            with self._zip.open(info) as stream:
                while piece := stream.read(_CHUNK):
                    size += len(piece)
                    self._left -= len(piece)
                    self._check(part, size, info.compress_size)
                    pieces.append(piece)
        except RuntimeError as error:
            raise Encrypted(
                f"“{self._name}” is packed with a password. Save it without one and upload that."
            ) from error
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
            raise self.damaged(f"the part {part} can't be unpacked: {error}") from error
        return b"".join(pieces)

    def damaged(self, why: str) -> Damaged:
        """The error that says why the file can't be read."""
        return Damaged(f"“{self._name}” is not a readable {self._what}: {why}. {self._resave}")

    def _check(self, part: str, size: int, packed: int) -> None:
        if self._left < 0:
            raise TooLarge(
                f"“{self._name}” unpacks to more than {self._limits.max_inflated_bytes // MIB} MiB "
                "of markup. Split it or save it as PDF."
            )
        if size > _RATIO_COUNTS_FROM and size > self._limits.max_ratio * max(1, packed):
            raise TooLarge(
                f"“{self._name}”: the part {part} unpacks to over {self._limits.max_ratio} times "
                f"its packed size, as no real document does. {self._resave}"
            )
