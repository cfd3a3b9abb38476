"""Earlier questions in a real browser: found again after a reload, opened, looked up, gone on
with."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.api_keys import ApiKeys
from app.db.session import Database

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Any]
PAYMENT = "Within how many days shall the Buyer pay every invoice?"
TERM = "How long is the term of this agreement?"
ABSENT = "How many weeks of parental leave do astronauts get?"


def add(page: Any, name: str, days: int) -> Any:
    """Upload a contract with this period; its entry in the list, once it is read and chosen."""
    text = f"SUPPLY AGREEMENT {name}\n\n1. Payment\n1.1 The Buyer shall pay every invoice within "
    text += f"{days} days of receipt.\n\n2. Term\n2.1 The term of this agreement is two years.\n"
    file = {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
    page.set_input_files("#fp-upload input[type=file]", [file])
    row = page.locator(".fp-doc").filter(has_text=name)
    row.get_by_text(re.compile("Ready|就绪")).wait_for()
    chosen(page, name)
    return row


def chosen(page: Any, name: str) -> None:
    page.locator(".fp-doc-selected").filter(has_text=name).wait_for()


def ask(page: Any, question: str) -> Any:
    """Ask, and wait until the page is ready for the next one; the answer's card."""
    before = page.locator(".fp-exchange").count()
    page.locator("#fp-question textarea").fill(question)
    page.locator("#fp-ask").click()
    card = page.locator(".fp-exchange").nth(before)
    card.wait_for()
    settled(card)
    return card


def settled(card: Any) -> None:
    card.locator(".fp-meta").wait_for()
    card.locator("[aria-busy]").wait_for(state="detached")


def unfold(page: Any, count: int) -> Any:
    """The list of so many earlier conversations, opened with the keyboard; its entries."""
    summary = page.locator("#fp-earlier summary").filter(has_text=re.compile(rf"[(（]{count}[)）]"))
    summary.focus()
    page.keyboard.press("Enter")
    entries = page.locator(".fp-past li")
    entries.first.wait_for()
    return entries


def reopen(page: Any, title: str) -> None:
    page.locator(".fp-past-title").filter(has_text=title).click()
    page.locator("#fp-status").get_by_text(re.compile("open again|已重新打开")).wait_for()


def newest(url: str) -> dict[str, Any]:
    """The conversation that was begun last, with its messages."""
    with httpx.Client(base_url=f"{url}/api/v1", trust_env=False) as api:
        last = api.get("/conversations", params={"limit": 1}).json()["data"][0]["id"]
        found: dict[str, Any] = api.get(f"/conversations/{last}").json()
    return found


