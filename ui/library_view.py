"""The list of documents: name, stage with numbers, warnings, what can be done. Makes HTML from the
API's documents; asks nothing itself."""

from __future__ import annotations

from collections.abc import Sequence

from ui.advice import advice
from ui.client import Json
from ui.markup import button, esc, number
from ui.strings import Lang, text

_STAGES = ("parsing", "indexing", "reading")
BUSY = frozenset({"queued", "in_progress"})


def library_html(documents: Sequence[Json], selected: str | None, lang: Lang) -> str:
    """All documents, newest first; the one to be asked is marked."""
    if not documents:
        return f'<p class="fp-muted">{esc(text(lang, "no_documents"))}</p>'
    entries = "".join(_entry(one, one["id"] == selected, lang) for one in documents)
    return f'<ul class="fp-docs">{entries}</ul>'


def _entry(document: Json, selected: bool, lang: Lang) -> str:
    name = document["name"]
    marked = ' aria-current="true"' if selected else ""
    css = "fp-doc fp-doc-selected" if selected else "fp-doc"
    choose = button(
        name,
        "select",
        css="fp-doc-name",
        title=text(lang, "select", name=name),
        id=document["id"],
    )
    return (
        f'<li class="{css}"{marked}>{choose}{_state(document, lang)}'
        f"{_warnings(document, lang)}{_actions(document, lang)}</li>"
    )


def _state(document: Json, lang: Lang) -> str:
    status = document["status"]
    if status == "completed":
        return f'<p class="fp-doc-state">{esc(_size(document, lang))}</p>'
    if status == "failed":
        fault = document["error"] or {"code": "", "message": ""}
        why = advice(lang, fault["code"], fault["message"])
        return (
            f'<p class="fp-doc-state fp-bad"><strong>{esc(text(lang, "failed"))}.</strong> '
            f"{esc(why)}</p>"
        )
    if status == "cancelled":
        return f'<p class="fp-doc-state">{esc(text(lang, "cancelled"))}</p>'
    return _progress(document, lang)


def _progress(document: Json, lang: Lang) -> str:
    stage = document["stage"] if status_is_running(document) else "queued"
    done, total = document["progress"]["done"], document["progress"]["total"]
    steps = ""
    for step in _STAGES:
        place = _STAGES.index(stage) if stage in _STAGES else -1
        css = "now" if step == stage else "past" if _STAGES.index(step) < place else "later"
        steps += f'<li class="fp-step-{css}">{esc(text(lang, f"stage_{step}"))}</li>'
    waits = _waits(document, lang)
    label = waits or text(lang, f"stage_{stage}")
    counted = ""
    if stage in _STAGES and total and (done or not waits):
        unit = f"unit_{document['progress']['unit']}"
        counted = text(lang, unit, done=number(done), total=number(total))
    value = f' value="{done}" max="{total}"' if counted else ""
    early = text(lang, "ask_already") if document["askable"] else ""
    return (
        f'<ol class="fp-steps">{steps}</ol>'
        f'<progress class="fp-progress"{value} aria-label="{esc(label)}"></progress>'
        f'<p class="fp-doc-state">{esc(" · ".join(filter(None, (label, counted, early))))}</p>'
    )


def _waits(document: Json, lang: Lang) -> str:
    """What the document waits for; empty while it is worked on, or when it is the next one."""
    why = document["waiting"]
    if why is None or (why["documents"] == 0 and why["reason"] in ("worker", "documents")):
        return ""
    reason = why["reason"]
    if reason == "engine" and why["documents"] == 0:
        reason = "turn"
    return text(lang, f"waits_{reason}", count=number(why["documents"]))


def status_is_running(document: Json) -> bool:
    """A worker has taken the document up."""
    return bool(document["status"] == "in_progress")


def _size(document: Json, lang: Lang) -> str:
    parts = []
    if document["page_count"] > 1:
        parts.append(text(lang, "pages", count=number(document["page_count"])))
    if document["total_tokens"]:
        parts.append(text(lang, "tokens", count=number(document["total_tokens"])))
    return " · ".join([text(lang, "stage_done"), *parts])


def _warnings(document: Json, lang: Lang) -> str:
    warnings = document["warnings"]
    if not warnings:
        return ""
    key = "one_warning" if len(warnings) == 1 else "warnings"
    lines = "".join(f"<li>{esc(warning_line(one, lang))}</li>" for one in warnings)
    head = esc(text(lang, key, count=len(warnings)))
    return f'<details class="fp-notes"><summary>{head}</summary><ul>{lines}</ul></details>'


def warning_line(warning: Json, lang: Lang) -> str:
    """One warning with the pages that it concerns."""
    said = advice(lang, warning["code"], warning["message"])
    if not warning["pages"]:
        return said
    pages = ", ".join(str(page) for page in warning["pages"])
    return f"{said} ({text(lang, 'on_pages', pages=pages)})"


def _actions(document: Json, lang: Lang) -> str:
    name, document_id = document["name"], document["id"]
    actions = ""
    if document["status"] in BUSY:
        title = text(lang, "cancel_named", name=name)
        actions += button(text(lang, "cancel"), "cancel", title=title, id=document_id)
    if document["status"] in ("failed", "cancelled"):
        title = text(lang, "retry_named", name=name)
        actions += button(text(lang, "retry"), "retry", title=title, id=document_id)
    actions += button(
        text(lang, "delete"),
        "delete",
        title=text(lang, "delete_named", name=name),
        id=document_id,
        confirm=f"{text(lang, 'delete_named', name=name)}. {text(lang, 'confirm_delete')}",
    )
    return f'<p class="fp-actions">{actions}</p>'
