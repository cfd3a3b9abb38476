"""The key terms of a document: what it says about each, where, and what it leaves open. Makes HTML
from the API's answer; asks nothing itself."""

from __future__ import annotations

import re
from decimal import Decimal

from ui.client import Json
from ui.library_view import warning_line
from ui.markup import button, esc
from ui.strings import STRINGS, Lang, text
from ui.talk_view import place_of

_PERIOD = re.compile(r"(?P<count>[\d.,]+) (?P<unit>[a-z ]+)")
_AMOUNT = re.compile(r"(?P<count>-?\d+(?:\.\d+)?) (?P<unit>[A-Z]{3})")
_WORD = re.compile(r"[\w.]+|[%‰]")
_SHOWN_VALUES = 12
"""Values of one term that are shown at once; the rest stands behind a fold."""


def terms_html(terms: Json, lang: Lang) -> str:
    """All terms in the API's order, the warnings of the document last."""
    rows = "".join(_term(term, terms["document_id"], lang) for term in terms["terms"])
    notes = "".join(
        f'<p class="fp-note">{esc(warning_line(one, lang))}</p>' for one in terms["warnings"]
    )
    hint = f'<p class="fp-muted">{esc(text(lang, "terms_hint"))}</p>'
    return f'{hint}<dl class="fp-terms">{rows}</dl>{notes}'


def readable(value: str, lang: Lang) -> str:
    """A normal form as people write it: "84 month" is "84 months", "4200 EUR" is "4,200 EUR";
    others stay as they are."""
    amount = _AMOUNT.fullmatch(value)
    if amount is not None:
        return f"{Decimal(amount['count']):,f} {amount['unit']}"
    match = _PERIOD.fullmatch(value)
    key = f"unit_{match['unit'].replace(' ', '_')}" if match else ""
    if match is None or key not in STRINGS[lang]:
        return value
    plural = f"{key}s"
    several = match["count"] != "1" and plural in STRINGS[lang]
    return text(lang, plural if several else key, count=match["count"])


def _term(term: Json, document_id: str, lang: Lang) -> str:
    name = esc(text(lang, f"term_{term['name']}"))
    if term["state"] == "not_stated":
        body = f'<span class="fp-muted">{esc(text(lang, "not_stated"))}</span>'
        if term["nearest"] is not None:
            near = place_button(text(lang, "nearest_passage"), term["nearest"], document_id, lang)
            body += f" {near}"
        return f"<dt>{name}</dt><dd>{body}</dd>"
    values = [_value(value, document_id, lang) for value in term["values"]]
    shown = "".join(f"<li>{one}</li>" for one in values[:_SHOWN_VALUES])
    body = f"<ul>{shown}</ul>"
    if len(values) > _SHOWN_VALUES:
        rest = "".join(f"<li>{one}</li>" for one in values[_SHOWN_VALUES:])
        more = esc(text(lang, "more_values", count=len(values) - _SHOWN_VALUES))
        body += f"<details><summary>{more}</summary><ul>{rest}</ul></details>"
    if term["conflicting"]:
        body += f'<p class="fp-note fp-bad">{esc(text(lang, "conflicting"))}</p>'
    return f"<dt>{name}</dt><dd>{body}</dd>"


def _value(value: Json, document_id: str, lang: Lang) -> str:
    words = " ".join(value["words"]["text"].split())
    if value["blank"]:
        said = f'<span class="fp-muted">{esc(text(lang, "left_blank"))}</span>'
    else:
        # Words that have no normal form are a whole clause, too much to be set in bold.
        said = f"<strong>{esc(words)}</strong>" if value["value"] else esc(words)
        normal = readable(value["value"], lang) if value["value"] else ""
        if normal and _words(normal) != _words(words):
            said += f' <span class="fp-muted">= {esc(normal)}</span>'
    names = ", ".join(" ".join(name["text"].split()) for name in value["names"])
    if names:
        said += f' <span class="fp-muted">({esc(names)})</span>'
    return f"{said} {place_button('', value['passage'], document_id, lang)}"


def _words(said: str) -> list[str]:
    """What is left of a value without order, case and separators: "GBP 3,150" is "3150 GBP"."""
    return sorted(_WORD.findall(said.casefold().replace(",", "")))


def place_button(label: str, place: Json, document_id: str, lang: Lang) -> str:
    """A button that shows `place` of a document on its page; without a label it names the place."""
    where = place_of(place, lang) or text(lang, "quoted_clause")
    return button(
        label or where,
        "place",
        css="fp-source",
        title=text(lang, "show_clause", place=where),
        document=document_id,
        start=place["start"],
        end=place["end"],
        page=place["page"] or "",
        clause=place["clause"] or "",
    )
