"""What the page does when something is clicked, typed or has changed. Each handler asks the API and
returns the components to change; what one browser session sees comes in and goes out as state."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr

from ui.client import Api, Json
from ui.errors import ApiProblem, UIError
from ui.exchange import Exchange, Talk, heard
from ui.files import Received
from ui.library_view import library_html
from ui.markup import esc
from ui.strings import Lang, advice, suggestions, text
from ui.talk_view import place_of, suggestions_html, talk_html
from ui.viewer import Shown, turned, viewer_html

if TYPE_CHECKING:
    from ui.page import Parts

Changes = dict[Any, Any]

_FRAME_SECONDS = 0.05
"""The answer is redrawn at most this often while it streams."""


class Handlers:
    """The handlers of one page. Holds nothing that belongs to a session."""

    def __init__(self, api: Api, parts: Parts, samples: Sequence[Path]) -> None:
        self._api = api
        self._parts = parts
        self._samples = samples

    async def open(self, request: gr.Request) -> Changes:
        """The page was loaded: pick its language and list the documents."""
        lang = _preferred(request)
        changes = await self.translate(lang, None, Talk(), None)
        return {self._parts.lang: lang, **changes}

    async def translate(
        self, lang: Lang, chosen: str | None, said: Talk, shown: Shown | None
    ) -> Changes:
        """Everything in another language."""
        p = self._parts
        brand = f"<h1>Fineprint</h1><p>{esc(text(lang, 'tagline'))}</p>"
        return {
            p.brand: brand,
            p.library_title: _title(lang, "documents"),
            p.talk_title: _title(lang, "conversation"),
            p.page_title: _title(lang, "page"),
            p.upload: gr.update(label=text(lang, "upload")),
            p.question: gr.update(
                label=text(lang, "question"), placeholder=text(lang, "placeholder")
            ),
            p.ask: gr.update(value=text(lang, "ask")),
            p.stop: gr.update(value=text(lang, "stop")),
            p.talk: talk_html(said, lang),
            p.viewer: await self._view(shown, lang),
            p.status: "",
            p.notices: "",
            **await self.refresh(lang, chosen, ""),
        }

    async def refresh(self, lang: Lang, chosen: str | None, seen: str) -> Changes:
        """The list of documents, if it looks different from what the session has `seen`. Chooses
        the newest document when none is chosen or the chosen one is gone."""
        p = self._parts
        try:
            documents = await self._api.documents()
        except UIError as error:
            return {p.notices: _notice(_reason(error, lang), bad=True), p.seen: ""}
        return self._listed(documents, lang, chosen, seen)

    def _listed(self, documents: list[Json], lang: Lang, chosen: str | None, seen: str) -> Changes:
        p = self._parts
        changes: Changes = {}
        current = next((one for one in documents if one["id"] == chosen), None)
        if current is None:
            current = documents[0] if documents else None
            changes[p.chosen] = current["id"] if current else None
        html = library_html(documents, current["id"] if current else None, lang)
        if html == seen:
            return changes or {p.seen: seen}
        questions = suggestions(current["name"], current["language"]) if current else ()
        offer = not documents and self._sample(lang) is not None
        return {
            **changes,
            p.library: html,
            p.seen: html,
            p.suggestions: suggestions_html(questions, lang),
            p.sample: gr.update(value=text(lang, "open_sample"), visible=offer),
        }

    async def add_files(
        self, files: list[Received], lang: Lang, chosen: str | None, seen: str
    ) -> AsyncIterator[Changes]:
        """Hand uploaded files to the API one after the other, saying what became of each."""
        p = self._parts
        lines: list[str] = []
        for path, name in files:
            waiting = _notice(text(lang, "sending", name=name))
            yield {p.notices: "".join(lines) + waiting}
            try:
                stored = await self._api.upload(path, name)
                chosen = stored["id"]
                lines.append(_notice(_stored(stored, name, lang)))
            except UIError as error:
                refused = f"{text(lang, 'not_added', name=name)} {_reason(error, lang)}"
                lines.append(_notice(refused, bad=True))
            finally:
                # The API has its own copy; the browser's stays nowhere.
                path.unlink(missing_ok=True)
        listed = await self.refresh(lang, chosen, "")
        yield {p.chosen: chosen, **listed, p.upload: None, p.notices: "".join(lines)}

    async def add_sample(self, lang: Lang, chosen: str | None, seen: str) -> Changes:
        """Upload the sample contract of the page's language."""
        p = self._parts
        path = self._sample(lang)
        if path is None:
            return {p.sample: gr.update(visible=False)}
        try:
            stored = await self._api.upload(path, path.name)
        except UIError as error:
            return {p.notices: _notice(_reason(error, lang), bad=True)}
        said = _notice(_stored(stored, path.name, lang))
        return {
            **await self.refresh(lang, stored["id"], ""),
            p.chosen: stored["id"],
            p.notices: said,
        }

    async def manage(
        self,
        lang: Lang,
        chosen: str | None,
        seen: str,
        shown: Shown | None,
        event: gr.EventData,
    ) -> Changes:
        """A document was chosen, cancelled, retried or deleted."""
        p = self._parts
        act, document_id = str(event.act), str(event.id)
        changes: Changes = {p.notices: ""}
        try:
            if act == "select":
                shown = Shown(document_id)
                changes |= {
                    p.chosen: document_id,
                    p.shown: shown,
                    p.viewer: await self._view(shown, lang),
                }
                chosen = document_id
            elif act == "cancel":
                await self._api.cancel(document_id)
            elif act == "retry":
                await self._api.retry(document_id)
            elif act == "delete":
                await self._api.delete(document_id)
                changes[p.notices] = _notice(text(lang, "deleted"))
                if shown is not None and shown.document_id == document_id:
                    changes |= {p.shown: None, p.viewer: await self._view(None, lang)}
        except UIError as error:
            changes[p.notices] = _notice(_reason(error, lang), bad=True)
        listed = await self.refresh(lang, chosen, "")
        return {**listed, **changes} if act == "select" else {**changes, **listed}

    async def ask(
        self, question: str, lang: Lang, chosen: str | None, said: Talk
    ) -> AsyncIterator[Changes]:
        """Ask the chosen document and draw the answer as it comes."""
        p = self._parts
        question = question.strip()
        refusal, document = await self._askable(question, lang, chosen)
        if document is None:
            yield {p.status: _line(refusal)}
            return
        exchange = Exchange(question, document["id"], document["name"])
        said = replace(said, exchanges=(*said.exchanges, exchange))
        yield {
            p.talk: talk_html(said, lang),
            p.said: said,
            p.question: "",
            p.ask: gr.update(visible=False),
            p.stop: gr.update(visible=True),
            p.status: "",
        }
        drawn = 0.0
        events = self._api.ask(question, [document["id"]], said.conversations.get(document["id"]))
        try:
            async with contextlib.aclosing(events):  # type: ignore[type-var]
                async for event in events:
                    exchange = heard(exchange, event)
                    said = said.with_last(exchange)
                    if event.name == "answer.accepted":
                        yield {p.running: event.data["id"]}
                    elif event.name == "answer.created":
                        kept = {document["id"]: event.data["conversation_id"]}
                        said = replace(said, conversations=said.conversations | kept)
                    if time.monotonic() - drawn >= _FRAME_SECONDS:
                        drawn = time.monotonic()
                        yield {p.talk: talk_html(said, lang), p.said: said}
        except UIError as error:
            code = error.code if isinstance(error, ApiProblem) else ""
            exchange = replace(
                exchange, phase="failed", error_code=code, error=_reason(error, lang)
            )
            said = said.with_last(exchange)
        ending = "done" if exchange.phase == "done" else "stopped"
        over: Changes = {
            p.talk: talk_html(said, lang),
            p.said: said,
            p.running: "",
            p.ask: gr.update(visible=True),
            p.stop: gr.update(visible=False),
            p.status: "" if exchange.phase == "failed" else _line(text(lang, ending)),
        }
        yield over
        if exchange.citations:
            shown = _shown(exchange.citations[0], lang)
            yield {p.shown: shown, p.viewer: await self._view(shown, lang)}

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
            return text(lang, "document_gone") if gone else _reason(error, lang), None
        except UIError as error:
            return _reason(error, lang), None
        if not document["askable"]:
            return text(lang, "not_askable", name=document["name"]), None
        return "", document

    async def repeat(self, lang: Lang, said: Talk) -> Changes:
        """Draw the conversation again: the language may have changed while it streamed."""
        return {self._parts.talk: talk_html(said, lang)}

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
            return {p.status: _line(_reason(error, lang))}
        return {p.status: _line(text(lang, "stopping"))}

    async def cite(
        self, lang: Lang, said: Talk, shown: Shown | None, event: gr.EventData
    ) -> Changes:
        """Show the source behind a chip, or a clause that came near."""
        p = self._parts
        exchange = said.exchanges[int(event.turn)]
        if event.act == "cite":
            shown = _shown(exchange.citations[int(event.cite) - 1], lang)
        elif exchange.result is not None:
            near = exchange.result["nearest"][int(event.near) - 1]
            shown = _shown({**near, "document_id": exchange.document_id}, lang)
        return {p.shown: shown, p.viewer: await self._view(shown, lang)}

    async def turn(self, lang: Lang, shown: Shown | None, event: gr.EventData) -> Changes:
        """Turn to another page of the document shown."""
        p = self._parts
        if shown is None:
            return {p.shown: None}
        shown = turned(shown, int(event.page))
        return {p.shown: shown, p.viewer: await self._view(shown, lang)}

    async def _view(self, shown: Shown | None, lang: Lang) -> str:
        try:
            return await viewer_html(self._api, shown, lang)
        except UIError as error:
            return f'<p class="fp-empty fp-bad">{esc(_reason(error, lang))}</p>'

    def _sample(self, lang: Lang) -> Path | None:
        return next((path for path in self._samples if f".{lang}." in path.name), None)


