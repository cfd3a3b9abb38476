"""Opens a DOCX package and reads its XML parts within limits.

Only the parts asked for are unpacked, so pictures cost nothing; what is unpacked is counted as it
comes, never by the sizes that the archive declares. It knows no Word markup.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from types import TracebackType

from lxml import etree

from retrieval.errors import Damaged, Encrypted, TooLarge
from retrieval.parse.limits import MIB, ParseLimits

_CHUNK = 1 << 16
_RATIO_COUNTS_FROM = 8 * MIB
_REL = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"


class Package:
    """A DOCX file as a context manager. All methods raise Damaged, Encrypted or TooLarge."""

    def __init__(self, data: bytes, name: str, limits: ParseLimits) -> None:
        self._name = name
        self._limits = limits
        self._left = limits.max_inflated_bytes
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise self._damaged(str(error)) from error
        if len(self._zip.infolist()) > limits.max_members:
            raise TooLarge(
                f"“{name}” holds {len(self._zip.infolist())} packed files; at most "
                f"{limits.max_members} are read. Save it again in Word or as PDF."
            )
        self.main = self._find_main()

    def __enter__(self) -> Package:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()

    def document(self) -> etree._Element:
        """The root of the main document part."""
        root = self._tree(self.main)
        if root is None:
            raise self._damaged(f"the part {self.main} is missing")
        return root

    def related(self, kind: str) -> etree._Element | None:
        """The part that the main document relates to as `kind` ("numbering", "styles", ...)."""
        folder, base = posixpath.split(self.main)
        relations = self._tree(f"{folder}/_rels/{base}.rels")
        if relations is None:
            return None
        for relation in relations.iter(_REL):
            if (
                relation.get("Type", "").endswith(f"/{kind}")
                and relation.get("TargetMode") != "External"
            ):
                target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", "")))
                return self._tree(target.lstrip("/"))
        return None

    def _find_main(self) -> str:
        relations = self._tree("_rels/.rels")
        if relations is not None:
            for relation in relations.iter(_REL):
                if relation.get("Type", "").endswith("/officeDocument"):
                    return relation.get("Target", "").lstrip("/")
        return "word/document.xml"

    def _tree(self, part: str) -> etree._Element | None:
        data = self._read(part)
        if data is None:
            return None
        if b"<!DOCTYPE" in data[:4096] or b"<!ENTITY" in data[:4096]:
            raise self._damaged(f"the part {part} declares entities, which Word never does")
        # huge_tree stays off: libxml2 then caps depth at 256 and one text node at 10 MB.
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True
        )
        try:
            return etree.fromstring(data, parser)
        except etree.XMLSyntaxError as error:
            raise self._damaged(f"the part {part} is not well-formed: {error.msg}") from error

    def _read(self, part: str) -> bytes | None:
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
            raise self._damaged(f"the part {part} can't be unpacked: {error}") from error
        return b"".join(pieces)

    def _check(self, part: str, size: int, packed: int) -> None:
        if self._left < 0:
            raise TooLarge(
                f"“{self._name}” unpacks to more than {self._limits.max_inflated_bytes // MIB} MiB "
                "of text markup. Split the document or save it as PDF."
            )
        if size > _RATIO_COUNTS_FROM and size > self._limits.max_ratio * max(1, packed):
            raise TooLarge(
                f"“{self._name}”: the part {part} unpacks to over {self._limits.max_ratio} times "
                "its packed size, as no real document does. Save it again in Word or as PDF."
            )

    def _damaged(self, why: str) -> Damaged:
        return Damaged(
            f"“{self._name}” is not a readable Word document: {why}. Open it in Word, save it "
            "again as DOCX and upload that."
        )
