"""What a PDF page draws besides text: pictures, and straight rules such as those of tables.

Works on PDFium's raw object interface: pages of drawings hold 100,000 objects. It knows no text.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import pypdfium2
from pypdfium2 import raw

Rect = tuple[float, float, float, float]

_MARKS = (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING)
_MAX_DEPTH = 4
# A drawing, not tables: finding cells among so many lines would take longer than reading them.
_MAX_RULES = 4000
_THIN = 4.0
_MIN_LENGTH = 8.0
_MAX_SEGMENTS = 400


@dataclass(slots=True)
class Drawn:
    """Boxes in page space (left, bottom, right, top). `marks`: anything but text is drawn."""

    images: list[Rect] = field(default_factory=list)
    rules: list[Rect] = field(default_factory=list)
    marks: bool = False


def drawn(page: pypdfium2.PdfPage) -> Drawn:
    """Pictures and rules of a page; no rules for a page with thousands of them."""
    result = Drawn()
    # (container, depth)
    pending: list[tuple[Any, int]] = [(page.raw, 0)]
    while pending:
        container, depth = pending.pop()
        count = raw.FPDFFormObj_CountObjects if depth else raw.FPDFPage_CountObjects
        get = raw.FPDFFormObj_GetObject if depth else raw.FPDFPage_GetObject
        for index in range(count(container)):
            found = get(container, index)
            kind = raw.FPDFPageObj_GetType(found)
            if kind == raw.FPDF_PAGEOBJ_FORM and depth < _MAX_DEPTH:
                pending.append((found, depth + 1))
            elif kind == raw.FPDF_PAGEOBJ_IMAGE:
                # Inside a form the bounds are in its own space; the page is the safe guess.
                result.images.append(page.get_bbox() if depth else _bounds(found))
            elif kind == raw.FPDF_PAGEOBJ_PATH and not depth and len(result.rules) <= _MAX_RULES:
                result.rules += _rules(found)
            result.marks = result.marks or kind in _MARKS
    if len(result.rules) > _MAX_RULES:
        result.rules = []
    return result


def _bounds(found: Any) -> Rect:
    sides = [ctypes.c_float() for _ in range(4)]
    raw.FPDFPageObj_GetBounds(found, *sides)
    left, bottom, right, top = (side.value for side in sides)
    return left, bottom, right, top


def _rules(path: Any) -> list[Rect]:
    """The straight parts of a path that run along the page, as thin boxes."""
    left, bottom, right, top = box = _bounds(path)
    if min(right - left, top - bottom) <= _THIN:
        return [box] if max(right - left, top - bottom) >= _MIN_LENGTH else []
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(path, fill, stroke)
    count = raw.FPDFPath_CountSegments(path)
    if not stroke.value or count > _MAX_SEGMENTS:
        return []
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(path, matrix)
    found: list[Rect] = []
    start = last = (0.0, 0.0)
    x, y = ctypes.c_float(), ctypes.c_float()
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            found += _straight(last, point)
        if raw.FPDFPathSegment_GetClose(segment):
            found += _straight(point, start)
        last = point
    return found


def _straight(a: tuple[float, float], b: tuple[float, float]) -> list[Rect]:
    x0, x1 = sorted((a[0], b[0]))
    y0, y1 = sorted((a[1], b[1]))
    if min(x1 - x0, y1 - y0) > 1 or max(x1 - x0, y1 - y0) < _MIN_LENGTH:
        return []
    return [(x0, y0, x1, y1)]
