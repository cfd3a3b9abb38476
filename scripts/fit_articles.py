"""Finds the weights of `retrieval.statutes` by search over the questions on statutes.

    python -m scripts.fit_articles DIR/zh_qa/statute_qa.jsonl

Goes up and down with one weight after the other as long as more questions are answered by one of
the first one, three and five passages, which is what counts; a regression over the same features
learns the golds' habits instead. Statutes are put into folds, the Civil Code into two by the place
of the answer; each fold is measured with weights found on the others. Prints those weights, the
weights found on all, and the shares of right passages at 1, 3 and 5.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eval.metrics.retrieval import overlaps
from eval.types import Span
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.query import read_question
from retrieval.statutes import WEIGHTS, Articles
from retrieval.types import Document, DocumentPage

_COUNTED = {1: 0.2, 3: 0.5, 5: 0.3}
_STEP: Mapping[str, float] = {
    "covered": 0.3, "near": 0.3, "kind": 0.15, "length": 0.05, "purpose": 0.25, "grade": 0.25,
    "chapter": 0.15,
}  # fmt: skip
"""First step of each weight; the match of words is the unit."""
_START: Mapping[str, float] = {
    "words": 0.6, "covered": 1.0, "near": 0.4, "kind": 0.2, "length": 0.1, "purpose": -0.5,
    "grade": 0.4, "chapter": 0.25,
}  # fmt: skip
"""Set by hand, so that the weights in use, found on all statutes, do not leak into a fold."""
_SAMPLE = 600
_SEED = 2
Weights = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the features of its articles."""

    articles: Articles
    golds: list[Span]
    features: Mapping[int, Mapping[str, float]]
    fold: str
    kind: str

    def hits(self, weights: Weights) -> dict[int, bool]:
        """Whether one of the first 1, 3, 5 passages is right."""
        scores = np.zeros(len(self.articles.spans))
        for place, found in self.features.items():
            scores[place] = sum(weight * found[name] for name, weight in weights.items())
        right = [overlaps(span, self.golds) for span, _, _, _ in self.articles.passages(scores, 5)]
        return {count: any(right[:count]) for count in _COUNTED}


def read(path: Path) -> Iterator[Asked]:
    """All questions of a statute set in lay words."""
    for line in path.open(encoding="utf-8"):
        data = json.loads(line)
        text, title = data["text"], data["title"]
        clauses = outline(text)
        document = Document(text, (DocumentPage(1, 0, len(text)),), title, "text/plain", "zh")
        articles = SearchIndex.build(text, split(document, clauses), clauses).articles
        if articles is None:
            raise SystemExit(f"{path}: {title} does not read as a statute")
        for question in data["qas"]:
            if question["dataset"] == "LawBench 1-1":
                continue
            pairs = zip(question["answer_starts"], question["answers"], strict=True)
            golds = [(start, start + len(answer)) for start, answer in pairs]
            half = "first" if 2 * golds[0][0] < len(text) else "second"
            large = title.endswith("民法典")
            fold = f"{title} {half}" if large else title if len(data["qas"]) > 90 else "others"
            features = articles.features(read_question(question["question"]))
            yield Asked(articles, golds, features, fold, question["dataset"])


def worth(asked: Sequence[Asked], weights: Weights) -> float:
    """What is searched for: right passages, larger groups counting less than their size."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in asked:
        hits = one.hits(weights)
        value = sum(share * hits[count] for count, share in _COUNTED.items())
        groups[one.fold, one.kind].append(value)
    roots = [math.sqrt(len(found)) for found in groups.values()]
    means = [sum(found) / len(found) for found in groups.values()]
    return sum(r * m for r, m in zip(roots, means, strict=True)) / sum(roots)


def search(asked: Sequence[Asked]) -> Weights:
    """Weights found from `_START` by coordinate search."""
    weights = dict(_START)
    best = worth(asked, weights)
    for scale in (1.0, 0.5):
        for name, step in _STEP.items():
            for move in (step * scale, -step * scale, 2 * step * scale):
                tried = {**weights, name: weights[name] + move}
                value = worth(asked, tried)
                if value > best + 1e-4:
                    best, weights = value, tried
                    break
    return weights


def right(asked: Sequence[tuple[Asked, Weights]]) -> dict[str, list[float]]:
    """Shares of right passages at 1, 3, 5 by kind of question."""
    found: dict[str, list[list[bool]]] = defaultdict(list)
    for one, weights in asked:
        hits = list(one.hits(weights).values())
        found[one.kind].append(hits)
        found["all"].append(hits)
    return {
        kind: [round(float(share), 3) for share in np.mean(rows, axis=0)]
        for kind, rows in found.items()
    }


def main() -> int:
    asked = list(read(Path(sys.argv[1])))
    rng = random.Random(_SEED)
    by_fold: dict[str, Weights] = {}
    for fold in sorted({one.fold for one in asked}):
        others = [one for one in asked if one.fold != fold]
        by_fold[fold] = search(rng.sample(others, min(_SAMPLE, len(others))))
    whole = search(rng.sample(asked, min(_SAMPLE, len(asked))))
    report = {
        "weights": {name: round(weight, 3) for name, weight in whole.items()},
        "of_folds": {
            fold: {name: round(weight, 3) for name, weight in found.items()}
            for fold, found in by_fold.items()
        },
        "shipped": right([(one, WEIGHTS) for one in asked]),
        "left_out": right([(one, by_fold[one.fold]) for one in asked]),
    }
    sys.stdout.write(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
