"""Who is the buyer, 出租人是谁: where a contract says who stands in a role.

The words of such a question ("buyer") stand in every clause, and the answer in one place: the line
of the parties or the brackets that give a party its role. Knows how contracts introduce a party and
the names of roles that mean the same; does not know who a party is that has no role.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from retrieval.folding import fold_width
from retrieval.index import SearchIndex
from retrieval.query import Query
from retrieval.sentences import Span, split
from retrieval.types import Sentence

_OPENING = 24_000
"""Characters from the start in which parties are introduced."""
_LIKELY = 0.95
"""Calibrated likelihood given to the place that introduces the party."""

_SAME_ROLE: tuple[tuple[str, ...], ...] = (
    ("landlord", "lessor", "出租人", "出租方", "房东"),
    ("tenant", "lessee", "renter", "承租人", "承租方", "租客", "租户", "房客"),
    ("buyer", "purchaser", "customer", "买方", "买受人", "需方", "购买方", "采购方", "买家"),
    ("seller", "supplier", "vendor", "卖方", "出卖人", "供方", "供货方", "供应商", "卖家", "厂家"),
    ("lender", "creditor", "贷款人", "贷款方", "出借人", "出借方", "债权人"),
    ("borrower", "debtor", "借款人", "借款方", "债务人"),
    ("guarantor", "surety", "保证人", "担保人", "保证方", "担保方"),
    ("employer", "用人单位", "雇主"),
    ("employee", "worker", "劳动者", "雇员", "职工", "员工"),
    ("owner", "发包人", "发包方", "业主", "建设单位"),
    ("contractor", "承包人", "承包方", "承包商", "施工方", "施工单位"),
    ("client", "委托方", "委托人", "定作人"),
    ("consultant", "adviser", "advisor", "顾问"),
    ("service provider", "provider", "受托方", "受托人", "服务方", "服务商"),
    ("licensor", "许可方", "许可人"),
    ("licensee", "被许可方", "被许可人"),
    ("franchisor", "特许人", "特许方"),
    ("franchisee", "被特许人", "加盟商"),
    ("distributor", "dealer", "reseller", "经销商"),
    ("transferor", "assignor", "转让方", "转让人", "出让方", "出让人"),
    ("transferee", "assignee", "受让方", "受让人"),
    ("insurer", "保险人", "保险公司"),
    ("policyholder", "insured", "投保人", "投保方"),
    ("disclosing party", "discloser", "披露方"),
    ("receiving party", "recipient", "接收方"),
    ("party a", "first party", "甲方"),
    ("party b", "second party", "乙方"),
    ("party c", "丙方"),
)
"""Names of the same role; the one asked for is looked for first."""

ROLES = frozenset(name for names in _SAME_ROLE for name in names)
_UNNAMED = frozenset(("party a", "party b", "party c", "first party", "second party"))
"""Roles that tell nothing of what a party does: one without them has its parties all the same."""

_DOCUMENT_EN = r"(?:agreement|contract|lease|loan|deed|licen[cs]e|note|policy|document|deal|order)"
_ASKED_EN = re.compile(
    r"^\W*(?:please\s+)?(?:tell\s+(?:me|us)\s+)?"
    r"(?:who\s+(?:exactly\s+)?(?:is|are|was|were)|who's|which\s+(?:company|party|person)\s+is"
    r"|what\s+(?:company|party)\s+is|(?:what(?:\s+is|'s)\s+)?the\s+(?:full\s+|legal\s+)?name\s+of)"
    r"\s+(?:acting\s+as\s+|named\s+as\s+)?(?:(?:the|our|my)\s+|(?=party\s))"
    r"(?P<role>[a-z]+(?:[ -][a-z]+)?)"
    rf"(?:\s+(?:here|(?:in|of|to|under|for)\s+(?:this|the|our)\s+{_DOCUMENT_EN}))?\W*$",
    re.IGNORECASE,
)
_ASKED_ZH = re.compile(
    r"^\W*(?:请问|请告诉我)?(?:[本该此]|这[份个])?(?:合同|协议)?(?:里|中)?的?"
    r"(?:谁是(?P<last>[\u4e00-\u9fff]{2,5})"
    r"|(?P<role>[\u4e00-\u9fff]{2,5}?)(?:(?:究竟|到底)?(?:是|为|叫)"
    r"(?:谁|何人|(?:哪一?[家个]|什么)(?:公司|单位|企业|银行|机构|人|名字)?)"
    r"|的?(?:名称|姓名|名字|全称)(?:(?:是|叫)什么)?))\W*$"
)
_ALL_ZH = frozenset(("双方", "各方", "当事人", "签约方", "签约双方", "双方当事人", "哪两方"))
_CHINESE_NAMES = tuple(name for names in _SAME_ROLE for name in names if name[0] >= "\u3400")
_MOST_PARTIES = 3
_NOT_A_ROLE = frozenset((
    "parties", "party", "signatories", "other", "same", "two", "sides", "agreement", "contract",
    "lease",
))  # fmt: skip
_SIGNING = re.compile(
    r"盖章|签字|签章|签名|公章|代表人|\bby:|signature|^\W*for and on behalf", re.IGNORECASE
)
_OPENING_MARKS = "(（[ \t\n"
_ENGLISH_NAME = re.compile(r"[A-Z][\w&'’.-]+")
_NAME_ZH = re.compile("[\u4e00-\u9fff]{2}|[A-Za-z]{3}|×{2}")
_BLANK = re.compile(r"^[\s:]*_{2}[\W_]*")
_FIRST_CLAUSE = re.compile(
    r"^[ \t]*(?:第[一1]条|一[、.．]"
    r"|(?:(?:article|section|clause)[ \t]{1,4})?1(?:[.、．)](?!\d)|\.1|[ \t])"
    r"|article\s+i\b)",
    re.IGNORECASE | re.MULTILINE,
)
_UNNUMBERED = 3_000
"""Characters from the start in which parties are introduced where no clause has a number."""
_FIRM = re.compile(
    r"\b(?:Ltd|Limited|Inc|Incorporated|LLC|LLP|L\.P|Corp|Corporation|Co|Company|plc|GmbH|AG|SE|AS|AB"
    r"|ASA|Oy|SA|S\.A|SAS|Sarl|NV|BV|B\.V|SpA|Srl|Pty|University|Bank|Mr|Mrs|Ms|Dr)\b"
)
_FIRM_ZH = re.compile(
    "^[^,，。;；:：、_]{2,24}(?:公司|集团|银行|信用社|合作社|委员会|事务所|大学|学校|医院|研究院|厂|店|商行)"
)
_FIRM_BEFORE_ZH = re.compile(
    "(?:公司|集团|银行|信用社|合作社|委员会|事务所|大学|学校|医院|研究院|厂|店|商行)[ \t]*$"
)
_PARTIES_LINE = re.compile(
    r"\bbetween\b[^;]{3,300}\band\b|^\W*(?:\d{1,2}[.)]?\s+)?(?:the\s+)?parties\b"
    r"|^\W*(?:\d{1,2}[.)]?\s+)?party\s+[a-c]\b",
    re.IGNORECASE,
)
"""A sentence that names the parties, or says of Party A what it is there for."""


def asked_role(question: str) -> str:
    """The role whose holder a question asks for, folded, empty when it asks for something else."""
    wide = fold_width(question)
    if english := _ASKED_EN.match(wide):
        role = english["role"].lower()
        return "" if _NOT_A_ROLE & set(role.split()) - {"party"} or role == "party" else role
    if chinese := _ASKED_ZH.match(wide):
        return str(chinese["role"] or chinese["last"])
    return ""


def names_of(role: str) -> tuple[str, ...]:
    """The role itself and the names of roles that mean the same."""
    same = [name for names in _SAME_ROLE if role in names for name in names if name != role]
    return (role, *same)


@lru_cache(maxsize=64)
def _any_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """One of the names as a word; 买方 in 购买方 is none where both are names."""
    longest = sorted(names, key=len, reverse=True)
    return re.compile(
        "|".join(
            re.escape(name) if name[0] >= "\u3400" else rf"\b{re.escape(name)}(?=(?:s|'s|s')?\b)"
            for name in longest
        )
    )


def _names_looked_for(text: str, role: str) -> tuple[str, ...]:
    """The names under which a document (folded, lower case) can introduce the role: all names of
    it, but the asked one alone where the document uses that, or tells two of them apart."""
    names = names_of(role)
    used = set(_any_of(names).findall(text))
    return (role,) if role in used or len(used) > 1 else names


def _introductions(name: str) -> re.Pattern[str]:
    """How a text (width folded) gives a party the role `name`. The text of the party stands before
    the match, or behind it where the group `line` matched; `bare` wordings introduce nobody where
    they only repeat a role."""
    word = re.escape(name)
    if re.search("[\u4e00-\u9fff]", name):
        return re.compile(
            rf"(?P<bare>[(](?![^()\n]{{0,24}}(?:盖章|签字|签章|公章))(?:[^()\n]{{0,16}}[、,，/\"“”])?"
            rf"(?:以下)?(?:简?称)?(?:为|:)?[\"“「]?{word}[\"”」]?(?:[、,，/][^()\n]{{0,16}})?[)])"
            rf"|(?:简称|下称)(?:为|:)?[\"“「]?{word}(?![\u4e00-\u9fff])"
            rf"|(?P<line>(?:^|(?<=[\s,，;；。、]))"
            rf"(?:[一二三四五六七八九十\d]{{1,2}}[、.．]\s{{0,3}})?{word}\s{{0,4}}"
            rf"(?:[(](?!盖章|签)[^()\n]{{1,16}}[)]\s{{0,4}})?(?:名称|单位|姓名|全称)?\s{{0,4}}:)",
            re.MULTILINE,
        )
    spaced = word.replace(r"\ ", r"\s+")
    return re.compile(
        rf"[(][^()\n]{{0,60}}[\"“'‘](?:the\s+)?{spaced}[\"”'’][^()\n]{{0,60}}[)]"
        rf"|(?P<bare>[(](?:as\s+)?(?:the\s+)?{spaced}[)]|,\s+as\s+(?:the\s+)?{spaced}\b(?=\W))"
        rf"|hereinafter\s+(?:\w+\s+){{0,4}}?(?:the\s+|as\s+){{0,2}}[\"“'‘]?{spaced}\b"
        rf"|(?P<line>^[ \t]*(?:[(]?[\da-z]{{1,2}}[.)][ \t]+)?(?:the\s+|name\s+of\s+(?:the\s+)?)?"
        rf"{spaced}(?:'s\s+name)?\s{{0,4}}:)",
        re.IGNORECASE | re.MULTILINE,
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a role is given to somebody, or, `blank`, to whoever fills in the form."""

    span: Span
    blank: bool


