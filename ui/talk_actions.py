"""What happens when a question is asked or stopped and when a source is looked at.

Each handler asks the API and returns the components to change; a session's talk comes in and goes
out as state. Gradio reads the annotations of handlers, so their names are imported for good.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import gradio as gr

from ui.client import Api, Json
from ui.errors import ApiProblem, UIError
from ui.exchange import Exchange, Talk, heard
from ui.frames import with_pauses
from ui.lasting import lasting
from ui.messages import reason, status_line
from ui.parts import Changes, Parts
from ui.place import with_place
from ui.strings import Lang, text
from ui.talk_view import talk_html
from ui.viewer import Shown, Viewer, turned

_ENDINGS = {"done": "done", "cancelled": "stopped"}
_FRAME_SECONDS = 0.05
"""The answer is redrawn at most this often while it streams, and when it pauses."""


class TalkActions:
    """Handlers of the conversation and of the page beside it. Holds nothing that belongs to a
    session."""

    def __init__(self, api: Api, parts: Parts, viewer: Viewer) -> None:
        self._api = api
        self._parts = parts
        self._view = viewer

    @lasting
    async def ask(
        self, chosen: str | None, question: str, lang: Lang, said: Talk
    ) -> AsyncIterator[Changes]:
        """Ask the chosen document and draw the answer as it comes."""
        p = self._parts
        question = question.strip()
        refusal, document = await self._askable(question, lang, chosen)
        if document is None:
            yield {p.status: status_line(refusal)}
            return
        exchange = Exchange(question, document["id"], document["name"])
        said = replace(said, exchanges=(*said.exchanges, exchange))
        yield {
            p.talk: talk_html(said, lang),
            p.said: said,
            p.question: "",
            p.suggestions: "",
            p.ask: gr.update(visible=False),
            p.stop: gr.update(visible=True),
            p.status: "",
        }
        drawn, source = 0.0, None
        answer = self._api.ask(question, [document["id"]], said.conversations.get(document["id"]))
        events = with_place(answer, self._place)
        try:
            async with (
                contextlib.aclosing(answer),
                contextlib.aclosing(events),
                contextlib.aclosing(with_pauses(events, _FRAME_SECONDS)) as heard_of,
            ):
                async for event in heard_of:
                    if event is not None:
                        exchange = heard(exchange, event)
                        said = said.with_last(exchange)
                        if event.name == "answer.accepted":
                            yield {p.running: event.data["id"]}
                        elif event.name == "answer.created":
                            kept = {document["id"]: event.data["conversation_id"]}
                            said = replace(said, conversations=said.conversations | kept)
                    if event is None or time.monotonic() - drawn >= _FRAME_SECONDS:
                        drawn = time.monotonic()
                        yield {p.talk: talk_html(said, lang), p.said: said}
                    if exchange.phase == "reading" and exchange.citations and source is None:
                        # It may be minutes until the answer is settled.
                        source = exchange.citations[0]
                        shown = _shown(source)
                        yield {p.shown: shown, p.viewer: await self._view.html(shown, lang)}
        except UIError as error:
            code = error.code if isinstance(error, ApiProblem) else ""
            exchange = replace(exchange, phase="failed", error_code=code, error=reason(error, lang))
            said = said.with_last(exchange)
        ending = "" if exchange.phase == "failed" else text(lang, _ENDINGS[exchange.phase])
        over: Changes = {
            p.talk: talk_html(said, lang),
            p.said: said,
            p.status: status_line(ending, quiet=True),
        }
        yield over
        if exchange.citations and exchange.citations[0] != source:
            shown = _shown(exchange.citations[0])
            yield {p.shown: shown, p.viewer: await self._view.html(shown, lang)}

    async def _place(self, answer_id: str) -> int | None:
        try:
            return await self._api.ahead(answer_id)
        except UIError:
            # What is wrong is told by the answer's stream, or the next look finds it.
            return None

    async def _askable(
        self, question: str, lang: Lang, chosen: str | None
    ) -> tuple[str, Json | None]:
        if not question:
            return text(lang, "question_empty"), None
        if chosen is None:
            return text(lang, "choose_document"), None
        try:
            document = await self._api.document(chosen)
        except ApiProblem as error:
            gone = error.status == 404
            return text(lang, "document_gone") if gone else reason(error, lang), None
        except UIError as error:
            return reason(error, lang), None
        if not document["askable"]:
            return text(lang, "not_askable", name=document["name"]), None
        return "", document

    async def settle(self, lang: Lang, said: Talk) -> Changes:
        """The answer is over, well or not: draw it in the language of now, free the question box,
        and say so if the page itself broke off in the middle."""
        p = self._parts
        if said.exchanges and said.exchanges[-1].running:
            fault = text(lang, "page_broken")
            said = said.with_last(replace(said.exchanges[-1], phase="failed", error=fault))
        return {
            p.talk: talk_html(said, lang),
            p.said: said,
            p.running: "",
            p.ask: gr.update(visible=True),
            p.stop: gr.update(visible=False),
        }

    async def suggest(self, event: gr.EventData) -> Changes:
        """Put a suggested question into the box."""
        return {self._parts.question: str(event.question)}

    async def stop(self, lang: Lang, running: str) -> Changes:
        """Stop the answer on the server; its stream then ends by itself."""
        p = self._parts
        if not running:
            return {p.status: ""}
        try:
            await self._api.cancel_answer(running)
        except UIError as error:
            return {p.status: status_line(reason(error, lang))}
        return {p.status: status_line(text(lang, "stopping"))}

    async def cite(
        self, lang: Lang, said: Talk, shown: Shown | None, event: gr.EventData
    ) -> Changes:
        """Show the source behind a chip, or a clause that came near."""
        p = self._parts
        source = _source(said, event)
        if source is None:
            return {p.shown: shown}
        shown = _shown(source)
        return {p.shown: shown, p.viewer: await self._view.html(shown, lang)}

    async def turn(self, lang: Lang, shown: Shown | None, event: gr.EventData) -> Changes:
        """Turn to another page of the document shown."""
        p = self._parts
        if shown is None:
            return {p.shown: None}
        shown = turned(shown, int(event.page))
        return {p.shown: shown, p.viewer: await self._view.html(shown, lang)}


def _source(said: Talk, event: gr.EventData) -> Json | None:
    """What was clicked; None when another conversation has taken its place meanwhile."""
    turn = int(event.turn)
    if turn >= len(said.exchanges):
        return None
    exchange = said.exchanges[turn]
    if event.act == "cite":
        return next(iter(exchange.citations[int(event.cite) - 1 :]), None)
    nearest = exchange.result["nearest"] if exchange.result is not None else ()
    near: Json | None = next(iter(nearest[int(event.near) - 1 :]), None)
    if near is None:
        return None
    # Several documents may have been asked; an answer of an older release names none.
    return {**near, "document_id": near.get("document_id") or exchange.document_id}


def _shown(citation: Json) -> Shown:
    return Shown(
        citation["document_id"],
        citation["page"] or 1,
        (citation["start_char"], citation["end_char"]),
        citation,
    )
