"""The door of the page: nobody gets past it without a key that the API takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse

from ui.client import Api
from ui.keys import COOKIE
from ui.sign_in import SignIn

GOOD = "fp_" + "g" * 43
HOME = "http://fineprint.test"
HTML = {"Accept": "text/html"}


class Server:
    """What the API says, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.status = 200

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        if request.headers.get("authorization") != f"Bearer {GOOD}":
            body = {"code": "invalid_api_key", "detail": "The API key is unknown."}
            return httpx.Response(401, json=body)
        if self.status != 200:
            return httpx.Response(self.status, json={"code": "database_busy", "detail": "Busy."})
        return httpx.Response(200, json={"data": [], "has_more": False})


def visit(server: Server, work: Callable[[httpx.AsyncClient], Any]) -> Any:
    """Runs `work` with a browser before the door."""

    async def run() -> Any:
        api = Api(f"{HOME}/api/v1", httpx.MockTransport(server))
        door = SignIn(PlainTextResponse("the page"), api)
        transport = httpx.ASGITransport(app=door)
        try:
            async with httpx.AsyncClient(transport=transport, base_url=HOME) as browser:
                return await work(browser)
        finally:
            await api.close()

    return asyncio.run(run())


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_key_opens_the_page_for_this_browser(server: Server) -> None:
    async def work(browser: httpx.AsyncClient) -> None:
        sent_away = await browser.get("/", headers=HTML)
        assert (sent_away.status_code, sent_away.headers["location"]) == (303, "/login")
        assert (await browser.get("/gradio_api/config")).status_code == 401
        assert (await browser.post("/gradio_api/upload", headers=HTML)).status_code == 401
        form = await browser.get("/login", headers=HTML)
        assert form.status_code == 200 and 'type="password"' in form.text
        assert form.headers["cache-control"] == "no-store"
        inside = await browser.post("/login", data={"key": f" {GOOD} "})
        assert (inside.status_code, inside.headers["location"]) == (303, "/")
        cookie = inside.headers["set-cookie"]
        assert f"{COOKIE}={GOOD}" in cookie and "HttpOnly" in cookie
        assert "samesite=lax" in cookie.lower() and "max-age" not in cookie.lower()
        assert (await browser.get("/")).text == "the page"
        left = await browser.get("/logout")
        assert left.headers["location"] == "/login"
        assert (await browser.get("/", headers=HTML)).status_code == 303

    visit(server, work)


@pytest.mark.parametrize("key", ["", "fp_wrong", "x" * 5000, "clé", "a\nb"])
def test_a_wrong_key_is_told_and_sets_nothing(server: Server, key: str) -> None:
    async def work(browser: httpx.AsyncClient) -> None:
        refused = await browser.post("/login", data={"key": key})
        assert refused.status_code == 401 and "set-cookie" not in refused.headers
        assert "unknown, expired or revoked" in refused.text
        told = await browser.post(
            "/login", data={"key": key}, headers={"Accept-Language": "zh-CN,zh"}
        )
        assert "密钥无效" in told.text and 'lang="zh-CN"' in told.text

    visit(server, work)


def test_a_cookie_that_somebody_made_up_opens_nothing(server: Server) -> None:
    async def work(browser: httpx.AsyncClient) -> None:
        browser.cookies.set(COOKIE, "fp_" + "x" * 43)
        assert (await browser.get("/", headers=HTML)).status_code == 303
        assert (await browser.get("/queue/data")).status_code == 401

    visit(server, work)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://[bad"])
def test_another_sites_page_can_sign_nobody_in(server: Server, origin: str) -> None:
    async def work(browser: httpx.AsyncClient) -> None:
        there = {"Origin": origin}
        refused = await browser.post("/login", data={"key": GOOD}, headers=there)
        assert refused.status_code == 403 and "set-cookie" not in refused.headers
        here = {"Origin": HOME}
        assert (await browser.post("/login", data={"key": GOOD}, headers=here)).status_code == 303

    visit(server, work)


def test_a_good_key_is_asked_about_once_a_minute(server: Server) -> None:
    async def work(browser: httpx.AsyncClient) -> None:
        browser.cookies.set(COOKIE, GOOD)
        for _ in range(5):
            assert (await browser.get("/")).text == "the page"

    visit(server, work)
    assert server.asked == 1


@pytest.mark.parametrize("path", ["/API/V1/documents", "//api/v1/documents", "/V1/models"])
def test_a_misspelt_address_of_the_api_is_told_a_problem(server: Server, path: str) -> None:
    async def work(browser: httpx.AsyncClient) -> None:
        for method in ("GET", "POST"):
            reply = await browser.request(method, f"{HOME}{path}")
            assert reply.status_code == 401
            assert reply.headers["content-type"] == "application/problem+json"
            assert reply.json()["code"] == "missing_api_key"
        browser.cookies.set(COOKIE, GOOD)
        server.status = 503
        reply = await browser.get(f"{HOME}{path}")
        assert (reply.status_code, reply.json()["code"]) == (503, "unavailable")

    visit(server, work)


def test_an_api_in_trouble_is_no_wrong_key(server: Server) -> None:
    server.status = 503

    async def work(browser: httpx.AsyncClient) -> None:
        form = await browser.post("/login", data={"key": GOOD})
        assert form.status_code == 503 and "Busy." in form.text
        browser.cookies.set(COOKIE, GOOD)
        assert (await browser.get("/", headers=HTML)).status_code == 503

    visit(server, work)
