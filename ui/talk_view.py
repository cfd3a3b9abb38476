"""The conversation: questions, streamed answers with citation chips, checks, coverage, timing.
Makes HTML from exchanges; asks nothing itself."""

from __future__ import annotations

import re
from collections import Counter

from ui.advice import advice
from ui.client import Json
from ui.exchange import Exchange, Talk
from ui.library_view import warning_line
from ui.markup import button, esc, number
from ui.stand_view import percent_of, stand_html
from ui.strings import Lang, text

_MARKER = re.compile(r"\[(\d{1,3})\]")


def talk_html(talk: Talk, lang: Lang) -> str:
    """All exchanges, oldest first."""
    if not talk.exchanges:
        return f'<p class="fp-empty">{esc(text(lang, "empty_conversation"))}</p>'
    return "".join(_exchange(one, index, lang) for index, one in enumerate(talk.exchanges))


def suggestions_html(questions: tuple[str, ...], lang: Lang) -> str:
    """Questions to begin with."""
    if not questions:
        return ""
    chips = "".join(
        button(question, "suggest", css="fp-suggestion", question=question)
        for question in questions
    )
    label = esc(text(lang, "suggestions"))
    return f'<div class="fp-suggestions" role="group" aria-label="{label}">{chips}</div>'


def place_of(citation: Json, lang: Lang) -> str:
    """Where a citation stands: clause, page and printed label as far as they are known."""
    parts = []
    clause = citation.get("clause")
    if clause:
        # "Schedule 2" and "第十二条" name themselves; "12.3" does not.
        key = "clause" if clause[0].isdigit() or clause[0] == "(" else "clause_named"
        parts.append(text(lang, key, clause=clause))
    page, label = citation.get("page"), citation.get("page_label")
    if page is not None:
        printed = label is not None and label != str(page)
        key = "page_printed" if printed else "page_number"
        parts.append(text(lang, key, page=page, label=label))
    return ("，" if lang == "zh" else ", ").join(parts) or str(citation.get("document", ""))


def _exchange(exchange: Exchange, index: int, lang: Lang) -> str:
    read_as = ""
    if exchange.read_as:
        said = text(lang, "read_as", question=exchange.read_as)
        read_as = f'<span class="fp-about">{esc(said)}</span>'
    asked = (
        f'<div class="fp-question"><span class="fp-sr">{esc(text(lang, "question_label"))}: </span>'
        f"{esc(exchange.question)}{read_as}"
        f'<span class="fp-about">{esc(exchange.document_name)}</span></div>'
    )
    status = _status(exchange)
    head = ""
    if status:
        head = f'<p class="fp-status fp-status-{status}">{esc(text(lang, f"status_{status}"))}</p>'
    body = head + stand_html(exchange, lang) + _answer(exchange, index, lang)
    body += _foot(exchange, index, lang)
    busy = ' aria-busy="true"' if exchange.running else ""
    label = esc(text(lang, "answer_label"))
    return (
        f'<section class="fp-exchange">{asked}'
        f'<div class="fp-answer" role="group" aria-label="{label}"{busy}>{body}</div></section>'
    )


def _status(exchange: Exchange) -> str:
    if exchange.phase in ("failed", "cancelled", "under_way"):
        return exchange.phase
    return str(exchange.result["status"]) if exchange.result else ""


def _answer(exchange: Exchange, index: int, lang: Lang) -> str:
    offset, parts = 0, ""
    failed = [check for check in exchange.checks if not check["ok"]]
    for piece in exchange.pieces:
        said = piece.text.lstrip("\n")
        skipped = len(piece.text) - len(said)
        shown = _annotated(said, offset + skipped, failed, exchange, index, lang)
        # Each quote ends with its chip; the next one stands apart from it.
        shown = shown.replace("</button>\n", '</button><span class="fp-gap"></span>')
        parts += f'<div class="fp-{esc(piece.kind)}">{shown}</div>'
        offset += len(piece.text)
    if exchange.phase == "failed":
        parts += f'<p class="fp-bad">{esc(advice(lang, exchange.error_code, exchange.error))}</p>'
    if exchange.running:
        label = _working(exchange, lang)
        parts += f'<p class="fp-working"><span class="fp-spinner"></span>{esc(label)}</p>'
        # Hidden while the server is there (`ui.markup.FOLLOWS`).
        parts += f'<p class="fp-lost" role="alert">{esc(text(lang, "lost"))}</p>'
    return parts


def _working(exchange: Exchange, lang: Lang) -> str:
    if exchange.phase != "waiting" or exchange.ahead is None:
        return text(lang, exchange.phase)
    key = "waiting_behind" if exchange.ahead else "waiting_next"
    return text(lang, key, count=exchange.ahead)