def _places(opening: str, name: str) -> Iterator[_Place]:
    """Where `opening` introduces the role `name` together with somebody, in order. Behind the first
    numbered clause a line ("Landlord: roof and walls") or a bare bracket shares out duties more
    often than it names a party, so somebody must look like a firm there."""
    first = _FIRST_CLAUSE.search(opening)
    parties_end = first.start() if first else _UNNUMBERED
    chinese = name[0] >= "\u3400"
    for match in _introductions(name).finditer(opening):
        line_end = opening.find("\n", match.end())
        behind = opening[match.end() : line_end if line_end >= 0 else len(opening)]
        line_start = opening.rfind("\n", 0, match.start()) + 1
        before = opening[max(line_start, match.start() - 200) : match.start()]
        # 甲方（出租人）：林晓峰
        is_line = match["line"] is not None or bool(
            match["bare"] and behind.startswith((":", " :"))
        )
        if is_line:
            # A form may give the name in the next line.
            beside = behind if behind.strip() else opening[match.end() : match.end() + 60]
        else:
            beside = before
            if not before.strip():
                beside = opening[max(0, match.start() - 60) : match.start()]
        if _SIGNING.search(opening[line_start : match.end()]) or _SIGNING.match(
            beside.strip("( \t\n_×")
        ):
            continue
        if is_line and _BLANK.match(beside):
            yield _Place(match.span(), blank=True)
        elif not (_NAME_ZH if chinese else _ENGLISH_NAME).search(beside):
            continue
        else:
            known = match.start() < parties_end or not (match["line"] or match["bare"])
            if known or _is_firm(beside, is_line=is_line):
                yield _Place(match.span(), blank=False)


