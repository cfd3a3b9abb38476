"""Clauses that change other clauses: "Clause 5 is deleted and replaced by…", "Section 2.1 is
amended to read…", 删去第五条, 第五条修改为….

Knows how amendments are written, and by their wording whether they speak of this document or of
another one. Does not know which of several amendments of one clause is the latest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from retrieval.figures import find_figures
from retrieval.folding import fold_in_place
from retrieval.sentences import split
from retrieval.types import Clause

AmendmentKind = Literal["replaced", "deleted", "changed", "added"]
"""`changed`: some words of the old text were replaced; `added`: all of it stays in force."""

_REF = (
    r"(?:sub-?)?(?:clauses?|sections?|articles?|paragraphs?)\s*\d+(?:\.\d+)*"
    r"(?:\s?\([a-z0-9]{1,4}\))*"
)
_OF = (
    r"(?:\s*\([^)\n]{0,60}\))?"
    r"(?:\s+(?:of|to|in)\s+(?:the|this|our|said)\s+(?P<of>[^.;:\n]{3,80}?))?"
)
_DONE = r"(?:is|are|shall\s+be|be|was|were|has\s+been)\s+(?:hereby\s+)?(?:further\s+)?"
_HOW = (
    r"(?P<how>deleted|amended|replaced|restated|superseded|modified|removed|substituted|varied"
    r"|struck\s+out|revised|changed)(?!\s+from\s+time)"
)
_ENGLISH = re.compile(
    rf"(?P<ref>{_REF}){_OF},?\s+{_DONE}{_HOW}"
    rf"|(?:delete|replace|amend|remove|strike)\s+(?P<ref2>{_REF})(?:\s+(?:of|to|in)\s+(?:the|this)"
    r"\s+(?P<of2>[^.;:\n]{3,80}?))?\s+(?:in\s+its\s+entirety|and\s+replace|and\s+substitute|to\s+read"
    r"|with|by|as\s+follows)"
    rf"|(?:replaces?|supersedes?|deletes?)\s+(?P<ref3>{_REF})(?:\s+(?:of|in)\s+(?:the|this)"
    r"\s+(?P<of3>[^.;:\n]{3,80}))?",
    re.IGNORECASE,
)
_ZH_REF = (
    "第\\s*[零〇一二三四五六七八九十百两\\d.]+\\s*条(?:之[一二三四五六七八九十])?"
    "(?:第[一二三四五六七八九十\\d]+[款项])?"
)
_ZH_OF = "(?P<zof>原?(?:主?合同|主?协议|《[^》]{2,40}》)(?:的|中的?)?)?"
_CHINESE = re.compile(
    f"(?:删去|删除|取消|废止){_ZH_OF}(?P<zdel>{_ZH_REF})"
    f"|(?:将|把|对)?{_ZH_OF.replace('zof', 'zof2')}(?P<zref>{_ZH_REF})"
    "[^。；\\n第]{0,40}?(?:(?:修改|变更|修订|更改|调整|改|替换)(?:为|成|如下)"
    "|(?:予以|全文|整条)?(?P<zgone>删除|删去|废止|作废|不再(?:适用|执行)|失效)(?!\\s*原?[^。；\\n]{0,12}第))"
    f"|(?:以|用)[^。；\\n]{{1,60}}?(?:替换|代替|取代){_ZH_OF.replace('zof', 'zof3')}"
    f"(?P<zref3>{_ZH_REF})"
)
_OTHER_DOCUMENT = re.compile(
    r"\b(?:original|principal|master|existing|underlying|main|prior|initial|lease|loan|credit"
    r"|services?|supply|license|licence|purchase|employment)\b.*\b(?:agreement|contract|lease|deed)\b"
    r"|原(?:合同|协议)|主合同|主协议|《",
    re.IGNORECASE,
)
_AMENDING_TITLE = re.compile(
    r"\b(?:amendment|addendum|supplement(?:al)?|variation|side letter)\b"
    r"|补充协议|补充合同|变更协议|修订协议|修改协议",
    re.IGNORECASE,
)
_TITLE_CHARS = 400
_MAX_CHARS = 900
_CONDITION = re.compile(
    r"\b(?:if|unless|until|whenever|where|may|can|not)\b[^.;\n]{0,40}$"
    r"|(?:如果?|若|未经|不得|可以?|有权|除非)[^。；\n]{0,12}$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Amendment:
    """`text[start:end]` changes the clause `target` (normal form, §12.3). `elsewhere`: it speaks of
    another document; None when its wording does not tell."""

    target: str
    kind: AmendmentKind
    start: int
    end: int
    elsewhere: bool | None


@lru_cache(maxsize=32)
def find_amendments(text: str, clauses: tuple[Clause, ...]) -> tuple[Amendment, ...]:
    """Every amendment that `text` states, in order. `clauses` is its outline."""
    folded = fold_in_place(text)
    amending = bool(_AMENDING_TITLE.search(text[:_TITLE_CHARS]))
    found: list[Amendment] = []
    for match in (*_ENGLISH.finditer(folded), *_CHINESE.finditer(folded)):
        reference = next(
            match[name] for name in _REFERENCES if name in match.re.groupindex and match[name]
        )
        target = next((f.value for f in find_figures(reference) if f.kind == "clause"), None)
        if target is None or _CONDITION.search(folded[max(0, match.start() - 60) : match.start()]):
            continue
        start, end = _extent(text, clauses, match.start(), match.end())
        owner = next(
            (match[name] for name in _OWNERS if name in match.re.groupindex and match[name]), ""
        )
        elsewhere = True if _OTHER_DOCUMENT.search(owner) else (True if amending else None)
        if re.fullmatch(r"agreement|contract", owner.strip()) and not amending:
            elsewhere = False
        kind = _kind(match, folded[match.start() : end])
        found.append(Amendment(target, kind, start, end, elsewhere))
    return tuple(sorted(found, key=lambda amendment: amendment.start))


_REFERENCES = ("ref", "ref2", "ref3", "zdel", "zref", "zref3")
_OWNERS = ("of", "of2", "of3", "zof", "zof2", "zof3")


def _kind(match: re.Match[str], said: str) -> AmendmentKind:
    if match.re is _CHINESE:
        gone = bool(match["zdel"] or match["zgone"])
        if gone and not re.search("替换|代替|取代|改为|修改为|新的?条款", said):
            return "deleted"
        return "replaced"
    head = said[:220]
    if re.search(r"amended|modified|varied|revised|changed", head):
        if re.search(r"\bby (?:deleting|replacing|substituting|striking)\b", head):
            return "changed"
        if re.search(r"\bby (?:adding|inserting)\b|\bto (?:add|insert|include)\b", head):
            return "added"
    if re.search(r"replac|read|substitut|restat|supersed|as follows", head):
        return "replaced"
    if re.search(r"delet|remov|struck|strike", head):
        return "deleted"
    return "changed"


def _extent(text: str, clauses: Sequence[Clause], start: int, end: int) -> tuple[int, int]:
    """The sentence of the amendment, with the new text behind a colon: up to the end of its clause,
    of the quotation, or the next amendment's clause."""
    holder = [clause for clause in clauses if clause.start <= start < clause.end]
    inner = max(holder, key=lambda clause: clause.start) if holder else None
    limit = min(inner.end if inner else len(text), start + _MAX_CHARS)
    begin = start
    for span in split(text, max(inner.start if inner else 0, start - 300), limit):
        if span[0] <= start < span[1]:
            begin, stop = span
            break
    else:
        stop = end
    tail = text[stop - 1 : min(limit, stop + 2)] + text[end:stop]
    if re.search(r"[:：]\s*$|[:：]", text[end:stop].rstrip()[-1:]) or re.search(
        r"(?:as follows|read|following|如下|为)\s*[:：]?\s*$", text[begin:stop].rstrip(" .")
    ):
        stop = _new_text(text, clauses, stop, limit)
    elif (quoted := re.search(r"[\"“「]", tail)) is not None:
        closing = re.search(r"[\"”」]", text[stop:limit])
        opened = text[begin:stop].count("“") > text[begin:stop].count("”")
        if quoted and opened and closing:
            stop += closing.end()
    return begin, stop


def _new_text(text: str, clauses: Sequence[Clause], start: int, limit: int) -> int:
    """Where the new text that begins at `start` ends."""
    opening = re.match(r"\s*[\"“「]", text[start:limit])
    if opening:
        closing = re.search(r"[\"”」]\s*(?:[.。;；]|\n|$)", text[start + opening.end() : limit])
        if closing:
            return start + opening.end() + closing.end()
    pieces = split(text, start, limit)
    # The new clause often begins with its own number and has a heading line.
    end = start
    for piece in pieces[:4]:
        end = piece[1]
        if re.search(r"[.。]\s*[\"”」]?$", text[piece[0] : piece[1]]) and piece[1] - piece[0] > 30:
            break
    return end or limit


def amendments_of(
    amendments: Sequence[Amendment], numbers: Sequence[str], *, same_document: bool
) -> Iterator[Amendment]:
    """Those that change one of the clauses `numbers`. Within one document only amendments that do
    not speak of another, from another document only those that may."""
    for amendment in amendments:
        if amendment.target in numbers and amendment.elsewhere is not same_document:
            yield amendment
