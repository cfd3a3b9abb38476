"""Reads the sheets of an XLSX: one page a sheet, one line a row, cells with " | " between.

Cells that nobody sees (hidden sheets, rows and columns) and comments stay out, with a warning. It
computes no formulas: it shows the results that the file holds, and says where there are none.
"""

from __future__ import annotations

import io
import posixpath
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import openpyxl
from lxml import etree
from openpyxl.utils.exceptions import InvalidFileException

from retrieval.errors import TooLarge
from retrieval.parse.archive import RELATION, Archive
from retrieval.parse.cleaning import clean_text, collapse_spaces
from retrieval.parse.limits import MIB, ParseLimits
from retrieval.parse.sheet_values import shown
from retrieval.parse.source import Source
from retrieval.types import DocumentPage, DocumentWarning

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

_RESAVE = "Open it in Excel, save it again as XLSX and upload that."
# Measured on 100,000 numbers: a cell takes 390 bytes of memory and 37 of markup.
_MAX_SHEET_BYTES = 32 * MIB
_LISTED = 5
_HAS_FORMULA = re.compile(rb"<f[ >/]")
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_REL_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_Place = tuple[str, str]
"""Name of a sheet and of a cell in it."""
_MALFORMED = (KeyError, ValueError, TypeError, AttributeError, IndexError, BadZipFile, SyntaxError)


def read_xlsx(
    data: bytes, name: str, limits: ParseLimits, check: Callable[[], None]
) -> tuple[str, tuple[DocumentPage, ...], tuple[DocumentWarning, ...], Source]:
    """Text, pages (one a visible sheet, labelled with its name), warnings and the second count.

    Raises Damaged, Encrypted, TooLarge.
    """
    with Archive(data, name, limits, "Excel sheet", _RESAVE) as archive:
        markup = _guard(archive, name)
        has_formulas = any(_HAS_FORMULA.search(part) for part in markup.values())
        held = _cells_held(archive, markup)
        check()
        values = _open(archive, data, values=True)
        formulas = _open(archive, data, values=False) if has_formulas else None
    book = _Book(values, formulas, check)
    pieces: list[str] = []
    pages: list[DocumentPage] = []
    start = 0
    for sheet in book.visible_sheets():
        piece = "\n".join(book.lines(sheet)) + "\n"
        pieces.append(piece)
        label = collapse_spaces(clean_text(sheet.title)) or None
        pages.append(DocumentPage(len(pages) + 1, start, start + len(piece), label))
        start += len(piece)
    source = Source(
        plain="\n".join(
            [
                *book.seen.values(),
                *book.unseen.values(),
                *(held[key] for key in held if key not in book),
            ]
        ),
        left_out="\n".join(book.unseen.values()),
        tables=tuple(1 for _ in pages),
    )
    if not pages:
        pages = [DocumentPage(1, 0, 0, method="empty")]
    return "".join(pieces), tuple(pages), book.warnings(), source


def _guard(archive: Archive, name: str) -> dict[str, bytes]:
    """The markup of the sheets, after all markup was unpacked once within the limits."""
    sheets: dict[str, bytes] = {}
    total = 0
    for member in archive.members:
        if not member.endswith((".xml", ".rels")):
            continue
        content = archive.read(member) or b""
        if b"<!DOCTYPE" in content[:4096] or b"<!ENTITY" in content[:4096]:
            raise archive.damaged(f"the part {member} declares entities, which Office never does")
        if member.startswith("xl/worksheets/"):
            sheets[member] = content
            total += len(content)
    if total > _MAX_SHEET_BYTES:
        raise TooLarge(
            f"“{name}” holds {total // MIB} MiB of cells; at most {_MAX_SHEET_BYTES // MIB} MiB "
            "are read. Keep the sheets that belong to the contract and upload those."
        )
    return sheets


def _cells_held(archive: Archive, markup: dict[str, bytes]) -> dict[_Place, str]:
    """The stored value of every cell that has one, read from the markup itself."""
    relations = archive.tree("xl/_rels/workbook.xml.rels")
    workbook = archive.tree("xl/workbook.xml")
    if relations is None or workbook is None:
        raise archive.damaged("the workbook part is missing")
    parts = {
        relation.get("Id", ""): posixpath.normpath(
            posixpath.join("/xl", relation.get("Target", ""))
        ).lstrip("/")
        for relation in relations.iter(RELATION)
    }
    held: dict[_Place, str] = {}
    for sheet in workbook.iter(_MAIN + "sheet"):
        content = markup.get(parts.get(sheet.get(_REL_ID, ""), ""))
        if content is None:
            continue
        for _, cell in etree.iterparse(io.BytesIO(content), tag=_MAIN + "c"):
            value = cell.findtext(_MAIN + "v")
            if value and cell.get("r"):
                held[sheet.get("name", ""), cell.get("r", "")] = value
            cell.clear()
    return held


