"""Opens the workbook of an XLSX with openpyxl, so that a small file can't become a large one.

openpyxl makes a cell for every place of a merged range or a link (a file of 5 KB named 17 billion
of them), and unpacks pictures and parts of any name whole. Here it is given markup alone, which was
unpacked within limits, and reads nothing of it but cells, rows, columns and styles.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openpyxl.reader.excel import ExcelReader
from openpyxl.styles.stylesheet import apply_stylesheet
from openpyxl.utils.cell import range_boundaries
from openpyxl.worksheet._reader import WorksheetReader

from retrieval.errors import TooLarge
from retrieval.parse.archive import Archive
from retrieval.parse.limits import MIB

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

SHEETS = "xl/worksheets/"
# Measured on 100,000 numbers: a cell takes 390 bytes of memory and 37 of markup.
_MAX_SHEET_BYTES = 32 * MIB
_MAX_CELLS = 1_200_000
"""Cells, rows and columns that are written down: more than 32 MiB of usual markup hold."""
_MAX_ELEMENTS = 6_000_000
"""Tags of all other parts, five for each shared string."""
_MAX_COVERED = 10_000_000
"""Places to look at for cells that merged ranges cover."""
_LAST_ROW, _LAST_COLUMN = 1_048_576, 16_384
_CELL = re.compile(rb"<(?:\w+:)?(?:c|row|col)[\s/>]")
_COMMENT = re.compile(rb"<(?:\w+:)?(?:comment|threadedComment)[\s>]")


def unpack_markup(archive: Archive, name: str) -> dict[str, bytes]:
    """All XML parts by name, unpacked within the limits. Raises Damaged, Encrypted, TooLarge."""
    parts: dict[str, bytes] = {}
    for member in archive.members:
        if not member.endswith((".xml", ".rels")):
            continue
        content = archive.read(member) or b""
        if b"<!DOCTYPE" in content[:4096] or b"<!ENTITY" in content[:4096]:
            raise archive.damaged(f"the part {member} declares entities, which Office never does")
        parts[member] = content
    sheets = [content for member, content in parts.items() if member.startswith(SHEETS)]
    total = sum(map(len, sheets))
    cells = sum(1 for content in sheets for _ in _CELL.finditer(content))
    others = sum(part.count(b"<") for at, part in parts.items() if not at.startswith(SHEETS))
    if total > _MAX_SHEET_BYTES or cells > _MAX_CELLS or others > _MAX_ELEMENTS:
        raise TooLarge(
            f"“{name}” holds {total // MIB} MiB of cells ({cells} cells and rows); at most "
            f"{_MAX_SHEET_BYTES // MIB} MiB and {_MAX_CELLS} are read. Keep the sheets that belong "
            "to the contract and upload those."
        )
    return parts


def has_comments(parts: Mapping[str, bytes]) -> bool:
    """Whether any cell has a comment."""
    return any(_COMMENT.search(content) for content in parts.values())


def open_book(parts: Mapping[str, bytes], *, values: bool) -> Workbook:
    """The workbook with the results of its formulas (`values`) or the formulas themselves. For a
    malformed one it raises whatever openpyxl does."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for member, content in parts.items():
            archive.writestr(member, content)
    with warnings.catch_warnings():
        # openpyxl warns of what it drops (validations, extensions); none of it is text.
        warnings.simplefilter("ignore")
        reader = _CellReader(packed, data_only=values, keep_links=False)
        reader.read()
    return reader.wb


class _CellReader(ExcelReader):  # type: ignore[misc]
    """openpyxl's reader, of cells only."""

    def read(self) -> None:
        with self.archive:
            self.read_manifest()
            self.read_strings()
            self.read_workbook()
            apply_stylesheet(self.archive, self.wb)
            self.read_worksheets()

    def read_worksheets(self) -> None:
        covered = 0
        read: set[str] = set()
        for sheet, relation in self.parser.find_sheets():
            if not relation.Type.endswith("/worksheet"):
                # Charts, dialogs and macros.
                continue
            if relation.target in read or not relation.target.startswith(SHEETS):
                raise ValueError(f"its sheet “{sheet.name}” lies in the part {relation.target}")
            read.add(relation.target)
            made = self.wb.create_sheet(sheet.name)
            with self.archive.open(relation.target) as content:
                reader = WorksheetReader(made, content, self.shared_strings, self.data_only, False)
                reader.bind_cells()
                reader.bind_col_dimensions()
                reader.bind_row_dimensions()
            merged = reader.parser.merged_cells
            for one in merged.mergeCell if merged else ():
                covered += _clear_covered(made, one.ref)
                if covered > _MAX_COVERED:
                    raise ValueError("it has more merged ranges than a sheet can show")
            made.sheet_state = sheet.state


def _clear_covered(sheet: Any, ref: str) -> int:
    """Empties the cells that a merged range covers, as nobody sees them: all but its first. Returns
    how many places were looked at."""
    column, row, last_column, last_row = range_boundaries(ref)
    column, row = column or 1, row or 1
    last_column, last_row = last_column or _LAST_COLUMN, last_row or _LAST_ROW
    cells = sheet._cells
    area = (last_column - column + 1) * (last_row - row + 1)
    if area < len(cells):
        places = [(y, x) for y in range(row, last_row + 1) for x in range(column, last_column + 1)]
        inside = [place for place in places if place in cells]
    else:
        inside = [(y, x) for y, x in cells if row <= y <= last_row and column <= x <= last_column]
    for place in inside:
        if place != (row, column):
            cells[place].value = None
    return min(area, len(cells))
