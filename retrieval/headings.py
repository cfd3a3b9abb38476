"""Places in a text that could start a clause: the number, its style and what follows it.

Judges each line (or sentence start, for dotted numbers in texts without line breaks) on its own:
a number followed by 的, 规定, a lower-case verb or a unit is a cross-reference or a figure. Whether
a candidate fits the sequence is decided in `clauses`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from retrieval.folding import fold_width
from retrieval.numerals import NUMERAL_CLASS, chinese_number

Style = Literal[
    "attachment", "part", "chapter", "division", "article", "dotted", "han", "han-paren",
    "digit-paren", "digit-half", "lower", "upper", "roman", "roman-upper", "circle", "caps",
]  # fmt: skip
_N = f"[{NUMERAL_CLASS}]"
_ROMAN = r"(?:x{0,3}(?:ix|iv|v?i{0,3}))"

_LINE = re.compile(
    rf"""
    (?P<zh_part>第\s*(?P<zpn>{_N}+|\d+)\s*(?P<zpu>部分|分编|编|章|节))
  | (?P<zh_article>第\s*(?P<zan>{_N}+|\d+(?:\.\d+)*)\s*条(?:之(?P<zas>{_N}))?)
  | (?P<zh_attachment>附\s?[件录表](?P<zat>\s*(?:{_N}+|\d+))?)
  | (?P<attachment>(?:SCHEDULE|ANNEX|APPENDIX|EXHIBIT|ATTACHMENT
        |Schedule|Annex|Appendix|Exhibit|Attachment)
        \s+(?P<atn>[A-Z0-9]{{1,4}}(?:[-.][A-Z0-9]{{1,3}})*)\b)
  | (?P<article>(?P<arw>ARTICLE|Article|SECTION|Section|CLAUSE|Clause|PART|Part|CHAPTER|Chapter)
        \s*[-–]?\s*(?P<arn>\d+(?:\.\d+)*|[IVXL]+)\b\.?)
  | (?P<han>(?P<hn>{_N}{{1,7}})\s?[、.．])
  | (?P<han_paren>\((?P<hpn>{_N}{{1,3}})\))
  | (?P<circle>[\u2460-\u2473])
  | (?P<digit_paren>\((?P<dpn>\d{{1,2}})\))
  | (?P<letter_paren>\((?P<lpn>[a-z]{{1,4}}|[A-Z]{{1,3}})\))
  | (?P<dotted>(?P<dn>\d{{1,4}}(?:\.\d{{1,3}}){{1,4}})(?:\.|、)?)
  | (?P<single>(?P<sn>\d{{1,4}})\s?(?:\.(?!\d)|、|．))
  | (?P<half>(?P<hfn>\d{{1,2}}|[a-z])\)(?!\)))
    """,
    re.VERBOSE,
)
_CAPS = re.compile(r"(?=[^\n]*[A-Z]{4})[A-Z][A-Z0-9 ,&/'’()\-–]{3,79}[.:]?$")

# What may not follow a Chinese number: then it is a reference inside a sentence.
_ZH_REFERENCE = re.compile(
    r"(?:的|中(?!国|外|华)|所|规定|之规定|和第|及第|、第|或第|至第|与第|第\S{1,4}[款项目]|[款项目]|约定|以[内上下外]|[,，]第|(?:规定)?的)"
)
_UNIT = re.compile(r"\s?(?:%|‰|元|万|亿|米|毫米|厘米|公里|吨|千克|公斤|天|日|年|月|倍|度|级|号)")
_TOC = re.compile(r"(?:\.{3,}|…|·{3,}|(?:\. ){3,}|\t)\s*\d{1,4}\s*$")
# The line before ends in the middle of a reference ("as provided in / Section 5").
_OPEN_END = re.compile(
    r"(?:\b(?:in|of|under|to|and|or|with|by|from|per|this|the|see|both|either|than|through|section"
    r"|sections|article|articles|clause|clauses|paragraph|paragraphs|page|no)|[,(]"
    r"|[按依据照合同见与和及或第由根])\s*$",
    re.IGNORECASE,
)
_INLINE = re.compile(
    r"(?<=[.;:!?\"”’)])[ \t]+(?=(?:(?:ARTICLE|Article|SECTION|Section)\s+(?:\d|[IVX])"
    r"|\d{1,2}(?:\.\d{1,3}){0,3}\.?\s{1,4}[A-Z\"“]))"
    # Chinese text run together: "…；9.1.3.6 批准…" has no blank before its number.
    r"|(?:(?<=[；;。])|(?<=[\u4e00-\u9fff)]\.))"
    r"(?=\d{1,2}(?:\.\d{1,3}){1,4}[ \t\u3000]*[\u4e00-\u9fff“\"])"
    r"|(?<=\S)[ \t]{2,}(?=(?:(?:SECTION|Section)\s+)?\d{1,2}(?:\.\d{1,3}){1,3}\.?\s{1,12}[A-Z\"“])"
)
_LINE_START = re.compile(r"^[^\S\n]*", re.MULTILINE)


_MOST = 10_000
"""Numbers of four digits are clauses where they continue a sequence; else they are years."""
_LINE_CHARS = 300
"""Of a line that are looked at behind its number."""
_TOC_CHARS = 60
"""At the end of a line that tell a line of a contents."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible clause start. `readings` are (style, path) in order of preference: (i) may be a
    roman one or the ninth letter. `path` is the number, one part per level for dotted numbers.
    `end` is where the number ends; `inline` when it does not start a line."""

    start: int
    end: int
    label: str
    readings: tuple[tuple[Style, tuple[int, ...]], ...]
    inline: bool
    titled: bool


def roman(text: str) -> int | None:
    """The value of a Roman numeral up to 89; None when it is not one."""
    text = text.lower()
    if not text or not re.fullmatch(r"l?" + _ROMAN + r"|x?l" + _ROMAN, text):
        return None
    values = {"i": 1, "v": 5, "x": 10, "l": 50}
    total = 0
    for here, after in zip(text, text[1:] + " ", strict=True):
        value = values[here]
        total += -value if values.get(after, 0) > value else value
    return total


def _whole(text: str) -> int:
    if text.isdigit():
        return int(text)
    value = chinese_number(text)
    return 0 if value is None else int(value)


def _letters(text: str) -> tuple[tuple[Style, tuple[int, ...]], ...]:
    readings: list[tuple[Style, tuple[int, ...]]] = []
    lower = text.islower()
    if len(set(text)) == 1 and len(text) <= 2:
        place = ord(text[0].lower()) - 96 + 26 * (len(text) - 1)
        readings.append(("lower" if lower else "upper", (place,)))
    number = roman(text)
    if number:
        readings.append(("roman" if lower else "roman-upper", (number,)))
    return tuple(readings)


def _readings(match: re.Match[str]) -> tuple[tuple[Style, tuple[int, ...]], ...]:
    group = match.group
    kind = match.lastgroup
    if kind == "zh_part":
        unit: dict[str, Style] = {"部分": "part", "编": "part", "分编": "part", "章": "chapter"}
        return ((unit.get(group("zpu"), "division"), (_whole(group("zpn")),)),)
    if kind == "zh_article":
        path = tuple(map(_whole, group("zan").split(".")))
        return (("article" if len(path) == 1 else "dotted", path),)
    if kind == "zh_attachment":
        return (("attachment", (_whole((group("zat") or "0").strip()),)),)
    if kind == "attachment":
        return (("attachment", (0,)),)
    if kind == "article":
        text = group("arn")
        if text[0].isdigit():
            path = tuple(map(int, text.split(".")))
        else:
            number = roman(text)
            path = (number,) if number else ()
        word = group("arw").lower()
        style: Style = {"part": "part", "chapter": "chapter"}.get(word, "article")  # type: ignore[assignment]
        if not path:
            return ()
        return (("dotted" if len(path) > 1 else style, path),)
    if kind == "han":
        return (("han", (_whole(group("hn")),)),)
    if kind == "han_paren":
        return (("han-paren", (_whole(group("hpn")),)),)
    if kind == "circle":
        return (("circle", (ord(group("circle")) - 0x245F,)),)
    if kind == "digit_paren":
        return (("digit-paren", (int(group("dpn")),)),)
    if kind == "letter_paren":
        return _letters(group("lpn"))
    if kind == "dotted":
        return (("dotted", tuple(map(int, group("dn").split(".")))),)
    if kind == "single":
        return (("dotted", (int(group("sn")),)),)
    text = group("hfn")
    return (("digit-half", (int(text) if text.isdigit() else ord(text) - 96,)),)


def _is_reference(kind: str, rest: str, before: str, *, headed: bool) -> bool:
    """Whether a number followed by `rest` and preceded by the line `before` is a reference;
    `headed`: that line is the heading above it."""
    after = rest.lstrip(" \t\u3000")
    if kind.startswith("zh_") and kind != "zh_attachment":
        return bool(_ZH_REFERENCE.match(rest))
    if kind in ("article", "attachment"):
        if after[:1].islower() or after[:1] in ("(", ",", ";", ")"):
            return True
        return bool(_OPEN_END.search(before))
    if kind in ("dotted", "single"):
        if _UNIT.match(rest) or _ZH_REFERENCE.match(rest):
            return True
        if (
            kind == "dotted"
            and after[:1].islower()
            and not before.rstrip().endswith((".", ":", ";"))
        ):
            return True
        return not headed and bool(_OPEN_END.search(before))
    if kind == "zh_attachment":
        return bool(rest) and not re.match(r"[\s::.、《（(]|$", rest)
    return False


def _is_heading_of(line: str, number: str) -> bool:
    """Whether a line is the heading of the clause above the clause `number`."""
    above = number.rpartition(".")[0]
    return line.strip().startswith((f"{above}. ", f"{above} "))


def _candidate(source: str, text: str, start: int, inline: bool) -> Candidate | None:
    match = _LINE.match(text, start)
    if match is None:
        return None
    kind = match.lastgroup or ""
    rest = text[match.end() : match.end() + _LINE_CHARS].split("\n", 1)[0]
    previous = text[max(0, start - 120) : start].rstrip()
    before = previous[previous.rfind("\n") + 1 :]
    if inline and kind not in ("dotted", "single", "article"):
        return None
    # "7. Break clause" ends in a word of reference, and 7.1 below it is a clause all the same.
    headed = kind == "dotted" and _is_heading_of(before, match["dn"])
    if _is_reference(kind, rest, before, headed=headed) or _TOC.search(rest[-_TOC_CHARS:]):
        return None
    readings = tuple(
        (style, path)
        for style, path in _readings(match)
        if style == "attachment" or all(0 < part < _MOST for part in path)
    )
    if not readings:
        return None
    titled = len(rest.strip()) < 60 and not re.search(r"[,;，；]", rest)
    return Candidate(
        start, match.end(), source[start : match.end()].strip(), readings, inline, titled
    )


def candidates(text: str) -> Iterator[Candidate]:
    """Possible clause starts of `text` in order."""
    folded = fold_width(text)
    places = {match.end(): False for match in _LINE_START.finditer(folded)}
    for match in _INLINE.finditer(folded):
        places.setdefault(match.end(), True)
    for start in sorted(places):
        found = _candidate(text, folded, start, places[start])
        if found is not None:
            yield found


def capital_headings(text: str) -> Iterator[Candidate]:
    """Lines in capitals that stand once: headings of contracts without numbers."""
    lines = [(match.start(), match.group().strip()) for match in re.finditer(r"[^\n]+", text)]
    seen: dict[str, int] = {}
    for _, line in lines:
        seen[line] = seen.get(line, 0) + 1
    for start, line in lines:
        if seen[line] == 1 and _CAPS.match(line):
            place = text.index(line, start)
            yield Candidate(place, place, "", (("caps", (0,)),), False, True)