def _open(archive: Archive, data: bytes, *, values: bool) -> Workbook:
    try:
        with warnings.catch_warnings():
            # openpyxl warns of drawings and validations that it drops; neither is text.
            warnings.simplefilter("ignore")
            return openpyxl.load_workbook(io.BytesIO(data), data_only=values, keep_links=False)
    except (InvalidFileException, *_MALFORMED) as error:
        raise archive.damaged(str(error) or type(error).__name__) from error


@dataclass(slots=True)
class _Book:
    """Turns sheets into lines. `seen`, `unseen` and `silent` (without text) note every cell met."""

    values: Workbook
    formulas: Workbook | None
    check: Callable[[], None]
    seen: dict[_Place, str] = field(default_factory=dict)
    unseen: dict[_Place, str] = field(default_factory=dict)
    silent: set[_Place] = field(default_factory=set)
    _hidden: list[str] = field(default_factory=list)
    _unknown: list[str] = field(default_factory=list)
    _comments: bool = False

    def __contains__(self, place: _Place) -> bool:
        """Whether a cell was met on the way."""
        return place in self.seen or place in self.unseen or place in self.silent

    def visible_sheets(self) -> Iterator[Any]:
        """Sheets with cells that are shown; the cells of hidden ones are counted as unseen."""
        for sheet in self.values.worksheets:
            if not sheet._cells:
                continue
            if sheet.sheet_state == "visible":
                yield sheet
            else:
                self._hidden.append(f"sheet “{sheet.title}”")
                self.unseen |= {place: text for _, _, text, place in self._cells(sheet)}

    def lines(self, sheet: Any) -> list[str]:
        """The title of a sheet and its rows, empty ones left out."""
        columns = _hidden_columns(sheet)
        lines = [collapse_spaces(clean_text(sheet.title))]
        row: list[str] = []
        current = 0
        skipped = False
        for number, column, text, place in self._cells(sheet):
            if column in columns or sheet.row_dimensions[number].hidden:
                skipped = True
                self.unseen[place] = text
                continue
            self.seen[place] = text
            if number != current:
                self.check()
                lines.append(" | ".join(row))
                row, current = [], number
            row.append(text)
        lines.append(" | ".join(row))
        if skipped:
            self._hidden.append(f"rows or columns of “{sheet.title}”")
        return [line for line in lines if line]

    def warnings(self) -> tuple[DocumentWarning, ...]:
        """What a reader must know; call it after all lines were read."""
        found: list[DocumentWarning] = []
        if self._hidden:
            found.append(
                DocumentWarning(
                    "hidden_text", f"Hidden cells were left out: {_listed(self._hidden)}."
                )
            )
        if self._unknown:
            found.append(
                DocumentWarning(
                    "formulas_without_values",
                    f"The file holds no results for {len(self._unknown)} formula(s): "
                    f"{_listed(self._unknown)}. Open it in Excel, save it and upload it again.",
                )
            )
        if self._comments:
            found.append(DocumentWarning("comments", "Comments in the document were left out."))
        return tuple(found)

    def _cells(self, sheet: Any) -> Iterator[tuple[int, int, str, _Place]]:
        """(row, column, text, place) of the cells that say something, row by row."""
        formulas = self.formulas[sheet.title]._cells if self.formulas is not None else {}
        # The public iterators make a cell for every place up to the last one, which may be row
        # 1,048,576; the table of real cells has been there since openpyxl 2.0.
        for (row, column), cell in sorted(sheet._cells.items()):
            self._comments = self._comments or cell.comment is not None
            other = formulas.get((row, column))
            computed = other is not None and other.data_type == "f"
            if computed and cell.value is None:
                self._unknown.append(f"{sheet.title}!{cell.coordinate}")
            text = collapse_spaces(
                clean_text(shown(cell.value, cell.number_format, computed=computed))
            )
            place = (sheet.title, cell.coordinate)
            if text:
                yield row, column, text.replace("\n", " ").replace("\f", " "), place
            else:
                self.silent.add(place)


def _hidden_columns(sheet: Any) -> frozenset[int]:
    return frozenset(
        column
        for dimension in sheet.column_dimensions.values()
        if dimension.hidden
        for column in range(dimension.min, dimension.max + 1)
    )


def _listed(items: list[str]) -> str:
    more = f" and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return ", ".join(items[:_LISTED]) + more
