"""The page region over a scripted API."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import httpx
import pytest

from ui.client import Api
from ui.viewer import Shown, Viewer, turned

TEXT = "1. Term\nTwo years <b>only</b>. 𠮷 end.\n"
PDF = {
    "id": "d",
    "name": "a.pdf",
    "askable": True,
    "media_type": "application/pdf",
    "page_count": 3,
}
TXT = PDF | {"name": "a.txt", "media_type": "text/plain", "page_count": 1}
CITATION = {"clause": "1", "page": 2, "page_label": "ii"}


def drawn(document: dict[str, Any], shown: Shown | None, lang: Any = "en") -> tuple[str, list[str]]:
    """The region's HTML and the addresses asked for."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        path, given = request.url.path.removeprefix("/api/v1/documents/d"), request.url.params
        asked.append(f"{path}?{given}" if given else path)
        if path.startswith("/pages/"):
            return httpx.Response(200, content=b"png")
        if path == "/receipt":
            pages = [{"number": n, "label": label} for n, label in ((1, "i"), (2, "ii"), (3, "3"))]
            return httpx.Response(200, json={"pages": pages})
        if path == "/text":
            start, end = int(given["start"]), min(int(given["end"]), len(TEXT))
            span = {"start": start, "end": end, "total_chars": len(TEXT)}
            return httpx.Response(200, json={"text": TEXT[start:end], **span})
        if not document:
            problem = {"code": "not_found", "detail": "There is no such document.", "status": 404}
            return httpx.Response(404, json=problem)
        return httpx.Response(200, json=document)

    async def run() -> str:
        api = Api("http://fineprint.test/api/v1", httpx.MockTransport(answer))
        try:
            return await Viewer(api).html(shown, lang)
        finally:
            await api.close()

    return asyncio.run(run()), asked


def test_page_is_asked_for_with_its_span_and_shown_with_both_numbers() -> None:
    html, asked = drawn(PDF, Shown("d", 2, (8, 17), CITATION))
    assert "/pages/2.png?start=8&end=17" in asked
    assert f"data:image/png;base64,{base64.b64encode(b'png').decode()}" in html
    assert "Page 2 of 3 · printed ii" in html
    assert "<blockquote>Two years</blockquote>" in html and "clause 1, page 2, printed ii" in html


@pytest.mark.parametrize(("page", "ways"), [(1, 1), (2, 2), (3, 1), (0, 1), (99, 1)])
def test_turning_stays_inside_the_document(page: int, ways: int) -> None:
    html, _ = drawn(PDF, turned(Shown("d"), page))
    assert html.count('data-act="turn"') == ways
    assert html.count("disabled") == 2 - ways


def test_text_is_marked_exactly_and_escaped() -> None:
    start = TEXT.index("𠮷")
    html, _ = drawn(TXT, Shown("d", 1, (start, start + 5), CITATION))
    assert "<mark>𠮷 end</mark>." in html
    assert "&lt;b&gt;only&lt;/b&gt;" in html and "<b>" not in html


def test_what_cannot_be_shown_is_said() -> None:
    assert "Choose a source" in drawn(PDF, None)[0]
    assert "not ready" in drawn(PDF | {"askable": False}, Shown("d"))[0]
    assert "There is no such document." in drawn({}, Shown("d"))[0]
    assert "找不到" in drawn({}, Shown("d"), "zh")[0]


def test_a_citation_keeps_its_quote_of_a_deleted_document() -> None:
    kept = CITATION | {"document": "<i>a.pdf", "quote": "Two years <b>only</b>."}
    html, _ = drawn({}, Shown("d", 2, (8, 30), kept))
    assert "<blockquote>Two years &lt;b&gt;only&lt;/b&gt;.</blockquote>" in html
    assert "&lt;i&gt;a.pdf" in html and "clause 1, page 2, printed ii" in html
    assert "no longer here" in html and "There is no such document." not in html
    assert "已不存在" in drawn({}, Shown("d", 2, (8, 30), kept), "zh")[0]
