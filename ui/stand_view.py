"""Says of an answer that came before its document was read what it is worth: how much was read, and
whether it was confirmed or revised then. Makes HTML from an exchange; asks nothing itself."""

from __future__ import annotations

from ui.client import Json
from ui.exchange import Exchange
from ui.markup import esc
from ui.strings import Lang, text


def stand_html(exchange: Exchange, lang: Lang) -> str:
    """The label above the answer, and under it the first answer where it was revised; empty for an
    answer from a document that was read."""
    key = _key(exchange)
    if not key:
        return ""
    changed = ("、" if lang == "zh" else ", ").join(
        text(lang, f"changed_{one}") for one in exchange.changed
    )
    said = text(lang, key, percent=percent_of(exchange.coverage), changed=changed)
    label = f'<p class="fp-stand fp-stand-{exchange.stand or "early"}">{esc(said)}</p>'
    return label + _earlier(exchange, lang)


def percent_of(coverage: Json | None) -> int:
    """Rounded down: 100 only when everything was read."""
    if not coverage or not coverage["total_tokens"]:
        return 0
    return int(100 * coverage["read_tokens"] // coverage["total_tokens"])


def _key(exchange: Exchange) -> str:
    if exchange.stand == "framework":
        return "stand_framework" if exchange.running else "stand_unsettled"
    if exchange.stand:
        return f"stand_{exchange.stand}"
    # The framework is told of when it is complete; its first words are worth no more before.
    early = (
        exchange.phase == "writing" and exchange.coverage and percent_of(exchange.coverage) < 100
    )
    return "stand_early" if early else ""


def _earlier(exchange: Exchange, lang: Lang) -> str:
    if not exchange.earlier:
        return ""
    title = text(lang, "earlier", percent=percent_of(exchange.earlier_coverage))
    return (
        f'<details class="fp-earlier"><summary>{esc(title)}</summary>'
        f"<div>{esc(exchange.earlier.strip())}</div></details>"
    )
