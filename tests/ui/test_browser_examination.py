"""Key terms and comparison in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

ENGLISH = Path(__file__).resolve().parents[2] / "samples" / "supply-agreement.en.pdf"
OLD = (
    "LEASE AGREEMENT\n\n1. Rent\n1.1 The Tenant shall pay a monthly rent of EUR 4,200 within 30 "
    "days of each invoice.\n\n2. Notice\n2.1 Either party may end this lease by giving ninety "
    "days' notice <script>window.pwned=1</script>.\n\n3. Law\n3.1 This lease is governed by the "
    "laws of France.\n"
)
NEW = OLD.replace("EUR 4,200", "EUR 4,700").replace("3. Law", "3. Pets\n3.1 No pets.\n\n4. Law")
OpenPage = Callable[..., Any]


def add(page: Any, name: str, said: str) -> None:
    """Upload a text and wait until it can be asked."""
    file = {"name": name, "mimeType": "text/plain", "buffer": said.encode()}
    page.set_input_files("#fp-upload input[type=file]", [file])
    row = page.locator(".fp-doc").filter(has_text=name)
    row.get_by_text(re.compile("Ready|ask already")).wait_for()


def view(page: Any, name: str) -> None:
    page.locator("#fp-view label").filter(has_text=name).click()


def pick(page: Any, box: str, name: str) -> None:
    """Choose a document in one of the two lists."""
    page.locator(f"{box} input").click()
    page.locator(f"{box} [role=option]").filter(has_text=name).first.click()


def test_key_terms_show_values_and_lead_to_their_page(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    page.set_input_files("#fp-upload input[type=file]", [ENGLISH])
    row = page.locator(".fp-doc").filter(has_text=ENGLISH.name)
    row.get_by_text(re.compile("Ready|ask already")).wait_for()
    row.get_by_role("button", name=re.compile("Ask about")).click()
    page.locator(".fp-doc-selected").filter(has_text=ENGLISH.name).wait_for()
    view(page, "Key terms")
    law = page.locator("#fp-terms dt").filter(has_text="Governing law")
    law.wait_for()
    said = page.locator("#fp-terms dl")
    assert "England and Wales" in said.inner_text()
    assert "seven years = 84 months" in said.inner_text()
    page.locator("#fp-terms dd").filter(has_text="England and Wales").get_by_role(
        "button"
    ).first.click()
    page.locator('img.fp-page[alt*="marked"]').wait_for()
    page.locator(".fp-page-name").filter(has_text=ENGLISH.name).wait_for()

    page.locator("#fp-lang label").filter(has_text="中文").click()
    page.locator("#fp-terms dt").filter(has_text="适用法律").wait_for()
    assert "84 个月" in said.inner_text()
    assert not page.faults and not page.foreign


def test_a_view_opens_though_its_steps_are_heard_before_its_request_is_answered(
    scripted_server: str, open_page: OpenPage
) -> None:
    """Busy browsers heard of the opening and of the terms at once, and nothing opened."""
    page = open_page(scripted_server)
    add(page, "late.txt", OLD.replace("4,200", "4,300"))
    page.locator(".fp-doc-selected").filter(has_text="late.txt").wait_for()

    def answered_late(route: Any) -> None:
        response = route.fetch()
        if '"terms"' in (route.request.post_data or ""):
            # The list of documents is looked at each second; its stream brings the steps.
            page.wait_for_timeout(2500)
        route.fulfill(response=response)

    page.route("**/gradio_api/queue/join*", answered_late)
    view(page, "Key terms")
    page.locator("#fp-terms dt").filter(has_text="Governing law").wait_for()
    page.unroute_all(behavior="ignoreErrors")
    assert not page.faults and not page.foreign


def test_a_view_is_left_while_what_it_needs_is_still_looked_up(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    add(page, "left.txt", OLD.replace("4,200", "4,400"))
    page.locator(".fp-doc-selected").filter(has_text="left.txt").wait_for()
    view(page, "Compare")
    page.locator("#fp-old input").wait_for()

    def held(route: Any) -> None:
        response = route.fetch()
        if '"terms"' in (route.request.post_data or ""):
            page.wait_for_timeout(1500)
        route.fulfill(response=response)

    page.route("**/gradio_api/queue/join*", held)
    view(page, "Key terms")
    view(page, "Questions")
    page.locator("#fp-question textarea").wait_for()
    page.locator("#fp-terms").wait_for(state="hidden")
    page.unroute_all(behavior="ignoreErrors")
    view(page, "Key terms")
    page.locator("#fp-terms dt").filter(has_text="Governing law").wait_for()
    assert not page.faults and not page.foreign


def test_comparison_shows_figures_first_and_text_stays_text(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    add(page, "lease-1.txt", OLD)
    add(page, "lease-2.txt", NEW)
    view(page, "Compare")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_text("Pick an old and a new version first.").wait_for()
    pick(page, "#fp-old", "lease-1.txt")
    pick(page, "#fp-new", "lease-2.txt")
    page.get_by_role("button", name="Compare", exact=True).click()
    first = page.locator(".fp-change").first
    first.wait_for()
    assert "4,200 EUR → 4,700 EUR" in first.inner_text()
    assert "4,200" in first.locator("del").inner_text()
    assert page.locator(".fp-change ins").filter(has_text="No pets.").count() == 1
    first.get_by_role("button", name=re.compile("Show")).last.click()
    page.locator("#fp-viewer mark").filter(has_text="4,700").wait_for()
    assert page.evaluate("window.pwned") is None
    assert not page.faults and not page.foreign


def test_terms_of_a_short_text_say_what_is_not_stated(
    scripted_server: str, open_page: OpenPage
) -> None:
    page = open_page(scripted_server)
    add(page, "note.txt", "1. Scope\n1.1 The Consultant shall advise on roofs.\n")
    page.locator(".fp-doc-selected").filter(has_text="note.txt").wait_for()
    view(page, "Key terms")
    page.locator("#fp-terms dt").first.wait_for()
    assert page.locator("#fp-terms dd").filter(has_text="not stated").count() >= 10
    view(page, "Questions")
    page.locator("#fp-question textarea").wait_for()
    assert page.locator("#fp-terms").is_hidden()
