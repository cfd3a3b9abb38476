"""Lays out the page and says which action calls which handler. Holds no behaviour of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from ui.client import Api
from ui.exchange import Talk
from ui.files import ContractFiles
from ui.handlers import Handlers
from ui.markup import CLICKS
from ui.strings import LANG_NAMES, LANGS, Lang, text

POLL_SECONDS = 1.0

_SPOKEN_LANGUAGE = "(lang) => { document.documentElement.lang = lang === 'zh' ? 'zh-CN' : 'en'; }"


@dataclass(frozen=True, slots=True)
class Parts:
    """The components that handlers read and write. The last five belong to one browser session."""

    lang: Any
    brand: Any
    library_title: Any
    talk_title: Any
    page_title: Any
    upload: Any
    sample: Any
    notices: Any
    library: Any
    talk: Any
    suggestions: Any
    status: Any
    question: Any
    ask: Any
    stop: Any
    viewer: Any
    chosen: Any
    said: Any
    running: Any
    shown: Any
    seen: Any


def build_page(api: Api, samples: Sequence[Path]) -> gr.Blocks:
    """The page over an API. `samples` are files offered to begin with."""
    page: gr.Blocks
    with gr.Blocks(title="Fineprint", analytics_enabled=False, fill_width=True) as page:
        parts = _lay_out()
        _connect(page, parts, Handlers(api, parts, samples))
    page.queue(default_concurrency_limit=None, api_open=False)
    return page


def _lay_out() -> Parts:
    lang: Lang = "en"
    with gr.Row(elem_id="fp-top"):
        brand = gr.HTML(elem_id="fp-brand")
        choice = gr.Radio(
            choices=[(LANG_NAMES[one], one) for one in LANGS],
            value=lang,
            label=text(lang, "language"),
            show_label=False,
            elem_id="fp-lang",
            scale=0,
        )
    with gr.Row(elem_id="fp-main"):
        with gr.Column(elem_id="fp-library-column", elem_classes="fp-column"):
            library_title = gr.HTML()
            upload = ContractFiles(
                file_count="multiple", label=text(lang, "upload"), elem_id="fp-upload", height=92
            )
            notices = gr.HTML(elem_id="fp-notices")
            library = gr.HTML(elem_id="fp-library", js_on_load=CLICKS)
            sample = gr.Button(text(lang, "open_sample"), visible=False, elem_id="fp-sample")
        with gr.Column(elem_id="fp-talk-column", elem_classes="fp-column"):
            talk_title = gr.HTML()
            talk = gr.HTML(elem_id="fp-talk", js_on_load=CLICKS, autoscroll=True)
            suggestions = gr.HTML(elem_id="fp-suggestions", js_on_load=CLICKS)
            status = gr.HTML(elem_id="fp-status")
            with gr.Row(elem_id="fp-ask-row"):
                question = gr.Textbox(
                    label=text(lang, "question"),
                    placeholder=text(lang, "placeholder"),
                    lines=1,
                    max_lines=6,
                    elem_id="fp-question",
                    container=True,
                )
                ask = gr.Button(text(lang, "ask"), variant="primary", elem_id="fp-ask")
                stop = gr.Button(text(lang, "stop"), visible=False, elem_id="fp-stop")
        with gr.Column(elem_id="fp-page-column", elem_classes="fp-column"):
            page_title = gr.HTML()
            viewer = gr.HTML(elem_id="fp-viewer", js_on_load=CLICKS)
    return Parts(
        lang=choice,
        brand=brand,
        library_title=library_title,
        talk_title=talk_title,
        page_title=page_title,
        upload=upload,
        sample=sample,
        notices=notices,
        library=library,
        talk=talk,
        suggestions=suggestions,
        status=status,
        question=question,
        ask=ask,
        stop=stop,
        viewer=viewer,
        chosen=gr.State(None),
        said=gr.State(Talk()),
        running=gr.State(""),
        shown=gr.State(None),
        seen=gr.State(""),
    )


def _connect(page: gr.Blocks, parts: Parts, do: Handlers) -> None:
    p = parts
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    words = {p.brand, p.library_title, p.talk_title, p.page_title, p.upload, p.sample}
    words |= {p.question, p.ask, p.stop}
    listing = {p.library, p.seen, p.chosen, p.suggestions, p.sample}
    viewing = {p.viewer, p.shown}
    views = {p.talk, p.viewer, p.notices, p.status}
    where = [p.lang, p.chosen, p.seen]

    page.load(do.open, None, [p.lang, *words, *listing, *views], **quiet)
    page.load(None, p.lang, None, js=_SPOKEN_LANGUAGE, **quiet)
    p.lang.input(
        do.translate, [p.lang, p.chosen, p.said, p.shown], words | listing | views, **quiet
    )
    p.lang.input(None, p.lang, None, js=_SPOKEN_LANGUAGE, **quiet)
    gr.Timer(POLL_SECONDS).tick(do.refresh, where, [*listing, p.notices], **quiet)

    p.upload.upload(
        do.add_files, [p.upload, p.lang, p.chosen, p.seen], listing | {p.upload, p.notices}, **quiet
    )
    p.sample.click(do.add_sample, where, listing | {p.notices}, **quiet)
    p.library.act(
        do.manage,
        [p.lang, p.chosen, p.seen, p.shown],
        listing | viewing | {p.notices},
        **quiet,
    )
    asking = {p.talk, p.said, p.question, p.ask, p.stop, p.running, p.status} | viewing
    gr.on(
        [p.ask.click, p.question.submit],
        do.ask,
        [p.question, p.lang, p.chosen, p.said],
        asking,
        trigger_mode="once",
        **quiet,
    ).then(do.repeat, [p.lang, p.said], {p.talk}, **quiet)
    p.suggestions.act(do.suggest, None, {p.question}, **quiet)
    p.stop.click(do.stop, [p.lang, p.running], {p.status}, **quiet)
    p.talk.act(do.cite, [p.lang, p.said, p.shown], viewing, **quiet)
    p.viewer.act(do.turn, [p.lang, p.shown], viewing, **quiet)
