"""Clauses that change other clauses: "Clause 5 is deleted and replaced by…", "Section 2.1 is
amended to read…", 删去第五条, 第五条修改为….

Knows how amendments are written, and by their wording whether they speak of this document or of
another one. Does not know which of several amendments of one clause is the latest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from retrieval.clauses import around
from retrieval.figures import find_figures
from retrieval.folding import fold_in_place
from retrieval.kept import kept_by_identity
from retrieval.numerals import NUMERAL_CLASS, chinese_number
from retrieval.sentences import Span, split
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
    r"|struck\s+out|revised|changed|supplemented)(?!\s+from\s+time)"
)
_PASSIVE = re.compile(rf"(?P<ref>{_REF}){_OF},?\s+{_DONE}{_HOW}", re.IGNORECASE)
_ACTIVE = re.compile(
    rf"(?P<how>delet|replac|amend|remov|strik|supersed|supplement)\w*\s+(?P<ref>{_REF})"
    r"(?:\s*\([^)\n]{0,60}\))?(?:\s+(?:of|to|in)\s+(?:the|this)\s+(?P<of>[^.;:\n]{3,80}?))?"
    r"(?:\s+(?:in\s+its\s+entirety|and\s+replac|and\s+substitut|to\s+read|so\s+as|with|by"
    r"|as\s+follows)|\s*[.:])",
    re.IGNORECASE,
)
_SAID = (
    r"(?:the\s+)?(?:words?|phrases?|expressions?|figures?|numbers?|dates?|sums?|amounts?"
    r"|percentages?|periods?|references?|sentences?|definitions?)\b"
)
_TEXT = r"(?:[^\n.;]|[.](?=\d)){0,240}?"
"""Words quoted inside one sentence; a point in a figure does not end it."""
_WORDS_DONE = rf"{_DONE}(?P<how>deleted|replaced|substituted|amended|changed|inserted|added)\b"
_IN_CLAUSE = re.compile(
    rf"(?P<ref>{_REF})(?:\s*\([^)\n]{{0,60}}\))?(?:\s+(?:of|to)\s+(?:the|this|our|said)"
    rf"\s+(?P<of>[^.,;:\n]{{3,80}}?))?,?\s+(?:after\s+)?{_SAID}{_TEXT}\s{_WORDS_DONE}",
    re.IGNORECASE,
)
"""In clause 5.5 of the Lease, the words "48 hours'" are replaced by "72 hours'"."""
_IN_BEFORE = re.compile(r"(?:^|[\n.;:)\d]|\band|,)\s*in\s+(?:the\s+)?$", re.IGNORECASE)
_WORDS_IN = re.compile(rf"(?P<ref>{_REF}){_OF},?\s+{_WORDS_DONE}", re.IGNORECASE)
_WORDS_BEFORE = re.compile(rf"\b{_SAID}{_TEXT}\s(?:in|of)\s+$", re.IGNORECASE)
"""The words "48 hours" in clause 5.5 are replaced by "72 hours"."""
_ADDED_TO = re.compile(
    rf"\b{_DONE}(?:added|inserted|appended)\s+(?:immediately\s+)?"
    r"(?:to|in|into|after|following|at\s+the\s+end\s+of)\s+(?:the\s+end\s+of\s+)?$",
    re.IGNORECASE,
)
"""The following sentence is added at the end of Section 5."""
_NAMED = re.compile(rf"(?P<ref>{_REF}){_OF}", re.IGNORECASE)
_ACTIVE_VERB = re.compile(
    r"\b(?:delet|replac|amend|remov|strik|supersed|supplement)\w{0,3}\s+$", re.IGNORECASE
)
_NOT_SUBJECT = re.compile(
    r"\b(?:set out|set forth|stated|provided|described|specified|defined|listed|contained"
    r"|referred to|in|under|by|with|per|pursuant to|accordance with|subject to|from)"
    r"\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\b(?:clause|section|article|paragraph)s?\s*\d", re.IGNORECASE)
_ZH_OF = "(?P<of>原?(?:主?合同|主?协议|《[^》]{2,40}》)(?:的|中的?)?)?"
_ZH_REF = (
    "(?P<ref>第\\s*[零〇一二三四五六七八九十百两\\d.]+\\s*条(?:之[一二三四五六七八九十])?"
    "(?:第[一二三四五六七八九十\\d]+[款项])?)"
)
_ZH_PLACE = re.compile(_ZH_REF)
_ZH_PASSIVE = re.compile(
    _ZH_REF + "[^。；\\n第]{0,40}?(?:(?:修改|变更|修订|更改|调整|改|替换)(?:为|成|如下)"
    "|(?:予以|全文|整条)?(?P<gone>删除|删去|废止|作废|不再(?:适用|执行)|失效)"
    "(?!\\s*原?[^。；\\n]{0,12}第))"
)
_ZH_ADDED = re.compile(
    _ZH_REF + "[^。；\\n第，,]{0,8}?(?:(?:作|做)(?:如下|以下)?补充"
    "|补充(?:约定|规定)?(?:为|如下|以下|[：:])|(?:增加|增补|新增|增设)(?:一[款项段句]|如下|以下|下列|内容|第))"
)
_ZH_ADDED_BEFORE = re.compile(f"(?:^|[\\s，,。；;：:、)）.对在将于]){_ZH_OF}$")
_ZH_OWNER = re.compile(f"(?:将|把|对)?{_ZH_OF}$")
_ZH_ACTIVE = re.compile(
    f"(?:(?P<gone>删去|删除|刪除|取消|废止)|(?:以|用)[^。；\\n]{{1,60}}?(?:替换|代替|取代)){_ZH_OF}$"
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
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
_NUMBERED = re.compile(
    rf"\b(?P<ordinal>{'|'.join(_ORDINALS)})\s+(?:supplement(?:al)?|amendment|addendum|variation)"
    r"|\b(?:amendment|addendum|supplement)\s+(?:agreement\s+)?(?:no\.?|number|#)?\s*"
    r"(?P<number>\d{1,2})\b"
    f"|第(?P<zh>[{NUMERAL_CLASS}]{{1,3}}|\\d{{1,2}})[次份号]?(?:补充|变更|修订|修改)"
    f"|(?:补充|变更|修订|修改)(?:协议|合同)书?[(（]?(?:之|第)?"
    f"(?P<zh_number>[{NUMERAL_CLASS}]{{1,3}}|\\d{{1,2}})(?![条年月日\\d])"
)
_TITLE_CHARS = 400
_MAX_CHARS = 900
_CONDITION = re.compile(
    r"\b(?:if|unless|until|whenever|where|may|can|not|in the event|as)\b[^.;\n]{0,40}$"
    r"|(?:如果?|若|未经|不得|可以?|有权|除非)[^。；\n]{0,12}$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Amendment:
    """`text[start:end]` changes the clause `target` (normal form, §12.3). `elsewhere`: it speaks of
    another document; None when its wording does not tell. `of_amendment`: what it changes is an
    amendment itself ("Section 3 of the First Amendment")."""

    target: str
    kind: AmendmentKind
    start: int
    end: int
    elsewhere: bool | None
    of_amendment: bool = False

    @property
    def replaces(self) -> bool:
        """Whether old text goes out of force."""
        return self.kind != "added"


def is_amendment(text: str) -> bool:
    """Whether a document calls itself an amendment, at its start."""
    return bool(_AMENDING_TITLE.search(text[:_TITLE_CHARS]))


def amendment_number(text: str) -> int:
    """The number that an amendment gives itself at its start ("Second Amendment", Amendment No. 3,
    补充协议二, 第二次补充协议); 0 without one, and for other documents."""
    if not is_amendment(text):
        return 0
    said = _NUMBERED.search(fold_in_place(text[:_TITLE_CHARS]))
    if said is None:
        return 0
    ordinal, written = said["ordinal"], said["number"] or said["zh"] or said["zh_number"]
    if ordinal:
        return _ORDINALS.index(ordinal) + 1
    return int(written) if written.isdigit() else int(chinese_number(written) or 0)


@kept_by_identity(32)
def find_amendments(text: str, clauses: tuple[Clause, ...]) -> tuple[Amendment, ...]:
    """Every amendment that `text` states, in order. `clauses` is its outline."""
    amending = is_amendment(text)
    found: list[Amendment] = []
    for said in (*_english(text), *_chinese(text)):
        reference = fold_in_place(said.reference)
        target = next((f.value for f in find_figures(reference) if f.kind == "clause"), None)
        if target is None:
            continue
        start, end = _extent(text, clauses, said.start, said.end)
        elsewhere: bool | None = amending or None
        if _OTHER_DOCUMENT.search(said.owner):
            elsewhere = True
        elif (
            said.owner.strip().lower() in ("agreement", "contract", "本合同", "本协议")
            and not amending
        ):
            elsewhere = False
        kind = said.kind or _kind(text[said.start : end].lower())
        of_amendment = bool(_AMENDING_TITLE.search(said.owner))
        if of_amendment:
            elsewhere = True
        found.append(Amendment(target, kind, start, end, elsewhere, of_amendment))
    return tuple(sorted(found, key=lambda amendment: amendment.start))


@dataclass(frozen=True, slots=True)
class _Said:
    """Words of amendment at `text[start:end]`; `kind` is None where they do not tell alone."""

    start: int
    end: int
    reference: str
    owner: str
    kind: AmendmentKind | None = None


def _english(text: str) -> Iterator[_Said]:
    for place in _PLACE.finditer(text):
        before = text[max(0, place.start() - 60) : place.start()]
        active = _ACTIVE_VERB.search(before)
        if active is not None:
            start = place.start() - (len(before) - active.start())
            match = _ACTIVE.match(text, start)
            before = before[: active.start()]
        else:
            start = place.start()
            match = None if _NOT_SUBJECT.search(before) else _PASSIVE.match(text, start)
            if (said := _words_changed(text, start)) is not None:
                yield said
                continue
        if match is not None and not _CONDITION.search(before):
            yield _Said(start, match.end(), match["ref"], match["of"] or "")
            continue
        added, named = _ADDED_TO.search(before), _NAMED.match(text, place.start())
        if added and named and not _CONDITION.search(before[: added.start()]):
            begin = place.start() - (len(before) - added.start())
            yield _Said(begin, named.end(), named["ref"], named["of"] or "", "added")


def _words_changed(text: str, start: int) -> _Said | None:
    """Words of the clause named at `start` that are replaced, deleted or added, named before or
    behind it."""
    before = text[max(0, start - 300) : start]
    leading = _IN_BEFORE.search(before[-40:])
    match = _IN_CLAUSE.match(text, start) if leading else None
    if match is None and (named := _WORDS_BEFORE.search(before)):
        match, before = _WORDS_IN.match(text, start), before[: named.start()]
    if match is None or _CONDITION.search(before):
        return None
    kind: AmendmentKind = "added" if match["how"].lower() in ("inserted", "added") else "changed"
    return _Said(start, match.end(), match["ref"], match["of"] or "", kind)


def _chinese(text: str) -> Iterator[_Said]:
    for place in _ZH_PLACE.finditer(text):
        before = text[max(0, place.start() - 80) : place.start()]
        line = before[before.rfind("\n") + 1 :]
        active = _ZH_ACTIVE.search(line)
        if active is not None:
            start = place.start() - (len(line) - active.start())
            kind: AmendmentKind = "deleted" if active["gone"] else "replaced"
            if not _CONDITION.search(line[: active.start()]):
                yield _Said(start, place.end(), place["ref"], active["of"] or "", kind)
            continue
        added = _ZH_ADDED_BEFORE.search(line)
        match = _ZH_ADDED.match(text, place.start()) if added else None
        if added and match and not _CONDITION.search(line[: added.start()]):
            start = place.start() - (len(line) - added.start())
            yield _Said(start, match.end(), place["ref"], added["of"] or "", "added")
            continue
        match = _ZH_PASSIVE.match(text, place.start())
        owner = _ZH_OWNER.search(line)
        if match is None or owner is None or _CONDITION.search(line[: owner.start()]):
            continue
        gone = match["gone"] and not re.search("替换|代替|取代|改为", match[0])
        start = place.start() - (len(line) - owner.start())
        yield _Said(
            start, match.end(), match["ref"], owner["of"] or "", "deleted" if gone else "replaced"
        )


def _kind(said: str) -> AmendmentKind:
    """What English words of amendment do to the old text."""
    head = said[:220]
    if re.search(r"amended|modified|varied|revised|changed", head):
        if re.search(r"\bby (?:deleting|replacing|substituting|striking)\b", head):
            return "changed"
        if re.search(r"\bby (?:adding|inserting)\b|\bto (?:add|insert|include)\b", head):
            return "added"
    if "supplement" in head and not re.search(r"amended|replac|restat|supersed|delet", head):
        return "added"
    if re.search(r"replac|read|substitut|restat|supersed|as follows", head):
        return "replaced"
    if re.search(r"delet|remov|struck|strike", head):
        return "deleted"
    return "changed"


def _extent(text: str, clauses: Sequence[Clause], start: int, end: int) -> tuple[int, int]:
    """The sentence of the amendment, with the new text behind a colon: up to the end of its clause,
    of the quotation, or the next amendment's clause."""
    inner = around(clauses, start)
    limit = min(inner.end if inner else len(text), start + _MAX_CHARS)
    begin = start
    left = max(inner.start if inner else 0, start - 300)
    # Most sentences are short: the whole stretch is cut only for those that are not.
    near = min(limit, end + 200)
    found = _sentence(text, start, left, near)
    if near < limit and (found is None or found[1] >= near - 4):
        found = _sentence(text, start, left, limit)
    begin, stop = found or (start, end)
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


def _sentence(text: str, start: int, left: int, right: int) -> Span | None:
    """The sentence of `text[left:right]` around a place."""
    return next((span for span in split(text, left, right) if span[0] <= start < span[1]), None)


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
