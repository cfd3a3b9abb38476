"""References to clauses: Article 12, Section 5.1(b), Clauses 3 and 4, 第十二条之一, Exhibit A.

Knows how references are written; does not know which clauses a document has. A bare number is read
as a clause number only where the caller says that it is one.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from retrieval.folding import fold_width
from retrieval.numerals import NUMERAL_CLASS, chinese_number, english_number

_ZH = f"[{NUMERAL_CLASS}廿卅]"
_LABEL = (
    r"(?:\d+(?:\.\d+)*[A-Z]?|[A-Z](?:[.-]\d+)+|[IVXLC]+\b|[A-Z]\b)(?:(?:\s?\([A-Za-z0-9]{1,5}\))*)"
)
_NEXT = r"(?:\d+(?:\.\d+)*[A-Z]?(?:\s?\([A-Za-z0-9]{1,5}\))*|\([a-z0-9]{1,5}\))"
_EN_WORD = (
    r"(?P<word>articles?|sections?|sub-?sections?|sub-?clauses?|clauses?|paragraphs?|sub-?paragraphs?"
    r"|parts?|chapters?|schedules?|exhibits?|annex(?:es)?|appendi(?:x|ces)|attachments?|§{1,2}|sec\.|art\.)"
)
_EN = re.compile(
    rf"(?<![A-Za-z]){_EN_WORD}\s*(?:No\.\s*)?(?P<first>{_LABEL})"
    rf"(?P<more>(?:\s*(?:,|and|or|to|through|&|-|–)+\s*(?:{_NEXT})(?![\d%]|,\d|\s*(?:days?|months?|years?|percent)\b))*)",
    re.IGNORECASE,
)
_ZH_PATTERN = re.compile(
    rf"(?P<chain>(?:第\s*[（(]?\s*(?:\d+(?:\.\d+)*|{_ZH}+)\s*[)）]?\s*[条章节款项编目](?:之{_ZH}+)?)+)"
    rf"|(?P<annex>(?:附件|附录|附表)\s*(?:\d+|{_ZH}+|[A-Z](?![A-Za-z])))"
    rf"|(?P<dotted>(?<![\d.])\d+(?:\.\d+)+(?=\s*[条款项]))"
)
_ZH_PART = re.compile(
    rf"第\s*[（(]?\s*(?P<n>\d+(?:\.\d+)*|{_ZH}+)\s*[)）]?\s*(?P<unit>[条章节款项编目])(?:之(?P<sub>{_ZH}+))?"
)
_DOTTED = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){2,}(?:\s?\([a-z0-9]{1,5}\))*(?![\d,])")
_BARE = re.compile(r"\d+(?:\.\d+)*[A-Z]?(?:\s?\([A-Za-z0-9]{1,5}\))*|\([a-z0-9]{1,5}\)")
_ROMAN = re.compile(r"[IVXLC]+")
_OTHER = {"schedule": "schedule", "exhibit": "exhibit", "annex": "annex", "appendi": "annex",
          "attachment": "annex", "chapter": "chapter", "part": "part"}  # fmt: skip
_ZH_NAMESPACE = {"条": "", "章": "chapter ", "编": "part ", "节": "节", "款": "款", "项": "项",
                 "目": "目"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClauseNumber:
    """A reference at `text[start:end]`. `key` is the number in one spelling: Article 12 and
    第十二条 are both "12", 第三章 is "chapter 3", Exhibit A "exhibit a"."""

    start: int
    end: int
    text: str
    key: str

    def within(self, other: str) -> bool:
        """Whether the key `other` is this clause or a part of it."""
        return other == self.key or (
            other.startswith(self.key) and not other[len(self.key)].isalnum()
        )

    def known_in(self, keys: Collection[str]) -> bool:
        """Whether one of `keys` is this clause or a part of it."""
        return any(self.within(key) for key in keys)


def find_clause_numbers(text: str, *, bare: bool = False) -> tuple[ClauseNumber, ...]:
    """Every clause reference of `text`, in order. With `bare`, the text is a clause number itself
    ("12.3", "(b)", "第十二条", "Article 5")."""
    folded = fold_width(text)
    found: list[ClauseNumber] = []
    for match in _EN.finditer(folded):
        if match["first"][:1].islower() or _is_word(match):
            continue
        found.extend(_english(text, match))
    for match in _ZH_PATTERN.finditer(folded):
        key = _chinese(match)
        if key:
            found.append(ClauseNumber(*match.span(), text[match.start() : match.end()], key))
    # Two stops or more are no decimal number: "5.5.4" names a clause wherever it stands.
    for match in _DOTTED.finditer(folded):
        if not any(match.start() < number.end and number.start < match.end() for number in found):
            start, end = match.span()
            found.append(ClauseNumber(start, end, text[start:end], _plain(match[0])))
    if bare and not found and (match_bare := _BARE.search(folded)):
        start, end = match_bare.span()
        found.append(ClauseNumber(start, end, text[start:end], _plain(match_bare[0])))
    return tuple(sorted(found, key=lambda number: number.start))


def _is_word(match: re.Match[str]) -> bool:
    """ "Part A" is a reference; "part I" of "in part I agree" and "article a" are not."""
    lone = len(match["first"]) == 1 and match["first"].isalpha()
    return lone and match["word"][:1].islower()


def _english(text: str, match: re.Match[str]) -> list[ClauseNumber]:
    word = match["word"].lower()
    space = next((name for start, name in _OTHER.items() if word.startswith(start)), "")
    prefix = f"{space} " if space else ""
    first = _plain(match["first"])
    # A lone letter numbers exhibits; of sections it is "Section A", kept as written.
    start, end = match.start(), match.end("first")
    found = [ClauseNumber(start, end, text[start:end], prefix + first)]
    offset = match.start("more")
    base = re.sub(r"(?:\([a-z0-9]+\))+$", "", first)
    for part in re.finditer(_NEXT, match["more"]):
        label = _plain(part[0])
        key = base + label if label.startswith("(") else label
        a, b = offset + part.start(), offset + part.end()
        found.append(ClauseNumber(a, b, text[a:b], prefix + key))
    return found


def _plain(label: str) -> str:
    compact = re.sub(r"\s", "", label)
    head = re.match(r"[A-Za-z]+", compact)
    if head and _ROMAN.fullmatch(head[0]) and (len(head[0]) > 1 or head[0] in "IVX"):
        return f"{_roman(head[0])}{compact[head.end() :].lower()}"
    return compact.lower()


def _roman(text: str) -> int:
    values = [{"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}[letter] for letter in text]
    following = [*values[1:], 0]
    return sum(-v if v < after else v for v, after in zip(values, following, strict=True))


def _chinese(match: re.Match[str]) -> str | None:
    if match["dotted"]:
        return match["dotted"]
    if match["annex"]:
        name = re.sub(r"^(?:附件|附录|附表)\s*", "", match["annex"])
        return f"annex {_spelled(name) or name.lower()}"
    parts: list[str] = []
    for part in _ZH_PART.finditer(match["chain"]):
        label = part["n"] if "." in part["n"] else _spelled(part["n"])
        if label is None:
            return None
        sub = _whole(part["sub"]) if part["sub"] else None
        parts.append(_named(label + (f"-{sub}" if sub else ""), part["unit"]))
    return "/".join(parts) or None


def _named(number: str, unit: str) -> str:
    space = _ZH_NAMESPACE[unit]
    return space + number if space.endswith(" ") else number + space


def _spelled(text: str) -> str | None:
    value = _whole(text)
    return None if value is None else str(value)


def _whole(text: str) -> int | None:
    if text.isdigit():
        return int(text)
    value = chinese_number(text.replace("廿", "二十").replace("卅", "三十"))
    if value is None:
        value = english_number(text)
    return None if value is None else int(value)
