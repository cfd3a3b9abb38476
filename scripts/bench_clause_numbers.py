"""How often a clause is cited by the number that it begins with.

    python -m scripts.bench_clause_numbers --data DIR

Places where a text has a number of several levels ("15.3") at the start of a line or behind a wide
space, before a capital letter, count as beginnings of clauses; entries with a page number behind
them are left out. Each is right when the number stands in the label that a quote just behind it
would be cited by. Indexes of terms ("Consent 6.6 Merger 2.1") are counted too and are always wrong,
so that no text with one reaches 1. DIR is laid out as for `scripts.bench_retrieval`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from retrieval.clauses import label_at, outline
from scripts.bench_retrieval import SETS, lines_of

_BEGINS = re.compile(
    r"(?:\n\s*|  +)(?:Section |SECTION )?(\d{1,2}(?:\.\d{1,2}){1,3})\.?\s+(?=[A-Z“\"])"
)
_PAGE = re.compile(r".{0,80}?(?:\.{3}|\s\d{1,3}(?:\s|$))")
_INSIDE = 20
"""Characters behind the number at which a quote may begin."""


def counted(text: str) -> tuple[int, int]:
    """Beginnings of clauses in a text, and how many are cited by their number."""
    clauses = outline(text)
    total = right = 0
    for match in _BEGINS.finditer(text):
        if _PAGE.match(text, match.end(), match.end() + 90):
            continue
        total += 1
        right += match[1] in (label_at(clauses, match.end() + _INSIDE) or "")
    return total, right


def main() -> int:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="contractnli,maud,cuad")
    args = parser.parse_args()
    table = {}
    for name in args.sets.split(","):
        counts = [counted(data["text"]) for data in lines_of(args.data / SETS[name])]
        total, right = (sum(column) for column in zip(*counts, strict=True))
        table[name] = {"numbers": total, "right": right, "share": round(right / total, 3)}
    sys.stdout.write(json.dumps(table, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
