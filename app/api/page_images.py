"""Pictures of document pages with boxes on them, rendered away from the event loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as FilePath

from app.documents import LoadedDocument
from app.errors import BadParameter, NotFound
from retrieval.parse.render import render_page
from retrieval.types import Box

MAX_BOXES = 500


def parse_boxes(given: str) -> tuple[Box, ...]:
    """Boxes from `x0,y0,x1,y1;x0,y0,x1,y1;…`, fractions of the page. Raises BadParameter."""
    boxes = []
    for part in filter(None, (part.strip() for part in given.split(";"))):
        try:
            x0, y0, x1, y1 = (float(number) for number in part.split(","))
        except ValueError as error:
            raise _bad_boxes(part) from error
        if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
            raise _bad_boxes(part)
        boxes.append((x0, y0, x1, y1))
    if len(boxes) > MAX_BOXES:
        raise BadParameter(f"At most {MAX_BOXES} boxes fit on a page.", code="bad_boxes")
    return tuple(boxes)


def span_boxes(document: LoadedDocument, start: int, end: int, page: int) -> tuple[Box, ...]:
    """Boxes of `text[start:end]` on one page."""
    return tuple(
        (box.x0, box.y0, box.x1, box.y1) for box in document.boxes(start, end) if box.page == page
    )


def render(path: FilePath, number: int, boxes: Sequence[Box], scale: float) -> bytes:
    """A PNG of page `number`. Raises BadParameter when it would be too big."""
    try:
        return render_page(path, number, boxes, scale)
    except ValueError as error:
        raise BadParameter(f"The page can't be drawn like this: {error}.") from error


def require_page_image(document_media_type: str | None, page_count: int, number: int) -> None:
    """Raises NotFound for a page that is not there or a format without page geometry."""
    if document_media_type != "application/pdf":
        raise NotFound(
            "This document has no page images; its text is under /text.", code="no_page_image"
        )
    if not 1 <= number <= page_count:
        raise NotFound(f"The document has pages 1 to {page_count}.", code="no_such_page")


def _bad_boxes(part: str) -> BadParameter:
    return BadParameter(
        f"boxes: “{part[:80]}” is not x0,y0,x1,y1 with fractions between 0 and 1.",
        code="bad_boxes",
    )
