"""How much is the deposit, 押金多少: which sum a question asks for by its name, and nothing else.

Knows how such questions are put and the names of the same sum in contracts; does not know any
document (see `named_sums`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from retrieval.folding import fold
from retrieval.wordlists import word_list

_ASKED_CHARS = 90
_MOST_WORDS = 4
_NO_NAME_ZH = frozenset(("费用", "金额", "价钱", "付款", "单价"))

_HEADS = (
    r"fees?|charges?|price|costs?|rent|deposit|salary|wages?|bonus|penalty|premium|commission"
    r"|royalty|allowance|rate|bond|retention|fine|tax|discount|instal?ments?"
)
_EVERY = r"(?:\s+(?:per|a|an|each|every)\s+[a-z]{3,12})?"
_NAME = r"[a-z][a-z' -]{2,48}?"
_THING = r"(?:the\s+|an?\s+|each\s+)?[a-z][a-z-]{2,20}(?:\s[a-z-]{3,20})?"
_ASKED_EN = re.compile(
    r"\W*(?:(?:and|so)\s+)?(?:"
    r"how\s+(?:much|high|large|big)\s+(?:is|are|was)\s+(?:(?:the|my|our|your|each|one|an?)\s+)?"
    rf"(?P<much>{_NAME})(?:\s+of\s+(?P<of>{_THING}))?(?P<every>{_EVERY})"
    rf"|what(?:\s+is|'s|\s+are)\s+the\s+(?P<what>(?:[a-z'-]+\s+){{0,3}}?(?:{_HEADS}))"
    rf"(?:\s+of\s+(?P<whose>{_THING}))?"
    rf"|how\s+much\s+(?:does|do|would|will)\s+(?:the\s+|an?\s+)?(?P<costs>{_NAME})\s+cost"
    r")\W*"
)
_SUM_ZH = r"[金款费租价薪资贴补酬奖罚税息钱保押]"
_ASKED_ZH = re.compile(
    r"\W*(?:请问)?(?:[本该此]|这[份个])?(?:合同|协议)?(?:里|中)?的?(?:一共|总共)?(?:要|需要|应)?"
    r"(?:[付交给][的了]?)?(?P<every>每[个月年日天季度]{1,2})?的?"
    rf"(?:(?P<much>[\u4e00-\u9fff]{{1,7}}?{_SUM_ZH}|[\u4e00-\u9fff]{{2,3}}?补)"
    r"(?:(?:每[个月年日天季度]{1,2}|一共|要|需要|应)?(?:[付交给收](?:多少)|(?:标准|金额)?[是为有]?多少)(?:钱|元)?)"
    r"|(?P<days>[\u4e00-\u9fff]{1,4}假)(?:有|是)?(?:几天|多少天|多久|多长))\W*"
)
_PERIOD_ZH = re.compile("^(?:每[月年]|月|年)(?=[\u4e00-\u9fff]{2})")

_SAME: tuple[tuple[str, ...], ...] = (
    ("deposit", "security deposit", "rent deposit", "rental deposit", "damage deposit"),
    ("押金", "租赁保证金", "租房保证金", "房屋保证金"),
    ("down payment", "advance payment", "prepayment", "upfront payment"),
    ("预付款", "预付金", "首付", "首付款", "首期款"),
    ("定金", "订金"),
    ("price", "purchase price", "contract price", "contract sum", "sale price"),
    ("总价", "总价款", "合同价款", "合同金额", "总金额", "价款总额", "合同总额"),
    ("salary", "wage", "wages", "pay", "base salary", "remuneration"),
    ("工资", "薪资", "薪水", "月薪", "底薪", "薪酬", "劳动报酬"),
    ("rent", "rental", "hire"),
    ("租金", "房租", "租费"),
    ("penalty", "contractual penalty", "liquidated damages"),
    ("bond", "security bond", "rental bond"),
    ("instalment", "installment"),
    ("retention", "retention money", "holdback"),
    ("质保金", "质量保证金", "保修金"),
    ("年假", "年休假", "带薪假"),
)  # fmt: skip
"""Names of the same sum (or leave)."""
_NEARLY: tuple[tuple[str, ...], ...] = (
    ("总价", "总价款", "价款", "总额", "合同金额", "总金额", "货款", "价格", "单价"),
    ("违约金", "罚金", "罚款", "滞纳金"),
    ("penalty", "fine", "liquidated damages"),
    ("price", "consideration", "purchase money"),
)
"""Names that may mean the same sum: a contract that uses one is not silent on the others."""


@dataclass(frozen=True, slots=True)
class NamedSum:
    """The sum that a question asks for: its `name`, the `telling` words of it (with those of what
    it is the sum of), and the `names` of the same sum. A sentence answers that puts a figure to
    one of `stated`; none, where the question asks for more than the name."""

    name: str
    names: tuple[str, ...]
    telling: tuple[str, ...]
    stated: tuple[str, ...]
    chinese: bool

    @property
    def all(self) -> tuple[str, ...]:
        """The names of it, and those that may mean it."""
        return (*self.names, *(near for name in self.names for near in _grouped(name, _NEARLY)))


@lru_cache(maxsize=256)
def asked_sum(question: str) -> NamedSum | None:
    """The sum that a question asks for by name and nothing else; None for any other question."""
    if len(question) > _ASKED_CHARS:
        return None
    folded = fold(question).strip()
    if match := _ASKED_EN.fullmatch(folded):
        return _english(match)
    if match := _ASKED_ZH.fullmatch(folded):
        name = str(match["much"] or match["days"])
        bare = _PERIOD_ZH.sub("", name)
        # 费 alone, or 多少钱, names no sum.
        if len(bare) < 2 or bare in _NO_NAME_ZH:
            return None
        stated = () if match["every"] or match["days"] else _same(name)
        return NamedSum(name, _same(bare), (bare,), stated, chinese=True)
    return None


def _english(match: re.Match[str]) -> NamedSum | None:
    written = (match["much"] or match["what"] or match["costs"]).split()
    name = list(written)
    while name and name[0] in ("the", "total", *word_list("periods_english")):
        name = name[1:]
    of = re.sub(r"^(?:the|an?|each)\s+", "", match["of"] or match["whose"] or "").split()
    words_of_it = [word.removesuffix("'s").removesuffix("s'") for word in (*name, *of)]
    if not name or len(name) > _MOST_WORDS or word_list("no_name_english") & set(words_of_it):
        return None
    telling = [
        word
        for word in words_of_it
        if word not in word_list("sums_english") | word_list("periods_english")
    ]
    if "interest" in telling:
        # What lawyers call default interest is written in a dozen ways.
        telling = ["interest"]
    phrase = " ".join(name)
    more = of or match["costs"] or (match["every"] or "").strip()
    # A monthly rent is not the rent of a year.
    whole = " ".join(written).removeprefix("the ")
    stated = () if more else tuple(n for n in _same(whole) if n == whole or not tells_nothing(n))
    surface = " ".join((phrase, "of", *of)) if of else phrase
    return NamedSum(surface, _same(phrase), tuple(telling), stated, chinese=False)


def tells_nothing(name: str) -> bool:
    """Whether a name is one of any sum ("the price")."""
    return set(name.split()) <= word_list("sums_english") | word_list("periods_english")


def _same(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((name, *_grouped(name, _SAME))))


def _grouped(name: str, groups: Sequence[Sequence[str]]) -> Iterator[str]:
    return (other for group in groups if name in group for other in group)