def test_what_was_asked_is_found_after_a_reload_and_goes_on(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    add(page, "elsewhere.txt", 51)
    add(page, "yesterday.txt", 52)
    assert page.locator("#fp-earlier").is_hidden()
    live = ask(page, PAYMENT).inner_text()
    ask(page, ABSENT)
    page.reload()
    chosen(page, "yesterday.txt")
    entries = unfold(page, 1)
    assert page.locator(".fp-exchange").count() == 0, "nothing is opened by itself"
    when = entries.first.locator("time")
    page.wait_for_function("one => !/T|^\\d{4}-/.test(one.textContent)", arg=when.element_handle())
    title = entries.first.get_by_role("button", name=PAYMENT)
    title.focus()
    page.keyboard.press("Enter")
    page.locator("#fp-status").get_by_text("open again").wait_for()

    first, second = page.locator(".fp-exchange").nth(0), page.locator(".fp-exchange").nth(1)
    assert first.inner_text() == live, "as it was when it was asked"
    assert "52 days" in first.locator(".fp-quote").inner_text()
    assert "Not found in this document" in second.locator(".fp-status").inner_text()
    assert page.locator(".fp-past").get_attribute("open") is None
    first.locator(".fp-chip").first.click()
    page.locator(".fp-text mark").get_by_text("52 days").wait_for()

    ask(page, TERM)
    assert page.locator(".fp-exchange").count() == 3
    messages = newest(scripted_server)["messages"]
    assert [one["content"] for one in messages if one["role"] == "user"] == [PAYMENT, ABSENT, TERM]
    unfold(page, 1)
    # The other document has none of its own.
    page.locator(".fp-doc").filter(has_text="elsewhere.txt").locator("[data-act=select]").click()
    chosen(page, "elsewhere.txt")
    page.locator(".fp-past").wait_for(state="detached")
    assert page.faults == [] and page.foreign == []


def test_a_new_conversation_can_be_begun_and_the_newest_stands_first(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    add(page, "afresh.txt", 53)
    ask(page, PAYMENT)
    unfold(page, 1)
    page.locator(".fp-past li[aria-current=true]").wait_for()
    page.get_by_role("button", name="Begin a new conversation").click()
    page.locator(".fp-exchange").wait_for(state="detached")
    ask(page, TERM)
    entries = unfold(page, 2)
    titles = [one.split("\n")[0] for one in entries.all_inner_texts()]
    assert titles == [TERM, PAYMENT]
    assert [one["content"] for one in newest(scripted_server)["messages"]][0] == TERM
    reopen(page, PAYMENT)
    page.locator(".fp-exchange").filter(has_text=PAYMENT).wait_for()
    assert page.locator(".fp-exchange").count() == 1
    current = page.locator(".fp-past li[aria-current=true]")
    current.filter(has_text=PAYMENT).wait_for(state="attached")


def test_nothing_is_opened_over_a_running_answer_and_a_stopped_one_is_kept(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    add(page, "running.txt", 54)
    ask(page, PAYMENT)
    page.reload()
    chosen(page, "running.txt")
    unfold(page, 1)
    page.locator("#fp-question textarea").fill(f"Slowly: {TERM}")
    page.locator("#fp-ask").click()
    card = page.locator(".fp-exchange").first
    card.get_by_text(re.compile(r"word3\b")).wait_for()
    page.locator(".fp-past-title").filter(has_text=PAYMENT).click()
    page.locator("#fp-status").get_by_text("still being written").wait_for()
    assert page.locator(".fp-exchange").count() == 1
    page.get_by_role("button", name="Stop").click()
    card.get_by_text("Stopped before it was complete").wait_for()
    page.get_by_role("button", name="Ask", exact=True).wait_for()
    page.reload()
    chosen(page, "running.txt")
    unfold(page, 2)
    reopen(page, "Slowly")
    card = page.locator(".fp-exchange").first
    card.get_by_text("Stopped before it was complete").wait_for()
    card.get_by_text(re.compile(r"word3\b")).wait_for()
    assert card.locator("[aria-busy]").count() == 0


def test_a_question_with_markup_stays_text(scripted_server: str, open_page: OpenPage) -> None:
    page = open_page(scripted_server)
    add(page, "markup.txt", 55)
    hostile = "<img src=x onerror=window.pwned=1> {{7*7}} ${window.pwned=2} `x` every invoice?"
    ask(page, hostile)
    page.reload()
    chosen(page, "markup.txt")
    entries = unfold(page, 1)
    assert entries.first.locator("button").inner_text() == hostile
    reopen(page, "onerror")
    card = page.locator(".fp-exchange").first
    assert hostile in card.locator(".fp-question").inner_text()
    assert page.locator(".fp-past img, .fp-exchange img").count() == 0
    assert page.evaluate("window.pwned") is None
    assert page.faults == [] and page.foreign == []


def test_in_chinese(scripted_server: str, open_page: OpenPage) -> None:
    page = open_page(scripted_server, locale="zh-CN")
    add(page, "中文.txt", 56)
    ask(page, PAYMENT)
    page.reload()
    chosen(page, "中文.txt")
    entries = unfold(page, 1)
    page.wait_for_function(
        "one => one.textContent.includes('年')",
        arg=entries.first.locator("time").element_handle(),
    )
    assert page.locator("#fp-earlier summary").inner_text() == "以前的提问（1）"
    reopen(page, PAYMENT)
    assert "已与原文核对" in page.locator(".fp-exchange").inner_text()
    page.get_by_label("English").check(force=True)
    page.locator("#fp-earlier summary").get_by_text("Earlier questions (1)").wait_for()
    page.locator(".fp-exchange").get_by_text("checked against the source").wait_for()


def test_a_quote_of_a_deleted_document_is_still_there(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    add(page, "stays.txt", 57)
    row = add(page, "goes.txt", 58)
    with httpx.Client(base_url=f"{scripted_server}/api/v1", trust_env=False, timeout=60) as api:
        ids = {one["name"]: one["id"] for one in api.get("/documents").json()["data"]}
        both = {"question": PAYMENT, "document_ids": [ids["stays.txt"], ids["goes.txt"]]}
        assert api.post("/answers", json=both).json()["status"] == "answered"
    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")
    page.locator(".fp-doc").filter(has_text="stays.txt").locator("[data-act=select]").click()
    chosen(page, "stays.txt")
    unfold(page, 1)
    reopen(page, PAYMENT)
    card = page.locator(".fp-exchange").first
    assert "stays.txt, goes.txt" in card.locator(".fp-question").inner_text()
    quotes = card.locator(".fp-quote")
    which = re.findall(r"(\d\d) days", quotes.inner_text()).index("58")
    card.locator(".fp-chip").nth(which).click()
    page.locator("#fp-viewer blockquote").get_by_text("58 days").wait_for()
    assert "no longer here" in page.locator("#fp-viewer").inner_text()


def test_each_finds_the_own_questions_alone(
    serve_process: Callable[..., AbstractContextManager[str]],
    browser: Any,
    unused_port: int,
    tmp_path: Path,
) -> None:
    script = str(Path(__file__).with_name("scripted_server.py"))
    command = [sys.executable, script, str(unused_port), str(tmp_path / "data"), "keys"]
    with serve_process(command, unused_port, tmp_path / "log") as url:
        database = Database(f"sqlite:///{tmp_path / 'data' / 'fineprint.sqlite'}")
        try:
            keys = [ApiKeys(database).create(owner)[1] for owner in ("Alice", "Bob")]
        finally:
            database.close()
        for key in keys:
            context = browser.new_context(locale="en-GB")
            page = context.new_page()
            page.set_default_timeout(60_000)
            page.goto(url)
            page.get_by_label("API key").fill(key)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_selector("#fp-brand h1")
            # The same file for both: a document of its own for each.
            add(page, "same.txt", 59)
            assert page.locator(".fp-past").count() == 0
            ask(page, PAYMENT)
            page.reload()
            chosen(page, "same.txt")
            unfold(page, 1)
            reopen(page, PAYMENT)
            assert "59 days" in page.locator(".fp-exchange").inner_text()
            context.close()
