"""The parties of a contract with their roles and defined names, from its opening.

English: the names after "between", each up to the brackets that define it. Chinese: labelled lines
(甲方：…) and names followed by 以下简称. A party named only in a signature block is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.terms.blanks import is_blank, is_partly_blank
from retrieval.folding import fold_width
from retrieval.types import Language

Span = tuple[int, int]
_OPENING = 15_000
_REGION = 2500
_BETWEEN = re.compile(
    r"\b(?:by\s+and\s+(?:between|among)|between|among|amongst|parties\b\s*:?)\b\s*:?", re.IGNORECASE
)
_STOP = re.compile(
    r"\bW\s?I\s?T\s?N\s?E\s?S\s?S\s?E\s?T\s?H|\bRECITALS?\b|\bWHEREAS\b|\bNOW,?\s+THEREFORE|\bBACKGROUND\b"
    r"|\bTABLE\s+OF\s+CONTENTS|\bin\s+consideration\b|\n\s*1\s*[.)]\s|\bARTICLE\s+(?:1|I)\b",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\(([^()]{1,240})\)|hereinafter\s+([^,.;()]{0,60}\"[^\"]{1,50}\")")
_QUOTED = re.compile(r"\"\s*([^\"]{1,50}?)[,.]?\s*\"")
_UNQUOTED = re.compile(
    r"^(?:(?:herein)?after\s+)?(?:referred\s+to\s+as\s+)?(?:the\s+)?([A-Z][\w.&'-]*(?:\s[A-Z][\w.&'-]*){0,2})$"
)
_NO_NAME = re.compile(
    r"^(?:the\s+|this\s+)?(?:agreement|contract|effective\s+date|execution\s+date|party|parties|date|lease"
    r"|.*\bagreement|.*\bdate|business\s+day|act|seller\s+parties)$",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:[\s,;:.\-]|(?:and|by|between|among|the\s+following\s+parties|parties|with|both|is|are)\b|\(?\d{1,2}[.)]|\([a-z]\))+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\s*(?:,?\s*(?:\b(?:an?|having|whose|located|organi[sz]ed|incorporated|existing|doing|acting|through|as|with|on\s+behalf"
    r"|individually|its|their|registered|of\s+\d|formed|duly|established|trading|hereinafter|hereafter|d/b/a|under|at|in|is|collectively|together)\b"
    r"|\d)|\(|\n\s*\n|;)",
)
_NAME = re.compile(r"^[a-z]{0,2}[A-Z\d_\[].*[\w.)\]_]$")
_NEXT = re.compile(r"(?:;\s*(?:and\s+)?|\b(?:and|AND)\s+)(?=[a-z]?[A-Z\d])")
_FAR = 450
"""Characters between two definitions above which the second is no party any more."""
_NAME_WORDS = frozenset(
    {"of", "and", "the", "for", "de", "la", "du", "van", "von", "der", "y", "e"}
)
_AND = re.compile(r",?\s+(?:and|AND)\s+")
_ZH_ROLE = (
    r"(?:[甲乙丙丁买卖供需受借贷发承委出转许让][方人]|[\u4e00-\u9fff]{1,3}[方人]"
    r"|(?:建设|设计|施工|投保|委托|勘察|借款|贷款|承包|发包|用工)单位|雇主|业主|承包商|保证人)"
)
_ZH_LINE = re.compile(
    rf"^[\s\d.、()一二三四五]*(?P<role>{_ZH_ROLE})\s*(?:\((?P<alias>[^()\n]{{1,14}})\))?\s*(?:的?(?:单位)?(?:名称|全称)|姓名)?\s*"
    r"(?:\((?:全称|盖章|签章)\))?\s*:(?P<name>[^\n]*)",
    re.MULTILINE,
)
_ZH_SHORT = re.compile(
    r"(?P<name>(?:[\u4e00-\u9fff·\w]|\([\u4e00-\u9fff]{2,8}\)|×){2,40})\s*"
    r"\(?[,，]?\s*(?:以下|下)(?:简称|称)(?:为|作)?[:\s]*[\"“「']?(?P<role>[\u4e00-\u9fff]{1,8}?)[\"”」']?\s*(?:\)|[;。,]|为一方)"
)
_ZH_END = re.compile(
    r"[,;。]|\(?以下|\s{2,}\S{2,5}:|\s(?:地址|法定|住所|电话|合同编号|签订)|法定代表人|\(盖章\)"
)
_ZH_NOT_ROLE = re.compile(
    r"^(?:签订|联系|经办|负责|代表|收货|收款|法定|鉴证|检验|见证|公证|双|各|一|对|任何|开户|制造|抄送|通知|收件|发件)"
)
_ZH_PARTY_ROLE = re.compile(r"(?:[方人商主]|公司|厂|单位)$")
_ONLY_FORM = re.compile(r"^(?:有限责任|股份有限|有限)?(?:公司|律师事务所|银行|厂)$")
_HOLE = re.compile(r"(?:[_×]|[^\S\n]{3})$")
_ZH_SIGNED = re.compile(r"公章|签字|签章|盖章")


@dataclass(frozen=True, slots=True)
class Party:
    """Spans of the text: the name (empty place when `blank`), the names and roles it is given."""

    name: Span
    names: tuple[Span, ...]
    blank: bool


def find_parties(text: str, language: Language) -> tuple[Party, ...]:
    """The parties in the order of the text, each once."""
    opening = fold_width(text[:_OPENING])
    found = list(_chinese(opening) if language == "zh" else _english(opening))
    kept: list[Party] = []
    seen: set[str] = set()
    for party in found:
        key = " ".join(text[slice(*party.name)].lower().split())
        if party.blank or not any(key in other or other in key for other in seen):
            kept.append(party)
            if not party.blank:
                seen.add(key)
    return tuple(kept)


def _english(opening: str) -> Iterator[Party]:
    regions = []
    for match in _BETWEEN.finditer(opening):
        stop = _STOP.search(opening, match.end() + 20, match.end() + _REGION)
        regions.append((match.end(), stop.start() if stop else match.end() + _REGION))
    best: list[Party] = []
    for start, end in regions[:40]:
        found = list(_defined(opening, start, end))
        if len(found) > max(len(best), 1):
            best = found
            break
        best = best if len(best) >= len(found) else found
    if len(best) < 2:
        for start, end in regions[:3]:
            pair = list(_plain_pair(opening, start, min(end, start + 400)))
            if len(pair) >= 2:
                return iter(pair if not best else [*best, *(p for p in pair if p not in best)])
    return iter(best)


def _defined(opening: str, start: int, end: int) -> Iterator[Party]:
    at = start
    end = min(end, len(opening))
    quoted = bool(_QUOTED.search(opening, start, end))
    for match in _BRACKETS.finditer(opening, start, end):
        if match.start() - at > _FAR:
            return
        group = 1 if match[1] is not None else 2
        inside, base = match[group], match.start(group)
        names = [
            (base + one.start(1), base + one.end(1))
            for one in _QUOTED.finditer(inside)
            if not _NO_NAME.match(one[1].strip())
        ]
        plain = _UNQUOTED.match(" ".join(inside.split()))
        if not names and not quoted and plain and not _NO_NAME.match(plain[1]):
            place = opening.find(plain[1], base, match.end())
            names = [(place, place + len(plain[1]))] if place >= 0 else []
        if not names:
            if _QUOTED.search(inside):
                at = match.end()
            continue
        name = _name(opening, at, match.start(), first=at == start)
        at = match.end()
        if name is not None:
            yield Party(name, tuple(names), is_blank(opening[slice(*name)]))


def _name(opening: str, start: int, end: int, *, first: bool = True) -> Span | None:
    lead = _LEAD.match(opening[start:end])
    if lead is not None:
        start += lead.end()
    if opening[start : start + 1].islower() and not opening[start + 1 : start + 2].isupper():
        # "(…), a Nevada corporation, and Next LLC (…)": the name is what follows the last "and".
        joints = list(_NEXT.finditer(opening, start, end))
        if first or not joints:
            return None
        start = joints[-1].end()
    tail = _TAIL.search(opening, start + 2, end)
    stop = tail.start() if tail else end
    while stop > start and opening[stop - 1] in " ,\n\t":
        stop -= 1
    said = " ".join(opening[start:stop].split())
    prose = [word for word in said.split() if word.islower() and word not in _NAME_WORDS]
    if (
        len(prose) >= 3
        or not 2 <= len(said) <= 120
        or not _NAME.match(said)
        or _NO_NAME.match(said)
    ):
        return None
    return start, stop


def _plain_pair(opening: str, start: int, end: int) -> Iterator[Party]:
    """Two names joined by "and", without definitions."""
    joint = _AND.search(opening, start + 2, end)
    if joint is None:
        return
    for first, last in ((start, joint.start()), (joint.end(), end)):
        stop = re.compile(r"[.;(]\s|\n\s*\n").search(opening, first + 4, last)
        name = _name(opening, first, stop.start() + 1 if stop else last)
        if name is None:
            return
        yield Party(name, (), is_blank(opening[slice(*name)]))


def _chinese(opening: str) -> Iterator[Party]:
    opening = opening[:6000]
    lines = list(_zh_lines(opening))
    taken = [(party.name[0] - 20, party.name[1] + 20) for party in lines]
    short = []
    for match in _ZH_SHORT.finditer(opening):
        if any(a < match.start("role") and match.start() < b for a, b in taken):
            continue
        if not _ZH_PARTY_ROLE.search(match["role"]) or _ZH_SIGNED.search(match["name"]):
            continue
        name = match.span("name")
        # "＿＿＿公司（以下简称甲方）": only the end of the name is printed.
        hole = _HOLE.search(opening, max(0, name[0] - 12), name[0])
        blank = (
            bool(hole) or is_partly_blank(match["name"]) or bool(_ONLY_FORM.match(match["name"]))
        )
        short.append(Party(name, (match.span("role"),), blank))
    kept: list[Party] = []
    known: set[str] = set()
    for party in sorted([*lines, *short], key=lambda party: party.names[0]):
        roles = {opening[slice(*span)] for span in party.names}
        # An empty line for a role that has its party is the place for a signature.
        if not (party.blank and roles & known):
            kept.append(party)
        known |= roles
    return iter(kept)


def _zh_lines(opening: str) -> Iterator[Party]:
    roles: set[str] = set()
    for match in _ZH_LINE.finditer(opening):
        role = match["role"]
        signed = bool(match["alias"] and _ZH_SIGNED.search(match["alias"]))
        signed = signed or match["name"].lstrip().startswith("指")
        if role in roles or signed or _ZH_NOT_ROLE.match(role):
            continue
        start, end = match.span("name")
        cut = _ZH_END.search(opening, start, end)
        stop = cut.start() if cut else end
        while start < stop and opening[start].isspace():
            start += 1
        while stop > start and opening[stop - 1].isspace():
            stop -= 1
        names = [match.span("role")]
        if match["alias"] and match["alias"] != "全称":
            names.append(match.span("alias"))
        short = re.search(r"简?称(?:为)?[\"“]?([\u4e00-\u9fff]{1,6})", opening[start:end])
        if short:
            names.append((start + short.start(1), start + short.end(1)))
        if _ZH_SIGNED.search(opening[start:stop]):
            continue
        roles.add(role)
        blank = is_partly_blank(opening[start:stop])
        yield Party((start, stop), tuple(names), blank)
