"""Reads the characters of one PDF page with their boxes, and drops those that no reader sees.

Works on PDFium's raw text interface inside the worker process. It knows no lines, columns or
paragraphs beyond the line breaks that PDFium reports.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from dataclasses import dataclass, field

import pypdfium2
from pypdfium2 import raw

from retrieval.parse.pdf_drawn import Rect, drawn
from retrieval.parse.pdf_glyphs import shown

_INVISIBLE_MODES = (raw.FPDF_TEXTRENDERMODE_INVISIBLE, raw.FPDF_TEXTRENDERMODE_CLIP)
_WHITE = 235
_TRANSPARENT = 16
_TINY_POINTS = 2.0
_CHECK_SCALE = 2.0
_FLAT = 10


@dataclass(slots=True)
class Char:
    """One character; the box is in points of the page as read (origin top left).

    `x1` below `x0` marks a character without a place, such as a space that PDFium inferred.
    """

    text: str
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(slots=True)
class Run:
    """Characters of one line as PDFium reports it. `turn`: quarter turns of its direction against
    the page's reading direction."""

    chars: list[Char]
    turn: int


@dataclass(slots=True)
class RawPage:
    """One page before layout. Sizes are points of the displayed page.

    `turn` quarter turns (counter-clockwise) bring the page's main text upright; character boxes are
    in the turned page. `marks`: something but text is drawn (a scan, a picture, outlines). `plain`
    is the page's text as PDFium itself puts it together, hidden text too. `image_share` is the
    part of the page that its largest picture covers; `recognised`: the text is OCR's. `rules` are
    straight lines drawn along the page, thin boxes in the turned page.
    """

    number: int
    label: str | None
    width: float
    height: float
    turn: int = 0
    runs: list[Run] = field(default_factory=list)
    marks: bool = False
    images: bool = False
    hidden: int = 0
    under_image: int = 0
    visible: int = 0
    unreadable: int = 0
    image_share: float = 0.0
    rules: list[Rect] = field(default_factory=list)
    recognised: bool = False
    plain: str = ""
    hidden_text: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Style:
    """What all characters of one text object share."""

    invisible: bool
    pale: bool
    turn: int


def read_page(document: pypdfium2.PdfDocument, index: int) -> RawPage:
    """Characters of the page at `index` (from 0). Raises pypdfium2.PdfiumError."""
    page = document[index]
    if document.formenv is not None:
        # What was typed into a form becomes page content; the page must be loaded again to show it.
        page.flatten()
        page.close()
        page = document[index]
    try:
        width, height = page.get_size()
        result = RawPage(index + 1, _label(document, index), width, height)
        found = drawn(page)
        images, result.marks = found.images, found.marks
        result.images = bool(images)
        area = max(1.0, width * height)
        result.image_share = max(((i[2] - i[0]) * (i[3] - i[1]) / area for i in images), default=0)
        text_page = page.get_textpage()
        try:
            _Reader(page, text_page, images, result).read(found.rules)
            result.plain = text_page.get_text_range(errors="replace")
        finally:
            text_page.close()
        return result
    finally:
        page.close()


def turned(rect: Rect, turn: int, width: float, height: float) -> Rect:
    """`rect` after `turn` counter-clockwise quarter turns of a page of that size."""
    x0, y0, x1, y1 = rect
    match turn % 4:
        case 1:
            return y0, width - x1, y1, width - x0
        case 2:
            return width - x1, height - y1, width - x0, height - y0
        case 3:
            return height - y1, x0, height - y0, x1
    return rect


def _label(document: pypdfium2.PdfDocument, index: int) -> str | None:
    label = "".join(c for c in (document.get_page_label(index) or "") if c.isprintable()).strip()
    return label or None


