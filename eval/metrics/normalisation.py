"""Tokens that answers are compared by: words and numbers in English, characters in Chinese.

Follows the SQuAD evaluation (lower case, without punctuation and English articles; Rajpurkar et
al., EMNLP 2016) but keeps what it destroys: decimals, percent, sign and currency. `1,500.00` and
`1500` are one token, `15.00%` is neither `1500%` nor `15`, `-5` is not `5`. Full-width forms are
folded. Each Chinese character is a token; numbers and Latin words in Chinese text stay whole.

Does not read numbers in words (thirty, 百分之五): figures are compared in `facts`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import rjieba

from retrieval.types import Language

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IS_HAN = re.compile(f"[{_HAN}]")
_CURRENCY = "$¢£¤¥\u20a0-\u20c0"
_TOKEN = re.compile(
    rf"""
    (?P<number>(?:[0-9]{{1,3}}(?:\.[0-9]{{3}})+,[0-9]{{1,2}}(?![0-9])   # 1.500,00
        |[0-9]{{1,3}}(?:,[0-9]{{3}})+(?:\.[0-9]+)?(?![0-9])             # 1,500.00
        |[0-9]+(?:\.[0-9]+)*                                            # 1500, 12.5, 5.1.2
        |(?<![a-z0-9.])\.[0-9]+))                                       # .5
    (?:\s?(?P<share>%|‰|percent\b|per\s?cent\b))?
  | (?P<han>[{_HAN}])
  | (?P<currency>[{_CURRENCY}])
  | (?P<item>(?<=\()an?(?=\)))
  | (?P<word>[^\W0-9_{_HAN}][^\W_{_HAN}]*(?:\.[0-9]+)*)
    """,
    re.VERBOSE,
)
# Deleting these joins the words beside them, as SQuAD does: "non-exclusive" is one word.
_JOINING = re.compile("[!-/:-@\\[-`{-~‘’“”]+")
_MINUS = re.compile(rf"(?:^|[^\w)\]%.])[{_CURRENCY}]?\s?-[{_CURRENCY}]?$")
_Placed = tuple[str, int, int]
"""A token and its place in the folded text."""
_ARTICLES = frozenset(("a", "an", "the"))
_CLAUSE_WORD = re.compile(
    "(?:section|article|clause|paragraph|schedule|exhibit|part|item)s?|annex|appendix|sec|第"
)


def fold(text: str) -> str:
    """NFKC and lower case, one minus sign; superscripts and fractions don't run into the number
    before them (10² is not 102)."""
    if text.isascii():
        return text.lower()
    apart = "".join(f" {c}" if _stands_apart(c) else c for c in text)
    return unicodedata.normalize("NFKC", apart).lower().replace("−", "-")


def tokens(text: str, language: Language) -> list[str]:
    """Tokens for F1 and exact match, in order, as SQuAD cuts them: words joined by punctuation are
    one, articles are left out. Empty for a text of punctuation and articles."""
    return [token for token, _, _ in _squad_tokens(text, language)]


def word_tokens(text: str, language: Language) -> list[str]:
    """As `tokens`, with each run of Chinese characters cut into dictionary words (rjieba)."""
    return _in_words(_squad_tokens(text, language))


def rouge_tokens(text: str) -> list[str]:
    """Tokens for ROUGE, in order, as its script cuts them: punctuation divides, articles stay."""
    return [token for token, _, _ in _placed(fold(text), join=False)]


def rouge_word_tokens(text: str) -> list[str]:
    """As `rouge_tokens`, with each run of Chinese characters cut into dictionary words (rjieba)."""
    return _in_words(_placed(fold(text), join=False))


def _squad_tokens(text: str, language: Language) -> list[_Placed]:
    folded = fold(text)
    placed = _placed(folded, join=True)
    if language != "en":
        return placed
    return [
        (token, start, end)
        for token, start, end in placed
        # "(a)" numbers an item and is no article.
        if token not in _ARTICLES or folded[max(0, start - 1) : end + 1] == f"({token})"
    ]


def _in_words(placed: Sequence[_Placed]) -> list[str]:
    found: list[str] = []
    run, run_end = "", -1
    for token, start, end in placed:
        if not _IS_HAN.fullmatch(token):
            found += [*rjieba.cut(run), token]
            run = ""
        elif start == run_end:
            run += token
        else:
            found += rjieba.cut(run)
            run = token
        run_end = end
    return [*found, *rjieba.cut(run)]


def _placed(folded: str, *, join: bool) -> list[_Placed]:
    found: list[_Placed] = []
    glue, end = False, 0
    for match in _TOKEN.finditer(folded):
        between = folded[end : match.start()]
        kind = "number" if match["number"] else match.lastgroup or ""
        start, end = match.span()
        if kind == "word" and glue and (not between or _JOINING.fullmatch(between)):
            found[-1] = (found[-1][0] + match["word"], found[-1][1], end)
        elif kind == "number":
            found.append((_number(folded, match, found[-1][0] if found else ""), start, end))
        else:
            found.append((match[kind], start, end))
        glue = join and kind == "word"
    return found


def _stands_apart(character: str) -> bool:
    return unicodedata.decomposition(character).startswith(("<super>", "<sub>", "<fraction>"))


def _number(folded: str, match: re.Match[str], before: str) -> str:
    """A number in one spelling. Clause numbers stay as written: 3.10 is not 3.1 there."""
    written = match["number"]
    if re.fullmatch(r"[0-9.]+,[0-9]{1,2}", written):
        written = written.replace(".", "").replace(",", ".")
    written = written.replace(",", "")
    whole, point, decimals = written.partition(".")
    clause = _CLAUSE_WORD.fullmatch(before)
    if point and "." not in decimals and not clause:
        decimals = decimals.rstrip("0")
        written = (whole or "0") + (f".{decimals}" if decimals else "")
    negative = _MINUS.search(folded, max(0, match.start() - 4), match.start())
    sign = "-" if negative and written.strip("0.") else ""
    share = match["share"] or ""
    return sign + written + ("%" if share.startswith("p") else share)
