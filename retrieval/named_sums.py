"""Whether a contract speaks of the sum that a question names, and the sentence that states it.

A contract is full of sums, and a figure beside a word or two of the question is as often another
one. So the name counts whole: a contract that never uses it, nor another name of the same sum, does
not answer; a sentence that puts a figure to it ("a deposit of SEK 20,000", "Deposit" means…) does.
It knows names and how a figure is put to them, not what a sum is for: of two deposits it takes the
better ranked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache

import rjieba

from retrieval import cases
from retrieval.clauses import around
from retrieval.folding import fold, fold_width
from retrieval.index import SearchIndex
from retrieval.kept import kept_by_identity
from retrieval.query import Query
from retrieval.stems import stem, words
from retrieval.sum_names import NamedSum, asked_sum, tells_nothing
from retrieval.types import Sentence
from retrieval.wordlists import word_list

_CLAUSE_CHARS = 6_000
"""Of a clause that goes on, so much is looked into."""
_LIKE_CHARS, _LIKE_SHARE, _MISSPELT = 6, 0.6, 0.85
"""Two words are forms of one that begin alike, in so many characters and such a share of the word
asked for; likeness from which on a word is a misspelt one."""
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
_MONEY = re.compile(_MONEY_EN, re.IGNORECASE)
_NAMED = re.compile(
    r"\b(?P<other>[a-z-]+)\s+(?:fees?|charges?|costs?|deposit|bond|bonus|premium|payment)"
    rf"(?:{_PUT}|{_PUT_OF}){_MONEY_EN}",
    re.IGNORECASE,
)
_BEFORE = (
    r"(?:^|[.;:,(\d\"]\s*|\b(?:an?|the|its|their|his|her|your|our|my|and|pays?|paid"
    rf"|{'|'.join(sorted(word_list('periods_english')))})\s+[\"']?)"
)
_APART = (
    r"(?!\s*(?:\([^()]{1,80}\)\s*)?(?:for\s+(?:the|an?|each|every|any|lost|late)"
    r"|per\s+(?:lost|late|returned))\b)"
)
_CONDITION = re.compile(
    r"\b(?:if|where|when|unless|should|late|overdue)\b|[如若]|的[,，]|逾期|超过", re.IGNORECASE
)
"""Before the name: the sum is owed in one case only, and may be another than the one asked for."""
_MONEY_ZH = (
    r"(?:人民币|RMB|CNY|[¥￥$])?\s?(?:\d[\d,.]{0,20}\s?[百千万亿]?(?:元|圆|美元|%|天|日)|百分之[\d零一二三四五六七八九十点]{1,6}"
    r"|[零一二三四五六七八九十百千万壹贰叁肆伍陆柒捌玖拾佰仟两]{1,16}(?:元|圆|天|日))"
)
_BEFORE_ZH = (
    r"(?:^|[\s,，。;；:：、.)）\d条的月年]|[缴付交]|支付|缴纳|交纳|交付|收取|给付|本合同|该|甲方|乙方"
    r"|享受|享有|带薪|合同)"
)
_PUT_ZH = r"(?:金额|总额|标准|数额)?(?:[为是:：]|共计|合计|计)?(?:每[月年日季](?:度)?)?"


def absent_sum(index: SearchIndex, query: Query) -> str:
    """The name of the sum asked for, where a contract uses neither it nor another name of it, and
    has not even its telling words in one place; else empty."""
    asked = _asked_of(index, query)
    if asked is None:
        return ""
    if " of " not in asked.name and any(_stands(name, _folded(index.text)) for name in asked.all):
        return ""
    chunks = (f"{one.heading}\n{index.text[one.start : one.end]}" for one in index.chunks)
    return "" if any(_speaks_of(asked, chunk) for chunk in chunks) else asked.name


def is_elsewhere(index: SearchIndex, query: Query, sentences: Sequence[Sentence]) -> bool:
    """Whether the first of the sentences stands in a clause that does not speak of the sum asked
    for: what it says of money is about another."""
    asked = _asked_of(index, query)
    if asked is None:
        return False
    first = sentences[0]
    clause = around(index.clauses, first.start)
    start, end = (
        (first.chunk.start, first.chunk.end) if clause is None else (clause.start, clause.end)
    )
    span = index.text[min(start, first.start) : max(end, first.end)][:_CLAUSE_CHARS]
    said = index.text[first.start : first.end]
    return not _speaks_of(asked, f"{first.chunk.heading}\n{span}") or _is_of_others(asked, said)


def _is_of_others(asked: NamedSum, sentence: str) -> bool:
    """Whether each figure of a sentence is put to a sum of another name, as in "parking fines, and
    an administration fee of AUD 45" for the parking fee."""
    if asked.chinese or " " not in asked.name:
        return False
    wide = fold_width(sentence)
    figures = sum(1 for _ in _MONEY.finditer(wide))
    named = [match["other"].lower() for match in _NAMED.finditer(wide)]
    own = {stem(word) for word in asked.telling} | {
        stem(word) for name in asked.all for word in name.split()
    }
    plain = word_list("sums_english") | word_list("periods_english") | word_list("english_stop")
    others = [one for one in named if one not in plain and stem(one) not in own]
    return 0 < figures == len(others)


