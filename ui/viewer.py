"""The document page beside the conversation: the page's picture with the quoted text marked, or
the text itself for formats without pictures. Asks the API for what it shows."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace

from ui.client import Api, Json
from ui.errors import ApiProblem, UIError
from ui.markup import button, esc
from ui.messages import reason
from ui.strings import Lang, text
from ui.talk_view import place_of

_PDF = "application/pdf"
_AROUND = 1500
"""Characters of text shown before and after a quote."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page region shows: one page of a document, or a stretch of its text, with the
    characters of `span` marked. `source` is the citation or clause that it belongs to."""

    document_id: str
    page: int = 1
    span: tuple[int, int] | None = None
    source: Json | None = None


class Viewer:
    """Draws the page region over an API."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def html(self, shown: Shown | None, lang: Lang) -> str:
        """The region's HTML; the reason in words when the API does not give what it needs."""
        try:
            return await _drawn(self._api, shown, lang)
        except UIError as error:
            gone = isinstance(error, ApiProblem) and error.status == 404
            kept = _kept(shown.source, lang) if gone and shown and shown.source else ""
            return kept or f'<p class="fp-empty fp-bad">{esc(reason(error, lang))}</p>'


async def _drawn(api: Api, shown: Shown | None, lang: Lang) -> str:
    if shown is None:
        return f'<p class="fp-empty">{esc(text(lang, "no_page"))}</p>'
    document = await api.document(shown.document_id)
    if not document["askable"]:
        waiting = text(lang, "not_askable", name=document["name"])
        return f'<p class="fp-empty">{esc(waiting)}</p>'
    quote = ""
    if shown.span is not None:
        quote = (await api.text(shown.document_id, *shown.span))["text"]
    if document["media_type"] == _PDF:
        body = await _picture(api, document, shown, lang)
    else:
        body = await _text(api, shown, lang)
    name = f'<p class="fp-page-name">{esc(document["name"])}</p>'
    return name + _quote(quote, place_of(shown.source, lang) if shown.source else "", lang) + body


def _kept(source: Json, lang: Lang) -> str:
    """What a citation keeps of a document that was deleted; empty for what quotes nothing."""
    if not source.get("quote"):
        return ""
    name = f'<p class="fp-page-name">{esc(source["document"])}</p>'
    gone = f'<p class="fp-muted">{esc(text(lang, "quote_kept"))}</p>'
    return name + _quote(source["quote"], place_of(source, lang), lang) + gone


def turned(shown: Shown, page: int) -> Shown:
    """The same document at another page. The mark stays, it may go on there."""
    return replace(shown, page=page)


def _quote(quote: str, place: str, lang: Lang) -> str:
    if not quote:
        return ""
    label = esc(text(lang, "quoted_clause"))
    where = f'<span class="fp-muted">{esc(place)}</span>' if place else ""
    return (
        f'<figure class="fp-quoted"><figcaption>{label} {where}</figcaption>'
        f"<blockquote>{esc(quote)}</blockquote></figure>"
    )


async def _picture(api: Api, document: Json, shown: Shown, lang: Lang) -> str:
    total = document["page_count"]
    page = min(max(shown.page, 1), total)
    png = await api.page_image(shown.document_id, page, shown.span)
    pages = (await api.receipt(shown.document_id))["pages"]
    label = next((one["label"] for one in pages if one["number"] == page), None)
    where = text(lang, "page_of", page=page, total=total)
    if label is not None and label != str(page):
        where += f" · {text(lang, 'printed', label=label)}"
    back = _turn("‹", text(lang, "previous"), page - 1, page > 1)
    on = _turn("›", text(lang, "next"), page + 1, page < total)
    key = "page_alt" if shown.span is None else "page_alt_marked"
    alt = text(lang, key, page=page, name=document["name"])
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<div class="fp-pager">{back}<span>{esc(where)}</span>{on}</div>'
        f'<img class="fp-page" data-page="{page}" alt="{esc(alt)}" '
        f'src="data:image/png;base64,{data}">'
    )


def _turn(sign: str, title: str, page: int, possible: bool) -> str:
    if possible:
        return button(sign, "turn", css="fp-turn", title=title, page=page)
    return (
        f'<button type="button" class="fp-turn" disabled aria-label="{esc(title)}">{sign}</button>'
    )


async def _text(api: Api, shown: Shown, lang: Lang) -> str:
    start, end = shown.span or (0, 0)
    around = await api.text(shown.document_id, max(0, start - _AROUND), end + _AROUND)
    said, first = around["text"], around["start"]
    before, marked, after = (
        said[: start - first],
        said[start - first : end - first],
        said[end - first :],
    )
    mark = f"<mark>{esc(marked)}</mark>" if marked else ""
    lead = "… " if first > 0 else ""
    tail = " …" if around["end"] < around["total_chars"] else ""
    return (
        f'<p class="fp-muted">{esc(text(lang, "text_view"))}</p>'
        f'<div class="fp-text">{lead}{esc(before)}{mark}{esc(after)}{tail}</div>'
    )
