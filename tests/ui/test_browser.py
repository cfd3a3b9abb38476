"""The page in a real browser: upload, ask, cite, stop, and what must never happen there."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.answers import WORKERS

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
ENGLISH = SAMPLES / "supply-agreement.en.pdf"
CHINESE = SAMPLES / "equipment-contract.zh.pdf"
PAYMENT = "Within how many days shall the Buyer pay each correct invoice?"
HOSTILE = (
    "SUPPLY AGREEMENT\n\n1. Payment\n1.1 The Buyer shall pay every invoice within 42 days "
    "<script>window.pwned=1</script><img src=x onerror='window.pwned=2'> "
    "![x](http://evil.example/x.png) {{constructor.constructor('window.pwned=3')()}} "
    "${window.pwned=4} `${window.pwned=5}` of receipt.\n\n2. Term\n2.1 The term is two years.\n"
)

OpenPage = Callable[..., Any]
MARKED = 'img.fp-page:is([alt*="marked"], [alt*="标出"])'


def add(page: Any, *files: Any) -> None:
    """Upload files and wait until every one of them was answered for."""
    page.set_input_files("#fp-upload input[type=file]", list(files))


def entry(page: Any, name: str) -> Any:
    """The list entry of a document."""
    return page.locator(".fp-doc").filter(has_text=name)


def choose(page: Any, name: str) -> None:
    """Make a document the one that is asked, once it can be."""
    entry(page, name).get_by_text(re.compile("Ready|ask already|就绪|即可提问")).wait_for()
    page.get_by_role("button", name=re.compile(re.escape(name))).first.click()
    page.locator(".fp-doc-selected").filter(has_text=name).wait_for()


def ask(page: Any, question: str) -> Any:
    """Ask with the Enter key; returns the answer's card."""
    before = page.locator(".fp-exchange").count()
    page.locator("#fp-question textarea").fill(question)
    page.locator("#fp-question textarea").press("Enter")
    card = page.locator(".fp-exchange").nth(before)
    card.wait_for()
    return card


def finished(card: Any) -> Any:
    card.locator(".fp-meta").wait_for()
    card.locator("[aria-busy]").wait_for(state="detached")
    return card


@pytest.fixture
def english(scripted_server: str, open_page: OpenPage) -> Any:
    """A page with the English sample chosen."""
    page = open_page(scripted_server)
    add(page, ENGLISH)
    choose(page, ENGLISH.name)
    return page


