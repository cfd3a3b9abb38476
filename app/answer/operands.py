"""Which quoted figures a sum, a day count or an end date is made of.

None where the wording leaves a doubt: a date is where a time begins only if the words around it say
so ("begins on", "effective from", 自…起), the dates of a day count must stand with what is named,
and amounts that are limits or rates of different things are not summed. Knows wording; counts
nothing itself.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from app.answer.dates import Date, find_dates
from app.answer.figures import Figure, find_figures
from app.answer.units import MONEY
from app.types import Citation
from retrieval.definitions import find_definitions
from retrieval.folding import fold
from retrieval.stems import words
from retrieval.wordlists import word_list

Quoted = tuple[int, Citation]
"""A citation and its number."""

_SUM_OF = re.compile(
    r"\b(?:total|sum|combined (?:amount|total|value|price|cost)) of"
    r" (?P<items>[^?]+?\b(?:and|plus)\b[^?]+)"
    r"|(?:is|are|do|does|cost|for|amount to) (?P<before>[^?]+?\b(?:and|plus)\b[^?]+?)"
    r" (?:together|combined|in total|altogether|taken together|add up to|come to|amount to)\b"
    r"|(?P<zh>[^？?，,]+?(?:和|与|加上?|以及|及|、)[^？?，,]+?)"
    r"(?:合计|总共|一共|加起来|总和|之和|共计|相加)",
    re.IGNORECASE,
)
_ITEMS = re.compile(r",? (?:and|plus) |, |和|与|加上?|以及|及|、")
_NOISE = re.compile(r"(?:合计|总共|一共|加起来|共计|是多少|多少钱?|的)$")
_BETWEEN = re.compile(
    r"\b(?:between (?P<a>[^?]+?) and|from (?P<b>[^?]+?) (?:to|until|till)) (?P<c>[^?]+)"
    r"|从(?P<d>[^？?]{1,30}?)到(?P<e>[^？?]{1,30}?)(?:一?共|总共|相隔|相差|之间|间隔|隔|有|是|多少|几)"
    r"|(?P<f>[^？?，,]{1,30}?)(?:和|与|至|到|及)(?P<g>[^？?，,]{1,30}?)(?:之间|相隔|相差|间隔)",
    re.IGNORECASE,
)
_NO_NAME = re.compile(
    r"^(?:the )?(?:(?:date|day|time) of )?(?:the )?|的?(?:日期|之日)$| (?:date|day)$", re.IGNORECASE
)
_OPEN_END = re.compile(
    r"\b(?:until|till|through|expir\w*|ending|ends?|terminat\w*|to)\s+(?:on\s+)?(?:and\s+including\s+)?$"
    r"|[至到止]\s*$",
    re.IGNORECASE,
)
_BACKWARDS = re.compile(r"\b(?:before|prior to|preceding)\b|[之以]?前", re.IGNORECASE)
_FORWARDS = re.compile(
    r"\b(?:for|within|period|term|after|from|following|no later than|not later than|up to|of)\b"
    r"|[内后]|为期|期限|有效期|期为|起",
    re.IGNORECASE,
)
_COUNTED_FROM = (
    r"(?:from|after|on|upon|commenc\w+|beginning|begins?|effective|as of|starting|starts?|自|从|于)"
    r"\s*(?:(?:on|as of|from|the)\s+)*"
)
_STARTS = re.compile(
    r"(?:\b(?:from|as of|since|commenc\w+|begins?|began|beginning|starts?|started|starting"
    r"|effective|takes? effect|(?:comes? into|in) (?:force|effect))|自|从)"
    r"[\s,(]*(?:(?:on|as of|from|and including|the)\s+)*$",
    re.IGNORECASE,
)
_STARTS_BEHIND = re.compile("(?:之?日)?(?:起|开始|生效)")
_IS_DEFINED_AS = re.compile(r"(?:\b(?:means|is|shall be|being)|[:：指为系即])\s*(?:the\s+)?$")
# Words that count a time from something else than the date that was found.
_ELSEWHERE = re.compile(
    r"\b(?:after|from|following|upon|since|as of|commencing|beginning|starting)\b"
    r"|\bof (?:the |its |such )?(?:receipt|invoice|delivery|acceptance)"
    r"|自|从|之日起|[之以]后|后(?:[的，,]|$)",
    re.IGNORECASE,
)
# A time for acting, not one that runs from the start on.
_TO_ACT = re.compile(
    r"\bnotice\b|\bnotif|\bremed|\bcure\b|\bbreach|\bdefault\b|\binvoice|\bpay|通知|催告|提前|补救|支付|付款",
    re.IGNORECASE,
)
_OTHER_DAY = re.compile(
    r"\b(?:agreement|contract|lease|deed|amendment|addendum|version|document)\b[^.?!]{0,20}$"
    r"|\b(?:by|before|until|till|through)\s+$",
    re.IGNORECASE,
)
_OTHER_DAY_BEHIND = re.compile(
    r"\s*(?:(?:签订|签署|订立)?的(?:本|该)?(?:补充)?(?:合同|协议|文件)|[之以]?前)"
)
_LIMIT = re.compile(
    r"\b(?:exceed\w*|up to|at least|at most|maximum|minimum|(?:more|less|greater|fewer) than|above"
    r"|below|over|capped at|limited to)\b[^.;]{0,25}$"
    r"|(?:超过|超出|低于|少于|高于|至少|至多|最高|最低|最多)[^。；]{0,12}$",
    re.IGNORECASE,
)
_LIMIT_BEHIND = re.compile(r"\s*(?:or (?:more|less)\b|以上|以下|以内)", re.IGNORECASE)
_RATE = re.compile(
    r"\s*(?:per|/|each|every|an?)\s*(?P<unit>[a-z]+(?: (?:metre|meter|foot))?)"
    r"|\s*[/／]\s*(?P<zh>[\u4e00-\u9fff])",
    re.IGNORECASE,
)
_CURRENCIES = frozenset(MONEY.values()) - {"cent"}
_MAX_OPERANDS = 6


@dataclass(frozen=True, slots=True)
class Operand:
    """A figure or date as it is written. `marker` is the number of the citation that holds it, None
    for one of the question."""

    text: str
    marker: int | None

    def shown(self) -> str:
        """The operand with its marker."""
        return self.text if self.marker is None else f"{self.text} [{self.marker}]"


def summed_items(question: str) -> list[str]:
    """The things whose sum is asked for; empty when none is."""
    match = _SUM_OF.search(question)
    if match is None:
        return []
    named = match["items"] or match["before"] or match["zh"]
    items = [_NOISE.sub("", item.strip()) for item in _ITEMS.split(named)]
    items = [item for item in items if item]
    return items if 2 <= len(items) <= _MAX_OPERANDS else []


def sum_operands(items: Sequence[str], quoted: Sequence[Quoted]) -> list[Operand] | None:
    """One quoted amount for each item; None when one has no quote of its own with one amount, when
    an amount is a limit, or when they are rates of different things."""
    operands: list[Operand] = []
    rates: set[str] = set()
    for item in items:
        matching = [
            (number, citation.quote)
            for number, citation in quoted
            if _names_it(item, citation.quote) and money_of(citation.quote) is not None
        ]
        if len(matching) != 1:
            return None
        number, quote = matching[0]
        if any(operand.marker == number for operand in operands):
            return None
        figure = next(f for f in find_figures(quote) if f.unit in _CURRENCIES)
        if _LIMIT.search(quote[: figure.start]) or _LIMIT_BEHIND.match(quote, figure.end):
            return None
        rate = _RATE.match(quote, figure.end)
        rates.add((rate["unit"] or rate["zh"]).lower() if rate else "")
        operands.append(Operand(figure.text, number))
    return operands if len(rates) == 1 else None


def money_of(text: str) -> tuple[Decimal, str] | None:
    """The one amount of money that a text states; None when it states none or several."""
    figures = [figure for figure in find_figures(text) if figure.unit in _CURRENCIES]
    if len({figure.key for figure in figures}) != 1 or figures[0].value is None:
        return None
    return figures[0].value, figures[0].unit


def day_of(date: Date) -> datetime.date | None:
    """The calendar day of a whole date."""
    if date.ambiguous or None in (date.year, date.month, date.day):
        return None
    assert date.year is not None and date.month is not None and date.day is not None
    return datetime.date(date.year, date.month, date.day)


def day_operands(question: str, quoted: Sequence[Quoted]) -> list[Operand] | None:
    """The dates of the two things between which the question counts; None unless each has one."""
    match = _BETWEEN.search(question)
    if match is None:
        return None
    operands: list[Operand] = []
    for item in [named for named in match.groups() if named]:
        written = _whole_dates(item)
        found = [Operand(date.text, None) for date in written] or _dates_of(item, quoted)
        if len(found) != 1:
            return None
        operands += found
    if all(operand.marker is None for operand in operands) or operands[0] == operands[1]:
        return None
    return operands


def _dates_of(item: str, quoted: Sequence[Quoted]) -> list[Operand]:
    """The dates of a thing: that of each quote which names it, or the one that stands nearest to
    its name in a quote of several."""
    named = _NO_NAME.sub("", item.strip())
    found: list[Operand] = []
    for number, citation in quoted:
        pieces = [citation.quote]
        if len(_whole_dates(citation.quote)) > 1:
            pieces = re.split(r"[,;，；。]|\band\b", citation.quote)
        for piece in pieces:
            dates = _whole_dates(piece)
            if dates and named and _names_it(named, piece):
                found += [Operand(date.text, number) for date in dates]
    return found


def end_operands(question: str, quoted: Sequence[Quoted]) -> list[Operand] | None:
    """Where the time of the best answer begins, and how long it is."""
    number, answer = quoted[0]
    lengths = _lengths(answer.quote)
    if len(lengths) != 1 or not _runs_forward(answer.quote, lengths[0]):
        return None
    length = Operand(lengths[0].text, number)
    asked = _whole_dates(question)
    if asked:
        fits = len(asked) == 1 and not _is_other_day(question, asked[0])
        return [Operand(asked[0].text, None), length] if fits else None
    starts = [
        (where, date, citation.quote)
        for where, citation in quoted
        if where == number or citation.role == "definition"
        for date in _whole_dates(citation.quote)
    ]
    if len(starts) != 1:
        return None
    where, start, quote = starts[0]
    if where == number:
        begins = _begins_there(quote, start, lengths[0])
    else:
        begins = _begins_with(answer.quote, lengths[0], quote, start)
    return [Operand(start.text, where), length] if begins else None


def _is_other_day(question: str, date: Date) -> bool:
    """Whether a date of the question is the day of a document or a limit, not of an event."""
    ahead = question[: date.start]
    return bool(_OTHER_DAY.search(ahead) or _OTHER_DAY_BEHIND.match(question, date.end))


def _begins_there(quote: str, start: Date, length: Figure) -> bool:
    """Whether the words of one quote count the time from the date on."""
    ahead, behind = quote[max(0, start.start - 40) : start.start], quote[start.end :]
    # "until 31 December 2030" states the end: nothing is left to compute.
    if _OPEN_END.search(ahead) or not (_STARTS.search(ahead) or _STARTS_BEHIND.match(behind)):
        return False
    if _TO_ACT.search(_around(quote, length)):
        return False
    if length.end <= start.start:
        return not _ELSEWHERE.search(_STARTS.sub("", quote[length.end : start.start]))
    between = _STARTS_BEHIND.sub("", quote[start.end : length.start], count=1)
    return not _ELSEWHERE.search(between) and not _counts_on(quote, length)


def _begins_with(answer: str, length: Figure, definition: str, start: Date) -> bool:
    """Whether the time in `answer` is counted from the term that `definition` sets to the date."""
    if not _IS_DEFINED_AS.search(definition[: start.start]) or _TO_ACT.search(
        _around(answer, length)
    ):
        return False
    return any(
        re.search(_COUNTED_FROM + re.escape(found.term), answer, re.IGNORECASE)
        and (not _counts_on(answer, length) or found.term in answer[length.end : length.end + 60])
        for found in find_definitions(definition)
    )


def _counts_on(quote: str, length: Figure) -> bool:
    """Whether the words right behind a length say from where it is counted."""
    return bool(_ELSEWHERE.search(quote[length.end : length.end + 14]))


def _around(quote: str, length: Figure) -> str:
    """The words before a length, and those behind it up to the next comma or full stop."""
    behind = re.split(r"[,;.，；。]", quote[length.end : length.end + 40])[0]
    return quote[max(0, length.start - 40) : length.end] + behind


def _whole_dates(text: str) -> list[Date]:
    """The full dates of a text, each day once."""
    found: dict[datetime.date, Date] = {}
    for date in find_dates(text):
        day = day_of(date)
        if day is not None:
            found.setdefault(day, date)
    return list(found.values())


def _lengths(text: str) -> list[Figure]:
    """The lengths of time of a text, each value once; business days are among them."""
    taken = [(date.start, date.end) for date in find_dates(text)]
    found: dict[str, Figure] = {}
    for figure in find_figures(text, taken):
        if figure.unit in ("day", "month", "business day", "trading day", "hour"):
            found.setdefault(figure.key, figure)
    return list(found.values())


def _runs_forward(quote: str, length: Figure) -> bool:
    """Whether a length of time is counted from a start on ("within 30 days after"), not back."""
    around = (
        quote[max(0, length.start - 40) : length.start] + "|" + quote[length.end : length.end + 30]
    )
    return bool(_FORWARDS.search(around)) and not _BACKWARDS.search(around)


def _names_it(item: str, quote: str) -> bool:
    """Whether a quote holds every content word of an item."""
    folded, said = fold(item), fold(quote)
    if re.search("[\u4e00-\u9fff]", folded):
        return re.sub(r"\s", "", folded) in re.sub(r"\s", "", said)
    stop = word_list("english_stop")
    wanted = {w.stem for w in words(folded) if folded[w.start : w.end] not in stop}
    return bool(wanted) and wanted <= {word.stem for word in words(said)}
