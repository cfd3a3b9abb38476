"""Reads the sheets of an XLSX: one page a sheet, one line a row, cells with " | " between.

Cells that nobody sees (hidden sheets, rows and columns) and comments stay out, with a warning. It
computes no formulas: it shows the results that the file holds, and says where there are none.
"""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from lxml import etree
from openpyxl.utils.exceptions import InvalidFileException

from retrieval.parse.archive import RELATION, Archive
from retrieval.parse.cleaning import clean_text, collapse_spaces
from retrieval.parse.limits import ParseLimits
from retrieval.parse.sheet_values import shown
from retrieval.parse.source import Source
from retrieval.parse.xlsx_book import SHEETS, has_comments, open_book, unpack_markup
from retrieval.types import DocumentPage, DocumentWarning

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

_RESAVE = "Open it in Excel, save it again as XLSX and upload that."
_LAST_COLUMN = 16_384
_LISTED = 5
_HAS_FORMULA = re.compile(rb"<f[ >/]")
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_REL_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_Place = tuple[str, str]
"""Name of a sheet and of a cell in it."""
_MALFORMED = (
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    IndexError,
    OSError,
    BadZipFile,
    SyntaxError,
)


def read_xlsx(
    data: bytes, name: str, limits: ParseLimits, check: Callable[[], None]
) -> tuple[str, tuple[DocumentPage, ...], tuple[DocumentWarning, ...], Source]:
    """Text, pages (one a visible sheet, labelled with its name), warnings and the second count.

    Raises Damaged, Encrypted, TooLarge.
    """
    with Archive(data, name, limits, "Excel sheet", _RESAVE) as archive:
        parts = unpack_markup(archive, name)
        sheets = [part for member, part in parts.items() if member.startswith(SHEETS)]
        has_formulas = any(_HAS_FORMULA.search(part) for part in sheets)
        held = _cells_held(archive, parts)
        check()
        values = _open(archive, parts, values=True)
        check()
        formulas = _open(archive, parts, values=False) if has_formulas else None
    book = _Book(values, formulas, check, has_comments(parts))
    pieces: list[str] = []
    pages: list[DocumentPage] = []
    start = 0
    for sheet in book.visible_sheets():
        try:
            piece = "\n".join(book.lines(sheet)) + "\n"
        except IndexError as error:
            raise archive.damaged(f"a style of “{sheet.title}” is missing") from error
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
    left = dict(markup)
    for sheet in workbook.iter(_MAIN + "sheet"):
        # Each part is one sheet's: five thousand of the same would take hours.
        content = left.pop(parts.get(sheet.get(_REL_ID, ""), ""), None)
        if content is None:
            continue
        try:
            for _, cell in etree.iterparse(
                io.BytesIO(content), tag=_MAIN + "c", resolve_entities=False
            ):
                value = cell.findtext(_MAIN + "v")
                if value and cell.get("r"):
                    held[sheet.get("name", ""), cell.get("r", "")] = value
                cell.clear()
        except etree.XMLSyntaxError as error:
            raise archive.damaged(f"the sheet {sheet.get('name')} is malformed") from error
    return held


def _open(archive: Archive, parts: dict[str, bytes], *, values: bool) -> Workbook:
    try:
        return open_book(parts, values=values)
    except (InvalidFileException, *_MALFORMED) as error:
        raise archive.damaged(str(error) or type(error).__name__) from error


@dataclass(slots=True)
class _Book:
    """Turns sheets into lines. `seen`, `unseen` and `silent` (without text) note every cell met."""

    values: Workbook
    formulas: Workbook | None
    check: Callable[[], None]
    comments: bool
    seen: dict[_Place, str] = field(default_factory=dict)
    unseen: dict[_Place, str] = field(default_factory=dict)
    silent: set[_Place] = field(default_factory=set)
    _hidden: list[str] = field(default_factory=list)
    _unknown: list[str] = field(default_factory=list)

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
        if self.comments:
            found.append(DocumentWarning("comments", "Comments in the document were left out."))
        return tuple(found)

    def _cells(self, sheet: Any) -> Iterator[tuple[int, int, str, _Place]]:
        """(row, column, text, place) of the cells that say something, row by row."""
        formulas = self.formulas[sheet.title]._cells if self.formulas is not None else {}
        # The public iterators make a cell for every place up to the last one, which may be row
        # 1,048,576; the table of real cells has been there since openpyxl 2.0.
        for (row, column), cell in sorted(sheet._cells.items()):
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
        for column in range(dimension.min, min(dimension.max, _LAST_COLUMN) + 1)
    )


def _listed(items: list[str]) -> str:
    more = f" and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return ", ".join(items[:_LISTED]) + more
