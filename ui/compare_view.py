"""The differences between two versions of a contract, weightiest first. Makes HTML from the API's
comparison; asks nothing itself."""

from __future__ import annotations

from collections.abc import Iterable

from ui.client import Json
from ui.library_view import warning_line
from ui.markup import esc, number
from ui.strings import Lang, text
from ui.terms_view import place_button, readable

_AROUND = 160
"""Characters of unchanged text shown before and after an edit."""
_WHOLE = 1200
"""An added or deleted clause longer than this many characters is cut; its page has the rest."""
_SHOWN_CHANGES = 300
_WEIGHTY = frozenset({"figure", "date", "notice_period", "party"})


def comparison_html(comparison: Json, lang: Lang) -> str:
    """Totals, warnings and every change in the API's order."""
    old, new = comparison["old"], comparison["new"]
    names = esc(text(lang, "compared", old=old["name"], new=new["name"]))
    parts = [f'<p class="fp-muted">{names}</p>']
    parts += [
        f'<p class="fp-note fp-bad">{esc(warning_line(one, lang))}</p>'
        for one in comparison["warnings"]
    ]
    if comparison["identical"]:
        parts.append(f'<p class="fp-good">{esc(text(lang, "identical"))}</p>')
    parts.append(f'<p class="fp-muted">{esc(_totals(comparison, lang))}</p>')
    changes = comparison["changes"]
    ids = (old["document_id"], new["document_id"])
    parts += [_change(change, ids, lang) for change in changes[:_SHOWN_CHANGES]]
    if len(changes) > _SHOWN_CHANGES:
        left = text(lang, "more_changes", count=number(len(changes) - _SHOWN_CHANGES))
        parts.append(f'<p class="fp-note">{esc(left)}</p>')
    if comparison["restated"]:
        parts.append(_folded("restated", comparison["restated"], ids[1], lang))
    return f'<div class="fp-changes">{"".join(parts)}</div>'


def _totals(comparison: Json, lang: Lang) -> str:
    totals = comparison["totals"]
    kinds = ("same", "changed", "added", "deleted", "moved", "renumbered")
    counted = [
        text(lang, f"total_{kind}", count=number(totals[kind])) for kind in kinds if totals[kind]
    ]
    if totals["formatting"] or totals["furniture"]:
        left = number(totals["formatting"] + totals["furniture"])
        counted.append(text(lang, "total_formatting", count=left))
    return " · ".join(counted)


def _change(change: Json, ids: tuple[str, str], lang: Lang) -> str:
    kind, category = change["kind"], change["category"]
    css = "fp-change fp-change-weighty" if category in _WEIGHTY else "fp-change"
    said = text(lang, f"change_{kind}")
    if category:
        said += f" · {text(lang, f'category_{category}')}"
    places = "".join(
        place_button(_named(side, place, lang), place, document_id, lang)
        for side, place, document_id in zip(
            ("old", "new"), (change["old"], change["new"]), ids, strict=True
        )
        if place is not None
    )
    values = "".join(_values(edit, lang) for edit in change["edits"])
    body = _body(change)
    follows = _folded("follows", change["follows"], ids[1], lang) if change["follows"] else ""
    return (
        f'<section class="{css}"><p class="fp-change-kind">{esc(said)}</p>{values}'
        f'<div class="fp-diff">{body}</div><div class="fp-sources">{places}</div>'
        f"{follows}</section>"
    )


def _named(side: str, place: Json, lang: Lang) -> str:
    page = text(lang, "page_number", page=place["page"]) if place["page"] else ""
    return text(lang, f"side_{side}", place=place["clause"] or page).rstrip(" :：")


def _values(edit: Json, lang: Lang) -> str:
    if not edit["old_values"] and not edit["new_values"]:
        return ""
    if edit["old_values"] == edit["new_values"]:
        return ""
    sides = [
        ", ".join(readable(value, lang) for value in values) or "–"
        for values in (edit["old_values"], edit["new_values"])
    ]
    others = f" {text(lang, 'others', count=edit['others'])}" if edit["others"] else ""
    return f'<p class="fp-values">{esc(sides[0])} → {esc(sides[1])}{esc(others)}</p>'


def _body(change: Json) -> str:
    old, new = change["old"], change["new"]
    if old is None:
        return f"<ins>{esc(_cut(new['text']))}</ins>"
    if new is None:
        return f"<del>{esc(_cut(old['text']))}</del>"
    if not change["edits"]:
        return esc(_cut(new["text"], 2 * _AROUND))
    return _edited(old, new, sorted(change["edits"], key=lambda edit: edit["new"]["start"]))


def _edited(old: Json, new: Json, edits: Iterable[Json]) -> str:
    """The new text with what went out and came in, and some unchanged text around it."""
    base, said, at = new["start"], new["text"], 0
    shown = ""
    for edit in edits:
        start = max(at, min(edit["new"]["start"] - base, len(said)))
        end = max(start, min(edit["new"]["end"] - base, len(said)))
        shown += _between(said[at:start], first=not shown)
        gone, came = edit["old"]["text"], said[start:end] if edit["new"]["text"] else ""
        if gone and came:
            shown += f"<del>{esc(gone)}</del>{_blank(gone, came)}<ins>{esc(came)}</ins>"
        elif gone:
            # The blank before words that went out went with them.
            before = edit["old"]["start"] - old["start"]
            blank = " " if old["text"][max(before - 1, 0) : before].isspace() else ""
            shown += f"<del>{blank if said[:start].strip() else ''}{esc(gone)}</del>"
        elif came:
            shown += f"<ins>{esc(came)}</ins>"
        at = end
    rest = said[at:]
    return shown + esc(rest if len(rest) <= _AROUND else f"{rest[:_AROUND]}…")


def _blank(gone: str, came: str) -> str:
    """What keeps two words apart that stand in each other's place; Chinese needs none."""
    return " " if gone[-1].isascii() and came[0].isascii() else ""


def _between(unchanged: str, *, first: bool) -> str:
    if first:
        return esc(unchanged if len(unchanged) <= _AROUND else f"…{unchanged[-_AROUND:]}")
    if len(unchanged) <= 2 * _AROUND:
        return esc(unchanged)
    return esc(f"{unchanged[:_AROUND]} … {unchanged[-_AROUND:]}")


def _cut(said: str, limit: int = _WHOLE) -> str:
    return said if len(said) <= limit else f"{said[:limit]}…"


def _folded(key: str, pairs: list[Json], document_id: str, lang: Lang) -> str:
    """A fold whose head counts the `pairs` of old and new places that it lists."""
    rows = "".join(
        f"<li>{esc(_cut(one['old']['text'], 80))} → {esc(_cut(one['new']['text'], 80))} "
        f"{place_button('', one['new'], document_id, lang)}</li>"
        for one in pairs
    )
    head = esc(text(lang, key, count=len(pairs)))
    return f'<details class="fp-notes"><summary>{head}</summary><ul>{rows}</ul></details>'
