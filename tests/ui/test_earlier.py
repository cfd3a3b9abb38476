"""The list of earlier conversations: what stands in it, and what choosing one does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from ui.client import Api
from ui.earlier_actions import EarlierActions, Reopened
from ui.earlier_view import earlier_html
from ui.exchange import Exchange, Talk
from ui.parts import Parts
from ui.strings import LANGS, Lang
from ui.talk_actions import TalkActions
from ui.viewer import Viewer

PARTS = Parts(**{one.name: one.name for one in fields(Parts)})
Replies = Callable[[httpx.Request], httpx.Response]


def conversation(number: int, title: str = "When to pay?") -> dict[str, Any]:
    return {
        "id": f"conv_{number}",
        "title": title,
        "document_ids": ["doc_1"],
        "created_at": f"2026-03-0{number}T10:20:30.123456Z",
    }


def listed(*conversations: dict[str, Any], total: int | None = None) -> dict[str, Any]:
    return {"data": list(conversations), "total": total or len(conversations)}


@pytest.mark.parametrize("lang", LANGS)
def test_the_list_has_titles_times_and_the_one_in_view(lang: Lang) -> None:
    html = earlier_html(listed(conversation(2), conversation(1)), "doc_1", "conv_1", lang)
    assert html.index('data-id="conv_2"') < html.index('data-id="conv_1"')
    assert html.count("aria-current") == 1 and 'data-act="fresh"' in html
    assert '<time datetime="2026-03-02T10:20:30.123456Z"' in html and "2026-03-02 10:20" in html


def test_what_a_title_says_is_text() -> None:
    html = earlier_html(listed(conversation(1, '<b onclick="x">${y} {{z}}')), "doc_1", None, "en")
    assert "<b onclick" not in html and "${" not in html and "{{" not in html
    assert 'data-act="fresh"' not in html, "nothing is in view"


def test_nothing_is_drawn_where_there_is_none_and_older_ones_are_counted() -> None:
    assert earlier_html(listed(), "doc_1", None, "en") == ""
    assert earlier_html(listed(conversation(1, " ")), "doc_1", None, "en") == ""
    html = earlier_html(listed(conversation(1), total=1201), "doc_1", None, "en")
    assert "(1,201)" in html and "1,200 older ones" in html


def acted(
    answer: Replies, talk: Talk, act: str = "reopen", document: str = "doc_1", **data: str
) -> dict[Any, Any]:
    async def run() -> dict[Any, Any]:
        api = Api("http://fineprint.test/api/v1", httpx.MockTransport(answer))
        event: Any = SimpleNamespace(act=act, document=document, **data)
        try:
            return await EarlierActions(api, PARTS).choose("en", "doc_1", talk, event)
        finally:
            await api.close()

    return asyncio.run(run())


def refuses(request: httpx.Request) -> httpx.Response:
    if request.url.path.endswith("/conversations"):
        assert request.url.params["document_id"] == "doc_1"
        return httpx.Response(200, json=listed(conversation(1)))
    body = {"code": "not_found", "detail": "There is none.", "status": 404}
    return httpx.Response(404, json=body)


def never(request: httpx.Request) -> httpx.Response:
    raise AssertionError(f"asked for {request.url}")


@pytest.mark.parametrize("act", ["reopen", "fresh"])
def test_a_running_answer_stays_in_view(act: str) -> None:
    talk = Talk((Exchange("q", "doc_1", "a.pdf", phase="writing"),))
    changes = acted(never, talk, act, id="conv_1")
    assert changes.keys() == {PARTS.status} and "still being written" in changes[PARTS.status]


def test_one_that_was_deleted_meanwhile_leaves_the_talk_and_the_list_is_drawn_anew() -> None:
    changes = acted(refuses, Talk((Exchange("q", "doc_1", "a.pdf", phase="done"),)), id="conv_9")
    assert changes.keys() == {PARTS.status, PARTS.earlier}
    assert "no longer here" in changes[PARTS.status] and "conv_1" in changes[PARTS.earlier]


FETCHED = Talk((Exchange("earlier", "doc_1", "a.pdf", phase="done"),), {"doc_1": "conv_1"})


@pytest.mark.parametrize(
    ("chosen", "asked"), [("doc_1", False), ("doc_2", False), ("doc_1", True), (None, False)]
)
def test_one_that_comes_late_replaces_nothing_newer(chosen: str | None, asked: bool) -> None:
    before = Talk((Exchange("q", "doc_1", "a.pdf", phase="done"),))
    now = replace(before, exchanges=(*before.exchanges, FETCHED.exchanges[0])) if asked else before

    async def run() -> dict[Any, Any]:
        api = Api("http://fineprint.test/api/v1", httpx.MockTransport(refuses))
        coming = Reopened(FETCHED, "doc_1", before)
        try:
            return await EarlierActions(api, PARTS).open("en", chosen, now, coming)
        finally:
            await api.close()

    changes = asyncio.run(run())
    assert changes[PARTS.reopened] is None
    if chosen == "doc_1" and not asked:
        assert changes[PARTS.said] == FETCHED and "open again" in changes[PARTS.status]
    else:
        assert changes.keys() == {PARTS.reopened} | ({PARTS.status} if asked else set())


def test_a_list_of_the_document_chosen_before_opens_nothing() -> None:
    changes = acted(refuses, Talk(), document="doc_0", id="conv_1")
    assert changes.keys() == {PARTS.earlier} and "conv_1" in changes[PARTS.earlier]


@pytest.mark.parametrize(
    ("act", "data"),
    [("cite", {"turn": "1", "cite": "1"}), ("cite", {"turn": "0", "cite": "3"}),
     ("near", {"turn": "0", "near": "1"})],
)  # fmt: skip
def test_a_source_that_is_no_longer_in_view_shows_nothing(act: str, data: dict[str, str]) -> None:
    async def run() -> dict[Any, Any]:
        api = Api("http://fineprint.test/api/v1", httpx.MockTransport(never))
        event: Any = SimpleNamespace(act=act, **data)
        talk = Talk((Exchange("q", "doc_1", "a.pdf", phase="done"),))
        try:
            return await TalkActions(api, PARTS, Viewer(api)).cite("en", talk, None, event)
        finally:
            await api.close()

    assert asyncio.run(run()) == {PARTS.shown: None}


def test_a_new_conversation_forgets_the_one_in_view() -> None:
    talk = Talk((Exchange("q", "doc_1", "a.pdf", phase="done"),), {"doc_1": "conv_1"})
    changes = acted(refuses, talk, "fresh")
    assert changes[PARTS.said] == Talk() and "aria-current" not in changes[PARTS.earlier]


def test_without_a_document_or_a_server_there_is_no_list() -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("away")

    def broken(request: httpx.Request) -> httpx.Response:
        return httpx.Response(503, json={"code": "database_busy", "detail": "Busy <now>."})

    async def told(answer: Replies, chosen: str | None) -> Any:
        api = Api("http://fineprint.test/api/v1", httpx.MockTransport(answer))
        try:
            return (await EarlierActions(api, PARTS).listed("en", chosen, Talk()))[PARTS.earlier]
        finally:
            await api.close()

    assert asyncio.run(told(never, None)) == ""
    assert asyncio.run(told(away, "doc_1")) == ""
    assert "Busy &lt;now&gt;." in asyncio.run(told(broken, "doc_1"))
