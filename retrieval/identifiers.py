"""Things that a question names exactly: a rating ("a 36 kV panel"), an ordinal ("the third
instalment", 第三条生产线), an item code ("B-205"), a defined term, a name.

A document that speaks of others of the same kind and never of this one does not answer for it,
however many words it shares with the question. A number in a comparison ("more than 40 kg") and
a length of time are no such thing. It knows spellings, not meanings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from retrieval.folding import fold, fold_in_place, fold_width
from retrieval.kept import kept_by_identity
from retrieval.numerals import NUMERAL_CLASS, chinese_number
from retrieval.passages import is_row
from retrieval.stems import stem, words
from retrieval.vocabulary import vocabulary
from retrieval.wordlists import word_list

_UNITS = (
    r"[kmg]?va?|[km]?a|[kmgt]?wh?|[km]?hz|[kcmµu]?m[²³23]?|[km]?g|lbs?|oz|ft|inch(?:es)?|tons?|tonnes?"
    r"|m?l|lit(?:er|re)s?|gallons?|[kmgt]b(?:ps)?|[km]?pa|bar|psi|rpm|hp|°c|db|mah|µ?f|ω"
)
_ZH_UNITS = (
    "千伏|伏|安培?|千瓦时?|兆瓦|瓦|毫米|厘米|米|公里|平方米|立方米|公斤|千克|克|吨|升|毫升|兆帕|马力"
    "|赫兹|分贝"
)
_RATING = re.compile(
    rf"(?:\b(?:an?|the|each|every|per|one|our|your)\s+)(?P<n>\d+(?:[.,]\d+)?)[\s-]?(?P<u>{_UNITS})"
    r"\s+(?!or\b|and\b|of\b|to\b|for\b|per\b|before\b|after\b|in\b|at\b|limit)[a-z]"
)
_ZH_RATING = re.compile(
    rf"(?<![于过到足满约超\d.])(?P<n>\d+(?:\.\d+)?)\s?(?P<u>{_ZH_UNITS}|(?:{_UNITS})(?![a-z]))"
    r"的?(?=[\u4e00-\u9fff])(?![以之]?[上下内外]|是|以|吗|的?(?:时候|话))"
)
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
)  # fmt: skip
_ORDINAL = re.compile(
    rf"\b(?P<o>{'|'.join(_ORDINALS)}|\d{{1,2}}(?:st|nd|rd|th))\s+(?P<w>[a-z]{{3,}})(?:\s+(?P<x>[a-z]{{3,}}))?"
)
_ZH_ORDINAL = re.compile(
    rf"第(?P<n>[{NUMERAL_CLASS}]{{1,3}}|\d{{1,2}})(?P<c>条(?=生产|[线船路街河管道])|[台批期次套笔轮段层座幢栋]|阶段|标段|个|号)"
    r"(?P<w>(?:生产线|[\u4e00-\u9fff]{0,2}))"
)
_CODE = re.compile(r"(?<![A-Za-z0-9])(?P<p>[A-Z]{1,4})(?P<s>-?)(?P<d>\d{2,6})(?![A-Za-z0-9-])")
_DEFINED = re.compile(r"\bmean|\bdefin|是指|指什么|指的是|什么意思|定义|含义|何谓|什么叫")
_QUOTED = re.compile(r"[\"“「]([^\"“”」]{2,60})[\"”」]")
_NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z][a-z]{2,}(?:\s+(?=[A-Z]))?){2,4}")


@dataclass(frozen=True, slots=True)
class Identifier:
    """Something named exactly, as the question writes it. `absent_from` tells whether a document
    is silent on it; for ratings, ordinals and codes only where it holds others of the kind."""

    surface: str
    absent_from: Callable[[Reading], bool]


class Reading:
    """A document's text in the spellings that identifiers are looked for in, each made when it is
    first needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def wide(self) -> str:
        return fold_width(self._text)

    @cached_property
    def folded(self) -> str:
        return fold(self._text)

    @cached_property
    def squeezed(self) -> str:
        return re.sub(r"\s+", " ", self.folded)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(word.stem for word in words(self.folded))

    def knows(self, word: str) -> bool:
        """Whether the document has an English word, in another form or slightly misspelt too."""
        wanted = stem(word)
        return wanted in self._words or bool(get_close_matches(wanted, self._words, 1, 0.85))


def _rating(match: re.Match[str], question: str) -> Identifier:
    number, unit = match["n"].replace(",", "."), match["u"]

    def absent(document: Reading) -> bool:
        pattern = rf"(?<![\d.,])(\d+(?:[.,]\d+)?)[\s-]?{re.escape(unit)}(?![a-z])"
        found = {m[1].replace(",", ".") for m in re.finditer(pattern, document.folded)}
        # A table may state the unit in its header only.
        cells = rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)"
        bare = any(is_row(line) and re.search(cells, line) for line in document.folded.split("\n"))
        return bool(found) and number not in found and not bare

    return Identifier(question[match.start("n") : match.end("u")], absent)