def _asked_of(index: SearchIndex, query: Query) -> NamedSum | None:
    """The sum that is asked of a contract; None for laws and courts' accounts."""
    asked = asked_sum(query.text)
    if asked is None or not asked.telling or query.language != index.language:
        return None
    if index.articles is not None or (asked.chinese and cases.is_case(index.text)):
        return None
    return asked


def _speaks_of(asked: NamedSum, written: str) -> bool:
    """Whether a text has a name of the sum, or all telling words of it."""
    text = fold(written)
    if " of " not in asked.name and any(_stands(name, text) for name in asked.all):
        return True
    if asked.chinese:
        pieces = [piece for piece in rjieba.cut(asked.telling[0]) if len(piece) > 1]
        return len(pieces) > 1 and all(piece in text for piece in pieces)
    known = {word.stem for word in words(text)}
    wanted = (stem(part) for word in asked.telling for part in re.findall(r"[a-z]+", word))
    return all(term in known or _has_like(known, term) for term in wanted)


def _has_like(terms: Iterable[str], wanted: str) -> bool:
    """Whether a word in another form ("member" for "membership"), or misspelt, is among terms."""
    begin = max(_LIKE_CHARS, math.ceil(_LIKE_SHARE * len(wanted)))
    if len(wanted) >= begin and any(term.startswith(wanted[:begin]) for term in terms):
        return True
    return bool(get_close_matches(wanted, terms, 1, _MISSPELT))


@kept_by_identity(4)
def _folded(text: str) -> str:
    return fold(text)


def _stands(name: str, text: str) -> bool:
    """Whether a name stands in a folded text; a Chinese one may stand for its long form (年假 for
    年休假, 水电费 for 水费、电费)."""
    if name[0] < "\u3400":
        return re.search(rf"\b{_spelled(name)}(?![a-z])", text) is not None
    return re.search("[^,，。;；\n]{0,2}?".join(map(re.escape, name)), text) is not None


def _spelled(name: str) -> str:
    """A pattern for an English name, in the singular or plural."""
    return r"\s+".join(map(re.escape, name.split())) + "s?"


def states_sum(query: Query) -> Callable[[str], bool] | None:
    """What tells the sentences that put a figure to the sum asked for; None where no sum is asked
    for by name."""
    asked = asked_sum(query.text)
    if asked is None or not asked.stated:
        return None
    whole, bare = _put_to(asked)

    def states(body: str) -> bool:
        wide = fold_width(body)
        if any(pattern.search(wide) for pattern in whole):
            return True
        found = (pattern.search(wide) for pattern in bare)
        return any(one is not None and not _CONDITION.search(wide, 0, one.start()) for one in found)

    return states


@lru_cache(maxsize=256)
def _put_to(asked: NamedSum) -> tuple[Sequence[re.Pattern[str]], Sequence[re.Pattern[str]]]:
    """How a sentence puts a figure to the sum: wordings that can mean no other, and those that may
    where a condition stands before them. "The deposit" is another one where a sum is for a key or
    for a case, "the late fee" is not; and "a fee of EUR 20" is not the fee."""
    if asked.chinese:
        names = "|".join(map(re.escape, asked.stated))
        taken = re.compile(rf"{_MONEY_ZH}(?:作为|作)(?:{names})")
        return (taken,), (re.compile(rf"{_BEFORE_ZH}(?:{names}){_PUT_ZH}{_MONEY_ZH}"),)
    name = _any_of(asked.stated)
    whole = [
        rf"[\"']{name}(?:\s+(?:amount|sum))?[\"']\s+means?\s+"
        rf"(?:(?:the|a)\s+(?:sum|amount)\s+of\s+|an\s+amount\s+of\s+)?{_MONEY_EN}",
        rf"{_MONEY_EN}\s*(?:\([^()\"]{{1,60}}\)\s*)?\((?:the\s+)?[\"']{name}[\"']\)",
    ]
    if tells_nothing(asked.stated[0]):
        bare = [rf"(?:^|[.;:\d]\s+)(?:the\s+)?{name}{_PUT}{_MONEY_EN}{_APART}"]
    else:
        of = rf"[\"']?(?:{_PUT}|{_PUT_OF}){_MONEY_EN}"
        bare = [rf"{_BEFORE}{name}{of}{_APART}"]
        whole.append(
            rf"{_MONEY_EN}\s+(?:\([^()]{{1,60}}\)\s+)?as\s+(?:(?:an?|the)\s+)?{name}(?![\w-])"
        )
        if long := [one for one in asked.stated if " " in one and not tells_nothing(one)]:
            whole.append(rf"{_BEFORE}{_any_of(long)}{of}")
    return _compiled(whole), _compiled(bare)


def _any_of(names: Iterable[str]) -> str:
    return rf"(?:{'|'.join(map(_spelled, names))})"


def _compiled(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)
