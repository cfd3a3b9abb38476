"""Lays out the page and says which action calls which handler. Holds no behaviour of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from ui.client import Api
from ui.earlier_actions import EarlierActions
from ui.earlier_view import FOLDS
from ui.examination import VIEWS, Examined
from ui.examination_actions import ExaminationActions
from ui.exchange import Talk
from ui.files import NAMES_OF_FILES
from ui.keys import keyed
from ui.library_actions import LibraryActions
from ui.markup import ASK_CLICKED, CHOOSE, CHOSEN, CLICKS, FOLLOWS
from ui.page_actions import PageActions
from ui.parts import Parts
from ui.strings import LANG_NAMES, LANGS, Lang, text
from ui.talk_actions import TalkActions
from ui.viewer import Viewer

POLL_SECONDS = 1.0
_KEPT = (3600, 3600)
"""Looks every hour for uploads that no handler took up and removes those older than an hour."""

_CHOSEN_AT = "fineprint-chosen"
"""Where in the browser's storage the choice lies: it outlives the session and the server."""

_QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}

_SPOKEN_LANGUAGE = "(lang) => { document.documentElement.lang = lang === 'zh' ? 'zh-CN' : 'en'; }"


def build_page(api: Api, samples: Sequence[Path]) -> gr.Blocks:
    """The page over an API. `samples` are files offered to begin with."""
    page: gr.Blocks
    with gr.Blocks(
        title="Fineprint", analytics_enabled=False, fill_width=True, delete_cache=_KEPT
    ) as page:
        parts = _lay_out()
        viewer = Viewer(api)
        library = LibraryActions(api, parts, viewer, samples)
        examination = ExaminationActions(api, parts, viewer)
        earlier = EarlierActions(api, parts)
        _connect(
            page,
            parts,
            keyed(PageActions(parts, viewer, library, examination, earlier)),
            keyed(library),
            keyed(TalkActions(api, parts, viewer)),
            keyed(earlier),
        )
        _connect_examination(parts, keyed(examination))
    page.queue(default_concurrency_limit=None, api_open=False)
    return page


def _lay_out() -> Parts:
    lang: Lang = "en"
    with gr.Row(elem_id="fp-top"):
        brand = _html(elem_id="fp-brand")
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
            library_title = _html()
            upload = gr.File(
                label=text(lang, "upload"),
                show_label=False,
                file_count="multiple",
                elem_id="fp-upload",
                height=92,
            )
            names = gr.JSON(visible=False)
            upload_hint = _html(elem_id="fp-upload-hint")
            notices = _html(elem_id="fp-notices")
            library = _html(elem_id="fp-library", js_on_load=CLICKS)
            sample = gr.Button(text(lang, "open_sample"), visible=False, elem_id="fp-sample")
        with gr.Column(elem_id="fp-talk-column", elem_classes="fp-column"):
            view = gr.Radio(
                choices=[(text(lang, f"view_{one}"), one) for one in VIEWS],
                value="talk",
                label=text(lang, "view"),
                show_label=False,
                elem_id="fp-view",
            )
            with gr.Column(elem_classes="fp-view-group") as talk_group:
                earlier = _html(elem_id="fp-earlier", js_on_load=FOLDS)
                talk = _html(elem_id="fp-talk", js_on_load=FOLLOWS)
                suggestions = _html(elem_id="fp-suggestions", js_on_load=CLICKS)
                status = _html(elem_id="fp-status")
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
            with gr.Column(elem_classes="fp-view-group", visible=False) as terms_group:
                terms = _html(elem_id="fp-terms", js_on_load=CLICKS)
            with gr.Column(elem_classes="fp-view-group", visible=False) as compare_group:
                with gr.Row(elem_id="fp-compare-row"):
                    old_version = gr.Dropdown(label=text(lang, "old_version"), elem_id="fp-old")
                    new_version = gr.Dropdown(label=text(lang, "new_version"), elem_id="fp-new")
                    compare = gr.Button(
                        text(lang, "compare"), variant="primary", elem_id="fp-compare"
                    )
                comparison = _html(elem_id="fp-comparison", js_on_load=CLICKS)
        with gr.Column(elem_id="fp-page-column", elem_classes="fp-column"):
            page_title = _html()
            viewer = _html(elem_id="fp-viewer", js_on_load=CLICKS)
    return Parts(
        lang=choice,
        brand=brand,
        library_title=library_title,
        view=view,
        talk_group=talk_group,
        terms_group=terms_group,
        compare_group=compare_group,
        terms=terms,
        old_version=old_version,
        new_version=new_version,
        compare=compare,
        comparison=comparison,
        page_title=page_title,
        upload=upload,
        names=names,
        upload_hint=upload_hint,
        sample=sample,
        notices=notices,
        library=library,
        earlier=earlier,
        talk=talk,
        suggestions=suggestions,
        status=status,
        question=question,
        ask=ask,
        stop=stop,
        viewer=viewer,
        # The secret must be the same after a new start; an identifier needs none.
        chosen=gr.BrowserState(storage_key=_CHOSEN_AT, secret=_CHOSEN_AT),
        said=gr.State(Talk()),
        running=gr.State(""),
        shown=gr.State(None),
        seen=gr.State(""),
        examined=gr.State(Examined()),
        reopened=gr.State(None),
    )


