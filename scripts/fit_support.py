"""Fits the weights of `retrieval.support` on the records of `scripts.bench_retrieval --out`.

    python -m scripts.fit_support {en,zh} FILE.jsonl...

Takes the questions in one language. A logistic regression with L2 penalty in which evidence can
only raise the support (and missing evidence only lower it), so that the weights stay sensible
outside the sets. Every set counts the same, its answerable and unanswerable questions half each.
Prints the constants, and the shares refused when every other document is left out of the fit.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from retrieval.language import detect
from retrieval.support import THRESHOLD, WEIGHTS

_NAMES = tuple(WEIGHTS["en"])
_FREE = {"length"}
_LOWERING = {"concept_absent", "no_kind"}
_PENALTY = 1.5
_WEIGHT = {"maud": 0.4, "crossed": 0.8, "cuad": 1.3}
Row = dict[str, Any]
Vector = NDArray[np.float64]


def matrix(rows: list[Row]) -> tuple[Vector, Vector, Vector]:
    """Features, answers (1 answerable) and weights of the records."""
    counts = Counter((row["set"], row["impossible"]) for row in rows)
    x = np.array([[row["features"][name] for name in _NAMES] for row in rows])
    y = np.array([0.0 if row["impossible"] else 1.0 for row in rows])
    weights = [
        1000 * _WEIGHT.get(row["set"], 1.0) / counts[row["set"], row["impossible"]] for row in rows
    ]
    return x, y, np.array(weights)


def fit(rows: list[Row]) -> tuple[float, Vector]:
    """Bias and weights in the order of `_NAMES`."""
    x, y, weight = matrix(rows)
    mean, spread = x.mean(0), x.std(0) + 1e-9
    z = (x - mean) / spread

    def loss(p: Vector) -> tuple[float, Vector]:
        raw = z @ p[1:] + p[0]
        value = np.sum(weight * np.logaddexp(0, np.where(y > 0, -raw, raw)))
        slope = weight * (1 / (1 + np.exp(-raw)) - y)
        gradient = np.concatenate([[slope.sum()], z.T @ slope + 2 * _PENALTY * p[1:]])
        return float(value + _PENALTY * np.sum(p[1:] ** 2)), gradient

    bounds: list[tuple[float | None, float | None]] = [(None, None)]
    for name in _NAMES:
        free = name in _FREE
        lowering = name in _LOWERING
        bounds.append((None if free or lowering else 0.0, None if free or not lowering else 0.0))
    start = np.zeros(len(_NAMES) + 1)
    found = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    scaled = found[1:] / spread
    return float(found[0] - scaled @ mean), scaled


def refused(rows: list[Row], bias: float, weights: Vector) -> dict[str, float]:
    """Share refused by set; "+" marks answerable questions."""
    x, _, _ = matrix(rows)
    support = 1 / (1 + np.exp(-(x @ weights + bias)))
    shares = defaultdict(list)
    for row, value in zip(rows, support, strict=True):
        shares[row["set"] + ("-" if row["impossible"] else "+")].append(value < THRESHOLD)
    return {name: round(float(np.mean(found)), 3) for name, found in sorted(shares.items())}


def main() -> int:
    rows: list[Row] = []
    language, *names = sys.argv[1:]
    for name in names:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
        read = [row for row in map(json.loads, lines) if row["features"]]
        rows += [row for row in read if detect(row["question"]) == language]
    order = {doc: place for place, doc in enumerate(dict.fromkeys(row["doc"] for row in rows))}
    even = [row for row in rows if order[row["doc"]] % 2 == 0]
    odd = [row for row in rows if order[row["doc"]] % 2]
    bias, weights = fit(rows)
    report = {
        "bias": round(bias, 3),
        "weights": {n: round(float(w), 3) for n, w in zip(_NAMES, weights, strict=True)},
        "refused": refused(rows, bias, weights),
        "refused_when_left_out": refused(odd, *fit(even)),
    }
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
