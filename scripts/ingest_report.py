"""Reads every file of a folder and prints what each gave: one row a file, or why it was refused.

    python -m scripts.ingest_report DIR [--json]

Exits with 1 when a file was read without a single character, or figures of it were lost: both must
never happen silently. Refusals are fine, each with its reason.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from app.receipts import receipt_of_file
from retrieval.errors import ParseError
from retrieval.parse import ParseLimits


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one file. `figures` is "in the index / in the file (left out, missing)"."""

    file: str
    status: str
    pages: int = 0
    empty_pages: int = 0
    ocr_pages: int = 0
    characters: int = 0
    tables: int = 0
    in_file: int = 0
    in_index: int = 0
    left_out: int = 0
    missing: int = 0
    seconds: float = 0.0
    notes: str = ""


def read(path: Path, limits: ParseLimits) -> Row:
    """The row of one file."""
    try:
        found = receipt_of_file(path, limits)
    except ParseError as error:
        return Row(path.name, f"refused: {error.code}", notes=str(error))
    receipt, figures = found.receipt, found.receipt.figures
    return Row(
        file=path.name,
        status="read",
        pages=len(receipt.pages),
        empty_pages=len(receipt.empty_pages),
        ocr_pages=sum(page.method == "ocr" for page in receipt.pages),
        characters=receipt.characters,
        tables=receipt.tables,
        in_file=figures.in_file,
        in_index=figures.in_index or 0,
        left_out=figures.left_out,
        missing=figures.missing_count,
        seconds=round(found.parse_ms / 1000, 2),
        notes=" ".join(f"[{one.code}] {one.message}" for one in found.warnings),
    )


def main() -> int:
    """Prints the table, or the rows as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true", help="one JSON object a file")
    parser.add_argument("--no-ocr", action="store_true", help="leave pictures unread")
    arguments = parser.parse_args()
    limits = ParseLimits(max_ocr_pages=0) if arguments.no_ocr else ParseLimits()
    rows: list[Row] = []
    if not arguments.json:
        print("| file | status | pages (empty, ocr) | characters | tables | figures | s | notes |")
        print("|---|---|---|---|---|---|---|---|")
    for path in sorted(arguments.folder.iterdir()):
        if not path.is_file() or path.suffix == ".json":
            continue
        row = read(path, limits)
        rows.append(row)
        if arguments.json:
            print(json.dumps(asdict(row), ensure_ascii=False))
        else:
            figures = (
                f"{row.in_index} of {row.in_file} (left out {row.left_out}, missing {row.missing})"
            )
            pages = f"{row.pages} ({row.empty_pages}, {row.ocr_pages})"
            print(
                f"| {row.file} | {row.status} | {pages} | {row.characters:,} | {row.tables} "
                f"| {figures} | {row.seconds} | {row.notes} |"
            )
    silent = [row.file for row in rows if row.status == "read" and not row.characters]
    lossy = [row.file for row in rows if row.missing]
    for words, files in (("read without any text", silent), ("lost figures", lossy)):
        if files:
            print(f"{words}: {', '.join(files)}", file=sys.stderr)
    return 1 if silent or lossy else 0


if __name__ == "__main__":
    sys.exit(main())
