"""The date of a contract and the date it takes effect: from its opening, its signature or its
definitions.

"As of" counts as an effective date too, since that is what the words say. Does not know which of
several amendments is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from app.terms.blanks import find_blanks
from app.terms.passages import Passage
from app.terms.values import Found, iso
from retrieval.folding import fold_width

_OPENING = 12_000
_TITLE = 90
"""Characters below which a sentence with a date is the line of a title page."""
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
)
_ORDER = r"(?:\s?(?:s\s?t|n\s?d|r\s?d|t\s?h)\b)?"
_FIRST = tuple(
    re.findall(
        r"\w+",
        """
        first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
        thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
        """,
    )
)
_GAP = r"(?:_{2,}|\[\s*(?:[●•_*]\s*)*\])"
_DAY = rf"(?:\d{{1,2}}{_ORDER}|{'|'.join(_FIRST)}|{_GAP}(?:{_ORDER})?)"
DATE = (
    rf"(?:{_MONTH}\s+(?:\d{{1,2}}{_ORDER}|{_GAP})\s*,?\s*(?:\d{{4}}|{_GAP}|20_+)"
    rf"|{_DAY}?\s*day\s+of\s+(?:{_MONTH}|{_GAP})?\s*,?\s*(?:in\s+the\s+year\s+)?(?:(?:19|20)(?:\d\d|_*)|{_GAP})?"
    rf"|\d{{1,2}}{_ORDER}\s+{_MONTH},?\s+\d{{4}}"
    rf"|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}|\d{{4}}-\d\d-\d\d"
    rf"|{_GAP}\s*,?\s*(?:20\d\d)?"
    r"|(?:\d{4}|[一二][〇○零一二三四五六七八九]{3}|(?:19|20|一九|二[〇○零])?[\s_×]{0,20})年[\s_×]{0,20}"
    r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})?[\s_×]{0,20}月[\s_×]{0,20}(?:(?:\d{1,2}|[一二三四五六七八九十]{1,3})?[\s_×]{0,20}日)?)"
)
_NEAR = r"[^.;。；]{0,90}?"
_AGREEMENT = r"(?:agreement|contract|lease|deed|amendment|license|addendum|合同|协议)"
_MADE = re.compile(
    rf"\b(?:dated|made|entered\s+into|executed|effective)\b(?:{_NEAR}\b(?:as\s+of|as|on|this|dated|effective|into)\b)?"
    rf"[\s,:]*(?:the\s+|this\s+|on\s+)*(?P<date>{DATE})",
    re.IGNORECASE,
)
_AS_OF = re.compile(rf"\bas\s+of[\s:,]*(?:the\s+|this\s+)*(?P<date>{DATE})", re.IGNORECASE)
_ZH_MADE = re.compile(
    rf"(?:签[字订约署](?:日期|时间|于)?|订立(?:日期|时间|于)?|日\s*期|合同于|协议于)[^。；\n]{{0,12}}?[:于]?\s*(?P<date>{DATE})"
    rf"|(?P<bare>{DATE})[^。；\n]{{0,14}}(?:签[订署]|订立|签约|订\s*$)",
)
_COVER = re.compile(rf"^\s*[(]?\s*(?P<date>{DATE})\s*[)]?\s*$", re.IGNORECASE)
_OTHER = re.compile(r"取代|备忘录|批准|颁布|修订|履约保函")
_DEFINED = re.compile(
    rf"(?P<date>{DATE})\W{{0,6}}(?:\(|hereinafter)[^)]{{0,60}}effective\s+date", re.IGNORECASE
)
_EFFECTIVE = re.compile(
    rf"\beffective(?:\s+date)?\b\W{{0,4}}(?:(?:as\s+of|on|from|means?|shall\s+mean|is|shall\s+be|the|date)\W+){{0,4}}"
    rf"(?P<date>{DATE})"
    rf"|\b(?:commenc\w+|begin\w*|take\s+effect|come\s+into\s+(?:force|effect)|start)\b\W+(?:(?:on|as\s+of|from)\s+)"
    rf"(?P<from>{DATE})|contract\s+start\s*:\s*(?P<start>{DATE})",
    re.IGNORECASE,
)
_EVENT = re.compile(
    r"^(?!.*\b(?:waiver|modif\w+|amend\w*|variation|change|terminat\w+ of|end this|may|not\s+take"
    r"|unless)\b.{0,200}\beffect).*\bagreement\b.{0,120}?"
    r"\b(?:(?:become|be|come)s?\s+(?:effective|into\s+(?:force|effect))|takes?\s+effect)\b",
    re.IGNORECASE,
)
_ZH_EFFECTIVE = re.compile(
    rf"(?:合同|协议).{{0,20}}?(?:自|于|从)\s*(?P<date>{DATE})\s*(?:起|开始)?\s*生效|生效(?:日期|日|时间)\s*(?:为|:|是)\s*(?P<from>{DATE})"
)
_ZH_EVENT = re.compile(
    r"^(?!.*(?:修改|补充|变更|修订|解除|不可分割|不能生效|有效期满))[^_]*?(?:(?:合同|协议).{0,40}(?:起|后|之日|即)(?:即|正式)?(?:开始)?生效|(?:合同|协议)(?:自|经|于|在).{0,60}生效)"
)


def agreement_dates(text: str, sentences: Sequence[Passage]) -> tuple[tuple[Passage, Found], ...]:
    """Where the contract says of which date it is: the best wording of its opening, else of its
    end."""
    opening = [one for one in sentences if one.start < _OPENING]
    closing = [one for one in sentences if one.start > max(len(text) - 6000, _OPENING // 2)]
    for group in (opening, closing):
        made = list(_matches(text, group, _MADE, named=True))
        titles = [pair for pair in made if pair[0].end - pair[0].start < _TITLE]
        bodies = [pair for pair in made if pair[0].end - pair[0].start >= _TITLE]
        found = [*titles[:1], *bodies[:1], *_matches(text, group, _ZH_MADE)]
        found = found or [*_matches(text, group, _AS_OF), *_matches(text, group, _MADE)][:1]
        if found:
            return _same_day(found)
    cover = list(_matches(text, opening[:40], _COVER))
    return _same_day(cover)


def effective_dates(text: str, sentences: Sequence[Passage]) -> tuple[tuple[Passage, Found], ...]:
    """Where the contract says from when it has effect: a date, or the event it depends on."""
    opening = [one for one in sentences if one.start < _OPENING]
    found = list(_matches(text, opening, _DEFINED))
    found = found or list(_matches(text, opening, _EFFECTIVE, named=True))
    found = found or list(_matches(text, sentences, _ZH_EFFECTIVE))
    found = found or list(_matches(text, opening, _AS_OF, named=True))[:1]
    found = found or list(_matches(text, sentences, _EFFECTIVE, named=True))
    if found:
        return _same_day(found)
    events = []
    for one in sentences:
        if _EVENT.search(one.plain) or _ZH_EVENT.search(one.plain):
            length = one.end - one.start
            holes = find_blanks(text[one.start : one.end])
            whole = Found(None, 0, length)
            events.append((one, Found(None, *holes[0], True) if holes else whole))
    return tuple(events[:2])


def _matches(
    text: str, group: Sequence[Passage], pattern: re.Pattern[str], *, named: bool = False
) -> Iterator[tuple[Passage, Found]]:
    for one in group:
        said = text[one.start : one.end]
        if _OTHER.search(said):
            continue
        if named and not re.search(_AGREEMENT, said, re.IGNORECASE) and len(said) > 60:
            continue
        for match in pattern.finditer(fold_width(said)):
            name = match.lastgroup or "date"
            start, end = match.span(name)
            while end > start and said[end - 1] in " \n\t,\u3000":
                end -= 1
            if end > start:
                yield one, _read(said, start, end)
                break


def _read(said: str, start: int, end: int) -> Found:
    words = said[start:end]
    value = iso(_mended(words))
    return Found(value, start, end, value is None and bool(find_blanks(words)))


def _mended(words: str) -> str:
    """Ordinals that a scan split or that are written out, in the form that dates are read in."""
    folded = re.sub(r"(?<=\d)\s*(s\s?t|n\s?d|r\s?d|t\s?h)\b", "", fold_width(words))
    for number, word in enumerate(_FIRST, start=1):
        folded = re.sub(rf"\b{word}\b", str(number), folded, flags=re.IGNORECASE)
    return re.sub(r"\s+,", ",", " ".join(folded.split()))


def _same_day(found: list[tuple[Passage, Found]]) -> tuple[tuple[Passage, Found], ...]:
    """The first mention and those that state another day; a repeated day is one value."""
    kept: list[tuple[Passage, Found]] = []
    for one in sorted(found, key=lambda pair: pair[0].start):
        if all(one[1].value != other[1].value for other in kept):
            kept.append(one)
    dated = [one for one in kept if not one[1].blank]
    return tuple(dated or kept)[:3]
