"""Builders of small input files. Knows nothing of the code under test."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from docx.document import Document as WordDocument
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

Draw = Callable[[Canvas], None]


@pytest.fixture
def make_pdf(tmp_path: Path) -> Callable[..., Path]:
    """make_pdf([draw, ...]) writes a PDF with one page per function; they draw on A4."""

    def make(pages: Sequence[Draw], name: str = "contract.pdf") -> Path:
        path = tmp_path / name
        canvas = Canvas(str(path), pagesize=A4, pageCompression=0, invariant=1)
        for draw in pages:
            canvas.setFont("Helvetica", 11)
            draw(canvas)
            canvas.showPage()
        canvas.save()
        return path

    return make


@pytest.fixture
def raw_pdf(tmp_path: Path) -> Callable[..., Path]:
    """raw_pdf({number: body}) writes those objects with a right cross-reference table.

    Object 1 must be the catalogue. Bodies are bytes without "n 0 obj" and "endobj".
    """

    def make(objects: dict[int, bytes], name: str = "raw.pdf", trailer: bytes = b"") -> Path:
        out = bytearray(b"%PDF-1.7\n")
        offsets: dict[int, int] = {}
        for number, body in sorted(objects.items()):
            offsets[number] = len(out)
            out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        start = len(out)
        size = max(objects) + 1
        out += b"xref\n0 %d\n0000000000 65535 f \n" % size
        for number in range(1, size):
            if number in offsets:
                out += b"%010d 00000 n \n" % offsets[number]
            else:
                out += b"0000000000 65535 f \n"
        out += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (
            size,
            trailer,
            start,
        )
        path = tmp_path / name
        path.write_bytes(bytes(out))
        return path

    return make


@pytest.fixture
def docx_bytes() -> Callable[[WordDocument], bytes]:
    """The bytes of a python-docx document."""

    def save(document: WordDocument) -> bytes:
        stream = io.BytesIO()
        document.save(stream)
        return stream.getvalue()

    return save
