"""Clause numbers of a document, to look up the clauses that a question or a quote names.

"Section 12.3(b)", "第12条" and "第十二条" are looked up by value. It does not know which of two
clauses with one number (contract and annex) is meant: the longer one comes first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from retrieval.clauses import label, path
from retrieval.figures import find_figures
from retrieval.folding import fold, fold_in_place
from retrieval.headings import roman
from retrieval.numerals import chinese_number
from retrieval.types import Clause

_WORD = re.compile(r"^(?:article|section|clause|part|chapter)\s*[-–]?\s*")
_MORE = re.compile(
    r"\s*(?:,|and|or|to|&|、|和|及|或)+\s*(?P<n>\d+(?:\.\d+)*(?:\s?\([a-z0-9]{1,4}\))*)"
)
_ELSEWHERE = re.compile(
    r"\s*(?:\([^)]{0,60}\)\s*)?(?:of|in|under|to)\s+(?:the\s+)?(?!th(?:is|e)\s+(?:agreement|contract)\b"
    r"|this\b|our\b|said\b|agreement\b|contract\b|schedule\b|annex\b)"
    r"(?:[a-z0-9.,&'’-]+\s+){0,6}?(?:acts?|code|law|regulations?|rules?|directive|statute|agreement"
    r"|contract|lease|u\.s\.c|treaty|convention|gdpr|ordinance)\b"
)
_STATUTE = re.compile(
    r"(?:》|法|条例|规定|办法|规则|准则|解释|公约|原合同|原协议|主合同)\s*(?:的|之)?\s*$"
)


def find_references(quote: str) -> tuple[str, ...]:
    """Normal forms (§12.3) of the clauses of its own contract that `quote` refers to, in order.
    References to statutes and to other contracts are left out."""
    folded = fold_in_place(quote)
    return tuple(dict.fromkeys(_references(folded)))


def _references(folded: str) -> Iterator[str]:
    for figure in find_figures(folded):
        written = folded[figure.start : figure.end]
        # Chapters are too long to be shown beside an answer.
        if figure.kind != "clause" or re.search("[章节]", written):
            continue
        if _STATUTE.search(folded[: figure.start]) or _ELSEWHERE.match(folded, figure.end):
            continue
        # The number that opens the quote is its own.
        if figure.start > 0:
            yield figure.value
        end = figure.end
        while (more := _MORE.match(folded, end)) is not None:
            end = more.end()
            if re.match(r"\s*(?:%|days?|months?|years?|日|天|个|年|元)", folded[end:]):
                break
            if not _ELSEWHERE.match(folded, end):
                yield "§" + re.sub(r"\s", "", more["n"])


def normal(number: str) -> str:
    """The normal form (§12.3(b)) of a clause number or label; empty when it has none."""
    folded = fold(number).strip()
    for figure in find_figures(folded):
        if figure.kind == "clause" and figure.start == 0:
            return figure.value + re.sub(r"\s", "", folded[figure.end :]).rstrip(".")
    bare = _WORD.sub("", folded).rstrip(".、 )").lstrip("(")
    value = bare.split("(")[0].rstrip(".、")
    if re.fullmatch(r"\d+(?:\.\d+)*", value):
        return "§" + re.sub(r"\s", "", bare if "(" not in bare else bare + ")")
    chinese = chinese_number(value) if value else None
    if chinese is not None:
        return f"§{int(chinese)}"
    number_value = roman(value) if value else None
    return f"§{number_value}" if number_value else ""


class ClauseNumbers:
    """Looks clauses up by normal form."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        self._found: dict[str, list[Clause]] = defaultdict(list)
        for clause in clauses:
            names = {normal(label(clauses, clause.index))}
            if not clause.number.startswith(("(", "（")):
                names.add(normal(clause.number))
            for name in names - {""}:
                self._found[name].append(clause)
        for listed in self._found.values():
            listed.sort(
                key=lambda clause: (len(path(clauses, clause.index)), -(clause.end - clause.start))
            )
        self.any_numbers = bool(self._found)

    def find(self, reference: str) -> tuple[Clause, ...]:
        """Clauses with the number `reference` (such as §12.3(b)), the most likely first."""
        return tuple(self._found.get(reference, ()))
