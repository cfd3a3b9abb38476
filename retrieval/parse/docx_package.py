"""Finds the parts of a DOCX through their relations. It knows no Word markup."""

from __future__ import annotations

import posixpath

from lxml import etree

from retrieval.parse.archive import RELATION, Archive
from retrieval.parse.limits import ParseLimits

_RESAVE = "Open it in Word, save it again as DOCX and upload that."


class Package(Archive):
    """A DOCX file as a context manager. All methods raise Damaged, Encrypted or TooLarge."""

    def __init__(self, data: bytes, name: str, limits: ParseLimits) -> None:
        super().__init__(data, name, limits, "Word document", _RESAVE)
        self.main = self._find_main()

    def document(self) -> etree._Element:
        """The root of the main document part."""
        root = self.tree(self.main)
        if root is None:
            raise self.damaged(f"the part {self.main} is missing")
        return root

    def related(self, kind: str) -> etree._Element | None:
        """The part that the main document relates to as `kind` ("numbering", "styles", ...)."""
        return next(iter(self.all_related(kind).values()), None)

    def all_related(self, kind: str) -> dict[str, etree._Element]:
        """All parts of a kind ("header") by the id of their relation, as the file lists them."""
        folder, base = posixpath.split(self.main)
        relations = self.tree(f"{folder}/_rels/{base}.rels")
        found: dict[str, etree._Element] = {}
        for relation in relations.iter(RELATION) if relations is not None else ():
            if (
                relation.get("Type", "").endswith(f"/{kind}")
                and relation.get("TargetMode") != "External"
            ):
                target = posixpath.normpath(posixpath.join("/", folder, relation.get("Target", "")))
                part = self.tree(target.lstrip("/"))
                if part is not None:
                    found[relation.get("Id", "")] = part
        return found

    def _find_main(self) -> str:
        relations = self.tree("_rels/.rels")
        if relations is not None:
            for relation in relations.iter(RELATION):
                if relation.get("Type", "").endswith("/officeDocument"):
                    return relation.get("Target", "").lstrip("/")
        return "word/document.xml"
