"""The page's door where the server needs API keys: asks for a key, keeps it in a cookie of the
browser session, and lets nobody without a good one to the page.

Whether a key is good says the REST API. The cookie can't be read by scripts, and does not come with
other sites' requests that change something.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.problems import app_problem
from app.errors import Unauthorized, Unavailable
from ui.client import Api
from ui.errors import UIError
from ui.keys import COOKIE
from ui.markup import esc
from ui.messages import reason
from ui.strings import Lang, text

SIGN_IN, SIGN_OUT = "/login", "/logout"
_TRUSTED_SECONDS = 60.0
"""How long the page itself goes on opening for a key that was good. The API looks every time."""
_MOST_TRUSTED = 1000
FORM_BYTES = 4096


class SignIn:
    """Wraps the mounted page."""

    def __init__(self, page: ASGIApp, api: Api) -> None:
        self._page = page
        self._api = api
        # Until when each key is trusted, the one asked for last at the end.
        self._trusted: OrderedDict[str, float] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._page(scope, receive, send)
            return
        request = Request(scope, receive)
        response = await self._answer(request)
        if response is None:
            await self._page(scope, receive, send)
        else:
            await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        """None: the page may answer."""
        if request.url.path == SIGN_IN:
            return await self._sign_in(request)
        if request.url.path == SIGN_OUT:
            left: Response = RedirectResponse(SIGN_IN, 303)
            left.delete_cookie(COOKIE)
            return left
        lang = _language(request)
        looks = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        try:
            if await self._is_good(request.cookies.get(COOKIE, "")):
                return None
        except UIError as error:
            why = reason(error, lang)
            return PlainTextResponse(why, 503) if looks else app_problem(Unavailable(why))
        if looks:
            return RedirectResponse(SIGN_IN, 303)
        # Also for programs that misspell an address of the API, which then is the page's.
        return app_problem(Unauthorized(text(lang, "key_needed"), code="missing_api_key"))

    async def _sign_in(self, request: Request) -> Response:
        lang = _language(request)
        if request.method != "POST":
            return _form(lang, "", 200)
        origin = request.headers.get("origin")
        if origin is not None and _netloc(origin) != request.headers.get("host"):
            # Nobody shall be signed in under another's key by another site's page.
            return PlainTextResponse("Pages of other sites can't sign you in.", 403)
        key = await _posted_key(request)
        try:
            good = await self._is_good(key)
        except UIError as error:
            return _form(lang, reason(error, lang), 503)
        if not good:
            return _form(lang, text(lang, "key_bad"), 401)
        inside = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        inside.set_cookie(COOKIE, key, httponly=True, samesite="lax", secure=secure)
        return inside

    async def _is_good(self, key: str) -> bool:
        if not key or not key.isascii() or not key.isprintable():
            return False
        now = time.monotonic()
        if self._trusted.get(key, 0.0) > now:
            return True
        self._trusted.pop(key, None)
        if not await self._api.opens(key):
            return False
        self._trusted[key] = now + _TRUSTED_SECONDS
        while len(self._trusted) > _MOST_TRUSTED:
            self._trusted.popitem(last=False)
        return True


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:  # as for "http://[", which opens an IPv6 address
        return ""


async def _posted_key(request: Request) -> str:
    """The key of the form, "" when there is none."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES:
            return ""
    fields = parse_qs(body.decode("utf-8", "replace"))
    return fields.get("key", [""])[0].strip()


def _form(lang: Lang, said: str, status: int) -> Response:
    alert = f'<p role="alert">{esc(said)}</p>' if said else ""
    return HTMLResponse(
        _FORM.format(
            lang="zh-CN" if lang == "zh" else "en",
            hint=esc(text(lang, "key_hint")),
            label=esc(text(lang, "key")),
            sign_in=esc(text(lang, "sign_in")),
            alert=alert,
            action=SIGN_IN,
        ),
        status,
        headers={"Cache-Control": "no-store"},
    )


def _language(request: Request) -> Lang:
    return "zh" if request.headers.get("accept-language", "").lower().startswith("zh") else "en"


_FORM = """<!doctype html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Fineprint</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif }}
main {{ max-width: 28rem; margin: 12vh auto; padding: 0 1rem }}
input, button {{ font: inherit; padding: .5rem .75rem; box-sizing: border-box; width: 100% }}
button {{ margin-top: 1rem }}
[role=alert] {{ color: #b00020 }}
</style>
</head>
<body>
<main>
<h1>Fineprint</h1>
<p>{hint}</p>
{alert}
<form method="post" action="{action}">
<label for="key">{label}</label>
<input id="key" name="key" type="password" required autofocus autocomplete="current-password">
<button type="submit">{sign_in}</button>
</form>
</main>
</body>
</html>
"""
