"""Fits `retrieval/case_cues.toml`: whether a court's account of a case answers a question.

    python -m scripts.fit_cases DIR/zh_qa/cail2019_rc.jsonl [--write] [--refused 0.8]

A logistic regression over the features of `retrieval.cases` and the runs of one to three characters
in which people ask, of which the strongest are kept and fitted again. A run counts when questions
about at least three cases hold it, so that names and single matters drop out. With --write the
weights go into the package; the bias of each kind of question (yes or no, and the others) is set so
that the share --refused of its unanswerable questions is refused when left out. Prints the refusals
on cases that the weights were not fitted on (ten folds) and on those they were.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from retrieval import cases

_KEPT = 600
_FEWEST_CASES = 3
_PENALTY = 0.2
_WORDING_SCALE = 0.7
"""Wordings are penalised twice as much as the features."""
_FOLDS = 10
_TARGET = Path(cases.__file__).with_name("case_cues.toml")
_HEAD = """\
# Weights of the question wordings and features of `retrieval.cases`, by scripts/fit_cases.py:
# runs of one to three characters, ^ the start of the question. A wording above 0 speaks for an
# answer in the account, one below 0 for none; names and figures are left out.

"""
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Questions: their case, kind, whether it answers, features, wordings."""

    case: list[str]
    kind: NDArray[np.str_]
    answerable: Vector
    features: Vector
    wordings: list[set[str]]


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights on the log odds."""

    bias: float
    features: Vector
    wordings: Mapping[str, float]

    def odds(self, rows: Rows, chosen: Sequence[int]) -> Vector:
        """Log odds of the chosen rows."""
        cues = [sum(self.wordings.get(w, 0.0) for w in rows.wordings[i]) for i in chosen]
        found: Vector = self.bias + rows.features[list(chosen)] @ self.features + np.array(cues)
        return found


def read(path: Path) -> Rows:
    """All questions of a set in the form of the evaluation data."""
    case, kinds, answerable, features, wordings = [], [], [], [], []
    for line in path.open(encoding="utf-8"):
        data = json.loads(line)
        for question in data["qas"]:
            found = cases.features(question["question"], data["text"])
            case.append(data["doc_id"])
            kinds.append(cases.kind(question["question"]))
            answerable.append(float(not question["is_impossible"]))
            features.append([found[name] for name in cases.FEATURES])
            wordings.append(cases.wordings(question["question"]))
    return Rows(case, np.array(kinds), np.array(answerable), np.array(features), wordings)


def common(rows: Rows, chosen: Sequence[int]) -> list[str]:
    """Wordings that the questions about several cases share."""
    held: dict[str, set[str]] = defaultdict(set)
    for index in chosen:
        for wording in rows.wordings[index]:
            held[wording].add(rows.case[index])
    return sorted(wording for wording, found in held.items() if len(found) >= _FEWEST_CASES)


def fit(rows: Rows, chosen: Sequence[int]) -> Fit:
    """Fits all common wordings, keeps the strongest, fits those again."""
    scale = rows.features[list(chosen)].std(0) * 2 + 1e-9
    wordings = common(rows, chosen)
    for kept in (_KEPT, None):
        held = [
            [_WORDING_SCALE * (word in rows.wordings[index]) for word in wordings]
            for index in chosen
        ]
        x = np.hstack([rows.features[list(chosen)] / scale, np.array(held)])
        model = LogisticRegression(C=_PENALTY, max_iter=3000).fit(x, rows.answerable[list(chosen)])
        weights = model.coef_[0]
        of_wordings = weights[len(scale) :] * _WORDING_SCALE
        if kept is not None:
            order = np.argsort(-np.abs(of_wordings), kind="stable")[:kept]
            wordings = [wordings[place] for place in sorted(order)]
    return Fit(
        float(model.intercept_[0]),
        weights[: len(scale)] / scale,
        dict(zip(wordings, map(float, of_wordings), strict=True)),
    )


def left_out(rows: Rows) -> Vector:
    """Log odds of every question by weights that did not see its case."""
    odds = np.zeros(len(rows.case))
    for train, test in GroupKFold(_FOLDS).split(rows.features, rows.answerable, rows.case):
        odds[test] = fit(rows, list(train)).odds(rows, list(test))
    return odds


def borders(rows: Rows, odds: Vector, share: float) -> dict[str, float]:
    """For each kind of question the log odds below which lies that share of its unanswerable
    ones."""
    return {
        kind: float(np.quantile(odds[(rows.kind == kind) & (rows.answerable == 0)], share))
        for kind in sorted(set(rows.kind))
    }


def shifted(rows: Rows, odds: Vector, border: Mapping[str, float]) -> Vector:
    """Log odds counted from the border of each question's kind."""
    borders: Vector = np.array([border[kind] for kind in rows.kind])
    return odds - borders


def figures(rows: Rows, odds: Vector) -> dict[str, float]:
    """Shares refused at log odds below 0, and the area under the curve."""
    yes = rows.answerable > 0
    return {
        "area": round(float(roc_auc_score(rows.answerable, odds)), 3),
        "refused": round(float((odds[~yes] < 0).mean()), 3),
        "false_refusals": round(float((odds[yes] < 0).mean()), 3),
    }


def figures_of(rows: Rows, odds: Vector, kind: str) -> dict[str, float]:
    """`figures` of one kind of question."""
    of = rows.kind == kind
    wordings = [words for words, inside in zip(rows.wordings, of, strict=True) if inside]
    case = [name for name, inside in zip(rows.case, of, strict=True) if inside]
    chosen = Rows(case, rows.kind[of], rows.answerable[of], rows.features[of], wordings)
    return figures(chosen, odds[of])


def written(found: Fit, border: Mapping[str, float]) -> str:
    """The file of weights."""
    lines = ["[bias]", *(f"{kind} = {found.bias - at:.3f}" for kind, at in border.items())]
    lines += ["", "[features]"]
    lines += [f"{n} = {w:.3f}" for n, w in zip(cases.FEATURES, found.features, strict=True)]
    lines += ["", "[wordings]"]
    strongest = sorted(found.wordings.items(), key=lambda item: (item[1], item[0]))
    lines += [f'"{word}" = {weight:.3f}' for word, weight in strongest]
    return _HEAD + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--refused", type=float, default=0.8)
    args = parser.parse_args()
    rows = read(args.data)
    odds = left_out(rows)
    curve = {
        str(share): figures(rows, shifted(rows, odds, borders(rows, odds, share)))
        for share in (0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
    }
    border = borders(rows, odds, args.refused)
    whole = fit(rows, range(len(rows.case)))
    if args.write:
        _TARGET.write_text(written(whole, border), encoding="utf-8")
    apart = shifted(rows, odds, border)
    report = {
        "left_out": figures(rows, apart),
        "left_out_by_kind": {kind: figures_of(rows, apart, kind) for kind in border},
        "fitted": figures(rows, shifted(rows, whole.odds(rows, range(len(rows.case))), border)),
        "left_out_by_share_refused": curve,
    }
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