def _is_firm(beside: str, *, is_line: bool) -> bool:
    """Whether what stands behind a line, or before brackets, looks like a firm or a person."""
    chinese = _FIRM_ZH.match(beside.strip(": \t\n")) if is_line else _FIRM_BEFORE_ZH.search(beside)
    return bool(chinese or _FIRM.search(beside))


def introductions(index: SearchIndex, query: Query) -> tuple[Sentence, ...]:
    """The sentence that says who stands in the role asked for, or those that introduce the parties
    where 双方 are asked for; empty when the question asks for something else or none stands near
    the start."""
    role = asked_role(query.text)
    if not role or not index.chunks:
        return ()
    opening = fold_width(index.text[:_OPENING])
    if role in _ALL_ZH:
        found = (place for name in _CHINESE_NAMES for place in _places(opening, name))
        spans = sorted(place.span for place in found if not place.blank)
        return _sentences_at(index, spans, _MOST_PARTIES)
    for name in _names_looked_for(fold_width(index.text).lower(), role):
        spans = [place.span for place in _places(opening, name) if not place.blank]
        if sentences := _sentences_at(index, spans, 1):
            return sentences
    return ()


def blank_role(index: SearchIndex, query: Query) -> str:
    """The role asked for, where the document has a line for its holder that is not filled in, and
    names nobody elsewhere; else empty."""
    role = asked_role(query.text)
    if not role or not index.chunks or introductions(index, query):
        return ""
    opening = fold_width(index.text[:_OPENING])
    names = _names_looked_for(fold_width(index.text).lower(), role)
    return role if any(place.blank for name in names for place in _places(opening, name)) else ""