def _html(**options: Any) -> Any:
    """A region that only the page's own style sheet dresses."""
    return gr.HTML(apply_default_css=False, **options)


def _connect(
    page: gr.Blocks,
    p: Parts,
    whole: PageActions,
    library: LibraryActions,
    talk: TalkActions,
    earlier: EarlierActions,
) -> None:
    quiet = _QUIET
    words = {p.brand, p.library_title, p.page_title, p.upload_hint, p.sample}
    words |= {p.question, p.ask, p.stop, p.view, p.compare, p.old_version, p.new_version}
    words |= {p.terms, p.comparison, p.earlier}
    listing = {p.library, p.seen, p.chosen, p.suggestions, p.sample}
    viewing = {p.viewer, p.shown}
    views = {p.talk, p.viewer, p.notices, p.status}
    where = [p.lang, p.chosen, p.seen, p.said]
    past = [p.lang, p.chosen, p.said]

    page.load(whole.open, p.chosen, [p.lang, *words, *listing, *views], **quiet)
    p.lang.input(
        whole.translate,
        [p.lang, p.chosen, p.said, p.shown, p.examined],
        words | listing | views,
        **quiet,
    )
    p.lang.change(None, p.lang, None, js=_SPOKEN_LANGUAGE, **quiet)
    gr.Timer(POLL_SECONDS).tick(library.refresh, where, [*listing, p.notices], **quiet)

    p.upload.upload(
        library.add_files,
        [p.upload, p.names, p.lang, p.chosen, p.said],
        listing | {p.upload, p.notices},
        js=NAMES_OF_FILES,
        **quiet,
    )
    p.sample.click(library.add_sample, where, listing | {p.notices}, **quiet)
    p.library.act(
        library.manage,
        [p.lang, p.chosen, p.said, p.shown],
        listing | viewing | {p.notices},
        trigger_mode="multiple",
        **quiet,
    )
    # The choice is made in the browser, at once: the question that follows a click goes there.
    p.library.act(None, p.chosen, p.chosen, js=CHOOSE, trigger_mode="multiple", **quiet).then(
        None, p.chosen, None, js=CHOSEN, **quiet
    )
    settled = {p.talk, p.said, p.running, p.ask, p.stop}
    asking = settled | {p.question, p.status, p.suggestions} | viewing
    gr.on(
        [p.ask.click, p.question.submit],
        talk.ask,
        [p.chosen, p.question, p.lang, p.said],
        asking,
        js=ASK_CLICKED,
        trigger_mode="once",
        **quiet,
    ).then(talk.settle, [p.lang, p.said], settled, **quiet).then(
        earlier.listed, past, {p.earlier}, **quiet
    )
    p.chosen.change(earlier.listed, past, {p.earlier}, **quiet)
    opening = {p.talk, p.said, p.status, p.suggestions, p.earlier, p.reopened}
    p.earlier.act(earlier.choose, past, opening, **quiet).then(
        earlier.open, [*past, p.reopened], opening, **quiet
    )
    p.suggestions.act(talk.suggest, None, {p.question}, **quiet)
    p.stop.click(talk.stop, [p.lang, p.running], {p.status}, **quiet)
    p.talk.act(talk.cite, [p.lang, p.said, p.shown], viewing, **quiet)
    p.viewer.act(talk.turn, [p.lang, p.shown], viewing, **quiet)


def _connect_examination(p: Parts, examination: ExaminationActions) -> None:
    quiet = _QUIET
    where = [p.view, p.lang, p.chosen, p.examined]
    filled = {p.terms, p.comparison, p.examined, p.old_version, p.new_version}
    groups = {p.talk_group, p.terms_group, p.compare_group}
    # Apart: no view waits for what another one looks up.
    p.view.input(examination.switch, p.view, groups, trigger_mode="multiple", **quiet)
    p.view.input(examination.fill, where, filled, trigger_mode="multiple", **quiet)
    p.chosen.change(examination.follow, where, {p.terms, p.examined}, **quiet)
    p.compare.click(
        examination.compare,
        [p.old_version, p.new_version, p.lang, p.examined],
        {p.comparison, p.examined},
        trigger_mode="once",
        **quiet,
    )
    for region in (p.terms, p.comparison):
        region.act(examination.show, [p.lang], {p.shown, p.viewer}, **quiet)