def _place(word: str) -> int:
    if word in _ORDINALS:
        return _ORDINALS.index(word) + 1
    return int(re.sub(r"\D", "", word))


def _ordinal(match: re.Match[str]) -> Identifier | None:
    place, noun = _place(match["o"]), match["x"] or match["w"]
    uncounted = word_list("uncounted_english")
    if place < 2 or match["w"] in uncounted or noun in uncounted:
        return None
    wanted = stem(match["w"])

    def absent(document: Reading) -> bool:
        places = {
            _place(m["o"]) for m in _ORDINAL.finditer(document.squeezed) if stem(m["w"]) == wanted
        }
        return bool(places) and max(places) < place

    return Identifier(f"{match['o']} {match['w']}", absent)


def _number(text: str) -> int:
    return int(text) if text.isdigit() else int(chinese_number(text) or 0)


def _zh_ordinal(match: re.Match[str]) -> Identifier | None:
    place, kind = _number(match["n"]), match["c"]
    noun = match["w"] if match["w"] == "生产线" else match["w"][:1] if kind == "条" else ""
    if place < 2 or (kind in ("个", "号") and not match["w"]):
        return None
    counted = noun or (match["w"][:2] if kind in ("个", "号", "次") else "")

    def absent(document: Reading) -> bool:
        tail = re.escape(kind + counted)
        rows = re.findall(rf"第([{NUMERAL_CLASS}]{{1,3}}|\d{{1,2}}){tail}", document.folded)
        sums = re.findall(rf"(?<!第)([{NUMERAL_CLASS}]{{1,3}}|\d{{1,2}}){tail}", document.folded)
        known = [_number(found) for found in [*rows, *sums]]
        return bool(rows) and max(known) < place

    return Identifier(f"第{match['n']}{kind}{counted}", absent)


def _code(match: re.Match[str]) -> Identifier:
    prefix, digits = match["p"], match["d"]

    def absent(document: Reading) -> bool:
        found = {m["d"] for m in _CODE.finditer(document.wide) if m["p"] == prefix}
        return len(found) > 1 and digits not in found

    return Identifier(match.group(), absent)


def _term(term: str) -> Identifier:
    def absent(document: Reading) -> bool:
        if re.sub(r"\s+", " ", fold(term)).strip() in document.squeezed:
            return False
        # A term in another form, or misspelt, is not absent.
        parts = re.findall(r"[a-z][a-z0-9]+", fold(term))
        return not parts or not all(map(document.knows, parts))

    return Identifier(term, absent)


def _name(name: str) -> Identifier:
    parts = fold(name).split()

    def absent(document: Reading) -> bool:
        return not any(document.knows(part) for part in parts)

    return Identifier(name, absent)


def _is_legal(name: str) -> bool:
    """Whether capitalised words are a legal idea ("Force Majeure") and no name."""
    folded = fold(name)
    return any(vocabulary().in_documents.mentions(folded, words(folded)))


def identifiers(question: str) -> Iterator[Identifier]:
    """What the question names exactly, in no fixed order."""
    folded, wide = fold_in_place(question), fold_width(question)
    for pattern in (_RATING, _ZH_RATING):
        yield from (_rating(match, question) for match in pattern.finditer(folded))
    for read, pattern in ((_ordinal, _ORDINAL), (_zh_ordinal, _ZH_ORDINAL)):
        yield from filter(None, map(read, pattern.finditer(folded)))
    yield from map(_code, _CODE.finditer(wide))
    if _DEFINED.search(folded):
        yield from map(_term, _QUOTED.findall(question))
    lower = sum(word[:1].islower() for word in wide.split())
    # In a question written in capitals, capitals tell nothing.
    if 2 * lower > len(wide.split()):
        unquoted = _QUOTED.sub(" ", wide)
        names = (match.group().strip() for match in _NAME.finditer(unquoted))
        yield from (_name(name) for name in names if not _is_legal(name))


@kept_by_identity(4)
def _reading(text: str) -> Reading:
    """The spellings of the documents asked last: making them takes longer than a question."""
    return Reading(text)


def absent_things(text: str, question: str) -> tuple[str, ...]:
    """What the question names exactly and `text` never speaks of, as the question writes it."""
    named = list(identifiers(question))
    if not named:
        return ()
    document = _reading(text)
    return tuple(dict.fromkeys(one.surface for one in named if one.absent_from(document)))
