"""Fits the weights of `retrieval.chinese_support` for statutes: does a statute answer a question?

    python -m scripts.fit_statute_support DIR/zh_qa/statute_qa.jsonl

Statutes have no unanswerable questions in the set, so each statute is asked the questions of
statutes on other matters (traffic on bidding, injuries at work on ships) beside its own. Prints the
constants, the bias set so that one in twenty of a statute's own questions is refused, and the
shares refused by weights that did not see the statute.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from retrieval.chinese_support import STATUTE_WEIGHTS, statute_features
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.query import read_question
from retrieval.support import features
from retrieval.types import Document, DocumentPage

_FAMILY = "民法典"
_FAMILY_FROM = 86_000
"""Where the Civil Code begins to speak of persons, family and torts."""
FAR = {
    "招标投标法": ["工伤", "道路交通", _FAMILY],
    "海商法": ["工伤", "道路交通", _FAMILY, "著作权", "物业"],
    "专利法": ["工伤", "道路交通", _FAMILY, "物业"],
    "建筑法": ["著作权", "道路交通", _FAMILY, "保险法"],
    "公司法（2023": ["工伤", "道路交通", _FAMILY, "著作权"],
    "著作权法": ["工伤", "道路交通", _FAMILY],
    "工伤保险": ["著作权", _FAMILY, "物业"],
    "道路交通": ["著作权"],
    "劳动法": ["著作权", "道路交通", _FAMILY],
}
"""Statutes that are asked, and whose questions they cannot answer."""
_OWN, _OTHERS = 150, 12
_FALSE = 0.05


def questions(data: dict[str, Any], start: int = 0) -> list[str]:
    """Questions in lay words whose answer begins behind `start`."""
    return [
        question["question"]
        for question in data["qas"]
        if question["dataset"] != "LawBench 1-1"
        and any(place >= start for place in question["answer_starts"])
    ]


def rows(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.str_]]:
    """Features, answers (1 answerable) and statutes."""
    rng = random.Random(5)
    documents = [json.loads(line) for line in path.open(encoding="utf-8")]
    lists = {data["title"]: questions(data) for data in documents}
    for data in documents:
        if data["title"].endswith(_FAMILY):
            lists[_FAMILY] = questions(data, _FAMILY_FROM)
    found, answers, names = [], [], []
    for data in documents:
        title, text = data["title"], data["text"]
        own = lists[title]
        asked = [(question, 1.0) for question in rng.sample(own, min(len(own), _OWN))]
        for key in next((far for name, far in FAR.items() if title.startswith(name)), []):
            others = lists.get(key) or next(q for t, q in lists.items() if t.startswith(key))
            asked += [(q, 0.0) for q in rng.sample(others, min(len(others), _OTHERS))]
        clauses = outline(text)
        document = Document(text, (DocumentPage(1, 0, len(text)),), title, "text/plain", "zh")
        index = SearchIndex.build(text, split(document, clauses), clauses)
        for question, answer in asked:
            query = read_question(question)
            scores = index.article_scores(query)
            hits = index.find(query, 10, scores)
            passages = index.article_passages(scores) if scores is not None else ()
            if hits and passages:
                wording = features(index, query, hits, passages)
                measured = statute_features(index, query, wording, passages)
                found.append([measured[name] for name in STATUTE_WEIGHTS])
                answers.append(answer)
                names.append(title)
    return np.array(found), np.array(answers), np.array(names)


def fit(x: NDArray[np.float64], y: NDArray[np.float64]) -> LogisticRegression:
    """A logistic regression in which both answers weigh the same."""
    return LogisticRegression(class_weight="balanced").fit(x, y)


def main() -> int:
    x, y, statute = rows(Path(sys.argv[1]))
    odds = np.zeros(len(y))
    for name in sorted(set(statute)):
        model = fit(x[statute != name], y[statute != name])
        odds[statute == name] = model.decision_function(x[statute == name])
    border = float(np.quantile(odds[y > 0], _FALSE))
    model = fit(x, y)
    weights = dict(zip(STATUTE_WEIGHTS, map(float, model.coef_[0].round(3)), strict=True))
    report = {
        "bias": round(float(model.intercept_[0]) - border, 3),
        "weights": weights,
        "questions": [int((y > 0).sum()), int((y == 0).sum())],
        "left_out": {
            "area": round(float(roc_auc_score(y, odds)), 3),
            "refused": round(float((odds[y == 0] < border).mean()), 3),
            "false_refusals": round(float((odds[y > 0] < border).mean()), 3),
        },
    }
    sys.stdout.write(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
