from __future__ import annotations

from typing import Any, get_args

import pytest

from app.documents import WaitReason
from ui.library_view import library_html
from ui.strings import LANGS, Lang, text


def document(**changes: Any) -> dict[str, Any]:
    return {
        "id": "doc_1",
        "name": "a.pdf",
        "status": "completed",
        "stage": "done",
        "askable": True,
        "progress": {"done": 5, "total": 5, "unit": "tokens"},
        "waiting": None,
        "total_tokens": 12345,
        "page_count": 31,
        "warnings": [],
        "error": None,
    } | changes


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(
    ("status", "stage", "acts"),
    [
        ("queued", "queued", {"cancel", "delete"}),
        ("in_progress", "parsing", {"cancel", "delete"}),
        ("in_progress", "indexing", {"cancel", "delete"}),
        ("in_progress", "reading", {"cancel", "delete"}),
        ("completed", "done", {"delete"}),
        ("failed", "parsing", {"retry", "delete"}),
        ("cancelled", "reading", {"retry", "delete"}),
    ],
)
def test_each_state_offers_what_can_be_done(
    lang: Lang, status: str, stage: str, acts: set[str]
) -> None:
    error = {"code": "damaged", "message": "Broken."} if status == "failed" else None
    html = library_html([document(status=status, stage=stage, error=error)], None, lang)
    offered = {act for act in ("cancel", "retry", "delete") if f'data-act="{act}"' in html}
    assert offered == acts
    assert 'data-act="select"' in html


def test_progress_has_numbers() -> None:
    progress = {"done": 1200, "total": 4800, "unit": "tokens"}
    one = document(status="in_progress", stage="reading", progress=progress)
    html = library_html([one], "doc_1", "en")
    assert "Reading · 1,200 of 4,800 tokens · You can ask already." in html
    assert 'value="1200" max="4800"' in html
    assert 'aria-current="true"' in html


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("reason", get_args(WaitReason))
def test_one_that_waits_says_what_for_in_place_of_progress(lang: Lang, reason: str) -> None:
    progress = {"done": 0, "total": 4800, "unit": "tokens"}
    waiting = {"reason": reason, "documents": 1234}
    one = document(status="in_progress", stage="reading", progress=progress, waiting=waiting)
    html = library_html([one], None, lang)
    assert text(lang, f"waits_{reason}", count="1,234") in html
    assert "max=" not in html and "4,800" not in html


@pytest.mark.parametrize("lang", LANGS)
def test_one_that_stands_still_says_so_beside_its_progress(lang: Lang) -> None:
    progress = {"done": 1200, "total": 4800, "unit": "tokens"}
    waiting = {"reason": "engine", "documents": 0}
    one = document(status="in_progress", stage="reading", progress=progress, waiting=waiting)
    html = library_html([one], None, lang)
    assert text(lang, "waits_turn") in html and 'value="1200" max="4800"' in html
    assert text(lang, "waits_engine", count="0") not in html


def test_the_next_one_to_be_taken_up_just_waits() -> None:
    waiting = {"reason": "worker", "documents": 0}
    html = library_html([document(status="queued", stage="queued", waiting=waiting)], None, "en")
    assert '<p class="fp-doc-state">Waiting' in html and "behind" not in html


def test_progress_without_numbers_claims_none() -> None:
    progress = {"done": 0, "total": 0, "unit": "pages"}
    one = document(status="in_progress", stage="parsing", progress=progress, askable=False)
    html = library_html([one], None, "en")
    assert "<progress" in html and "max=" not in html and " of " not in html


def test_warnings_name_their_pages() -> None:
    warning = {"code": "no_text_layer", "message": "No text.", "pages": [3, 9]}
    html = library_html([document(warnings=[warning])], None, "en")
    assert "1 note on this file" in html and "No text. (pages 3, 9)" in html


@pytest.mark.parametrize("bad", ["<script>alert(1)</script>.pdf", '"><img src=x onerror=alert(1)>'])
def test_names_and_reasons_are_only_text(bad: str) -> None:
    error = {"code": "x", "message": bad}
    warning = {"code": "x", "message": bad, "pages": []}
    html = library_html(
        [document(name=bad, id=bad, status="failed", error=error, warnings=[warning])], None, "en"
    )
    assert bad not in html and "<script" not in html and "<img" not in html


def test_empty_list_says_what_to_do() -> None:
    assert "Add a contract" in library_html([], None, "en")
