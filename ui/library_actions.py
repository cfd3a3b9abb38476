"""What happens when files are added and documents chosen, cancelled, retried or deleted.

Each handler asks the API and returns the components to change; what a session chose comes in and
goes out as state. Gradio reads the annotations of handlers, so their names are imported for good.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import gradio as gr

from ui.client import Api, Json
from ui.errors import UIError
from ui.exchange import Talk
from ui.files import named_files
from ui.lasting import lasting
from ui.library_view import library_html
from ui.messages import notice, reason
from ui.parts import Changes, Parts
from ui.strings import Lang, text
from ui.suggestions import suggestions
from ui.talk_view import suggestions_html
from ui.viewer import Shown, Viewer

UNREACHABLE = "unreachable"
"""What a session has seen when the list could not be had."""


class LibraryActions:
    """Handlers of the documents' region. Holds nothing that belongs to a session."""

    def __init__(self, api: Api, parts: Parts, viewer: Viewer, samples: Sequence[Path]) -> None:
        self._api = api
        self._parts = parts
        self._view = viewer
        self._samples = samples

    async def refresh(self, lang: Lang, chosen: str | None, seen: str, said: Talk) -> Changes:
        """The list of documents, if it looks different from what the session has `seen`. Chooses
        the newest document when none is chosen or the chosen one is gone."""
        p = self._parts
        try:
            documents = await self._api.documents()
        except UIError as error:
            return {p.notices: notice(reason(error, lang), bad=True), p.seen: UNREACHABLE}
        back: Changes = {p.notices: ""} if seen == UNREACHABLE else {}
        return back | self._listed(documents, lang, chosen, seen, said)

    def _listed(
        self, documents: list[Json], lang: Lang, chosen: str | None, seen: str, said: Talk
    ) -> Changes:
        p = self._parts
        changes: Changes = {}
        current = next((one for one in documents if one["id"] == chosen), None)
        if current is None:
            current = documents[0] if documents else None
            changes[p.chosen] = current["id"] if current else None
        html = library_html(documents, current["id"] if current else None, lang)
        if html == seen:
            return changes or {p.seen: seen}
        questions: tuple[str, ...] = ()
        if current and all(one.document_id != current["id"] for one in said.exchanges):
            questions = suggestions(current["name"], current["language"])
        offer = not documents and self._sample(lang) is not None
        return {
            **changes,
            p.library: html,
            p.seen: html,
            p.suggestions: suggestions_html(questions, lang),
            p.sample: gr.update(value=text(lang, "open_sample"), visible=offer),
        }

    @lasting
    async def add_files(
        self, files: list[str], names: object, lang: Lang, chosen: str | None, said: Talk
    ) -> AsyncIterator[Changes]:
        """Hand uploaded files to the API one after the other. What went well is said in one line;
        each refusal for itself."""
        p = self._parts
        added: list[str] = []
        known: list[str] = []
        refused = ""
        for path, name in named_files(files, names):
            waiting = notice(text(lang, "sending", name=name))
            yield {p.notices: _went_well(added, known, lang) + refused + waiting}
            try:
                stored = await self._api.upload(path, name)
                chosen = stored["id"]
                (known if stored["duplicate"] else added).append(_stored(stored, name, lang))
            except UIError as error:
                why = f"{text(lang, 'not_added', name=name)} {reason(error, lang)}"
                refused += notice(why, bad=True)
            finally:
                # The API has its own copy; the browser's stays nowhere.
                path.unlink(missing_ok=True)
        listed = await self.refresh(lang, chosen, "", said)
        became = _went_well(added, known, lang) + refused
        yield {p.chosen: chosen, **listed, p.upload: None, p.notices: became}

    async def add_sample(self, lang: Lang, chosen: str | None, seen: str, said: Talk) -> Changes:
        """Upload the sample contract of the page's language."""
        p = self._parts
        path = self._sample(lang)
        if path is None:
            return {p.sample: gr.update(visible=False)}
        try:
            stored = await self._api.upload(path, path.name)
        except UIError as error:
            return {p.notices: notice(reason(error, lang), bad=True)}
        known = notice(_stored(stored, path.name, lang))
        return {
            **await self.refresh(lang, stored["id"], "", said),
            p.chosen: stored["id"],
            p.notices: known,
        }

    async def manage(
        self,
        lang: Lang,
        chosen: str | None,
        said: Talk,
        shown: Shown | None,
        event: gr.EventData,
    ) -> Changes:
        """A document was chosen, cancelled, retried or deleted. The choice itself is made in the
        browser (`ui.markup.CHOOSE`)."""
        p = self._parts
        act, document_id = str(event.act), str(event.id)
        changes: Changes = {p.notices: ""}
        try:
            if act == "select":
                shown = Shown(document_id)
                changes |= {
                    p.shown: shown,
                    p.viewer: await self._view.html(shown, lang),
                }
                chosen = document_id
            elif act == "cancel":
                await self._api.cancel(document_id)
            elif act == "retry":
                await self._api.retry(document_id)
            elif act == "delete":
                await self._api.delete(document_id)
                changes[p.notices] = notice(text(lang, "deleted"))
                if shown is not None and shown.document_id == document_id:
                    changes |= {p.shown: None, p.viewer: await self._view.html(None, lang)}
        except UIError as error:
            changes[p.notices] = notice(reason(error, lang), bad=True)
        listed = await self.refresh(lang, chosen, "", said)
        return {**listed, **changes} if act == "select" else {**changes, **listed}

    def _sample(self, lang: Lang) -> Path | None:
        return next((path for path in self._samples if f".{lang}." in path.name), None)


def _went_well(added: Sequence[str], known: Sequence[str], lang: Lang) -> str:
    """One line for all files that are here now; `added` and `known` say it of each. Several are
    counted, so that they do not bury the list below."""
    kinds = (("added_many", added), ("duplicate_many", known))
    said = [
        each[0] if len(each) == 1 else text(lang, key, count=len(each))
        for key, each in kinds
        if each
    ]
    return notice(" ".join(said)) if said else ""


def _stored(stored: Json, name: str, lang: Lang) -> str:
    if not stored["duplicate"]:
        return text(lang, "added", name=name)
    if stored["name"] == name:
        return text(lang, "duplicate", name=name)
    return text(lang, "duplicate_as", name=name, existing=stored["name"])
