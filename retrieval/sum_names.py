"""How much is the deposit, 押金多少: which sum a question asks for by its name, and nothing else.

Knows how such questions are put and the names of the same sum in contracts; does not know any
document (see `named_sums`).
"""

from __future__ import annotations

import re
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
_NAME = r"[a-z][a-z' -]{2,48}?"
_ASKED_EN = re.compile(
    r"\W*(?:(?:and|so)\s+)?(?:"
    r"how\s+(?:much|high|large|big)\s+(?:is|are|was)\s+(?:(?:the|my|our|your|each|one|an?)\s+)?"
    rf"(?P<much>{_NAME})"
    rf"|what(?:\s+is|'s|\s+are)\s+the\s+(?P<what>(?:[a-z'-]+\s+){{0,3}}?(?:{_HEADS}))"
    r")\W*"
)
_SUM_ZH = r"[金款费租价薪资贴补酬奖罚税息钱保押]"
_ASKED_ZH = re.compile(
    r"\W*(?:请问)?(?:(?:[本该此]|这[份个])?(?:合同|协议)(?:[里中]的?|的))?(?:[我你您]们?的)?(?:一共|总共)?"
    r"(?:(?:要|需要|应)?[付交给][的了])?(?P<every>每[个月年日天季度]{1,2})?的?"
    rf"(?P<much>[\u4e00-\u9fff]{{1,7}}?{_SUM_ZH}|[\u4e00-\u9fff]{{2,3}}?补)"
    r"(?:(?:每[个月年日天季度]{1,2}|一共|要|需要|应)?(?:[付交给收](?:多少)|(?:标准|金额)?[是为有]?多少)(?:钱|元)?)\W*"
)
_PERIOD_ZH = re.compile("^(?:每[月年]|月|年)(?=[\u4e00-\u9fff]{2})")

_SAME: tuple[tuple[str, ...], ...] = (
    ("deposit", "security deposit", "rent deposit", "rental deposit", "damage deposit"),
    ("押金", "租赁保证金", "租房保证金", "房屋保证金"),
    ("down payment", "downpayment"),
    ("advance payment", "upfront payment"),
    ("预付款", "预付金"),
    ("首付", "首付款", "首期款"),
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
)  # fmt: skip
"""Names of the same sum."""


@dataclass(frozen=True, slots=True)
class NamedSum:
    """The sum that a question asks for: the `names` that answer when a figure is put to them, the
    one in the question first."""

    names: tuple[str, ...]
    chinese: bool


@lru_cache(maxsize=256)
def asked_sum(question: str) -> NamedSum | None:
    """The sum that a question asks for by name and nothing else; None for any other question."""
    if len(question) > _ASKED_CHARS:
        return None
    folded = fold(question).strip()
    if match := _ASKED_EN.fullmatch(folded):
        return _english(match)
    if match := _ASKED_ZH.fullmatch(folded):
        name = match["much"]
        bare = _PERIOD_ZH.sub("", name)
        # 费 alone, or 多少钱, names no sum; 钥匙的押金 is not the 押金.
        if len(bare) < 2 or bare in _NO_NAME_ZH or "的" in name or match["every"]:
            return None
        return NamedSum(_same(name), chinese=True)
    return None


def _english(match: re.Match[str]) -> NamedSum | None:
    whole = (match["much"] or match["what"]).removeprefix("the ")
    name = whole.split()
    while name and name[0] in ("the", "total", *word_list("periods_english")):
        name = name[1:]
    if not name or len(name) > _MOST_WORDS or word_list("no_name_english") & set(name):
        return None
    # A monthly rent is not the rent of a year.
    return NamedSum(
        tuple(one for one in _same(whole) if one == whole or not tells_nothing(one)), chinese=False
    )


def tells_nothing(name: str) -> bool:
    """Whether a name is one of any sum ("the price")."""
    return set(name.split()) <= word_list("sums_english") | word_list("periods_english")


def _same(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((name, *(one for group in _SAME if name in group for one in group))))
