"""Pictures of pages, with boxes and spans marked."""

from __future__ import annotations

import io
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image
from reportlab.pdfgen.canvas import Canvas


@pytest.fixture
def pages(client: TestClient, upload: Any) -> str:
    """The address of the pages of a PDF with two of them."""
    file = io.BytesIO()
    canvas = Canvas(file)
    for text in ("1. Term: two years from the date of signing.", "2. Price: EUR 5 for each lot."):
        canvas.drawString(100, 700, text)
        canvas.showPage()
    canvas.save()
    document = upload(file.getvalue(), "two.pdf")
    assert document["status"] == "completed", document
    return f"/api/v1/documents/{document['id']}/pages"


def marked(png: bytes) -> int:
    """Pixels that are neither grey nor white."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    return sum(
        count for count, (red, _, blue) in picture.getcolors(1 << 24) or [] if abs(red - blue) > 30
    )


def test_a_span_is_marked_on_its_page_alone(client: TestClient, pages: str) -> None:
    text = client.get(pages.replace("/pages", "/text")).json()["text"]
    start = text.index("EUR 5")
    span = {"start": start, "end": start + len("EUR 5")}
    plain = client.get(f"{pages}/2.png")
    assert plain.headers["content-type"] == "image/png"
    assert marked(plain.content) == 0
    assert marked(client.get(f"{pages}/2.png", params=span).content) > 100
    assert marked(client.get(f"{pages}/1.png", params=span).content) == 0


def test_boxes_are_drawn_where_they_are_given(client: TestClient, pages: str) -> None:
    png = client.get(f"{pages}/1.png", params={"boxes": "0.1,0.1,0.3,0.2;0.5,0.5,0.6,0.6"})
    picture = Image.open(io.BytesIO(png.content)).convert("RGB")
    width, height = picture.size
    yellow = picture.getpixel((int(width * 0.2), int(height * 0.15)))
    white = picture.getpixel((int(width * 0.4), int(height * 0.15)))
    assert yellow != white == (255, 255, 255)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("3.png", 404, "no_such_page"),
        ("0.png", 404, "no_such_page"),
        ("x.png", 422, "invalid_request"),
        ("1.png?boxes=1,2,3", 422, "bad_boxes"),
        ("1.png?boxes=0.5,0.5,0.4,0.6", 422, "bad_boxes"),
        ("1.png?start=1", 422, "bad_span"),
        ("1.png?scale=900", 422, "invalid_request"),
    ],
)
def test_what_can_not_be_drawn(
    client: TestClient, pages: str, path: str, status: int, code: str
) -> None:
    reply = client.get(f"{pages}/{path}")
    assert (reply.status_code, reply.json()["code"]) == (status, code)
