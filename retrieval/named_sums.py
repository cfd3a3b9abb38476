"""The sentence of a contract that states the sum which a question names.

A contract is full of sums, and a figure beside a word or two of the question is as often another
one. A sentence that puts a figure to the very name ("a deposit of SEK 20,000", "Deposit" means…)
states it. It knows names and how a figure is put to them, not what a sum is for: so it leaves a
first sentence first that holds a figure, unless another one defines the sum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from retrieval.folding import fold, fold_width
from retrieval.query import Query
from retrieval.sum_names import NamedSum, asked_sum, tells_nothing
from retrieval.wordlists import word_list

_NUMBER_WORDS = (
    r"(?:(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    r"|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    r"|hundred|thousand|million|and|half)[\s-]+){1,10}"
)
_UNITS = r"(?:dollars|euros?|pounds|yuan|francs|percent|per\s+cent)"
_MONEY_EN = (
    r"(?>(?:[A-Z]{0,2}[$€£¥]|(?-i:\b[A-Z]{3}))\s?\d(?:[\d,. ]{0,20}\d)?"
    rf"|\d[\d,.]{{0,20}}\s?(?:%|{_UNITS}\b|(?-i:[A-Z]{{3}}\b))|{_NUMBER_WORDS}{_UNITS}\b)"
)
_PUT = (
    r"(?:\s+(?:is|are|shall\s+be|will\s+be|amounts?\s+to|equals?|means?|totals?|costs?)|\s*:)"
    r"(?:\s+(?:fixed\s+at|set\s+at|equal\s+to|(?:the|a)\s+(?:sum|total|amount)\s+of"
    r"|an\s+amount\s+of))?\s+"
)
_PUT_OF = (
    r"\s+(?:of|in\s+the\s+(?:sum|amount)\s+of)"
    r"(?:\s+(?:the|a)\s+(?:sum|total|amount)\s+of|\s+an\s+amount\s+of)?\s+"
)
_BEFORE = (
    r"(?:^|[.;:,(\d\"]\s*|\b(?:an?|the|its|their|his|her|your|our|my|and|pays?|paid"
    rf"|{'|'.join(sorted(word_list('periods_english')))})\s+[\"']?)"
)
_APART = (
    r"(?!\s*(?:\([^()]{1,80}\)\s*)?(?:for\s+(?:the|an?|each|every|any|lost|late)"
    r"|per\s+(?:lost|late|returned))\b)"
)
_FORMER = re.compile(
    r"\b(?:former(?:ly)?|previous(?:ly)?|prior|earlier|old)\b|原(?![则件料])|此前|以前|之前|曾",
    re.IGNORECASE,
)
"""Before the name: the sum was owed once."""
_CONDITION = re.compile(
    r"\b(?:if|where|when|while|unless|should|late|overdue)\b|[如若]|的[,，]|逾期|超过"
    rf"|{_FORMER.pattern}",
    re.IGNORECASE,
)
"""Before the name: the sum is owed in one case only, or was once, and may be another than the one
asked for."""
_CONDITION_BEHIND = re.compile(r"\b(?:if|where|when|while|unless)\b|[如若]", re.IGNORECASE)
_END = re.compile(r"[.;](?=\s|$)|[。；]")
_MONEY_ZH = (
    r"(?:人民币|RMB|CNY|[¥￥$])?\s?(?:\d[\d,.]{0,20}\s?[百千万亿]?(?:元|圆|美元|%|天|日)|百分之[\d零一二三四五六七八九十点]{1,6}"
    r"|[零一二三四五六七八九十百千万壹贰叁肆伍陆柒捌玖拾佰仟两]{1,16}(?:元|圆|天|日))"
)
_BEFORE_ZH = (
    r"(?:^|[\s,，。;；:：、.)）\d条的月年]|[缴付交]|支付|缴纳|交纳|交付|收取|给付|本合同|该|甲方|乙方"
    r"|享受|享有|带薪|合同)"
)
_PUT_ZH = r"(?:金额|总额|标准|数额)?(?:[为是:：]|共计|合计|计)?(?:每[月年日季](?:度)?)?"
_SINGLE_CASE = re.compile(
    r"\s*(?:for (?:each|every|any|lost|late|the|an?)|per (?:lost|late|returned))\b", re.IGNORECASE
)


_SHARE = re.compile(
    r"\b(?:month|week|day|year|quarter)s?(?:['’]s?)?\s+(?:[a-z]+\s+)?"
    r"(?:rent|hire|fees?|salary|wages?|pay|charges?|price|remuneration)\b"
    r"|\btimes\s+the\b|[一二两三四五六七八九十\d半]个?[年月日天](?:的|份)?(?:租金|房租|工资|费)",
    re.IGNORECASE,
)
"""What tells a sum by another one ("three months' rent")."""


@dataclass(frozen=True, slots=True)
class _Wordings:
    """How a figure is put to a sum: by `definitions`, by `whole` names that can mean no other, and
    by `bare` ones that may mean another where a condition stands beside them."""

    definitions: Sequence[re.Pattern[str]]
    whole: Sequence[re.Pattern[str]]
    bare: Sequence[re.Pattern[str]]


def states_sum(query: Query) -> Callable[[str], bool] | None:
    """What tells the sentences that put a figure to the sum asked for; None where no sum is asked
    for by name."""
    asked = asked_sum(query.text)
    if asked is None:
        return None
    wordings = _put_to(asked)

    def states(body: str) -> bool:
        wide = fold_width(body)
        if any(pattern.search(wide) for pattern in wordings.definitions):
            return True
        found = (pattern.search(wide) for pattern in wordings.whole)
        if any(one is not None and not _FORMER.search(wide, 0, one.start()) for one in found):
            return True
        return any(_unconditional(pattern.search(wide), wide) for pattern in wordings.bare)

    return states


def states_before(query: Query, first: str) -> Callable[[str], bool] | None:
    """What tells the sentences that may stand before the `first` one because they state the sum
    asked for: definitions alone where the first holds a figure; None where the first names the sum
    with a figure, or no sum is asked for by name."""
    asked = asked_sum(query.text)
    if asked is None or _names_sum(asked, first):
        return None
    wide = fold_width(first)
    if not _money(chinese=asked.chinese).search(wide) and not _SHARE.search(wide):
        return states_sum(query)
    definitions = _put_to(asked).definitions
    return lambda body: any(pattern.search(fold_width(body)) for pattern in definitions)


def _unconditional(found: re.Match[str] | None, wide: str) -> bool:
    if found is None or _CONDITION.search(wide, 0, found.start()):
        return False
    end = _END.search(wide, found.end())
    return not _CONDITION_BEHIND.search(wide, found.end(), end.start() if end else len(wide))


def _names_sum(asked: NamedSum, sentence: str) -> bool:
    """Whether a sentence has a name of the sum and a figure, under no condition and for no single
    case."""
    wide = fold_width(sentence)
    if _CONDITION.search(wide):
        return False
    figures = list(_money(chinese=asked.chinese).finditer(wide))
    if not figures or any(_SINGLE_CASE.match(wide, one.end()) for one in figures):
        return False
    text = fold(sentence)
    if asked.chinese:
        return any(name in text for name in asked.names)
    return (
        re.search(rf"(?<!further )(?<!additional )\b{_any_of(asked.names)}(?![a-z])", text)
        is not None
    )


@lru_cache(maxsize=2)
def _money(*, chinese: bool) -> re.Pattern[str]:
    return re.compile(_MONEY_ZH if chinese else _MONEY_EN, re.IGNORECASE)


@lru_cache(maxsize=256)
def _put_to(asked: NamedSum) -> _Wordings:
    """ "The deposit" is another one where a sum is for a key or for a case, "the late fee" is not;
    and "a fee of EUR 20" is not the fee."""
    if asked.chinese:
        names = "|".join(map(re.escape, asked.names))
        taken = re.compile(rf"{_MONEY_ZH}(?:作为|作)(?:{names})")
        return _Wordings(
            (), (), (taken, re.compile(rf"{_BEFORE_ZH}(?:{names}){_PUT_ZH}{_MONEY_ZH}"))
        )
    name = _any_of(asked.names)
    definitions = [
        rf"[\"']{name}(?:\s+(?:amount|sum))?[\"']\s+means?\s+"
        rf"(?:(?:the|a)\s+(?:sum|amount)\s+of\s+|an\s+amount\s+of\s+)?{_MONEY_EN}",
        rf"{_MONEY_EN}\s*(?:\([^()\"]{{1,60}}\)\s*)?\((?:the\s+)?[\"']{name}[\"']\)",
    ]
    if tells_nothing(asked.names[0]):
        bare = [rf"(?:^|[.;:\d]\s+)(?:the\s+)?{name}{_PUT}{_MONEY_EN}{_APART}"]
        return _Wordings(_compiled(definitions), (), _compiled(bare))
    of = rf"[\"']?(?:{_PUT}|{_PUT_OF}){_MONEY_EN}"
    bare = [
        rf"{_BEFORE}{name}{of}{_APART}",
        rf"{_MONEY_EN}\s+(?:\([^()]{{1,60}}\)\s+)?as\s+(?:(?:an?|the)\s+)?{name}(?![\w-])",
    ]
    long = [one for one in asked.names if " " in one and not tells_nothing(one)]
    whole = [rf"{_BEFORE}{_any_of(long)}{of}"] if long else []
    return _Wordings(_compiled(definitions), _compiled(whole), _compiled(bare))


def _any_of(names: Iterable[str]) -> str:
    """A pattern for English names, in the singular or plural."""
    spelled = (r"\s+".join(map(re.escape, name.split())) + "s?" for name in names)
    return f"(?:{'|'.join(spelled)})"


def _compiled(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)
