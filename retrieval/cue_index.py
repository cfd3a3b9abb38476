"""How much each sentence of one document reads like the answer to a learned matter.

Built once a document; a question then costs one look-up. It does not know the question's own
words: those are counted in `ranking`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from retrieval.cue_terms import cue_sentences
from retrieval.cues import CueModel, Matched
from retrieval.query import Query
from retrieval.sentences import Span
from retrieval.titles import ClauseTitles
from retrieval.types import Chunk, Clause

SURE = 12.0
"""Log odds beyond which more counts no more."""


class CueScores:
    """The sentences of a document for one question. `odds[i]` are the log odds of sentence i,
    times the strength with which the question is matched to a matter. `model` is None and
    `strength` 0 when it is matched to none; `lean` is the matter's, `asked` its own wording of the
    question."""

    def __init__(
        self,
        starts: Sequence[int],
        chunks: NDArray[np.int64],
        odds: NDArray[np.float64],
        model: CueModel | None = None,
        matched: Matched | None = None,
    ) -> None:
        self.model = model if matched is not None else None
        self.strength = matched.strength if matched is not None else 0.0
        best = model.matters[matched.place] if model is not None and matched is not None else None
        self.matter = best.name if best is not None else ""
        self.lean = best.lean if best is not None else 0.0
        self.asked = (
            model.wordings[matched.place] if model is not None and matched is not None else None
        )
        self.odds = odds
        self._chunks = chunks
        self._starts = starts
        ranks = np.empty(len(odds), dtype=np.int64)
        ranks[np.argsort(-odds, kind="stable")] = np.arange(len(odds))
        self._ranks = ranks

    def around(self, span: Span) -> tuple[int, int]:
        """Half-open range of the sentences that begin inside `span`, at least one."""
        first = bisect_left(self._starts, span[0])
        last = bisect_left(self._starts, span[1])
        return (first, last) if last > first else (max(0, first - 1), max(1, first))

    def of(self, span: Span) -> tuple[float, int, float]:
        """Of the best sentence in `span`: its log odds, its rank in the document (from 0), and the
        better log odds of the neighbours. Zeros and the last rank when nothing is matched."""
        if not self.strength or not len(self.odds):
            return 0.0, len(self.odds), 0.0
        first, last = self.around(span)
        best = first + int(np.argmax(self.odds[first:last]))
        beside = [place for place in (first - 1, last) if 0 <= place < len(self.odds)]
        near = max((float(self.odds[place]) for place in beside), default=0.0)
        return float(self.odds[best]), int(self._ranks[best]), near

    def top(self, number: int) -> tuple[float, ...]:
        """The highest log odds in the document, best first."""
        return tuple(float(value) for value in np.sort(self.odds)[::-1][:number])

    def best_chunks(self, number: int) -> dict[int, float]:
        """Chunks of the best sentences with the share of 1 that their best sentence deserves."""
        if not self.strength:
            return {}
        found: dict[int, float] = {}
        for place in np.argsort(-self.odds, kind="stable")[:number]:
            likely = self.strength / (1.0 + float(np.exp(-self.odds[place])))
            found.setdefault(int(self._chunks[place]), likely)
        return found


class CueIndex:
    """Scores of every sentence of a document for every matter; immutable and picklable. Without a
    model (a document in another language) no question is matched."""

    def __init__(
        self,
        text: str,
        chunks: Sequence[Chunk],
        clauses: Sequence[Clause],
        titles: ClauseTitles,
        model: CueModel | None,
    ) -> None:
        self._model = model
        self._starts: tuple[int, ...] = ()
        self._chunks = np.zeros(0, dtype=np.int64)
        self._scores = np.zeros((0, 0), dtype=np.float32)
        if model is None:
            return
        columns = model.columns
        values: list[float] = []
        places: list[int] = []
        ends = [0]
        starts: list[int] = []
        inside: list[int] = []
        for sentence in cue_sentences(text, chunks, clauses, titles, model.wording):
            # In one order: sentences of the same words must score the same to the last digit, and
            # the order of a set changes from process to process.
            places.extend(sorted(map(columns.__getitem__, sentence.terms)))
            values.extend([sentence.length**-0.5] * len(sentence.terms))
            ends.append(len(places))
            starts.append(sentence.span[0])
            inside.append(sentence.chunk)
        shape = (len(starts), len(columns))
        matrix = csr_matrix((np.array(values, dtype=np.float32), places, ends), shape=shape)
        self._starts = tuple(starts)
        self._chunks = np.array(inside, dtype=np.int64)
        self._scores = model.scores(matrix)

    def scores(self, query: Query) -> CueScores:
        """Every sentence against the matters that the question asks for."""
        matched = self._model.match(query) if self._model is not None else ()
        if not matched:
            return CueScores(self._starts, self._chunks, np.zeros(len(self._starts)))
        columns = [one.strength * self._scores[:, one.place].astype(np.float64) for one in matched]
        odds = np.clip(np.max(columns, axis=0), -SURE, SURE)
        return CueScores(self._starts, self._chunks, odds, self._model, matched[0])