def _annotated(
    said: str, offset: int, failed: list[Json], exchange: Exchange, index: int, lang: Lang
) -> str:
    """The text with chips for its markers and marks on what failed its check. `offset` is where
    it begins in the answer, in code points."""
    spans: list[tuple[int, int, str]] = []
    for match in _MARKER.finditer(said):
        which = int(match[1])
        if 1 <= which <= len(exchange.citations):
            spans.append((match.start(), match.end(), _chip(exchange, index, which, lang)))
    for check in failed:
        start, end = check["start"] - offset, check["end"] - offset
        if 0 <= start < end <= len(said):
            note = esc(check["note"] or text(lang, "not_verified"))
            marked = f'<mark class="fp-unverified" title="{note}">{esc(said[start:end])}</mark>'
            spans.append((start, end, marked))
    out, at = "", 0
    for start, end, shown in sorted(spans):
        if start >= at:
            out += esc(said[at:start]) + shown
            at = end
    return out + esc(said[at:])


def _chip(exchange: Exchange, index: int, which: int, lang: Lang) -> str:
    citation = exchange.citations[which - 1]
    title = text(lang, "source", number=which, place=place_of(citation, lang))
    return button(str(which), "cite", css="fp-chip", title=title, turn=index, cite=which)


def _foot(exchange: Exchange, index: int, lang: Lang) -> str:
    parts = [_sources(exchange, index, lang), _nearest(exchange, index, lang)]
    parts.append(_checks(exchange, lang))
    result = exchange.result
    if result:
        parts += [_note(text(lang, key)) for key in _endings(exchange, result)]
        parts += [_note(warning_line(warning, lang)) for warning in result["warnings"]]
    meta = " · ".join(filter(None, (_coverage(exchange, lang), _timing(result, lang))))
    if meta:
        parts.append(f'<p class="fp-meta">{esc(meta)}</p>')
    return "".join(parts)


def _note(line: str) -> str:
    return f'<p class="fp-note">{esc(line)}</p>'


def _endings(exchange: Exchange, result: Json) -> list[str]:
    keys = {"length": "finish_length", "repetition": "finish_repetition"}
    # Words that are not shown need no word on how they ended.
    shown = any(piece.kind == "phrasing" for piece in exchange.pieces)
    found = [keys[result["finish_reason"]]] if shown and result["finish_reason"] in keys else []
    if result.get("phrasing") == "dropped":
        found.append("phrasing_dropped")
    return found


def _sources(exchange: Exchange, index: int, lang: Lang) -> str:
    if not exchange.citations:
        return ""
    said = exchange.said
    rows = ""
    for which, citation in enumerate(exchange.citations, 1):
        # A source whose chip stands in the answer needs no second one, unless to warn.
        if citation["verified"] and f"[{which}]" in said:
            continue
        place = place_of(citation, lang)
        title = text(lang, "source", number=which, place=place)
        label = f"{which}  {place}"
        if not citation["verified"]:
            label += f" ({text(lang, 'not_verified')})"
        rows += button(label, "cite", css="fp-source", title=title, turn=index, cite=which)
    label = esc(text(lang, "sources"))
    return f'<div class="fp-sources" role="group" aria-label="{label}">{rows}</div>' if rows else ""


def _nearest(exchange: Exchange, index: int, lang: Lang) -> str:
    result = exchange.result
    if not result or result["status"] != "not_found" or not result["nearest"]:
        return ""
    rows = ""
    for which, clause in enumerate(result["nearest"], 1):
        place = clause["heading"] or clause["clause"] or place_of(clause, lang)
        title = text(lang, "show_clause", place=place)
        rows += button(place, "near", css="fp-source", title=title, turn=index, near=which)
    label = esc(text(lang, "nearest"))
    return (
        f'<div class="fp-sources" role="group" aria-label="{label}">'
        f'<span class="fp-muted">{label}</span>{rows}</div>'
    )


def _checks(exchange: Exchange, lang: Lang) -> str:
    good = Counter(check["kind"] for check in exchange.checks if check["ok"])
    bad = sum(not check["ok"] for check in exchange.checks)
    lines = ""
    if good:
        kinds = ", ".join(text(lang, f"check_{kind}", count=n) for kind, n in good.items())
        said = text(lang, "checks_ok", count=good.total(), kinds=kinds)
        lines += f'<p class="fp-check fp-good">{esc(said)}</p>'
    if bad:
        lines += f'<p class="fp-check fp-bad">{esc(text(lang, "checks_failed", count=bad))}</p>'
    return lines


def _coverage(exchange: Exchange, lang: Lang) -> str:
    coverage = exchange.coverage
    if not coverage or not coverage["total_tokens"]:
        return ""
    read, total = number(coverage["read_tokens"]), number(coverage["total_tokens"])
    return text(lang, "coverage", read=read, total=total, percent=percent_of(coverage))


def _timing(result: Json | None, lang: Lang) -> str:
    if not result or not result["timings"]:
        return ""
    timings = result["timings"]
    total = text(lang, "seconds", value=f"{timings['total_ms'] / 1000:.1f}")
    if not timings["ttft_ms"]:
        return text(lang, "timing_total", total=total)
    first = text(lang, "seconds", value=f"{timings['ttft_ms'] / 1000:.2f}")
    return text(lang, "timing", first=first, total=total)
