"""Measures comparisons on contracts with planted changes: what is found, what else is reported.

Reads evaluation files (JSONL with a `text` per line) or TXT. With --reprint the new version is also
set anew (other line breaks and quotation marks, page numbers in the middle of sentences).

    python -m eval.comparison_planted DATA... --language en --seeds 2 --least 40000 --reprint
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.comparison_facts import read_facts
from eval.comparison_score import score
from eval.planted_changes import Plant, plant
from eval.reformatting import reprint
from retrieval.clauses import outline
from retrieval.compare import Version, compare
from retrieval.types import DocumentPage, Language


def texts(paths: Sequence[Path], least: int) -> Iterator[str]:
    """The texts of the files, of at least so many characters."""
    for path in paths:
        content = path.read_text(encoding="utf-8")
        lines = content.splitlines() if path.suffix == ".jsonl" else []
        found = [json.loads(line)["text"] for line in lines] if lines else [content]
        yield from (text for text in found if len(text) >= least)


def version(text: str, language: Language) -> Version:
    """A text on one page."""
    return Version(text, outline(text), (DocumentPage(1, 0, len(text)),), language)


def measure(
    contracts: Sequence[str], language: Language, seeds: int, again: bool
) -> dict[str, object]:
    """Counts over all contracts and seeds."""
    planted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    reported = wrong = 0
    slowest = 0.0
    for text in contracts:
        for seed in range(seeds):
            new, plants = plant(text, language, seed)
            if again:
                printed = reprint(new, language, seed)
                new = printed.text
                plants = tuple(
                    Plant(one.kind, one.old, tuple(printed.span(*span) for span in one.new))
                    for one in plants
                )
            started = time.process_time()
            result = compare(version(text, language), version(new, language), read_facts)
            slowest = max(slowest, time.process_time() - started)
            report = score(result, plants)
            planted.update(report.planted)
            found.update(report.found)
            reported += report.reported
            wrong += len(report.wrong)
            for line in report.wrong:
                sys.stderr.write(f"seed {seed}, {text[:40]!r}: wrong {line}\n")
    return {
        "contracts": len(contracts),
        "planted": dict(planted),
        "found": dict(found),
        "recall": sum(found.values()) / max(sum(planted.values()), 1),
        "reported": reported,
        "wrong": wrong,
        "precision": 1 - wrong / max(reported, 1),
        "slowest_cpu_s": round(slowest, 2),
    }


def main() -> None:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--language", choices=("en", "zh"), default="en")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--least", type=int, default=0, help="characters of a contract")
    parser.add_argument("--most", type=int, default=20, help="contracts")
    parser.add_argument("--reprint", action="store_true")
    arguments = parser.parse_args()
    contracts = list(texts(arguments.data, arguments.least))[: arguments.most]
    result = measure(contracts, arguments.language, arguments.seeds, arguments.reprint)
    sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
