from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from retrieval.errors import Damaged, UnsupportedType
from retrieval.parse.render import render_page


def picture(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    assert image.format == "PNG"
    return image.convert("RGB")


def draw(canvas: Canvas) -> None:
    canvas.drawString(72, 700, "The term is two years.")


def test_boxes_tint_the_page_where_they_say(make_pdf: Callable[..., Path]) -> None:
    path = make_pdf([draw, draw])
    plain = picture(render_page(path, 2))
    marked = picture(render_page(path, 2, [(0.5, 0.25, 0.75, 0.5)]))
    assert plain.size == marked.size == pytest.approx((595 * 1.5, 842 * 1.5), abs=2)
    width, height = plain.size
    inside = (int(width * 0.6), int(height * 0.4))
    outside = (int(width * 0.4), int(height * 0.4))
    assert plain.getpixel(inside) == (255, 255, 255)
    assert marked.getpixel(outside) == (255, 255, 255)
    red, green, blue = marked.getpixel(inside)  # type: ignore[misc]
    assert red == 255 and 200 < green < 255 and blue < 200


def test_the_text_under_a_box_stays_readable(make_pdf: Callable[..., Path]) -> None:
    path = make_pdf([draw])
    marked = picture(render_page(path, 1, [(0.0, 0.0, 1.0, 1.0)], scale=2))
    assert min(sum(pixel) for _, pixel in marked.getcolors(1 << 20)) < 300  # type: ignore[union-attr]


def test_scale_sets_the_size(make_pdf: Callable[..., Path]) -> None:
    path = make_pdf([draw])
    small, large = picture(render_page(path, 1, scale=0.5)), picture(render_page(path, 1, scale=2))
    assert large.width == pytest.approx(4 * small.width, abs=4)


@pytest.mark.parametrize("number", [0, 2, -1])
def test_a_page_that_is_not_there(make_pdf: Callable[..., Path], number: int) -> None:
    with pytest.raises(ValueError, match="1 to 1"):
        render_page(make_pdf([draw]), number)


@pytest.mark.parametrize("scale", [0, -1, 500])
def test_an_absurd_scale(make_pdf: Callable[..., Path], scale: float) -> None:
    with pytest.raises(ValueError, match="scale"):
        render_page(make_pdf([draw]), 1, scale=scale)


def test_other_documents_have_no_page_pictures(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The term is two years.")
    with pytest.raises(UnsupportedType, match="Only PDF"):
        render_page(path, 1)


def test_a_broken_pdf(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-1.7 nothing")
    with pytest.raises(Damaged):
        render_page(path, 1)
