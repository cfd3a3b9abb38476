"""PDFs that are refused, the limits on reading them, and tables."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from retrieval.errors import (
    Damaged,
    Encrypted,
    ParseCancelled,
    ParseError,
    ParseTimeout,
    TooLarge,
)
from retrieval.parse import ParseLimits, parse_file
from retrieval.parse.pdf_reader import page_ranges

MakePdf = Callable[..., Path]
RawPdf = Callable[..., Path]
WIDTH, HEIGHT = A4


def one_page(content: bytes, resources: bytes, extra: dict[int, bytes]) -> dict[int, bytes]:
    return {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << %s >> >>" % resources,
        4: b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        **extra,
    }


HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def lines_at(
    canvas: Canvas, top: float, *lines: str, left: float = 72, leading: float = 14
) -> None:
    for index, line in enumerate(lines):
        canvas.drawString(left, HEIGHT - top - index * leading, line)


def prose(canvas: Canvas, top: float = 120, words: str = "The Supplier shall deliver") -> None:
    lines_at(canvas, top, *(f"{words} the goods in good order and on time {n}." for n in range(6)))


@pytest.mark.parametrize(("user", "readable"), [("", True), ("secret", False)])
def test_only_a_needed_password_stops_reading(tmp_path: Path, user: str, readable: bool) -> None:
    path = tmp_path / "locked.pdf"
    canvas = Canvas(
        str(path),
        encrypt=StandardEncryption(user, ownerPassword="owner", canCopy=0, strength=128),
    )
    canvas.drawString(72, 700, "The term is two years.")
    canvas.save()
    if readable:
        assert parse_file(path, path.name).text == "The term is two years."
    else:
        with pytest.raises(Encrypted, match="password"):
            parse_file(path, path.name)


@pytest.mark.parametrize("content", [b"%PDF-1.7\n", b"%PDF-1.7\n" + b"garbage " * 500])
def test_a_broken_pdf_is_called_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.pdf"
    path.write_bytes(content)
    with pytest.raises(Damaged, match="not a readable PDF"):
        parse_file(path, path.name)


def test_a_pdf_without_pages_says_so(raw_pdf: RawPdf) -> None:
    path = raw_pdf(
        {1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: b"<< /Type /Pages /Kids [] /Count 0 >>"}
    )
    with pytest.raises(Damaged, match="has no pages"):
        parse_file(path, path.name)


def test_too_many_pages_are_refused(make_pdf: MakePdf) -> None:
    path = make_pdf([prose] * 4)
    with pytest.raises(TooLarge, match="4 pages; at most 3"):
        parse_file(path, path.name, limits=ParseLimits(max_pages=3))


def test_a_bombed_stream_ends_in_a_refusal_and_little_memory(raw_pdf: RawPdf) -> None:
    bomb = zlib.compress(b"BT (x) Tj ET " * 30_000_000, 9)
    objects = one_page(b"", b"/Font << /F1 9 0 R >>", {9: HELVETICA})
    objects[4] = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(bomb), bomb)
    path = raw_pdf(objects)
    limits = ParseLimits(timeout_seconds=5, memory_bytes=512 * 2**20)
    started = time.monotonic()
    with pytest.raises(ParseError):
        parse_file(path, path.name, limits=limits)
    assert time.monotonic() - started < 15


def test_cancelling_stops_the_worker(make_pdf: MakePdf) -> None:
    path = make_pdf([prose] * 30)
    with pytest.raises(ParseCancelled):
        parse_file(path, path.name, cancelled=lambda: True)


def test_time_is_limited(make_pdf: MakePdf) -> None:
    path = make_pdf([prose])
    with pytest.raises(ParseTimeout):
        parse_file(path, path.name, limits=ParseLimits(timeout_seconds=0.001))


def test_progress_counts_pages(make_pdf: MakePdf) -> None:
    seen: list[tuple[int, int]] = []
    path = make_pdf([prose] * 3)
    parse_file(path, path.name, on_progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3, 3)


def test_page_ranges() -> None:
    assert page_ranges((1, 2, 3, 7, 9, 10)) == "1–3, 7, 9–10"


def test_table_rows_stay_rows(make_pdf: MakePdf) -> None:
    def draw(canvas: Canvas) -> None:
        for row in range(10):
            for column, cell in enumerate((f"Lot {row}", f"{row * 7}00.00", f"2024-0{row}")):
                canvas.drawString(72 + 160 * column, A4[1] - 120 - 16 * row, cell)

    lines = parse_file(make_pdf([draw]), "a.pdf").text.split("\n")
    assert lines[3] == "Lot 3 | 2100.00 | 2024-03"
    assert len(lines) == 10
