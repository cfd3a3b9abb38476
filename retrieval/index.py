"""The search index of one document: BM25 joined with TF-IDF over clause-aligned chunks.

Finds chunks for a question in either language, by words, figures, clause numbers and vocabulary
concepts. A chunk that shares no term with the question is never returned. It does not know
whether the question is answered: that is decided in `plan`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retrieval import tokens
from retrieval.bm25 import KeywordIndex
from retrieval.clauses import outline
from retrieval.cue_index import CueIndex, CueScores
from retrieval.cues import CueModel, cue_model
from retrieval.front import front_chunks
from retrieval.language import detect
from retrieval.query import Query, Unit, read_question
from retrieval.references import ClauseNumbers
from retrieval.statutes import Articles, Scores
from retrieval.tfidf import VectorIndex
from retrieval.titles import ClauseTitles
from retrieval.types import Chunk, Clause, Hit, Sentence

# Measured on the dev sets, see docs/benchmarks/retrieval.md.
_VECTOR_SHARE = 0.4
_CLAUSE_BONUS = 2.0
_TITLE_BONUS = 0.15
_ARTICLE_BONUS = 2.0
_CUE_BONUS = 1.0
_CUE_SENTENCES = 30
"""Sentences whose likeness to the answer lifts their chunk."""
_SAME_MATTER, _WORDING_SHARE = 0.9, 0.4
"""Strength from which on a question is one for its matter, and what a word of the matter's wording
then counts beside the question's own."""


