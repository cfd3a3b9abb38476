"""The process that reads one PDF: `python -m retrieval.parse.pdf_worker PDF FOLDER LIMITS_JSON`.

Writes result.json and boxes.bin into FOLDER and one progress line a page to standard output. It
runs apart from the application so that a crash or a memory bomb in a PDF ends this process only.
It knows no document names and no languages.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypedDict

import pypdfium2
from pypdfium2 import raw

from retrieval.parse.limits import ParseLimits
from retrieval.parse.pdf_chars import Char, RawPage, read_page, turned
from retrieval.parse.pdf_flow import Flow, flow
from retrieval.parse.pdf_furniture import strip_furniture
from retrieval.parse.pdf_layout import reading_order, split_lines
from retrieval.parse.pdf_lines import Line
from retrieval.parse.pdf_ocr import Recognition, State, needs_recognition, recognise
from retrieval.parse.pdf_tables import put_tables, take_tables

FULL = 65535
_UNREADABLE_SHARE = 0.15
_NOTICED_SHARE = 0.01
_WATERMARK_CHARS = 80
_OCR_SHARE = 0.8
_NO_PAGES = re.compile(rb"/Count\s+0\b")
_PAGE = re.compile(rb"/Type\s*/Page\b")

Method = Literal["text", "ocr", "empty", "unreadable"]


class PageResult(TypedDict):
    """One page in result.json."""

    start: int
    end: int
    label: str | None
    width: float
    height: float
    method: Method


class Result(TypedDict):
    """The content of result.json. `pages_*` name page numbers for the warnings."""

    error: str | None
    detail: str
    text: str
    pages: list[PageResult]
    without_text: list[int]
    unreadable: list[int]
    partly_unreadable: list[int]
    hidden: list[int]
    plain: str
    left_out: str
    garbled: list[float]
    tables: list[int]
    ocr: State
    recognised: list[int]
    ocr_failed: list[int]
    ocr_over_limit: list[int]


def main() -> int:
    """Reads the PDF named on the command line; the exit code is 0 whenever result.json is there."""
    source, folder, limits_json = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    limits = ParseLimits(**json.loads(limits_json))
    _confine(limits)
    try:
        result, boxes = read_pdf(source, limits)
    except _Refused as refused:
        result, boxes = _failure(refused.code, refused.detail), array("H")
    except MemoryError:
        result, boxes = _failure("memory", ""), array("H")
    (folder / "boxes.bin").write_bytes(boxes.tobytes())
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return 0


def read_pdf(source: Path, limits: ParseLimits) -> tuple[Result, array[int]]:
    """Result and boxes: four 16-bit fractions a character; x0 above x1 means no place."""
    document = _open(source)
    count = len(document)
    if count == 0:
        raise _Refused("no_pages", "")
    if count > limits.max_pages:
        raise _Refused("too_many_pages", str(count))
    if document.get_formtype() != raw.FORMTYPE_NONE:
        document.init_forms()
    pages: list[RawPage] = []
    failed: set[int] = set()
    for index in range(count):
        try:
            pages.append(read_page(document, index))
        except pypdfium2.PdfiumError:
            pages.append(RawPage(index + 1, None, 0.0, 0.0))
            failed.add(index + 1)
        _say(f"{index + 1} {count}")
    if len(failed) == count:
        raise _Refused("damaged", "none of its pages can be loaded")
    unreadable = [page.number for page in pages if page.number in failed or _is_garbled(page)]
    wanted = [
        page
        for page in pages
        if page.number not in failed and needs_recognition(page, page.number in unreadable)
    ]
    recognition = recognise(document, wanted, limits, partial(_tell, count))
    unreadable = [number for number in unreadable if number not in recognition.recognised]
    return _result(pages, unreadable, recognition)


def _say(line: str) -> None:
    """One line to the parent: "done total" pages, or "ocr n" before n pages are recognised."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _tell(read: int, done: int, total: int) -> None:
    """How far recognition is: the pages that were read before count as well."""
    _say(f"ocr {total}" if done == 0 else f"{read + done} {read + total}")


def _is_garbled(page: RawPage) -> bool:
    return page.unreadable > _UNREADABLE_SHARE * max(1, page.visible)


