"""Pages that are pictures: which need recognition, where recognised words stand, and what is said
when it is not installed. Tests of the models themselves run where they are installed."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from retrieval.errors import NoTextLayer, ParseCancelled
from retrieval.parse import ParseLimits, parse_file
from retrieval.parse.pdf_chars import RawPage
from retrieval.parse.pdf_ocr import Recognised, needs_recognition, place, state_of
from retrieval.parse.pdf_reader import INSTALL_OCR, _report
from retrieval.types import Document

MakePdf = Callable[..., Path]
WIDTH, HEIGHT = A4
_without = pytest.mark.skipif(
    find_spec("rapidocr") is None, reason="the optional extra ocr is not installed"
)
absent = pytest.mark.skipif(
    find_spec("rapidocr") is not None, reason="the optional extra ocr is installed"
)


def installed(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a test of the models: left out of `make test`, skipped where they are missing."""
    marked: Callable[..., None] = pytest.mark.ocr(_without(test))
    return marked


def scan(*lines: str) -> Callable[[Canvas], None]:
    """Draws a whole page as a picture of those lines."""

    def draw(canvas: Canvas) -> None:
        picture = Image.new("L", (1240, 1754), 255)
        pen = ImageDraw.Draw(picture)
        font = ImageFont.load_default(36)
        for index, line in enumerate(lines):
            pen.text((150, 200 + index * 60), line, fill=0, font=font)
        stream = io.BytesIO()
        picture.save(stream, "PNG")
        canvas.drawImage(ImageReader(stream), 0, 0, WIDTH, HEIGHT)

    return draw


def prose(canvas: Canvas) -> None:
    for index in range(6):
        canvas.drawString(72, 700 - 14 * index, f"The Supplier shall deliver lot {index} on time.")


def page_text(document: Document, number: int) -> str:
    page = document.pages[number - 1]
    return document.text[page.start : page.end]


@pytest.mark.parametrize(
    ("page", "unreadable", "needed"),
    [
        (RawPage(1, None, 595, 842, marks=True), False, True),
        (RawPage(1, None, 595, 842), False, False),
        (RawPage(1, None, 595, 842, marks=True, visible=12, image_share=0.9), False, True),
        (RawPage(1, None, 595, 842, marks=True, visible=12, image_share=0.2), False, False),
        (RawPage(1, None, 595, 842, marks=True, visible=900, image_share=0.9), False, False),
        (RawPage(1, None, 595, 842, visible=900, unreadable=800), True, True),
        (
            RawPage(1, None, 595, 842, marks=True, visible=9, under_image=9, image_share=1.0),
            False,
            False,
        ),
    ],
    ids=["marks", "blank", "stamp", "logo", "letterhead", "garbled", "searchable scan"],
)
def test_only_pages_whose_text_is_a_picture_are_recognised(
    page: RawPage, unreadable: bool, needed: bool
) -> None:
    assert needs_recognition(page, unreadable) is needed


def test_recognised_lines_become_the_text_with_a_box_a_character() -> None:
    page = RawPage(1, None, 200, 100, visible=3, unreadable=3, marks=True)
    place(page, [Recognised("第5条", 10, 20, 60, 30, 0.99), Recognised("ab", 10, 40, 30, 48, 0.5)])
    assert page.recognised
    assert (page.visible, page.unreadable) == (5, 2)
    chars = page.runs[0].chars
    assert [(char.text, char.x0, char.x1) for char in chars] == [
        ("第", 10, 30),
        ("5", 30, 40),
        ("条", 40, 60),
    ]
    # One size for both lines, so that they may be one paragraph.
    assert {round(run.chars[0].y1 - run.chars[0].y0, 6) for run in page.runs} == {9.0}


def test_an_announcement_gives_time_and_progress_counts_on() -> None:
    told: list[tuple[int, int]] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    assert _report(b"1 2\n2 2\nocr 3\n3 5\n4", tell) == (b"4", 3)
    assert _report(b"4 5", tell) == (b"4 5", 0)
    assert told == [(3, 5)]


def test_a_limit_of_no_pages_switches_it_off(make_pdf: MakePdf) -> None:
    limits = ParseLimits(max_ocr_pages=0)
    assert state_of(limits) == "off"
    path = make_pdf([prose, scan("The cap is USD 5.")])
    document = parse_file(path, path.name, limits=limits)
    (warning,) = document.warnings
    assert (warning.code, warning.pages) == ("pages_without_text", (2,))
    assert "Install" not in warning.message


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_what_installs_recognition_is_the_same_everywhere(name: str) -> None:
    readme = Path(__file__).parents[3] / name
    assert INSTALL_OCR in readme.read_text("utf-8")


@absent
def test_without_the_extra_the_pages_are_named_with_what_to_install(make_pdf: MakePdf) -> None:
    path = make_pdf([prose, scan("The cap is USD 5."), scan("Two.")])
    (warning,) = parse_file(path, path.name).warnings
    assert warning.pages == (2, 3)
    assert "page(s) 2–3" in warning.message
    assert INSTALL_OCR in warning.message
    only = make_pdf([scan("The cap is USD 5.")], "only.pdf")
    with pytest.raises(NoTextLayer, match=re.escape(INSTALL_OCR)):
        parse_file(only, only.name)


@installed
def test_a_scanned_page_among_text_is_recognised(make_pdf: MakePdf) -> None:
    path = make_pdf([prose, scan("The liability cap is USD 2,000,000.", "It covers all claims.")])
    told: list[tuple[int, int]] = []
    document = parse_file(path, path.name, on_progress=lambda *step: told.append(step))
    assert "liability cap is USD 2,000,000." in page_text(document, 2)
    assert [page.method for page in document.pages] == ["text", "ocr"]
    assert [(warning.code, warning.pages) for warning in document.warnings] == [
        ("recognised_pages", (2,))
    ]
    assert told[-1] == (3, 3)
    assert document.receipt is not None
    assert document.receipt.figures.missing == ()
    start = document.text.index("2,000,000") - document.pages[1].start
    box = document.char_boxes[2][start]
    assert box is not None
    # The line is drawn at 200 of 1754 pixels from the top, in letters of 36.
    assert 0.10 < box[1] < box[3] < 0.15


@installed
def test_a_picture_without_words_stays_empty(make_pdf: MakePdf) -> None:
    path = make_pdf([prose, scan()])
    document = parse_file(path, path.name)
    assert document.pages[1].method == "empty"
    assert [warning.code for warning in document.warnings] == ["pages_without_text"]


@installed
def test_pages_over_the_limit_are_named(make_pdf: MakePdf) -> None:
    path = make_pdf([scan("The cap is USD 5."), scan("The fee is EUR 7.")])
    document = parse_file(path, path.name, limits=ParseLimits(max_ocr_pages=1))
    pages = {warning.code: warning.pages for warning in document.warnings}
    assert pages["recognition_limit"] == pages["pages_without_text"] == (2,)
    assert "EUR 7" not in document.text


@installed
def test_recognition_can_be_cancelled(make_pdf: MakePdf) -> None:
    path = make_pdf([scan(f"Page {number}.") for number in range(40)])
    told: list[tuple[int, int]] = []
    with pytest.raises(ParseCancelled):
        parse_file(
            path,
            path.name,
            on_progress=lambda *step: told.append(step),
            cancelled=lambda: bool(told) and told[-1][0] > 40,
        )
    assert told[-1][0] < 80


@installed
def test_a_strip_of_a_page_does_not_end_the_reading(make_pdf: MakePdf) -> None:
    def strip(canvas: Canvas) -> None:
        canvas.setPageSize((1, 2000))
        scan("The cap is USD 5.")(canvas)

    path = make_pdf([prose, strip])
    document = parse_file(path, path.name)
    assert "deliver lot 5" in document.text
    (warning,) = document.warnings
    assert (warning.code, warning.pages) == ("pages_without_text", (2,))
