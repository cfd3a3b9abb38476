"""What happens when earlier conversations about a document are listed and one of them is opened.

Each handler asks the API and returns the components to change. Gradio reads the annotations of
handlers, so their names are imported for good.
"""

from __future__ import annotations

import gradio as gr

from ui.client import Api, Json
from ui.earlier_view import earlier_html
from ui.errors import ApiProblem, UIError
from ui.exchange import Talk
from ui.markup import esc
from ui.messages import reason, status_line
from ui.parts import Changes, Parts
from ui.recalled import recalled
from ui.strings import Lang, text
from ui.talk_view import talk_html


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
        """Open one of them in place of what is in view, or leave it for a new one. Not while an
        answer is being written: it would be drawn over what was opened."""
        p = self._parts
        if said.exchanges and said.exchanges[-1].running:
            return {p.status: status_line(text(lang, "answer_runs"))}
        document_id = str(event.document)
        if document_id != chosen:
            # The list was still that of the document chosen before.
            return await self.listed(lang, chosen, said)
        told = ""
        try:
            if event.act == "fresh":
                said = Talk()
            else:
                said = await self._recall(str(event.id), document_id)
                told = text(lang, "earlier_opened")
        except UIError as error:
            gone = isinstance(error, ApiProblem) and error.status == 404
            told = text(lang, "conversation_gone") if gone else reason(error, lang)
            return {p.status: status_line(told), **await self.listed(lang, chosen, said)}
        return {
            p.talk: talk_html(said, lang),
            p.said: said,
            p.status: status_line(told),
            p.suggestions: "",
            **await self.listed(lang, chosen, said),
        }

    async def _recall(self, conversation_id: str, document_id: str) -> Talk:
        conversation = await self._api.conversation(conversation_id)
        names = [await self._name(one, conversation) for one in conversation["document_ids"]]
        return recalled(conversation, document_id, ", ".join(filter(None, names)))

    async def _name(self, document_id: str, conversation: Json) -> str:
        """A document's name; of one that was deleted the one that its quotes keep, if any."""
        try:
            return str((await self._api.document(document_id))["name"])
        except ApiProblem as error:
            if error.status != 404:
                raise
        cited = (
            citation
            for message in conversation["messages"]
            for citation in (message["result"] or {}).get("citations", ())
        )
        found = (str(one["document"]) for one in cited if one["document_id"] == document_id)
        return next(found, "")
