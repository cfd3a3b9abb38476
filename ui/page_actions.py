"""What happens when the page is opened and when its language changes."""

from __future__ import annotations

import gradio as gr

from ui.earlier_actions import EarlierActions
from ui.examination import Examined
from ui.examination_actions import ExaminationActions
from ui.exchange import Talk
from ui.keys import current_key
from ui.library_actions import LibraryActions
from ui.markup import esc
from ui.messages import title
from ui.parts import Changes, Parts
from ui.strings import Lang, text
from ui.talk_view import talk_html
from ui.viewer import Shown, Viewer


class PageActions:
    """Handlers that concern the whole page. Holds nothing that belongs to a session."""

    def __init__(
        self,
        parts: Parts,
        viewer: Viewer,
        library: LibraryActions,
        examination: ExaminationActions,
        earlier: EarlierActions,
    ) -> None:
        self._parts = parts
        self._view = viewer
        self._library = library
        self._examination = examination
        self._earlier = earlier

    async def open(self, chosen: str | None, request: gr.Request) -> Changes:
        """The page was loaded: pick its language and list the documents. `chosen` is what the
        browser keeps from before."""
        lang = _preferred(request)
        changes = await self.translate(lang, chosen, Talk(), None, Examined())
        return {self._parts.lang: lang, **changes}

    async def translate(
        self,
        lang: Lang,
        chosen: str | None,
        said: Talk,
        shown: Shown | None,
        examined: Examined,
    ) -> Changes:
        """Everything in another language."""
        p = self._parts
        brand = f"<h1>Fineprint</h1><p>{esc(text(lang, 'tagline'))}</p>"
        if current_key() is not None:
            brand += f'<a class="fp-link" href="/logout">{esc(text(lang, "sign_out"))}</a>'
        listing = await self._library.refresh(lang, chosen, "", said)
        chosen = listing.get(p.chosen, chosen)
        return {
            p.brand: brand,
            p.library_title: title(lang, "documents"),
            p.page_title: title(lang, "page"),
            p.upload_hint: f"<p>{esc(text(lang, 'upload'))}</p>",
            p.question: gr.update(
                label=text(lang, "question"), placeholder=text(lang, "placeholder")
            ),
            p.ask: gr.update(value=text(lang, "ask")),
            p.stop: gr.update(value=text(lang, "stop")),
            p.talk: talk_html(said, lang),
            p.viewer: await self._view.html(shown, lang),
            p.status: "",
            p.notices: "",
            **self._examination.translate(lang, examined),
            **listing,
            **await self._earlier.listed(lang, chosen, said),
        }


def _preferred(request: gr.Request) -> Lang:
    wanted = request.query_params.get("lang") or request.headers.get("accept-language", "")
    return "zh" if wanted.lower().startswith("zh") else "en"
