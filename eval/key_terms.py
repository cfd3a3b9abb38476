"""Scores key terms against the gold of CUAD: `python -m eval.key_terms cuad.jsonl`.

For each term: precision and recall of its places (a place counts when it shares at least half the
characters of the shorter one with a gold span, or, for names and dates, has the same words), and of
saying "stated" for a document at all. CUAD's annotators did not mark every repetition, so a right
place can count as wrong. CUAD has no gold for the other terms.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.terms.extraction import find_terms
from app.terms.types import KeyTerm, TermName
from retrieval import chunk
from retrieval.clauses import outline
from retrieval.folding import fold
from retrieval.index import SearchIndex
from retrieval.language import detect
from retrieval.types import Document, DocumentPage

Span = tuple[int, int]

CATEGORIES: dict[str, TermName] = {
    "Parties": "parties",
    "Agreement Date": "agreement_date",
    "Effective Date": "effective_date",
    "Expiration Date": "term",
    "Renewal Term": "renewal",
    "Notice Period to Terminate Renewal": "renewal_notice",
    "Governing Law": "governing_law",
    "Cap on Liability": "liability_cap",
    "Termination for Convenience": "termination_for_convenience",
    "Liquidated Damages": "liquidated_damages",
}
"""CUAD's category for each term that it has gold for. Its "Expiration Date" holds whole sentences
about the term."""
_BY_WORDS = ("parties", "agreement_date", "effective_date")


@dataclass(slots=True)
class Tally:
    """Counts over documents: places of ours and of the gold, those that match, and documents by
    whether the term is stated in ours and in the gold."""

    ours: int = 0
    ours_right: int = 0
    gold: int = 0
    gold_found: int = 0
    stated: Counter[str] = field(default_factory=Counter)

    def add(self, text: str, gold: Sequence[Span], ours: Sequence[Span], by_words: bool) -> None:
        """One document."""
        self.ours += len(ours)
        self.gold += len(gold)
        self.ours_right += sum(
            any(_same(text, one, other, by_words) for other in gold) for one in ours
        )
        self.gold_found += sum(
            any(_same(text, one, other, by_words) for other in ours) for one in gold
        )
        self.stated[f"{'yes' if gold else 'no'}-{'yes' if ours else 'no'}"] += 1

    def figures(self) -> dict[str, float | int]:
        """Precision, recall and F1 of places and of documents; NaN without any."""
        places = _rates(self.ours_right, self.ours, self.gold_found, self.gold)
        right = self.stated["yes-yes"]
        documents = _rates(
            right, right + self.stated["no-yes"], right, right + self.stated["yes-no"]
        )
        return {
            **{f"place_{name}": value for name, value in places.items()},
            **{f"stated_{name}": value for name, value in documents.items()},
            "gold_places": self.gold,
            "our_places": self.ours,
            "gold_documents": right + self.stated["yes-no"],
        }


def _rates(right: int, ours: int, found: int, gold: int) -> dict[str, float]:
    precision = right / ours if ours else float("nan")
    recall = found / gold if gold else float("nan")
    total = precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / total if total > 0 else 0.0,
    }


def _same(text: str, one: Span, other: Span, by_words: bool) -> bool:
    shared = min(one[1], other[1]) - max(one[0], other[0])
    if 2 * shared >= min(one[1] - one[0], other[1] - other[0]) > 0:
        return True
    return by_words and _words(text[slice(*one)]) == _words(text[slice(*other)])


def _words(text: str) -> str:
    return re.sub(r"[\W_]+", " ", fold(text)).strip()


def places_of(term: KeyTerm) -> tuple[Span, ...]:
    """What is scored of a term: names and dates themselves, otherwise the sentences."""
    found: dict[Span, None] = {}
    for value in term.values:
        if term.name not in _BY_WORDS:
            found[value.passage.start, value.passage.end] = None
            continue
        for place in (value.words, *value.names):
            if place.start < place.end:
                found[place.start, place.end] = None
    return tuple(found)


def terms_of(text: str) -> tuple[KeyTerm, ...]:
    """The key terms of a text without pages."""
    clauses = outline(text)
    pages = (DocumentPage(1, 0, len(text)),)
    document = Document(text, pages, "document", "text/plain", detect(text))
    index = SearchIndex.build(text, chunk.split(document, clauses), clauses)
    return find_terms(index, clauses, pages)


def measure(lines: Iterable[str]) -> tuple[dict[str, Tally], int]:
    """Tallies by CUAD category over documents, one JSON object a line, and their number."""
    tallies = {category: Tally() for category in CATEGORIES}
    count = 0
    for line in lines:
        document = json.loads(line)
        count += 1
        found = {term.name: places_of(term) for term in terms_of(document["text"])}
        for question in document["qas"]:
            name = CATEGORIES.get(question["category"])
            if name is None:
                continue
            gold = [
                (start, start + len(answer))
                for start, answer in zip(
                    question["answer_starts"], question["answers"], strict=True
                )
            ]
            tallies[question["category"]].add(
                document["text"], gold, found[name], name in _BY_WORDS
            )
    return tallies, count


def main() -> None:
    """Prints a table, or one JSON object with --json."""
    parser = argparse.ArgumentParser(prog="python -m eval.key_terms", description=__doc__)
    parser.add_argument("file", type=Path, help="CUAD documents as JSON Lines with gold spans")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    asked = parser.parse_args()
    started = time.perf_counter()
    with asked.file.open(encoding="utf-8") as lines:
        tallies, count = measure(lines)
    results = {category: tally.figures() for category, tally in tallies.items()}
    if asked.json:
        seconds = time.perf_counter() - started
        body = {"documents": count, "seconds": seconds, "categories": results}
        sys.stdout.write(json.dumps(body) + "\n")
        return
    columns = ("place_precision", "place_recall", "place_f1", "stated_precision", "stated_recall")
    for category, figures in results.items():
        shown = "  ".join(f"{figures[name]:.2f}" for name in (*columns, "stated_f1"))
        sys.stdout.write(f"{category:36} {shown}  {figures['gold_documents']:3}\n")


if __name__ == "__main__":
    main()