def _sentences_at(index: SearchIndex, places: Sequence[Span], limit: int) -> tuple[Sentence, ...]:
    """The sentences in which the first of the places stand."""
    found: dict[int, Sentence] = {}
    for place in places:
        sentence = _sentence_at(index, *place)
        if sentence is not None:
            found.setdefault(sentence.start, sentence)
        if len(found) == limit:
            break
    return tuple(found.values())


def is_introduction(index: SearchIndex, query: Query, sentences: Sequence[Sentence]) -> bool:
    """Whether the first of the sentences is the first of `introductions`."""
    named = introductions(index, query) if sentences else ()
    return bool(named) and named[0].start == sentences[0].start


def absent_role(index: SearchIndex, query: Query, sentences: Sequence[Sentence]) -> str:
    """The role asked for, where the document names it nowhere, by none of its names, and the first
    of the sentences does not tell the parties; else empty. Of a role that is no usual one
    ("auditor") no word, nor any that begins alike ("audited"), may stand there."""
    role = asked_role(query.text)
    names = names_of(role)
    if not role or _UNNAMED & set(names):
        return ""
    if sentences and _PARTIES_LINE.search(index.text[sentences[0].start : sentences[0].end]):
        return ""
    text = fold_width(index.text).lower()
    if role in ROLES:
        return "" if _any_of(names).search(text) else role
    if not role.isascii() or index.language != "en":
        return ""
    begins = (word[: max(4, len(word) - 3)] for word in re.findall("[a-z]+", role))
    return "" if any(re.search(rf"\b{begin}", text) for begin in begins) else role


def in_front(index: SearchIndex, query: Query, ranked: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The ranked sentences, behind the `introductions` where the question has some."""
    named = introductions(index, query)
    if not named:
        return tuple(ranked)
    others = [one for one in ranked if all(one.end <= n.start or n.end <= one.start for n in named)]
    likely = _LIKELY if not ranked or ranked[0].likely is not None else None
    top = ranked[0].score + 1.0 if ranked else 1.0
    return (*(replace(one, score=top, likely=likely) for one in named), *others)


def _sentence_at(index: SearchIndex, start: int, end: int) -> Sentence | None:
    starts = [chunk.start for chunk in index.chunks]
    chunk = index.chunks[max(0, bisect_right(starts, start) - 1)]
    spans = split(index.text, chunk.start, chunk.end)
    for place, (first, last) in enumerate(spans):
        if first <= start < last:
            if index.text[first : start + 1].strip(_OPENING_MARKS) == "" and place:
                # "Acme Inc." ends no sentence before its brackets.
                first = spans[place - 1][0]
            return Sentence(first, max(last, min(end, chunk.end)), chunk, 0.0)
    return None
