"""Learned cues: how contracts word about eighty legal matters (`cues.json`).

For each matter a linear model says how much a sentence reads like the clauses that lawyers marked
for it; a question is matched to a matter by the words in which it was asked. Two more linear models
judge quotes and whole answers for matched questions. The weights come from `scripts.fit_cues`
(method and figures in docs/benchmarks/retrieval.md); only general wording is kept. It knows English
contracts, and no document: sentences are scored in `cue_index`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from retrieval.cue_terms import Wording
from retrieval.errors import RetrievalError
from retrieval.query import Query, read_question

_FILE = Path(__file__).with_name("cues.json")
_KEYS = {"asks", "bias", "lean", "cues"}
_UNLIKE, _ALIKE = 0.55, 0.75
"""Cosines of a question with the wording of a matter below and above which it is none or all."""
_AS_GOOD = 0.9
"""A second matter counts when it is matched at least this share as well as the best one."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear model over named features; a feature that it does not name counts nothing."""

    bias: float
    weights: Mapping[str, float]

    def odds(self, found: Mapping[str, float]) -> float:
        """The log odds that `found` give; KeyError when one that the model names is missing."""
        return self.bias + sum(weight * found[name] for name, weight in self.weights.items())


@dataclass(frozen=True, slots=True)
class Matter:
    """One legal matter: how it is asked for, and the weights of its wording in contracts. `lean`:
    log odds that contracts answer it, beside all that is seen of one contract."""

    name: str
    asks: tuple[str, ...]
    bias: float
    cues: Mapping[str, float]
    lean: float = 0.0


@dataclass(frozen=True, slots=True)
class Matched:
    """Matter number `place` of the model, matched with `strength` in (0, 1]."""

    place: int
    strength: float


class CueModel:
    """All matters; `columns` numbers their wording, `wordings` are their first ways to be asked
    for. `quote` gives the log odds that a quote
    answers, `answer` that the document does (features in `ranking` and `support`)."""

    def __init__(self, matters: Sequence[Matter], quote: Linear, answer: Linear) -> None:
        self.matters = tuple(matters)
        self.quote = quote
        self.answer = answer
        known = sorted({term for matter in matters for term in matter.cues})
        self.columns = {term: column for column, term in enumerate(known)}
        self.wording = Wording(known)
        weights = np.zeros((len(known), len(matters)), dtype=np.float32)
        for place, matter in enumerate(matters):
            for term, weight in matter.cues.items():
                weights[self.columns[term], place] = weight
        self._weights = weights
        self._bias = np.array([matter.bias for matter in matters], dtype=np.float32)
        self.wordings = tuple(
            read_question(matter.asks[0]) if matter.asks else None for matter in matters
        )
        asked = [
            (place, read_question(ask).terms)
            for place, matter in enumerate(matters)
            for ask in matter.asks
        ]
        holding: Counter[str] = Counter()
        for place in range(len(matters)):
            holding.update({term for of, terms in asked for term in terms if of == place})
        self._size = len(matters)
        self._holding = holding
        self._asked = [(place, self._vector(terms)) for place, terms in asked]

    def _vector(self, terms: Mapping[str, float]) -> dict[str, float]:
        """`terms` weighted by how few matters they are asked with, unit length."""
        weighted = {
            term: weight * math.log((self._size + 1) / (self._holding[term] + 0.5))
            for term, weight in terms.items()
        }
        length = math.sqrt(sum(weight * weight for weight in weighted.values()))
        return {term: weight / length for term, weight in weighted.items()} if length else {}

    def match(self, query: Query) -> tuple[Matched, ...]:
        """The matters that the question asks for, best first; empty when it is like none."""
        asked = self._vector(query.terms if query.own is None else query.own)
        best: dict[int, float] = {}
        for place, vector in self._asked:
            alike = sum(weight * asked.get(term, 0.0) for term, weight in vector.items())
            best[place] = max(best.get(place, 0.0), alike)
        top = max(best.values(), default=0.0)
        found = sorted(
            (
                Matched(place, min(1.0, (alike - _UNLIKE) / (_ALIKE - _UNLIKE)))
                for place, alike in best.items()
                if alike > _UNLIKE and alike >= _AS_GOOD * top
            ),
            key=lambda one: (-best[one.place], one.place),
        )
        return tuple(found)

    def scores(self, sentences: csr_matrix) -> NDArray[np.float32]:
        """Log odds of each sentence (row, columns as in `columns`) for each matter (column)."""
        return np.asarray(sentences @ self._weights + self._bias, dtype=np.float32)


def read_cues(path: Path) -> CueModel:
    """Reads a file of cues. Raises RetrievalError when it has an unknown key or lacks one."""
    data = json.loads(path.read_text(encoding="utf-8"))
    if set(data) != {"quote", "answer", "matters"}:
        raise RetrievalError(f"{path.name}: must have the keys quote, answer and matters")
    matters = []
    for name, entry in data["matters"].items():
        if set(entry) != _KEYS:
            raise RetrievalError(f"{path.name}: {name} must have exactly the keys {sorted(_KEYS)}")
        matters.append(
            Matter(
                name, tuple(entry["asks"]), float(entry["bias"]), entry["cues"],
                float(entry["lean"]),
            )
        )  # fmt: skip
    quote, answer = (Linear(data[key]["bias"], data[key]["weights"]) for key in ("quote", "answer"))
    return CueModel(matters, quote, answer)


@lru_cache(maxsize=1)
def cue_model() -> CueModel:
    """The cues shipped with the package, read once."""
    return read_cues(_FILE)
