"""Places that a form leaves empty: ____ days, 　　年　　月　　日, [●], [* * *], ×××.

Blacked-out values ("[***]") count as blank too, since nothing can be read there. Knows the look
of a blank only, not what belongs into it.
"""

from __future__ import annotations

import re

from retrieval.folding import fold_width
from retrieval.numerals import ENGLISH_NUMBER_WORDS

_MARK = r"(?:_{2,}|\[\s*(?:[●•_*]\s*)*\]|×+|[xX]{2,}|[─━]{3,}|\.{6,}|…{2,})"
_GAP = r"[ \t\u3000_×xX□●*]{0,30}"
_UNIT = r"(?:万?[元圆]|美元|天|日|个?月|年|[%％]|度|吨|平方米)"
_DATE = rf"(?:(?:19|20|一九|二[〇○零])?{_GAP}年{_GAP}月(?:{_GAP}日)?)"
_BLANK = re.compile(
    rf"{_DATE}|{_MARK}[^\S\n]{{0,4}}{_UNIT}?"
    rf"|(?<=[\u4e00-\u9fff])[^\S\n]{{1,30}}{_UNIT}"
)
_ENGLISH = re.compile(rf"{_MARK}|\$\s*_+")
_HAN = re.compile("[\u3400-\u9fff]")
_EMPTY = re.compile(r"[\s,;:。，；：、.()\[\]□│┃|_×xX─━…●•*-]*")
_COPULA = re.compile(r"(?:[为是]|\b(?:is|are|be|of|at))\s?:?$")
_LABEL = re.compile(r"(?:[^\u3400-\u9fff]*\w[^\u3400-\u9fff]*|.{2,24}):")
_ANNOUNCES = re.compile(
    r"\bfollow|\bbelow\b|\bherein|(?:\S+\s){7}|如下|下列|下述|以下|下表|下面|分别|包括|按照"
)
_GOES_ON = re.compile(
    r"[(\[]?(?:1|a|i|一|①)[)\].、:．]|①|[-•·–—*]\s|.*(?:\s\|\s|\t)|(?!\d+[.、)]\s*\D)[^:]{0,20}?[$€£¥\d]"
    r"|(?:人民币|美元|[A-Z]{3}\s)",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"\s*(?:[(\[]?(?:\d+(?:\.\d+)*|[一二三四五六七八九十]+|[a-z]|[ivx]+)[)\].、]|第[^,。，;]{1,6}[条章节款编]|附[件录表]"
    r"|(?:article|section|clause|schedule|exhibit|annex|appendix)\s+[\divxa-z]|[^\n(]{1,40}:)",
    re.IGNORECASE,
)
_CAPITALS = re.compile(r"[^a-z\u3400-\u9fff]*[A-Z]{4}[^a-z\u3400-\u9fff]*")
_PARTLY = re.compile(r"_{2,}|×|[^\S\n]{3,}|[xX]{3,}|[●□]|\[\s*\*")


def find_blanks(text: str) -> tuple[tuple[int, int], ...]:
    """The blanks of a passage, in order."""
    folded = fold_width(text)
    pattern = _BLANK if _HAN.search(folded) else _ENGLISH
    return tuple(match.span() for match in pattern.finditer(folded))


def is_left_open(line: str, following: str) -> bool:
    """Whether a sentence in plain form ends where a value should stand: "Price:", "合同期限为".

    What goes on behind it, in a list ("as follows:"), a figure or a row of a table, is not blank;
    neither is a line of words right below, unless it is a heading or the label of another place.
    `following` is the text after the sentence.
    """
    if not _COPULA.search(line) and (not _LABEL.fullmatch(line) or _ANNOUNCES.search(line)):
        return False
    folded = fold_width(following)
    if _GOES_ON.match(folded.strip().split("\n", 1)[0]):
        return False
    same, _, below = folded.partition("\n")
    following_line = same if same.strip() else below.split("\n", 1)[0]
    return is_blank(following_line) or _is_heading(following_line)


def _is_heading(line: str) -> bool:
    """Whether a line opens another clause or names another place; "ONE YEAR" is a value."""
    words = re.split(r"[\W_]+", line.lower())
    capitals = _CAPITALS.fullmatch(line) and not ENGLISH_NUMBER_WORDS.intersection(words)
    return bool(capitals or _HEADING.match(line))


def is_blank(text: str) -> bool:
    """Whether nothing but blanks and marks stands here."""
    return bool(_EMPTY.fullmatch(fold_width(text)))


def is_partly_blank(name: str) -> bool:
    """Whether a name has a hole: 中国＿＿＿公司."""
    return is_blank(name) or bool(_PARTLY.search(fold_width(name).strip()))
