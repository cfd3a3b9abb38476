"""Clause numbers of a document, to look up the clauses that a question names.

"Section 12.3(b)", "第12条" and "第十二条" are looked up by value. It does not know which of two
clauses with one number (contract and annex) is meant: the longer one comes first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from retrieval.clauses import label, path
from retrieval.figures import find_figures
from retrieval.folding import fold
from retrieval.headings import roman
from retrieval.numerals import chinese_number
from retrieval.types import Clause

_WORD = re.compile(r"^(?:article|section|clause|part|chapter)\s*[-–]?\s*")


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