class SearchIndex:
    """Built once a document; immutable and picklable. `terms[i]` is the set of terms of chunk i."""

    def __init__(
        self,
        text: str,
        chunks: Sequence[Chunk],
        clauses: Sequence[Clause],
        cues: CueModel | None = None,
    ) -> None:
        self.text = text
        self.language = detect(text)
        self.chunks = tuple(chunks)
        self.clauses = tuple(clauses)
        listed = [
            tokens.terms(text[chunk.start : chunk.end]) + tokens.terms(chunk.heading)
            for chunk in self.chunks
        ]
        self._starts = [chunk.start for chunk in self.chunks]
        self.terms = tuple(frozenset(found) for found in listed)
        self.keywords = KeywordIndex(listed)
        self._vectors = VectorIndex(listed)
        self.numbers = ClauseNumbers(self.clauses)
        self._front = front_chunks(text, self.chunks)
        self.titles = ClauseTitles(self.clauses)
        chinese = self.language == "zh"
        self.articles = Articles.read(text, self.clauses, self.chunks) if chinese else None
        # The cues were learned from English contracts.
        model = (cues or cue_model()) if self.language == "en" else None
        self._cues = CueIndex(text, self.chunks, self.clauses, self.titles, model)

    @classmethod
    def build(
        cls,
        text: str,
        chunks: Sequence[Chunk],
        clauses: Sequence[Clause] | None = None,
        cues: CueModel | None = None,
    ) -> SearchIndex:
        """Indexes `chunks` of `text`. Without `clauses` the outline is read from the text again.
        No chunks, or chunks without any word, make an index that finds nothing. `cues` replace
        those shipped, for measuring cues that did not see this document."""
        return cls(text, chunks, outline(text) if clauses is None else clauses, cues)

    def search(self, question: str, limit: int = 10) -> tuple[Hit, ...]:
        """The best chunks for a question, best first; empty when none shares a term with it."""
        return self.find(read_question(question), limit)

    def find(
        self, query: Query, limit: int = 10, articles: Scores | None = None
    ) -> tuple[Hit, ...]:
        """`search` for a question that is already taken apart; `articles` are the scores of
        `article_scores`, where they are known already."""
        if not self.chunks or not query.terms:
            return ()
        scores = self.article_scores(query) if articles is None else articles
        by_article = self.articles.by_chunk(scores) if self.articles and scores is not None else {}
        score = self._scores(query)
        for place, share in by_article.items():
            score[place] += _ARTICLE_BONUS * share
        order = sorted(range(len(self.chunks)), key=lambda i: (-score[i], i))
        # A title shares no word with "What is this contract called?".
        front = {place for kind in query.front for place in self._front[kind]}
        hits: list[Hit] = []
        for place in order:
            if len(hits) >= limit or score[place] <= 0.0:
                break
            matched = tuple(sorted(self.terms[place] & query.terms.keys()))
            named = bool(self._named(query).get(place))
            if matched or named or place in by_article or place in front:
                hits.append(Hit(self.chunks[place], float(score[place]), len(hits) + 1, matched))
        return tuple(hits)

    def cues(self, query: Query) -> CueScores:
        """How much each sentence reads like an answer to what the question asks for."""
        return self._cues.scores(query)

    def worded(self, query: Query) -> Query:
        """A question that asks for a learned matter, with the words of the matter's own wording;
        any other as it is."""
        cues = self.cues(query)
        if cues.asked is None or cues.strength < _SAME_MATTER:
            return query
        return query.widened(cues.asked, _WORDING_SHARE)

    def article_scores(self, query: Query) -> Scores | None:
        """Scores of the articles of a statute; None for other documents, and for a question in the
        other language or one that names its clause."""
        if self.articles is None or query.language != self.language or query.clauses:
            return None
        return self.articles.scores(query)

    def article_passages(self, scores: Scores, limit: int = 5) -> tuple[Sentence, ...]:
        """Whole articles to quote, best first, for scores of `article_scores`."""
        if self.articles is None:
            return ()
        return tuple(
            Sentence(start, end, self.chunks[chunk], score, likely)
            for (start, end), chunk, score, likely in self.articles.passages(scores, limit)
        )

    def strength(self, query: Query) -> float:
        """How strong the best match is on an absolute scale: its cosine, in [0, 1].

        A question in the other language is measured by its concepts and figures, the only terms
        that both languages share.
        """
        asked = dict(query.terms)
        if query.language != self.language:
            asked = {term: weight for term, weight in asked.items() if term[0] in "=#@§"}
        return float(self._vectors.scores(asked).max(initial=0.0))

    def shared_units(self, units: Sequence[Unit], query: Query) -> tuple[Unit, ...]:
        """The content words that this document could hold: of a question in the other language
        only those that a concept or a figure stands for."""
        if query.language == self.language:
            return tuple(units)
        return tuple(unit for unit in units if len(unit.terms) > 1 or unit.terms[0][0] in "=#@§")

    def _scores(self, query: Query) -> NDArray[np.float64]:
        keyword = self.keywords.scores(query.terms)
        vector = self._vectors.scores(query.terms)
        score = (1 - _VECTOR_SHARE) * _unit(keyword) + _VECTOR_SHARE * _unit(vector)
        for place, weight in self._named(query).items():
            score[place] += _CLAUSE_BONUS * weight
        for clause, weight in self.titles.matches(query).items():
            start = self.clauses[clause].start
            place = bisect_right(self._starts, start) - 1
            gain = _TITLE_BONUS * weight
            score[place] = max(score[place], min(score[place], 1.0) + gain)
        for kind in query.front:
            for place, weight in self._front[kind].items():
                score[place] += weight
        for place, likely in self.cues(query).best_chunks(_CUE_SENTENCES).items():
            score[place] += _CUE_BONUS * likely
        return score

    def _named(self, query: Query) -> dict[int, float]:
        """Chunks of the clauses that the question names, the first chunk of each most."""
        found: dict[int, float] = {}
        for reference in query.clauses:
            for clause in self.numbers.find(reference)[:3]:
                inside = [
                    chunk.index
                    for chunk in self.chunks
                    if chunk.start < clause.end and chunk.end > clause.start
                ]
                for rank, place in enumerate(inside):
                    found[place] = max(found.get(place, 0.0), 1.0 / (1 + 0.2 * rank))
        return found


def _unit(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores divided by the best one; zeros stay zeros."""
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores
