"""Recognises the text of pages that are pictures, with RapidOCR where it is installed.

Runs inside the worker process, page by page, so that cancelling ends it between any two
instructions. It knows which pages need it and where words stand; neither layout nor language.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from typing import TYPE_CHECKING, Literal

import pypdfium2

from retrieval.parse.joining import is_cjk
from retrieval.parse.limits import ParseLimits
from retrieval.parse.pdf_chars import Char, RawPage, Run
from retrieval.parse.pdf_glyphs import shown

if TYPE_CHECKING:
    from rapidocr import RapidOCR

State = Literal["absent", "off", "ready"]
"""Whether text can be recognised: not installed, switched off by its limit, or yes."""

_LONG_SIDE = 2000
"""Pixels; the models see no more of a page than that."""
_PICTURE_SHARE = 0.5
_FEW_CHARS = 100
UNSURE = 0.8
"""Lines recognised with less confidence count as garbled. On eight scanned pages of a Chinese book
and one blurred English page of 1871, at most 0.5% of a page's characters were in such lines."""
_SAME_HEIGHT = 0.35
_NARROWEST = 1 / 40
"""Strips that are narrower for their length hold no page of text. The models enlarge a picture by
its short side: one of 1 by 2,000 pixels took all memory."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """One line of text in points of the displayed page, origin top left, with its confidence."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    score: float


@dataclass(frozen=True, slots=True)
class Recognition:
    """What became of the pages whose text is in their picture, by their numbers. A page without
    words in its picture is in none of the lists."""

    state: State
    recognised: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    over_limit: tuple[int, ...] = ()


def state_of(limits: ParseLimits) -> State:
    """Whether pages can be recognised here."""
    if limits.max_ocr_pages <= 0:
        return "off"
    return "ready" if find_spec("rapidocr") and find_spec("onnxruntime") else "absent"


def needs_recognition(page: RawPage, unreadable: bool) -> bool:
    """Whether a page's text is in its picture only: nothing but marks, a picture with a stamp, or
    letters that can't be decoded."""
    if unreadable:
        return True
    if page.under_image:
        return False
    pictured = page.image_share > _PICTURE_SHARE and page.visible < _FEW_CHARS
    return pictured or (page.marks and page.visible == 0)


def recognise(
    document: pypdfium2.PdfDocument,
    wanted: Sequence[RawPage],
    limits: ParseLimits,
    on_page: Callable[[int, int], None],
) -> Recognition:
    """Puts recognised text into the pages that want it, as far as limits and installation allow.

    `on_page(done, total)` is called before the first page and after each.
    """
    state = state_of(limits)
    if state != "ready" or not wanted:
        return Recognition(state)
    chosen, late = wanted[: limits.max_ocr_pages], wanted[limits.max_ocr_pages :]
    _allow_time(len(chosen) * limits.ocr_page_seconds)
    on_page(0, len(chosen))
    engine = _engine()
    found: list[int] = []
    failed: list[int] = []
    for done, page in enumerate(chosen, 1):
        try:
            lines = [] if _is_strip(page) else _lines(engine, document, page)
        except _engine_errors() as error:
            sys.stderr.write(f"page {page.number}: {error}\n")
            failed.append(page.number)
        else:
            if any(char.isalnum() for line in lines for char in line.text):
                place(page, lines)
                found.append(page.number)
        on_page(done, len(chosen))
    return Recognition(state, tuple(found), tuple(failed), tuple(page.number for page in late))


def place(page: RawPage, lines: Sequence[Recognised]) -> None:
    """Makes `lines` the text of the page, each character with its share of the line's box."""
    height = median(line.y1 - line.y0 for line in lines)
    page.runs = []
    page.turn = 0
    page.recognised = True
    page.visible = page.unreadable = 0
    for line in lines:
        chars = _spread(line, height)
        count = sum(char.text != " " for char in chars)
        page.visible += count
        page.unreadable += count if line.score < UNSURE else 0
        page.runs.append(Run(chars, 0))
    page.plain = "\n".join(line.text for line in lines)


def _is_strip(page: RawPage) -> bool:
    return min(page.width, page.height) < _NARROWEST * max(page.width, page.height)


def _spread(line: Recognised, usual: float) -> list[Char]:
    text = "".join(shown(ord(char)) for char in line.text)
    # Boxes fit the ink: a line of digits is lower than one with tails. Paragraphs need one size.
    y0, y1 = line.y0, line.y1
    if abs((y1 - y0) - usual) <= _SAME_HEIGHT * usual:
        middle = (y0 + y1) / 2
        y0, y1 = middle - usual / 2, middle + usual / 2
    weights = [2 if is_cjk(char) else 1 for char in text]
    step = (line.x1 - line.x0) / max(1, sum(weights))
    chars: list[Char] = []
    x = line.x0
    for char, weight in zip(text, weights, strict=True):
        chars.append(Char(char, x, y0, x + weight * step, y1))
        x += weight * step
    return chars


def _lines(engine: RapidOCR, document: pypdfium2.PdfDocument, page: RawPage) -> list[Recognised]:
    loaded = document[page.number - 1]
    try:
        scale = _LONG_SIDE / max(page.width, page.height)
        picture = loaded.render(scale=scale).to_numpy()
    finally:
        loaded.close()
    result = engine(picture)
    if result.boxes is None or result.txts is None or result.scores is None:
        return []
    lines: list[Recognised] = []
    for corners, text, score in zip(result.boxes, result.txts, result.scores, strict=True):
        x0, y0 = (float(side) / scale for side in corners.min(axis=0))
        x1, y1 = (float(side) / scale for side in corners.max(axis=0))
        if text.strip():
            lines.append(Recognised(text, x0, y0, x1, y1, float(score)))
    return lines


def _engine() -> RapidOCR:
    from rapidocr import RapidOCR

    return RapidOCR(params={"Global.log_level": "critical"})


def _engine_errors() -> tuple[type[Exception], ...]:
    from rapidocr.inference_engine.onnxruntime.main import ONNXRuntimeError

    return (ONNXRuntimeError, pypdfium2.PdfiumError, MemoryError)


def _allow_time(seconds: float) -> None:
    """Raises this process's CPU limit by what recognising may take on all cores."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if soft != resource.RLIM_INFINITY:
        more = soft + int(seconds) * 64
        resource.setrlimit(resource.RLIMIT_CPU, (more if hard < 0 else min(more, hard), hard))