class _Reader:
    def __init__(
        self,
        page: pypdfium2.PdfPage,
        text_page: pypdfium2.PdfTextPage,
        images: list[Rect],
        result: RawPage,
    ) -> None:
        self._page = page
        self._text_page = text_page
        self._images = images
        self._result = result
        self._bbox: Rect = page.get_bbox()
        self._rotation = page.get_rotation() // 90
        self._styles: dict[int, _Style] = {}
        self._bitmap: _Bitmap | None = None

    def read(self, rules: list[Rect]) -> None:
        found = self._collect()
        turns = Counter(style.turn for _, _, style in found if style is not None)
        main = turns.most_common(1)[0][0] if turns else 0
        self._result.turn = main
        width, height = self._result.width, self._result.height
        self._result.rules = [turned(self._display(rule), main, width, height) for rule in rules]
        chars: list[Char] = []
        direction = main

        def close() -> None:
            nonlocal chars
            if chars:
                self._result.runs.append(Run(chars, (direction - main) % 4))
                chars = []

        for text, rect, style in found:
            if text == "\n":
                close()
                continue
            if style is not None and style.turn != direction:
                close()
                direction = style.turn
            if rect is None:
                chars.append(Char(text, 0.0, 0.0, -1.0, 0.0))
                continue
            x0, y0, x1, y1 = turned(rect, main, width, height)
            # A ligature is written out; its letters share the glyph's width.
            step = (x1 - x0) / len(text)
            for position, letter in enumerate(text):
                chars.append(Char(letter, x0 + position * step, y0, x0 + (position + 1) * step, y1))
        close()

    def _collect(self) -> list[tuple[str, Rect | None, _Style | None]]:
        """(text, display box, style) per visible character; "\\n" where PDFium breaks the line."""
        # Millions of calls: the bare handle and local names save a third of the time.
        handle, result = self._text_page.raw, self._result
        get_code, get_object = raw.FPDFText_GetUnicode, raw.FPDFText_GetTextObject
        get_box, is_inferred = raw.FPDFText_GetLooseCharBox, raw.FPDFText_IsGenerated
        is_unmapped = raw.FPDFText_HasUnicodeMapError
        found: list[tuple[str, Rect | None, _Style | None]] = []
        rect = raw.FS_RECTF()
        high = 0
        last_hidden = -2
        for index in range(self._text_page.count_chars()):
            code = get_code(handle, index)
            pointer = get_object(handle, index)
            if not pointer or is_inferred(handle, index) == 1:
                # What PDFium inferred: spaces between words and line ends.
                if code in (10, 13):
                    found.append(("\n", None, None))
                elif code in (32, 160):
                    found.append((" ", None, None))
                continue
            if 0xD800 <= code < 0xDC00:
                high = code
                continue
            if 0xDC00 <= code < 0xE000 and high:
                code = 0x10000 + ((high - 0xD800) << 10) + code - 0xDC00
            high = 0
            text = "�" if is_unmapped(handle, index) == 1 else shown(code)
            if not text:
                continue
            get_box(handle, index, rect)
            box = (rect.left, rect.bottom, rect.right, rect.top)
            style = self._style(pointer, index)
            if text != " " and not self._is_seen(box, style):
                result.hidden += 1
                gap = "" if index == last_hidden + 1 else " "
                result.hidden_text.append(gap + text)
                last_hidden = index
                continue
            if not text.isspace():
                result.visible += 1
                result.unreadable += text == "�" or "\ue000" <= text <= "\uf8ff"
            found.append((text, self._display(box), style))
        return found

    def _style(self, pointer: ctypes._Pointer[ctypes.Structure], index: int) -> _Style:
        key = ctypes.addressof(pointer.contents)
        style = self._styles.get(key)
        if style is None:
            mode = raw.FPDFTextObj_GetTextRenderMode(pointer)
            angle = raw.FPDFText_GetCharAngle(self._text_page, index)
            quarter = round(angle / (math.pi / 2)) % 4 if angle >= 0 else 0
            style = _Style(
                mode in _INVISIBLE_MODES,
                self._is_pale(pointer, mode),
                (quarter + self._rotation) % 4,
            )
            self._styles[key] = style
        return style

    def _is_pale(self, pointer: ctypes._Pointer[ctypes.Structure], mode: int) -> bool:
        """White or transparent: seen only on darker ground, which a picture of the page tells."""
        parts = [ctypes.c_uint() for _ in range(4)]
        stroked = mode in (raw.FPDF_TEXTRENDERMODE_STROKE, raw.FPDF_TEXTRENDERMODE_STROKE_CLIP)
        get = raw.FPDFPageObj_GetStrokeColor if stroked else raw.FPDFPageObj_GetFillColor
        if not get(pointer, *parts):
            return False
        red, green, blue, alpha = (part.value for part in parts)
        return alpha < _TRANSPARENT or min(red, green, blue) >= _WHITE

    def _is_seen(self, box: Rect, style: _Style) -> bool:
        left, bottom, right, top = box
        x, y = (left + right) / 2, (bottom + top) / 2
        if not (self._bbox[0] <= x <= self._bbox[2] and self._bbox[1] <= y <= self._bbox[3]):
            return False
        if max(right - left, top - bottom) < _TINY_POINTS:
            return False
        if style.invisible:
            # Recognised text under a scan is invisible on purpose: the picture shows the words.
            under = any(
                i[0] - 1 <= x <= i[2] + 1 and i[1] - 1 <= y <= i[3] + 1 for i in self._images
            )
            self._result.under_image += under
            return under
        if style.pale:
            if self._bitmap is None:
                self._bitmap = _Bitmap(self._page)
            return self._bitmap.has_ink(self._display(box))
        return True

    def _display(self, box: Rect) -> Rect:
        """Page space (origin bottom left, unrotated) to the displayed page (origin top left)."""
        left, bottom, right, top = self._bbox
        x0, y0, x1, y1 = box
        match self._rotation:
            case 1:
                return y0 - bottom, x0 - left, y1 - bottom, x1 - left
            case 2:
                return right - x1, y0 - bottom, right - x0, y1 - bottom
            case 3:
                return top - y1, right - x1, top - y0, right - x0
        return x0 - left, top - y1, x1 - left, top - y0


class _Bitmap:
    """A grey picture of the page, to tell pale text on dark ground from text nobody sees."""

    def __init__(self, page: pypdfium2.PdfPage) -> None:
        self._picture = page.render(scale=_CHECK_SCALE, grayscale=True)
        self._bytes = bytes(self._picture.buffer)

    def has_ink(self, rect: Rect) -> bool:
        """Whether the grey values inside a display box differ visibly."""
        width, height, stride = self._picture.width, self._picture.height, self._picture.stride
        x0, y0, x1, y1 = (round(side * _CHECK_SCALE) for side in rect)
        x0, x1 = max(0, min(x0, width - 1)), max(1, min(max(x1, x0 + 1), width))
        y0, y1 = max(0, min(y0, height - 1)), max(1, min(max(y1, y0 + 1), height))
        lines = [self._bytes[y * stride + x0 : y * stride + x1] for y in range(y0, y1)]
        values = [(min(line), max(line)) for line in lines if line]
        return bool(values) and max(v[1] for v in values) - min(v[0] for v in values) > _FLAT
