"""What happens when earlier conversations about a document are listed and one of them is opened.

Each handler asks the API and returns the components to change. Gradio reads the annotations of
handlers, so their names are imported for good.
"""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from ui.client import Api
from ui.earlier_view import earlier_html
from ui.errors import ApiProblem, UIError
from ui.exchange import Talk
from ui.markup import esc
from ui.messages import reason, status_line
from ui.parts import Changes, Parts
from ui.recalled import cited_names, found_in, recalled
from ui.strings import Lang, text
from ui.talk_view import talk_html


@dataclass(frozen=True, slots=True)
class Reopened:
    """A conversation on its way into view: its talk, the document in whose list it was chosen, and
    the talk that was in view then."""

    talk: Talk
    document_id: str
    before: Talk


class EarlierActions:
    """Handlers of the list of earlier conversations. Holds nothing that belongs to a session."""

    def __init__(self, api: Api, parts: Parts) -> None:
        self._api = api
        self._parts = parts

    async def listed(self, lang: Lang, chosen: str | None, said: Talk) -> Changes:
        """The conversations about the chosen document; nothing where there are none."""
        p = self._parts
        if chosen is None:
            return {p.earlier: ""}
        try:
            found = await self._api.conversations(chosen)
        except ApiProblem as error:
            return {p.earlier: f'<p class="fp-bad">{esc(reason(error, lang))}</p>'}
        except UIError:
            # That the server is away stands beside the documents.
            return {p.earlier: ""}
        return {p.earlier: earlier_html(found, chosen, said.conversations.get(chosen), lang)}

    async def choose(
        self, lang: Lang, chosen: str | None, said: Talk, event: gr.EventData
    ) -> Changes:
        """Fetch one of them, which `open` shows, or leave what is in view for a new one. Not while
        an answer is being written: it would be drawn over what was opened."""
        p = self._parts
        if said.exchanges and said.exchanges[-1].running:
            return {p.status: status_line(text(lang, "answer_runs"))}
        document_id = str(event.document)
        if document_id != chosen:
            # The list was still that of the document chosen before.
            return await self.listed(lang, chosen, said)
        if event.act == "fresh":
            return await self._shown(Talk(), "", lang, chosen)
        try:
            talk = await self._recall(str(event.id), document_id)
        except UIError as error:
            gone = isinstance(error, ApiProblem) and error.status == 404
            told = text(lang, "conversation_gone") if gone else reason(error, lang)
            return {p.status: status_line(told), **await self.listed(lang, chosen, said)}
        return {p.reopened: Reopened(talk, document_id, said)}

    async def open(
        self, lang: Lang, chosen: str | None, said: Talk, reopened: Reopened | None
    ) -> Changes:
        """Show what was fetched, unless another document was chosen or something asked
        meanwhile: that is what the reader looks at now."""
        p = self._parts
        if reopened is None or chosen != reopened.document_id:
            return {p.reopened: None}
        if said != reopened.before:
            return {p.reopened: None, p.status: status_line(text(lang, "earlier_late"))}
        told = text(lang, "earlier_opened")
        return {p.reopened: None, **await self._shown(reopened.talk, told, lang, chosen)}

    async def _shown(self, said: Talk, told: str, lang: Lang, chosen: str | None) -> Changes:
        p = self._parts
        return {
            p.talk: talk_html(said, lang),
            p.said: said,
            p.status: status_line(told),
            p.suggestions: "",
            **await self.listed(lang, chosen, said),
        }

    async def _recall(self, conversation_id: str, document_id: str) -> Talk:
        conversation = await self._api.conversation(conversation_id)
        names = cited_names(conversation)
        for one in {*conversation["document_ids"], *found_in(conversation)}:
            names[one] = await self._name(one) or names.get(one, "")
        return recalled(conversation, document_id, names)

    async def _name(self, document_id: str) -> str:
        """A document's name; nothing of one that was deleted."""
        try:
            return str((await self._api.document(document_id))["name"])
        except ApiProblem as error:
            if error.status != 404:
                raise
            return ""
