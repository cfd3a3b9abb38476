"""What happens in the views beside the conversation: key terms of the chosen document, and two
versions compared.

Each handler asks the API and returns the components to change. Gradio reads the annotations of
handlers, so their names are imported for good.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import gradio as gr

from ui.client import Api, Json
from ui.compare_view import comparison_html
from ui.errors import UIError
from ui.examination import VIEWS, Examined, View
from ui.lasting import lasting
from ui.markup import esc
from ui.messages import reason
from ui.parts import Changes, Parts
from ui.strings import Lang, text
from ui.terms_view import terms_html
from ui.viewer import Shown, Viewer


class ExaminationActions:
    """Handlers of key terms and comparison. Holds nothing that belongs to a session."""

    def __init__(self, api: Api, parts: Parts, viewer: Viewer) -> None:
        self._api = api
        self._parts = parts
        self._view = viewer

    async def switch(self, view: View) -> Changes:
        """Show one of the views."""
        p = self._parts
        return {
            p.talk_group: gr.update(visible=view == "talk"),
            p.terms_group: gr.update(visible=view == "terms"),
            p.compare_group: gr.update(visible=view == "compare"),
        }

    @lasting
    async def fill(
        self, view: View, lang: Lang, chosen: str | None, examined: Examined
    ) -> AsyncIterator[Changes]:
        """What the view needs to know of the documents."""
        if view == "compare":
            yield await self._offered(lang, chosen)
        async for changes in self.follow(view, lang, chosen, examined):
            yield changes

    @lasting
    async def follow(
        self, view: View, lang: Lang, chosen: str | None, examined: Examined
    ) -> AsyncIterator[Changes]:
        """Another document was chosen: its key terms, if they are in view."""
        p = self._parts
        if view != "terms":
            return
        if chosen is None:
            yield {p.terms: _said(text(lang, "choose_document"))}
            return
        if examined.terms is not None and examined.terms["document_id"] == chosen:
            yield {p.terms: terms_html(examined.terms, lang)}
            return
        yield {p.terms: _working(text(lang, "finding_terms"))}
        try:
            terms = await self._api.terms(chosen)
        except UIError as error:
            yield {p.terms: _said(reason(error, lang), bad=True)}
            return
        yield {p.terms: terms_html(terms, lang), p.examined: replace(examined, terms=terms)}

    @lasting
    async def compare(
        self, old: str | None, new: str | None, lang: Lang, examined: Examined
    ) -> AsyncIterator[Changes]:
        """Compare the two documents that were picked."""
        p = self._parts
        if not old or not new:
            yield {p.comparison: _said(text(lang, "pick_two"), bad=True)}
            return
        yield {p.comparison: _working(text(lang, "comparing"))}
        try:
            found = await self._api.compare(old, new)
        except UIError as error:
            yield {p.comparison: _said(reason(error, lang), bad=True)}
            return
        yield {
            p.comparison: comparison_html(found, lang),
            p.examined: replace(examined, comparison=found),
        }

    def translate(self, lang: Lang, examined: Examined) -> Changes:
        """The views in another language."""
        p = self._parts
        terms, comparison = examined.terms, examined.comparison
        return {
            p.view: gr.update(choices=[(text(lang, f"view_{view}"), view) for view in VIEWS]),
            p.compare: gr.update(value=text(lang, "compare")),
            p.terms: terms_html(terms, lang) if terms else "",
            p.comparison: comparison_html(comparison, lang) if comparison else _hint(lang),
            p.old_version: gr.update(label=text(lang, "old_version")),
            p.new_version: gr.update(label=text(lang, "new_version")),
        }

    async def show(self, lang: Lang, event: gr.EventData) -> Changes:
        """Show a place on its page."""
        p = self._parts
        page = int(event.page) if event.page else None
        clause = str(event.clause)
        span = (int(event.start), int(event.end))
        source = {"clause": clause or None, "page": page}
        shown = Shown(str(event.document), page or 1, span, source)
        return {p.shown: shown, p.viewer: await self._view.html(shown, lang)}

    async def _offered(self, lang: Lang, chosen: str | None) -> Changes:
        """The documents that can be compared; the chosen one counts as the new version."""
        p = self._parts
        try:
            documents = await self._api.documents()
        except UIError as error:
            return {p.comparison: _said(reason(error, lang), bad=True)}
        choices = [(_label(one), one["id"]) for one in documents if one["askable"]]
        offered = {one: gr.update(choices=choices) for one in (p.old_version, p.new_version)}
        if any(document_id == chosen for _, document_id in choices):
            offered[p.new_version] |= {"value": chosen}
        return offered


def _label(document: Json) -> str:
    # Two versions often bear the same name; the time of adding tells them apart.
    return f"{document['name']} ({str(document['created_at'])[:16].replace('T', ' ')})"


def _hint(lang: Lang) -> str:
    return f'<p class="fp-empty">{esc(text(lang, "compare_hint"))}</p>'


def _said(said: str, *, bad: bool = False) -> str:
    role, css = ("alert", " fp-bad") if bad else ("status", "")
    return f'<p class="fp-empty{css}" role="{role}">{esc(said)}</p>'


def _working(said: str) -> str:
    return f'<p class="fp-working" role="status"><span class="fp-spinner"></span>{esc(said)}</p>'
