"""Defined terms of a contract and where each is defined: "Fee" means…, (the "Supplier"),
本合同所称…, “质保期”是指….

Knows how definitions are written. Does not know which of two definitions of one term applies, and
takes the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.kept import kept_by_identity
from retrieval.sentences import Span, split

_OPEN, _CLOSE = '["“「]', '["”」]'
_TITLED = r"[A-Z][\w'’-]*(?:[ ](?:(?:of|and|or|for|the|to)[ ])?[A-Z][\w'’-]*){0,5}"
_ZH_MEANS = "(?:是指|系指|意指|指的是|指(?![示定派]))"
_STATED = re.compile(
    rf"""
    {_OPEN}(?P<quoted>[A-Z][^"”“\n]{{1,60}}?){_CLOSE}\s*(?:\([^)\n]{{0,80}}\)\s*)?
        (?:shall\s+|will\s+)?
        (?:means?\b|ha(?:s|ve)\s+the\s+meaning|refers?\s+to|is\s+defined\s+as)
  | (?:^|(?<=\n)|(?<=[.;]\s))[ \t]*(?:\(?[a-z0-9.]{{1,5}}[).]?\s+)?(?P<plain>{_TITLED})
        \s+(?:shall\s+)?means?\b
  | {_OPEN}(?P<zh_quoted>[^"”」“\n]{{1,20}}){_CLOSE}\s*
        (?:[（(][^)）\n]{{0,40}}[)）]\s*)?[：:，,]?\s*
        {_ZH_MEANS}
  | 所称的?{_OPEN}?(?P<zh_called>[^，,。"”」“：:\n]{{2,20}}?){_CLOSE}?[，,：:]?\s*
        {_ZH_MEANS}
  | (?:^|(?<=\n)|(?<=[。；]))\s*(?:[\d.、()（）一二三四五六七八九十]{{1,6}}\s*)?
        (?P<zh_plain>[\u4e00-\u9fffA-Za-z]{{2,16}}?)\s*[：:]?\s*(?:是指|系指|意指)
  | (?:^|(?<=\n))\s*(?:[\d.、()（）一二三四五六七八九十]{{1,6}}\s*)?
        (?P<zh_line>[\u4e00-\u9fffA-Za-z]{{2,16}}?)\s*[：:]\s*指(?![示定派])
    """,
    re.VERBOSE,
)
_NAMED = re.compile(
    rf"\((?:hereinafter\s+|collectively,?\s+|together,?\s+|each,?\s+|referred\s+to\s+as\s+)*"
    rf"(?:an?\s+|the\s+)?(?:{_OPEN}(?P<quoted>[A-Z][^\"”“\n]{{1,60}}?){_CLOSE}"
    rf"|(?<=the\s)(?P<plain>{_TITLED}))\)"
    rf"|(?:以下简称|下称|简称)[为：:]?\s*{_OPEN}?(?P<zh>[^\"”」，。）)\n]{{2,16}}){_CLOSE}?[）)]"
)
_NO_TERM = re.compile(
    r"(?:this |the )?(?:agreement|contract|part(?:y|ies)|company|section|clause|article|it|this"
    r"|which|that)|本?合同|本?协议|双方|各方|甲方|乙方",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\bmeans?\b|\bha(?:s|ve)\s+the\s+meaning|\brefers?\s+to|\bis\s+defined\s+as"
    rf"|{_ZH_MEANS}"
)
_TERM_CHARS = 160
_MAX_CHARS = 600


@dataclass(frozen=True, slots=True)
class Definition:
    """`text[start:end]` defines `term`. `stated`: the sentence says what it means; else it only
    gives a name to what stands before it in brackets."""

    term: str
    start: int
    end: int
    stated: bool

    def stands_in(self, text: str, *, any_case: bool = False) -> bool:
        """Whether `text` uses the term, as a whole word; in a question the case may differ."""
        plain = self.term.isascii()
        edge = (r"(?<![A-Za-z])", r"(?:s|es)?(?![A-Za-z])") if plain else ("", "")
        flags = re.IGNORECASE if any_case else 0
        spelled = r"\s+".join(map(re.escape, self.term.split()))
        return bool(re.search(edge[0] + spelled + edge[1], text, flags))


@kept_by_identity(32)
def find_definitions(text: str) -> tuple[Definition, ...]:
    """Every defined term once, in the order of the document."""
    found: dict[str, Definition] = {}
    stated = [(match, True) for match in _stated(text)]
    for match, says in (*stated, *((match, False) for match in _NAMED.finditer(text))):
        name = next(filter(None, match.groups()), "").strip(" ,.，。")
        if name in found or len(name) < 2 or _NO_TERM.fullmatch(name):
            continue
        at = match.start() + len(match[0]) - len(match[0].lstrip())
        span = _sentence(text, at, match.end(), whole=not says)
        found[name] = Definition(name, *span, says)
    return tuple(sorted(found.values(), key=lambda definition: definition.start))


def _stated(text: str) -> Iterator[re.Match[str]]:
    """Statements of a meaning. Only the few characters before each verb are looked at: the whole
    pattern over a long document takes a hundred times as long."""
    for verb in _VERB.finditer(text):
        begin = max(0, verb.start() - _TERM_CHARS)
        for match in _STATED.finditer(text, begin, verb.end()):
            if match.end() == verb.end():
                yield match


def _sentence(text: str, start: int, end: int, *, whole: bool) -> Span:
    """The sentence around a definition; one that states a meaning begins at its term."""
    left = max(text.rfind("\n", 0, start) + 1, start - _MAX_CHARS) if whole else start
    right = min(len(text), end + _MAX_CHARS)
    for span in split(text, left, right):
        if span[0] <= start and end <= span[1] + 1:
            return span
    return start, end
