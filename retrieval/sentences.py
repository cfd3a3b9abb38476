"""Sentences of a contract, English or Chinese, as spans of the document.

Knows abbreviations (Inc., No. 5, i.e.), decimals and initials, list items, and lines broken inside
a sentence. A clause number is part of the sentence it opens. It does not know meaning: which
sentence answers a question is decided in `ranking`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.wordlists import word_list

Span = tuple[int, int]

LONG_SENTENCE = 500
"""Characters above which a sentence is also cut at semicolons."""


_STOP = re.compile(
    r"(?:[。！？!?.]|(?<![\da-zA-ZＡ-Ｚａ-ｚ条])．)+[\"”’'」』）)\]]*"
    r"|[；;](?=\s*(?:\n|[(（]\s*[0-9a-zA-Z一-十]{1,4}[)）]|\d+[、.]\s))|\n"
)
_ITEM = re.compile(
    r"\s*(?:[(（][0-9a-zA-Z一二三四五六七八九十０-９]{1,4}[)）]|[①-⑳]|\d{1,3}(?:\.\d{1,3})*[.、．)]?\s"
    r"|[０-９]{1,3}[、．.]|第[一二三四五六七八九十百千〇零\d０-９]+[条章节]|[一二三四五六七八九十]{1,3}[、．.]"
    r"|[-–•●▪*·]\s|(?:ARTICLE|Article|SECTION|Section|SCHEDULE|EXHIBIT|WHEREAS)\b|[a-z]\)\s)"
)
_FINAL = re.compile(r"[。．！？!?.;；:：][\"”’'」』）)\]]*\s*$")
_HAN = re.compile("[\u3400-\u9fff]")
_HAN_NUMBER = re.compile(r"\s*[一二三四五六七八九十]{1,3}．")
"""The number of an item; behind other characters a wide full stop ends a sentence."""
_LAST_WORD = re.compile(r"([A-Za-z][A-Za-z.]*)$")
_QUOTED_NUMBER = re.compile(r"[\"“「]\s?\d{1,3}(?:\.\d{1,3})*$")
_SEMICOLON = re.compile(r"[；;]\s*")
_HARD_WRAP_EN, _HARD_WRAP_ZH = 45, 26
_NUMBER_CHARS = 60
"""Characters at the start of a sentence that may be nothing but its number."""


def _ends_sentence(text: str, start: int, stop: re.Match[str], end: int) -> bool:
    """Whether the full stop (or other mark) at `stop` closes the sentence that began at `start`."""
    mark = stop.group()
    if mark[0] == "．" and _HAN_NUMBER.match(text, start, stop.start() + 1):
        return False
    if mark[0] in "。．！？；;":
        return True
    after = stop.end()
    if after >= end:
        return True
    following = text[after : after + 2]
    if mark[0] in "!?":
        return following[:1].isspace() or bool(_HAN.match(following))
    if not following[:1].isspace():
        # "12.3", "a.m", "example.com"; but in Chinese text a Latin stop needs no space.
        return bool(_HAN.match(following)) and not text[stop.start() - 1 : stop.start()].isdigit()
    before = text[max(start, stop.start() - 24) : stop.start()]
    word = _LAST_WORD.search(before)
    if word is not None:
        name = word.group(1).lower()
        rest = text[after : after + 40].lstrip()
        if len(name) == 1 or name in word_list("abbreviations"):
            # "Acme Inc. The Seller": a capitalised function word starts a new sentence.
            return bool(
                re.match(r"(?:The|This|Such|If|In|Any|Each|All|No|For|Upon|It)\b", rest)
            ) and (len(name) > 1 and name not in ("no", "nos", "mr", "mrs", "ms", "dr", "v", "vs"))
        return not rest[:1].islower() or "\n\n" in text[after : after + 4]
    number = re.search(r"(?:^|\s)[(]?\d+(?:\.\d+)*$", before)
    # replaced by: "3. The Buyer": the number opens what is quoted.
    if _QUOTED_NUMBER.search(before):
        return False
    # "4. Payment": the stop belongs to the number when nothing else stands before it.
    # A row of figures is no number of a clause, however long it is.
    short = stop.start() - start < _NUMBER_CHARS
    return not (
        number and short and not text[start : stop.start()].strip(" \t\u3000\n0123456789.(")
    )


def _ends_line(text: str, start: int, place: int, end: int) -> bool:
    """Whether the line break at `place` ends a sentence or only a line of it."""
    line_start = max(start, text.rfind("\n", start, place) + 1)
    line = text[line_start:place].strip()
    rest = text[place + 1 : min(end, place + 200)]
    following = rest.lstrip()
    if not line or not following or _FINAL.search(line):
        return True
    if _ITEM.match(following):
        return True
    blank = rest[: len(rest) - len(following)].count("\n") > 0
    if following[0].islower():
        return False
    if blank:
        return True
    if _HAN.search(line):
        return len(line) < _HARD_WRAP_ZH
    return len(line) < _HARD_WRAP_EN or line.isupper()


def _trim(text: str, start: int, end: int) -> Span | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def _cut_long(text: str, span: Span) -> list[Span]:
    """Cuts a very long sentence at semicolons, pieces of at least 80 characters."""
    start, end = span
    if end - start <= LONG_SENTENCE:
        return [span]
    pieces: list[Span] = []
    at = start
    for match in _SEMICOLON.finditer(text, start, end):
        if match.end() - at >= 80 and end - match.end() >= 40:
            piece = _trim(text, at, match.end())
            if piece:
                pieces.append(piece)
            at = match.end()
    last = _trim(text, at, end)
    return [*pieces, last] if last else pieces


def split(
    text: str, start: int = 0, end: int | None = None, starts: Sequence[int] = ()
) -> tuple[Span, ...]:
    """The sentences of `text[start:end]`, without surrounding space, in order and not overlapping.

    `starts` are places where a sentence must begin (clause starts); others are ignored.
    """
    stop = len(text) if end is None else end
    forced = sorted({place for place in starts if start < place < stop})
    spans: list[Span] = []
    for left, right in zip([start, *forced], [*forced, stop], strict=True):
        at = left
        for match in _STOP.finditer(text, left, right):
            if match.start() < at:
                continue
            closes = (
                _ends_line(text, at, match.start(), right)
                if match.group() == "\n"
                else _ends_sentence(text, at, match, right)
            )
            if closes:
                piece = _trim(text, at, match.end())
                if piece:
                    spans.extend(_cut_long(text, piece))
                at = match.end()
        last = _trim(text, at, right)
        if last:
            spans.extend(_cut_long(text, last))
    return tuple(spans)
