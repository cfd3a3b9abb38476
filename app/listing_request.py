"""Questions that ask for every place of something: "which clauses mention…", "list all amounts",
哪些条款提到…, 每一处…

Reads what is wanted out of the question's wording. It knows no document: `retrieval.scan` looks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.facts import FactKind


@dataclass(frozen=True, slots=True)
class ListRequest:
    """`wanted`: the words to look for, as the question writes them; with `kind` every fact of that
    kind is wanted instead. `broad`: clauses about the matter count too, whatever words they use.
    `first`: the number of the entry to begin with, from 1."""

    wanted: str
    kind: FactKind | None = None
    broad: bool = False
    first: int = 1


_UNITS = (
    "clauses|sections|articles|provisions|paragraphs|places|parts|passages|sentences|instances"
    "|occurrences|mentions|references"
)
_UNIT = (
    "clause|section|article|provision|paragraph|place|part|passage|sentence|instance|occurrence"
    "|mention|reference"
)
_THIS = (
    r"(?: (?:of|in) (?:this|the|our|these|any of these)"
    r" (?:contract|agreement|document|lease|deed)s?)?"
)
_NAMES = (
    r"mentions?|mentioning|refers? to|referring to|speaks? of|names?|naming|uses?|using|contains?"
    r"|containing|quotes?|includes? the words?"
)
_TREATS = (
    r"deals? with|dealing with|talks? about|talking about|concerns?|concerning|address(?:es)?"
    r"|addressing|covers?|covering|relates? to|relating to|related to|regarding|about|on"
    r"|govern(?:s|ing)?|discuss(?:es)?|say something about|touch(?:es)? on"
)
_ENGLISH = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^(?:in )?(?:which|what)(?: of the)? (?:{_UNITS}|{_UNIT}){_THIS}"
        rf" (?:all )?(?:(?P<names>{_NAMES})) (?P<x>.+)$",
        rf"^(?:in )?(?:which|what|how many)(?: of the)? (?:{_UNITS}){_THIS}"
        rf" (?:all )?(?:(?P<names>{_NAMES})|(?P<treats>{_TREATS})) (?P<x>.+)$",
        rf"^(?:please )?(?:list|enumerate|show|find|give|quote|cite|name|collect)(?: me| us)?"
        rf" (?:all|every|each|any)(?: of)?(?: the)? (?:{_UNITS}|{_UNIT}){_THIS}"
        rf"(?: (?:that|which|where|of|to|in which))?"
        rf"(?: (?:(?P<names>{_NAMES})|(?P<treats>{_TREATS})))? (?P<x>.+)$",
        rf"^(?:please )?(?:list|enumerate)(?: me| us)? (?:the )?(?:{_UNITS}){_THIS}"
        rf" (?:that |which )?(?:(?P<names>{_NAMES})|(?P<treats>{_TREATS})) (?P<x>.+)$",
        rf"^(?:(?:list|show|find|give|quote|name)(?: me| us)? )?(?:every|each|all(?: of)?(?: the)?)"
        rf" (?:{_UNITS}|{_UNIT}){_THIS} (?:where|in which|that|which) (?P<x>.+?)"
        r" (?:is|are|gets?) (?P<names>mentioned|named|used|referred to|stated)\b.*$",
        r"^(?:(?:list|show|find|give|quote)(?: me| us)? )?every(?:where| place| where)"
        r"(?: where| that| in which)? (?P<x>.+?) (?:is|are) (?P<names>mentioned|named|used)\b.*$",
        r"^where (?:else )?(?:in (?:this|the) (?:contract|agreement|document) )?(?:is|are|does|do)"
        r" (?P<x>.+?) (?P<names>mentioned|referred to|appear|occur|named)\b.*$",
        r"^how (?:many times|often) (?:is|are|does|do) (?P<x>.+?)"
        r" (?P<names>mentioned|named|appear|occur)\b.*$",
    )
)
_CHINESE_UNIT = "条款|条文|条目|条|地方|章节|处|段落"
_CHINESE_NAMES = "提到|提及|出现|写到|写了|说到|讲到|谈到|使用|用到|含有|包含"
_CHINESE_TREATS = "涉及|关于|有关|规定了?|约定了?|讲"
_WHERE = r"(?:(?:本|该|这份?|这个)?(?:合同|协议|文件)(?:中|里|内)?(?:，|,)?)?"
_CHINESE = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^(?:请问)?{_WHERE}(?:有|都有)?(?:哪些|哪几个?|哪|多少个?)(?:{_CHINESE_UNIT})(?:中|里)?(?:都|分别)?"
        rf"(?:(?P<names>{_CHINESE_NAMES})|(?P<treats>{_CHINESE_TREATS}))(?:了|过|到)?(?P<x>.+)$",
        rf"^(?:请)?(?:列出|找出|列举|给出|标出|指出|罗列|列一下|找一下){_WHERE}(?:所有|全部|每一?[个条处]?|一切)"
        rf"(?:(?P<names>{_CHINESE_NAMES})|(?P<treats>{_CHINESE_TREATS}|与|和))(?:了|过|到)?(?P<x>.+?)"
        rf"(?:有关|相关)?的?(?:{_CHINESE_UNIT}|规定|内容|约定)$",
        rf"^(?:请)?(?:列出|找出|列举|给出|标出|指出)?{_WHERE}(?:每一?[处个条]|所有|全部)"
        rf"(?:(?P<names>{_CHINESE_NAMES})|(?P<treats>{_CHINESE_TREATS}))(?:了|过|到)?(?P<x>.+?)"
        rf"(?:的)?(?:{_CHINESE_UNIT}|规定|内容)(?:有哪些|是哪些|在哪里?)?$",
        rf"^(?:请)?(?:列出|找出|列举|给出|标出|指出){_WHERE}(?P<x>.+?)(?P<names>{_CHINESE_NAMES})的"
        rf"(?:每一?[处个条]|所有|全部)(?:{_CHINESE_UNIT})?$",
        rf"^(?:请)?(?:列出|找出|列举|给出|标出|指出){_WHERE}(?P<treats>与|和|关于|涉及|有关)(?P<x>.+?)"
        rf"(?:有关|相关)?的(?:每一?[处个条]|所有|全部)(?:{_CHINESE_UNIT}|规定|内容|约定)?$",
        rf"^(?P<x>.+?)(?:都|分别)?在?(?:哪些|哪几个?)(?:{_CHINESE_UNIT})(?:中|里)?(?:被)?(?:都)?(?P<names>提到|出现|提及)(?:了|过)?$",
        rf"^{_WHERE}(?:哪里|何处)(?:都|还)?(?P<names>{_CHINESE_NAMES})(?:了|过|到)?(?P<x>.+)$",
        r"^(?P<x>.+?)(?:一?共)?(?:被)?(?P<names>提到|出现|提及)(?:了|过)?(?:多少|几)[次处]$",
    )
)
_ALL_FACTS = (
    re.compile(
        r"^(?:please )?(?:list|show|give|find|enumerate|name)(?: me| us)?"
        r" (?:all|every|each)(?: of)?(?: the)? (?P<kind>[a-z ]+?)"
        rf"(?: (?:stated|named|mentioned|given))?{_THIS}$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(?:请)?(?:列出|找出|列举|给出)(?:(?:本|该|这份?)?(?:合同|协议|文件)(?:中|里)?的?)?"
        r"(?:所有|全部|每一?个)的?(?P<kind>[\u4e00-\u9fff]{2,6})$"
    ),
)
_KINDS: dict[str, FactKind] = {
    "dates": "date", "date": "date", "calendar dates": "date", "日期": "date",
    "amounts": "amount", "amount": "amount", "amounts of money": "amount", "sums": "amount",
    "sums of money": "amount", "monetary amounts": "amount", "prices": "amount", "金额": "amount",
    "款项金额": "amount", "percentages": "percent", "percentage": "percent", "rates": "percent",
    "百分比": "percent", "比例": "percent", "durations": "duration", "periods": "duration",
    "time limits": "duration", "deadlines": "duration", "deadline": "duration",
    "notice periods": "duration", "期限": "duration", "时限": "duration",
}  # fmt: skip
_FROM = re.compile(
    r"\s*[(（]?\s*(?:(?:starting )?from (?:number |no\. ?)?(\d{1,6})"
    r"|从第\s*(\d{1,6})\s*[处个条项]起?)\s*[)）]?\s*$",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"^(?:(?:and|ok)\s+)?(?:please )?(?:(?:show|give|list)(?: me| us)? )?(?:the )?"
    r"(?:rest|more|next(?: ones)?|others|remaining(?: ones)?|go on|continue)\s*[?.!]*$"
    r"|^(?:那)?(?:其余的?|剩下的?|其他的?|还有吗|还有呢|继续|更多|下一页)(?:呢|吗)?[？?。]*$",
    re.IGNORECASE,
)
_LITERAL = re.compile(r"\b(?:mentions?|references?|occurrences?|instances?)\b", re.IGNORECASE)
_EDGES = " \t\n?？.。,，:：;；!！"
_LEADING = re.compile(
    r"^(?:(?:any|a|an|the|all) )*"
    r"(?:(?:words?|terms?|phrases?|expressions?|matter|subject|topic) (?:of )?)?"
    r"(?:(?:the|a|an) )?",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    rf"(?: (?:anywhere|at all|in any way))?{_THIS}(?: (?:are there|exist|is mentioned))?$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“「《']([^\"”」》]{1,80})[\"”」》']")


def read_request(question: str) -> ListRequest | None:
    """What every place of is asked for; None for any other question."""
    first = 1
    # A run of blanks costs the patterns time with its square.
    question = _one_line(question)
    if begun := _FROM.search(question):
        first = max(1, int(begun[1] or begun[2]))
        question = question[: begun.start()]
    asked = question.strip(_EDGES)
    for facts in _ALL_FACTS:
        found = facts.match(asked)
        kind = _KINDS.get(found["kind"].strip().lower()) if found else None
        if kind is not None:
            return ListRequest("", kind, first=first)
    for pattern in (*_ENGLISH, *_CHINESE):
        found = pattern.match(asked)
        if found is not None:
            wanted = _wanted(found["x"])
            broad = found.groupdict().get("names") is None and not _LITERAL.search(
                asked[: found.start("x")]
            )
            return ListRequest(wanted, None, broad, first) if wanted else None
    return None


def _one_line(question: str) -> str:
    return " ".join(question.split())


def _wanted(text: str) -> str:
    if quoted := _QUOTED.search(text):
        return quoted[1].strip()
    text = _LEADING.sub("", _TRAILING.sub("", text.strip(_EDGES)))
    return re.sub(r"(?:这个词|一词|字样|的|了|吗)$", "", text.strip(_EDGES)).strip(_EDGES)


def continuation(question: str, before: str, limit: int) -> str | None:
    """ "The rest?" after a list that showed `limit` entries, as the list's question with the entry
    to begin with; None for any other question."""
    request = read_request(before) if _MORE.match(question.strip()) else None
    if request is None:
        return None
    asked = _FROM.sub("", _one_line(before)).rstrip(_EDGES)
    following = request.first + limit
    chinese = re.search("[\u4e00-\u9fff]", asked)
    return f"{asked}（从第{following}处起）" if chinese else f"{asked} (from {following})"