def test_upload_shows_stages_with_numbers_and_says_duplicates(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    fresh = "1. Term\nThe term is two years.\n\n" + "2. Price\nThe price is EUR 5.\n" * 4000
    add(page, {"name": "采购合同（2024）.txt", "mimeType": "text/plain", "buffer": fresh.encode()})
    page.get_by_text("采购合同（2024）.txt was added.").wait_for()
    row = entry(page, "采购合同（2024）.txt")
    counted = re.compile(r"Reading · [\d,]+ of [\d,]+ tokens · You can ask already")
    row.get_by_text(counted).wait_for()
    row.get_by_text(re.compile(r"Ready · .*tokens")).wait_for()

    add(page, {"name": "copy.txt", "mimeType": "text/plain", "buffer": fresh.encode()})
    page.get_by_text("copy.txt is the same file as 采购合同（2024）.txt").wait_for()
    assert page.locator(".fp-doc").filter(has_text="copy.txt").count() == 0

    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")


def test_many_uploads_are_told_in_one_line_and_each_refusal_for_itself(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    good = [
        {"name": f"many{number}.txt", "mimeType": "text/plain", "buffer": b"1. Lot %d\n" % number}
        for number in range(9)
    ]
    bad = [
        {"name": name, "mimeType": "text/plain", "buffer": b""}
        for name in ("bare1.txt", "bare2.txt")
    ]
    add(page, *good[:4], bad[0], *good[4:], bad[1])
    page.get_by_text("bare2.txt was not added.").wait_for()
    page.get_by_text("9 files were added.").wait_for()
    notices = page.locator("#fp-notices p")
    assert notices.count() == 3
    assert [one.split()[0] for one in notices.all_inner_texts()] == ["9", "bare1.txt", "bare2.txt"]
    # Known ones are counted for themselves.
    more = {"name": "many9.txt", "mimeType": "text/plain", "buffer": b"1. Lot 9\n"}
    add(page, *good[:2], more)
    page.get_by_text(
        "many9.txt was added. 2 files are here already; nothing was stored twice."
    ).wait_for()
    assert notices.count() == 1


def test_reading_can_be_cancelled_and_taken_up_again(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    long = "1. Term\nThe term is two years.\n\n" + "2. Price\nThe price is EUR 7.\n" * 9000
    add(page, {"name": "long.txt", "mimeType": "text/plain", "buffer": long.encode()})
    row = entry(page, "long.txt")
    row.get_by_text("You can ask already").wait_for()
    row.get_by_role("button", name="Cancel reading long.txt").click()
    row.get_by_text("Cancelled", exact=True).wait_for()
    row.get_by_role("button", name="Read long.txt again").click()
    row.get_by_text("Reading ·").wait_for()
    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("empty.txt", b"", "empty"),
        ("broken.pdf", b"%PDF-1.7\nnothing here", "not a readable PDF"),
        ("picture.png", b"\x89PNG\r\n\x1a\n" + b"0" * 64, "PDF"),
    ],
)
def test_refused_files_say_why(
    scripted_server: str, open_page: OpenPage, name: str, data: bytes, reason: str
) -> None:
    page = open_page(scripted_server)
    add(page, {"name": name, "mimeType": "application/octet-stream", "buffer": data})
    said = page.locator(".fp-bad").filter(has_text=re.compile(reason, re.IGNORECASE)).first
    said.wait_for()
    for row in page.locator(".fp-doc").filter(has_text=name).all():
        page.once("dialog", lambda dialog: dialog.accept())
        row.get_by_role("button", name="Delete").click()


def test_ask_cite_and_reload(english: Any) -> None:
    page = english
    card = finished(ask(page, PAYMENT))
    assert "42 days" in card.inner_text()
    assert "checked against the source" in card.inner_text()
    assert re.search(r"Read by the model: [\d,]+ of [\d,]+ tokens \(\d+%\)", card.inner_text())
    assert re.search(r"First words after [\d.]+ s, complete after [\d.]+ s", card.inner_text())

    # The first source is shown by itself; turning the page leaves it, its chip comes back to it.
    picture = page.locator(MARKED)
    picture.wait_for()
    number = int(picture.get_attribute("data-page"))
    page.get_by_role("button", name="Next page").click()
    page.locator(f'img.fp-page[data-page="{number + 1}"]').wait_for()
    chip = card.locator(".fp-chip").first
    assert re.match(r"Show source 1: .*page \d+, printed \d+", chip.get_attribute("aria-label"))
    chip.click()
    page.locator(f'{MARKED}[data-page="{number}"]').wait_for()
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 500
    assert f"Page {number} of 32 · printed" in page.locator(".fp-pager").inner_text()
    quote = page.locator(".fp-quoted blockquote").inner_text()
    assert quote in card.inner_text()

    page.reload()
    entry(page, ENGLISH.name).get_by_text("Ready").wait_for()
    assert page.locator(".fp-exchange").count() == 0
    assert page.faults == []


def test_page_needs_nothing_from_elsewhere(english: Any) -> None:
    finished(ask(english, PAYMENT))
    english.locator(MARKED).wait_for()
    assert english.foreign == []
    assert english.locator("footer").is_hidden()


def test_stop_cancels_on_the_server(scripted_server: str, english: Any) -> None:
    page = english
    card = ask(page, f"Slowly: {PAYMENT}")
    card.get_by_text(re.compile(r"word3\b")).wait_for()
    early = len(card.inner_text())
    grown = "early => document.querySelector('.fp-exchange [aria-busy]').innerText.length > early"
    page.wait_for_function(grown, arg=early)
    assert page.get_by_role("button", name="Ask", exact=True).count() == 0
    page.get_by_role("button", name="Stop").click()
    card.get_by_text("Stopped before it was complete").wait_for()
    page.get_by_role("button", name="Ask", exact=True).wait_for()
    said = card.inner_text()
    page.wait_for_timeout(500)
    assert card.inner_text() == said

    api = httpx.Client(base_url=f"{scripted_server}/api/v1", trust_env=False)
    with api:
        newest = api.get("/conversations", params={"limit": 1}).json()["data"][0]["id"]
        messages = api.get(f"/conversations/{newest}").json()["messages"]
    assert messages[-1]["status"] == "cancelled"


def test_a_question_that_waits_shows_its_place(
    scripted_server: str, english: Any, open_page: OpenPage
) -> None:
    chinese = open_page(scripted_server, locale="zh-CN")
    choose(chinese, ENGLISH.name)
    with contextlib.ExitStack() as stack:
        api = httpx.Client(base_url=f"{scripted_server}/api/v1", trust_env=False, timeout=60)
        stack.enter_context(api)
        document = next(
            one for one in api.get("/documents").json()["data"] if one["name"] == ENGLISH.name
        )
        question = {"question": "Patiently?", "document_ids": [document["id"]], "stream": True}
        held: list[str] = []
        for _ in range(WORKERS + 2):
            # Followed until the end of the block: what nobody follows is stopped.
            reply = stack.enter_context(api.stream("POST", "/answers", json=question))
            held.append(reply.headers["location"].rpartition("/")[2])
        first = ask(english, PAYMENT)
        first.get_by_text("Questions that come first: 2").wait_for()
        second = ask(chinese, PAYMENT)
        second.get_by_text("前面还有 3 个问题").wait_for()
        for answer_id in held[WORKERS:]:
            api.post(f"/answers/{answer_id}/cancel")
        first.get_by_text("This question is next").wait_for()
        second.get_by_text("前面还有 1 个问题").wait_for()
        for answer_id in held[:WORKERS]:
            api.post(f"/answers/{answer_id}/cancel")
        finished(first).locator(".fp-chip").first.wait_for()
        finished(second).locator(".fp-chip").first.wait_for()


def test_suggestion_fills_the_box_and_empty_question_is_answered(english: Any) -> None:
    page = english
    suggestion = page.locator(".fp-suggestion").first
    words = suggestion.inner_text()
    suggestion.click()
    box = "document.querySelector('#fp-question textarea')"
    page.wait_for_function(f"words => {box}.value === words", arg=words)
    page.locator("#fp-question textarea").fill("   ")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("Write a question first.").wait_for()
    assert page.locator(".fp-exchange").count() == 0


def test_not_found_shows_coverage_and_nearest_clauses(english: Any) -> None:
    card = finished(ask(english, "How many weeks of parental leave do astronauts get?"))
    assert "Not found in this document" in card.locator(".fp-status").inner_text()
    assert "Read by the model" in card.inner_text()
    near = card.get_by_role("group", name="Nearest clauses").get_by_role("button").first
    near.click()
    english.locator(MARKED).wait_for()


def test_hostile_document_stays_text(scripted_server: str, open_page: OpenPage) -> None:
    page = open_page(scripted_server)
    name = "<img src=x onerror=window.pwned=6> {{7}} ${8}.txt"
    add(page, {"name": name, "mimeType": "text/plain", "buffer": HOSTILE.encode()})
    choose(page, "onerror=window.pwned=6")
    card = finished(ask(page, "Within how many days shall the Buyer pay <b>every</b> invoice?"))
    assert "<script>window.pwned=1</script>" in card.inner_text()
    assert "<b>every</b>" in card.inner_text()
    card.locator(".fp-chip").first.click()
    page.locator(".fp-text mark").wait_for()
    assert "${window.pwned=4}" in page.locator(".fp-text").inner_text()
    page.wait_for_timeout(300)
    assert page.evaluate("window.pwned") is None
    assert page.locator(".fp-answer img, .fp-text img, .fp-doc img, .fp-quoted img").count() == 0
    assert page.foreign == [] and page.faults == []


def test_two_sessions_do_not_mix(scripted_server: str, open_page: OpenPage) -> None:
    first, second = open_page(scripted_server), open_page(scripted_server)
    add(first, ENGLISH)
    choose(first, ENGLISH.name)
    add(second, CHINESE)
    choose(second, CHINESE.name)
    mine = ask(first, PAYMENT)
    other = ask(second, "合同总价是多少？")
    assert ENGLISH.name in finished(mine).inner_text()
    assert CHINESE.name in finished(other).inner_text()
    assert first.locator(".fp-exchange").count() == second.locator(".fp-exchange").count() == 1
    assert "合同总价" not in first.locator("#fp-talk").inner_text()
    assert first.locator(".fp-doc-selected").inner_text().startswith(ENGLISH.name)
    second.reload()
    second.wait_for_selector(".fp-doc")
    assert second.locator(".fp-exchange").count() == 0
    assert PAYMENT in first.locator("#fp-talk").inner_text()


def test_chinese_page(scripted_server: str, open_page: OpenPage) -> None:
    page = open_page(scripted_server, locale="zh-CN")
    add(page, CHINESE)
    choose(page, CHINESE.name)
    card = finished(ask(page, "合同总价是多少？"))
    assert "模型已读" in card.inner_text() and "已与原文核对" in card.inner_text()
    card.locator(".fp-chip").first.click()
    page.locator(MARKED).wait_for()
    shown = page.locator("body").inner_text()
    for english_word in ("Documents", "Ask", "Quoted text", "Drop File", "Ready", "tokens"):
        assert english_word not in shown
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    page.get_by_label("English").check(force=True)
    page.get_by_text("Quoted text").wait_for()
    assert "Read by the model" in page.locator(".fp-exchange").inner_text()


def test_keyboard_alone(english: Any) -> None:
    page = english
    card = finished(ask(page, PAYMENT))
    card.locator(".fp-chip").first.focus()
    assert page.evaluate("document.activeElement.className") == "fp-chip"
    page.keyboard.press("Enter")
    page.locator(MARKED).wait_for()
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, textarea')].filter(one =>
             one.checkVisibility() && !(one.ariaLabel || one.innerText.trim() || one.labels?.length)
           ).map(one => one.outerHTML.slice(0, 200))"""
    )
    assert unnamed == []


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
def test_fits_the_screen(
    scripted_server: str, open_page: OpenPage, width: int, height: int
) -> None:
    page = open_page(scripted_server, width=width, height=height)
    add(page, ENGLISH)
    choose(page, ENGLISH.name)
    card = finished(ask(page, PAYMENT))
    page.locator(MARKED).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = card.locator(".fp-answer").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert box["width"] >= 340
    size = card.locator(".fp-quote").evaluate("one => parseFloat(getComputedStyle(one).fontSize)")
    assert size >= 14