def _result(
    pages: Sequence[RawPage], unreadable: Sequence[int], recognition: Recognition
) -> tuple[Result, array[int]]:
    sizes = [_upright_size(page) for page in pages]
    lines = [[] if page.number in unreadable else split_lines(page) for page in pages]
    taken = [take_tables(found, page.rules) for page, found in zip(pages, lines, strict=True)]
    lines = [rest for rest, _ in taken]
    everything = lines
    lines = strip_furniture(lines, sizes)
    lines = _without_watermarks(pages, lines)
    left_out = _left_out(everything, lines)
    lines = [
        put_tables(reading_order(found, size[0]), tables)
        for found, size, (_, tables) in zip(lines, sizes, taken, strict=True)
    ]
    joined = flow(lines)
    methods = [
        _method(page, bool(found), page.number in unreadable)
        for page, found in zip(pages, lines, strict=True)
    ]
    result = Result(
        error=None,
        detail="",
        text="".join(joined.text),
        pages=_page_results(pages, joined, methods),
        without_text=[
            page.number
            for page, method in zip(pages, methods, strict=True)
            if method == "empty" and page.marks
        ],
        unreadable=list(unreadable),
        partly_unreadable=[
            page.number
            for page in pages
            if page.number not in unreadable
            and not page.recognised
            and page.unreadable > max(2, _NOTICED_SHARE * page.visible)
        ],
        hidden=[page.number for page in pages if page.hidden],
        plain="\n".join(page.plain for page in pages if page.number not in unreadable),
        left_out="\n".join(left_out + ["".join(page.hidden_text) for page in pages]),
        garbled=[
            1.0 if page.number in unreadable else page.unreadable / max(1, page.visible)
            for page in pages
        ],
        tables=[len(tables) for _, tables in taken],
        ocr=recognition.state,
        recognised=list(recognition.recognised),
        ocr_failed=list(recognition.failed),
        ocr_over_limit=list(recognition.over_limit),
    )
    if not any(char.isalnum() for char in result["text"]):
        code = "unreadable" if unreadable else "no_text_layer"
        raise _Refused(f"{code}_{recognition.state}", str(len(pages)))
    return result, _boxes(pages, joined)


def _left_out(before: Sequence[Sequence[Line]], after: Sequence[Sequence[Line]]) -> list[str]:
    """The text of the lines that are gone."""
    return [
        line.text
        for lines, kept in zip(before, after, strict=True)
        for ids in [{id(line) for line in kept}]
        for line in lines
        if id(line) not in ids
    ]


def _open(source: Path) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(source)
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise _Refused("encrypted", str(error)) from error
        refusal = "no_pages" if _tree_is_empty(source) else "damaged"
        raise _Refused(refusal, str(error)) from error


def _tree_is_empty(source: Path) -> bool:
    """Whether a file that PDFium refuses says itself that it has no pages (PDFium calls that a
    format error)."""
    content = source.read_bytes()
    return bool(_NO_PAGES.search(content)) and not _PAGE.search(content)


def _without_watermarks(pages: Sequence[RawPage], lines: Sequence[list[Line]]) -> list[list[Line]]:
    """A scan whose only text is the same short stamp as on other scans has no text."""
    stamps = [
        re.sub(r"[\W\d_]+", "", "".join(line.text for line in found)).casefold()
        if page.images
        and not page.recognised
        and sum(len(line.chars) for line in found) <= _WATERMARK_CHARS
        else ""
        for page, found in zip(pages, lines, strict=True)
    ]
    counts = Counter(stamps)
    return [
        [] if stamp and counts[stamp] > 1 else found
        for stamp, found in zip(stamps, lines, strict=True)
    ]


def _method(page: RawPage, has_lines: bool, unreadable: bool) -> Method:
    if unreadable:
        return "unreadable"
    if not has_lines:
        return "empty"
    under = page.under_image > _OCR_SHARE * page.visible
    return "ocr" if page.recognised or under else "text"


def _page_results(
    pages: Sequence[RawPage], joined: Flow, methods: Sequence[Method]
) -> list[PageResult]:
    ends = [*joined.starts[1:], len(joined.text)]
    return [
        PageResult(
            start=start,
            end=end,
            label=page.label,
            width=page.width,
            height=page.height,
            method=method,
        )
        for page, start, end, method in zip(pages, joined.starts, ends, methods, strict=True)
    ]


def _boxes(pages: Sequence[RawPage], joined: Flow) -> array[int]:
    boxes = array("H")
    ends = [*joined.starts[1:], len(joined.text)]
    for page, start, end in zip(pages, joined.starts, ends, strict=True):
        for char in joined.chars[start:end]:
            boxes.extend(_fractions(char, page))
    return boxes


def _fractions(char: Char | None, page: RawPage) -> tuple[int, int, int, int]:
    if char is None:
        return FULL, 0, 0, 0
    width, height = _upright_size(page)
    x0, y0, x1, y1 = turned((char.x0, char.y0, char.x1, char.y1), -page.turn, width, height)
    return (
        _fraction(x0 / page.width),
        _fraction(y0 / page.height),
        _fraction(x1 / page.width),
        _fraction(y1 / page.height),
    )


def _fraction(share: float) -> int:
    return round(min(1.0, max(0.0, share)) * FULL)


def _upright_size(page: RawPage) -> tuple[float, float]:
    return (page.height, page.width) if page.turn % 2 else (page.width, page.height)


def _confine(limits: ParseLimits) -> None:
    """Caps memory and CPU of this process and forbids core files."""
    for kind, limit in (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_CPU, int(limits.timeout_seconds) + 10),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if hard < 0 else min(limit, hard), hard))


class _Refused(Exception):
    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


def _failure(code: str, detail: str) -> Result:
    return Result(
        error=code,
        detail=detail,
        text="",
        pages=[],
        without_text=[],
        unreadable=[],
        partly_unreadable=[],
        hidden=[],
        plain="",
        left_out="",
        garbled=[],
        tables=[],
        ocr="off",
        recognised=[],
        ocr_failed=[],
        ocr_over_limit=[],
    )


if __name__ == "__main__":
    sys.exit(main())