def _preferred(request: gr.Request) -> Lang:
    wanted = request.query_params.get("lang") or request.headers.get("accept-language", "")
    return "zh" if wanted.lower().startswith("zh") else "en"


def _shown(citation: Json, lang: Lang) -> Shown:
    return Shown(
        citation["document_id"],
        citation["page"] or 1,
        (citation["start_char"], citation["end_char"]),
        place_of(citation, lang),
    )


def _stored(stored: Json, name: str, lang: Lang) -> str:
    if not stored["duplicate"]:
        return text(lang, "added", name=name)
    if stored["name"] == name:
        return text(lang, "duplicate", name=name)
    return text(lang, "duplicate_as", name=name, existing=stored["name"])


def _reason(error: UIError, lang: Lang) -> str:
    if isinstance(error, ApiProblem):
        return advice(lang, error.code, error.detail)
    return text(lang, "unreachable")


def _notice(line: str, *, bad: bool = False) -> str:
    role = "alert" if bad else "status"
    css = ' class="fp-bad"' if bad else ""
    return f'<div class="fp-notices" role="{role}"><p{css}>{esc(line)}</p></div>'


def _line(line: str) -> str:
    return f'<p role="status">{esc(line)}</p>'


def _title(lang: Lang, key: str) -> str:
    return f"<h2>{esc(text(lang, key))}</h2>"
