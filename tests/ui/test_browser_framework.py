"""Asking about a document that is still being read, in a real browser: the framework answer, and
what becomes of it. The test says when reading goes on, so nothing here depends on time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.browser

QUESTION = "Within how many days shall the Buyer pay every invoice?"
FILLER = "".join(
    f"{number}. Delivery of lot {number}\nThe Supplier delivers lot {number} to gate {number}.\n\n"
    for number in range(3, 40)
)
CONTRACT = (
    "SUPPLY AGREEMENT\n\n1. Payment\n1.1 The Buyer shall pay every invoice within 42 days of "
    "receipt.\n\n2. Term\n2.1 The term of this agreement is two years.\n\n" + FILLER
)

OpenPage = Callable[..., Any]


@pytest.fixture
def go_on(scripted_server: str) -> Iterator[Callable[[], None]]:
    """go_on(): documents with the word Heldback are read to their end from now on."""

    def post(what: str) -> None:
        httpx.post(f"{scripted_server}/held/{what}", trust_env=False).raise_for_status()

    post("hold")
    yield lambda: post("release")
    # One that is held would keep all others waiting.
    post("release")


@pytest.fixture
def asked(scripted_server: str, open_page: OpenPage) -> Callable[..., tuple[Any, Any]]:
    """asked(name, question, locale=) -> the page and the card of the answer, once it is told that
    it is a framework."""

    def opened(name: str, question: str, locale: str = "en-GB") -> tuple[Any, Any]:
        page = open_page(scripted_server, locale=locale)
        text = f"Heldback {name}\n\n{CONTRACT}"
        file = {"name": f"{name}.txt", "mimeType": "text/plain", "buffer": text.encode()}
        page.set_input_files("#fp-upload input[type=file]", [file])
        row = page.locator(".fp-doc").filter(has_text=f"{name}.txt")
        row.get_by_text(re.compile("ask already|即可提问")).wait_for()
        row.get_by_role("button", name=re.compile(f"{name}.txt")).first.click()
        page.locator(".fp-doc-selected").filter(has_text=f"{name}.txt").wait_for()
        page.locator("#fp-question textarea").fill(question)
        page.locator("#fp-question textarea").press("Enter")
        card = page.locator(".fp-exchange").first
        card.locator(".fp-stand-framework").wait_for()
        return page, card

    return opened


def percent(card: Any) -> int:
    """How much is read, by the label."""
    found = re.search(r"(\d+)%", card.locator(".fp-stand").inner_text())
    assert found is not None
    return int(found[1])


def finished(card: Any) -> None:
    card.locator("[aria-busy]").wait_for(state="detached")
    assert "100%" in card.locator(".fp-meta").inner_text()


def test_a_framework_answer_is_confirmed_when_all_is_read(
    asked: Any, go_on: Callable[[], None]
) -> None:
    page, card = asked("confirmed", QUESTION)
    assert "42 days" in card.locator(".fp-quote").inner_text()
    assert "Framework answer, read so far" in card.inner_text()
    assert 0 < percent(card) < 100
    assert "Reading on" in card.locator(".fp-working").inner_text()
    assert page.get_by_role("button", name="Stop", exact=True).is_visible()
    # The source can be looked at before all is read.
    page.locator(".fp-text mark").wait_for()
    assert "42 days" in page.locator(".fp-quoted blockquote").inner_text()
    go_on()
    card.locator(".fp-stand-confirmed").wait_for()
    finished(card)
    assert card.locator(".fp-stand").count() == 1 and card.locator(".fp-earlier").count() == 0
    assert "42 days" in card.locator(".fp-quote").inner_text()
    page.get_by_role("button", name="Ask", exact=True).wait_for()
    assert page.faults == []


def test_a_framework_answer_that_was_wrong_is_revised_and_says_so(
    asked: Any, go_on: Callable[[], None]
) -> None:
    _, card = asked("revised", f"Misled: {QUESTION}", locale="zh-CN")
    assert "two years" in card.locator(".fp-quote").inner_text()
    assert "框架回答，目前已读" in card.locator(".fp-stand").inner_text()
    go_on()
    label = card.locator(".fp-stand-revised")
    label.wait_for()
    assert "已修订" in label.inner_text() and "引用的出处" in label.inner_text()
    finished(card)
    assert "42 days" in card.locator(".fp-quote").inner_text()
    assert "two years" not in card.locator(".fp-quote").inner_text()
    card.locator(".fp-earlier summary").click()
    earlier = card.locator(".fp-earlier div")
    earlier.wait_for()
    assert "two years" in earlier.inner_text()


def test_stopping_in_between_keeps_the_framework_answer(
    scripted_server: str, asked: Any, go_on: Callable[[], None]
) -> None:
    page, card = asked("stopped", QUESTION)
    page.get_by_role("button", name="Stop", exact=True).click()
    card.get_by_text("Stopped before it was complete").wait_for()
    page.get_by_role("button", name="Ask", exact=True).wait_for()
    assert "Neither confirmed nor revised" in card.locator(".fp-stand").inner_text()
    assert percent(card) < 100
    assert "42 days" in card.locator(".fp-quote").inner_text()
    with httpx.Client(base_url=f"{scripted_server}/api/v1", trust_env=False) as api:
        newest = api.get("/conversations", params={"limit": 1}).json()["data"][0]["id"]
        messages = api.get(f"/conversations/{newest}").json()["messages"]
    assert "42 days" in messages[-1]["content"]
    assert page.faults == []
