"""Which document a question goes to, in a real browser: the one that was clicked, also before the
page has caught up, and also when the server has been away."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Any]
QUESTION = "Within how many days shall the Buyer pay every invoice?"


def add(page: Any, name: str, days: int) -> Any:
    """Upload a contract with this period; its entry in the list, once it is read."""
    text = f"SUPPLY AGREEMENT {name}\n\n1. Payment\n1.1 The Buyer shall pay every invoice within "
    text += f"{days} days of receipt.\n\n2. Term\n2.1 The term of this agreement is two years.\n"
    file = {"name": f"{name}.txt", "mimeType": "text/plain", "buffer": text.encode()}
    page.set_input_files("#fp-upload input[type=file]", [file])
    row = page.locator(".fp-doc").filter(has_text=f"{name}.txt")
    row.get_by_text("Ready").wait_for()
    page.locator(".fp-doc-selected").filter(has_text=f"{name}.txt").wait_for()
    return row


def test_a_question_goes_to_what_was_clicked_just_before(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    row = add(page, "clicked", 41)
    add(page, "before", 43)
    page.locator("#fp-question textarea").fill(QUESTION)
    # Faster than any reader, and before any reply of the server.
    row.locator("[data-act=select]").evaluate(
        "one => { one.click(); document.querySelector('#fp-ask').click(); }"
    )
    card = page.locator(".fp-exchange").first
    card.locator(".fp-meta").wait_for()
    assert "clicked.txt" in card.inner_text()
    assert "41 days" in card.locator(".fp-quote").first.inner_text()
    page.locator(".fp-doc-selected").filter(has_text="clicked.txt").wait_for()


def test_of_two_clicks_the_last_one_counts(scripted_server: str, open_page: OpenPage) -> None:
    page = open_page(scripted_server)
    first = add(page, "first", 37)
    second = add(page, "second", 38)
    add(page, "third", 39)
    page.locator("#fp-question textarea").fill(QUESTION)
    first.locator("[data-act=select]").evaluate("one => one.click()")
    second.locator("[data-act=select]").evaluate("one => one.click()")
    page.locator("#fp-ask").click()
    card = page.locator(".fp-exchange").first
    card.locator(".fp-meta").wait_for()
    assert "38 days" in card.locator(".fp-quote").first.inner_text()
    page.locator(".fp-doc-selected").filter(has_text="second.txt").wait_for()


def test_the_choice_outlives_the_session(scripted_server: str, open_page: OpenPage) -> None:
    page = open_page(scripted_server)
    row = add(page, "kept", 44)
    add(page, "newest", 45)
    row.locator("[data-act=select]").click()
    page.locator(".fp-doc-selected").filter(has_text="kept.txt").wait_for()
    page.reload()
    page.locator(".fp-doc-selected").filter(has_text="kept.txt").wait_for()
    page.locator("#fp-question textarea").fill(QUESTION)
    page.locator("#fp-ask").click()
    assert "kept.txt" in page.locator(".fp-exchange").first.inner_text()
    assert page.faults == []


def test_a_lost_server_is_told_and_the_choice_is_there_when_it_is_back(
    serve_process: Callable[..., AbstractContextManager[str]],
    open_page: OpenPage,
    unused_port: int,
    tmp_path: Path,
) -> None:
    script = str(Path(__file__).with_name("scripted_server.py"))
    command = [sys.executable, script, str(unused_port), str(tmp_path / "data")]
    with serve_process(command, unused_port, tmp_path / "log", kill=True) as url:
        page = open_page(url)
        row = add(page, "asked", 46)
        add(page, "newest", 47)
        row.locator("[data-act=select]").click()
        page.locator(".fp-doc-selected").filter(has_text="asked.txt").wait_for()
        page.locator("#fp-question textarea").fill(f"Patiently: {QUESTION}")
        page.locator("#fp-ask").click()
        card = page.locator(".fp-exchange").first
        card.locator(".fp-working").wait_for()
        assert card.locator(".fp-lost").is_hidden()
    card.locator(".fp-lost").wait_for()
    assert "connection to the server was lost" in card.inner_text()
    assert card.locator(".fp-working").is_hidden()
    with serve_process(command, unused_port, tmp_path / "log2"):
        page.locator(".fp-exchange").wait_for(state="detached")
        page.locator(".fp-doc-selected").filter(has_text="asked.txt").wait_for()
