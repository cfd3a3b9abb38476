"""Draws one page of a PDF as a PNG with translucent boxes. Other formats have no page pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pypdfium2
from PIL import Image, ImageDraw
from pypdfium2 import raw

from retrieval.errors import Damaged, UnsupportedType
from retrieval.types import Box

_FILL = (255, 213, 0, 96)
_MAX_PIXELS = 40_000_000


def render_page(path: Path, number: int, boxes: Sequence[Box] = (), scale: float = 1.5) -> bytes:
    """PNG of page `number` (from 1); `scale` 1 is 72 pixels an inch; boxes are page fractions.

    Raises UnsupportedType when the file is no PDF, ValueError for a page or a scale that isn't
    there, Damaged when the page can't be drawn.
    """
    with path.open("rb") as stream:
        if b"%PDF-" not in stream.read(1024):
            raise UnsupportedType(
                "Only PDF documents have page pictures; show this document's text instead."
            )
    try:
        with pypdfium2.PdfDocument(path) as document:
            if not 1 <= number <= len(document):
                raise ValueError(f"page {number} is not one of 1 to {len(document)}")
            if document.get_formtype() != raw.FORMTYPE_NONE:
                document.init_forms()
            page = document[number - 1]
            width, height = page.get_size()
            if scale <= 0 or width * height * scale * scale > _MAX_PIXELS:
                raise ValueError(f"scale {scale} gives no picture of at most 40 million pixels")
            picture = page.render(scale=scale, rev_byteorder=True).to_pil().convert("RGB")
    except pypdfium2.PdfiumError as error:
        raise Damaged(f"Page {number} can't be drawn: {error}") from error
    if boxes:
        picture = _marked(picture, boxes)
    stream_out = io.BytesIO()
    picture.save(stream_out, format="PNG", compress_level=3)
    return stream_out.getvalue()


def _marked(picture: Image.Image, boxes: Sequence[Box]) -> Image.Image:
    layer = Image.new("RGBA", picture.size, (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    width, height = picture.size
    for x0, y0, x1, y1 in boxes:
        draw.rectangle((x0 * width, y0 * height, x1 * width, y1 * height), fill=_FILL)
    return Image.alpha_composite(picture.convert("RGBA"), layer).convert("RGB")
