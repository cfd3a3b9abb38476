"""Search in a Chinese statute by its articles (第…条), and passages of whole articles to quote.

Lay people ask in other words than a statute's, so questions and articles also meet in the concepts
of `statute_words.toml`. Articles are ranked by a linear score over the match of words, the match
of the neighbouring articles and of the chapter, and the kind of fact asked for; a short article is
quoted with its neighbours. It does not know which of several articles that speak of a matter
decides the case.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval import tokens
from retrieval.asked import holds
from retrieval.bm25 import KeywordIndex
from retrieval.coverage import unit_cover, unit_weight
from retrieval.folding import fold, fold_width
from retrieval.grades import grades
from retrieval.query import Query
from retrieval.sentences import Span
from retrieval.tfidf import VectorIndex
from retrieval.types import Chunk, Clause
from retrieval.vocabulary import Concept, Vocabulary, read_vocabulary

Scores = NDArray[np.float64]

PASSAGE = 400
"""Characters up to which an article is quoted with its neighbours; see
docs/benchmarks/retrieval-zh.md."""

WEIGHTS: Mapping[str, float] = {
    "words": 0.6, "covered": 1.1, "near": 0.4, "kind": 0.4, "length": 0.16, "purpose": -0.6,
    "grade": 0.45, "chapter": 0.35,
}  # fmt: skip
"""Of the features in `Articles.features`, found by `scripts.fit_articles`."""

_JOINED = 0.6
"""Share of an article's score that a neighbour needs to be quoted with it: one that stands out
answers alone, and is cited by its own number."""

_ODDS = -5.24, 1.93, 0.94
"""Log odds that a passage answers: at score 0, for each point of it, of the first passage."""
_FEWEST = 12
"""Articles below which a document is no statute."""
_OPENING = 600
_WORD_WEIGHT, _GRADE_WEIGHT = 1.2, 3.0
_LOOKED_AT = 70
"""Articles, the best by words, whose other features are read."""
_CHAPTER_SHARE = 60, 4
"""Of so many best articles, at most so many of one chapter say how well the chapter matches."""
_ARTICLE = re.compile(r"第[零〇一二三四五六七八九十百千\d]+条(?:之[一二三四五六七八九十])?")
_TITLE = re.compile(
    r"^[^\n。，；:：]{0,60}(?:法|法典|条例|解释|规定|办法|规则|细则|章程示范)"
    r"(?:[(（][^)）\n]{1,20}[)）])?\s*$",
    re.MULTILINE,
)
_PARTIES = re.compile(r"[甲乙]\s*方|买方|卖方|以下简称")


@lru_cache(maxsize=1)
def statute_words() -> Vocabulary:
    """The lay words of `statute_words.toml`, read once."""
    return read_vocabulary(Path(__file__).with_name("statute_words.toml"))


def is_statute(text: str, articles: Sequence[Clause]) -> bool:
    """Whether a text reads as a statute: named a law near its start, in articles, no parties."""
    if len(articles) < _FEWEST:
        return False
    opening = fold_width(text[:_OPENING])
    return bool(_TITLE.search(opening)) and not _PARTIES.search(opening)


def articles_of(clauses: Sequence[Clause]) -> list[Clause]:
    """The clauses numbered as articles, in order."""
    return [clause for clause in clauses if _ARTICLE.fullmatch(clause.number)]


def _in_articles(text: str, heading: str) -> list[str]:
    folded = fold(text)
    found = tokens.terms(text) + tokens.terms(heading) + grades(folded)
    found += [m.concept.term for m in statute_words().in_documents.mentions(folded, ())]
    return found


def asked_matters(question: str) -> dict[Concept, float]:
    """Matters that a question names in lay words or the law's, the longest wording of each place; a
    longer one weighs more, up to 1."""
    folded = fold(question)
    mentions = list(statute_words().in_questions.mentions(folded, ()))
    longest = [
        m
        for m in mentions
        if not any(
            o.start <= m.start and m.end <= o.end and o.end - o.start > m.end - m.start
            for o in mentions
        )
    ]
    return {m.concept: min(1.0, 0.4 + 0.2 * (m.end - m.start)) for m in longest}


class Articles:
    """The articles of one statute. Immutable and picklable."""

    def __init__(self, text: str, clauses: Sequence[Clause], chunks: Sequence[Chunk]) -> None:
        found = articles_of(clauses)
        self.spans: tuple[Span, ...] = tuple(
            (clause.start, clause.start + len(text[clause.start : clause.end].rstrip()))
            for clause in found
        )
        self._wide = tuple(fold_width(text[start:end]) for start, end in self.spans)
        titles = {clause.index: f"{clause.number} {clause.title}".strip() for clause in clauses}
        headings = [_path(clauses, clause, titles) for clause in found]
        numbers = {heading: place for place, heading in enumerate(dict.fromkeys(headings))}
        self._chapters = np.array([numbers[heading] for heading in headings])
        listed = [
            _in_articles(text[start:end], heading)
            for (start, end), heading in zip(self.spans, headings, strict=True)
        ]
        self._terms = tuple(frozenset(terms) for terms in listed)
        self._keywords = KeywordIndex(listed)
        self._vectors = VectorIndex(listed)
        starts = [chunk.start for chunk in chunks]
        self.chunk_of = tuple(max(0, bisect_right(starts, start) - 1) for start, _ in self.spans)
        self._chunk_ends = tuple(chunk.end for chunk in chunks)

    @classmethod
    def read(cls, text: str, clauses: Sequence[Clause], chunks: Sequence[Chunk]) -> Articles | None:
        """The articles of a document; None when it is no statute."""
        if not chunks or not is_statute(text, articles_of(clauses)):
            return None
        return cls(text, clauses, chunks)

    def features(self, query: Query) -> dict[int, dict[str, float]]:
        """The features of the articles that match best by words, by their number.

        `words`: match of words and concepts; `covered`: share of the question's content in the
        article; `near`: match of the better neighbour; `kind`: holds the kind of fact asked for;
        `length`: log of its characters; `purpose`: says what the statute is for; `grade`: holds a
        grade that is asked for; `chapter`: match of the chapter's best articles.
        """
        named = asked_matters(query.text)
        wanted = set(grades(fold(query.text)))
        asked = dict(query.terms)
        asked.update({matter.term: _WORD_WEIGHT * weight for matter, weight in named.items()})
        asked.update(dict.fromkeys(wanted, _GRADE_WEIGHT))
        words = _share(self._keywords.scores(asked))
        cosine = self._vectors.scores(asked)
        base = 0.6 * words + 0.4 * _share(cosine)
        near = np.maximum(np.append(0.0, cosine[:-1]), np.append(cosine[1:], 0.0))
        order = np.argsort(-base, kind="stable")
        chapter = self._chapter_match(base, order)
        idf = self._keywords.idf
        weights = [unit_weight(unit, idf) for unit in query.units]
        total = sum(weights) or 1.0
        found: dict[int, dict[str, float]] = {}
        for place in map(int, order[:_LOOKED_AT]):
            if base[place] <= 0.0:
                break
            start, end = self.spans[place]
            own, body = self._terms[place], self._wide[place]
            covers = (unit_cover(unit, own) for unit in query.units)
            found[place] = {
                "words": float(words[place]),
                "covered": sum(c * w for c, w in zip(covers, weights, strict=True)) / total,
                "near": float(near[place]),
                "kind": holds(body, query.asked) if query.asked else 0.0,
                "length": math.log(end - start),
                "purpose": float("为了" in body[:12]),
                "grade": float(not wanted.isdisjoint(own)),
                "chapter": float(chapter[self._chapters[place]]),
            }
        return found

    def scores(self, query: Query) -> Scores:
        """One score per article, comparable within one question; 0 for those far from the best."""
        score = np.zeros(len(self.spans))
        for place, found in self.features(query).items():
            score[place] = sum(weight * found[name] for name, weight in WEIGHTS.items())
        return score

    def known(self, query: Query) -> float:
        """Share of the lay words of a question whose matter this statute speaks of, in [0, 1],
        rare matters counting more; a half when it holds none."""
        idf = self._keywords.idf
        named = asked_matters(query.text)
        weights = {matter.term: weight * idf(matter.term) for matter, weight in named.items()}
        total = sum(weights.values())
        if not total:
            return 0.5
        return sum(w for term, w in weights.items() if self._keywords.has(term)) / total

    def by_chunk(self, scores: Scores) -> dict[int, float]:
        """The best score of the matching articles that begin in each chunk, the best being 1."""
        best: dict[int, float] = defaultdict(float)
        top = float(scores.max(initial=0.0))
        if top > 0.0:
            for chunk, score in zip(self.chunk_of, scores, strict=True):
                if score > 0.0:
                    best[chunk] = max(best[chunk], float(score) / top)
        return dict(best)

    def passages(self, scores: Scores, limit: int) -> list[tuple[Span, int, float, float]]:
        """The best passages as (span, number of the chunk, score, how likely it answers if none
        before it does), best first, not overlapping.

        An article is joined with the neighbour that scores better, as long as that comes near to
        it and the passage stays within its chunk and `PASSAGE` characters.
        """
        used: set[int] = set()
        found: list[tuple[Span, int, float, float]] = []
        for place in map(int, np.argsort(-scores, kind="stable")):
            if len(found) == limit or scores[place] <= 0.0:
                break
            if place in used:
                continue
            first, last = self._widened(place, scores, used)
            used.update(range(first, last + 1))
            span = (self.spans[first][0], self.spans[last][1])
            score = float(scores[place])
            found.append((span, self.chunk_of[place], score, _likely(score, not found)))
        return found

    def _widened(self, place: int, scores: Scores, used: set[int]) -> tuple[int, int]:
        first = last = place
        least = _JOINED * float(scores[place])
        while True:
            choices = [
                (float(scores[other]), other)
                for other, start, end in (
                    (first - 1, first - 1, last),
                    (last + 1, first, last + 1),
                )
                if 0 <= other < len(self.spans)
                and other not in used
                and scores[other] >= least
                and self.chunk_of[other] == self.chunk_of[place]
                and self.spans[end][1] <= self._chunk_ends[self.chunk_of[place]]
                and self.spans[end][1] - self.spans[start][0] <= PASSAGE
            ]
            if not choices:
                return first, last
            _, other = max(choices)
            first, last = min(first, other), max(last, other)

    def _chapter_match(self, base: Scores, order: NDArray[np.int64]) -> Scores:
        looked_at, of_one = _CHAPTER_SHARE
        match = np.zeros(int(self._chapters.max(initial=0)) + 1)
        counted: dict[int, int] = defaultdict(int)
        for place in order[:looked_at]:
            chapter = int(self._chapters[place])
            if counted[chapter] < of_one:
                counted[chapter] += 1
                match[chapter] += base[place]
        return _share(match)


def _likely(score: float, first: bool) -> float:
    return 1 / (1 + math.exp(-(_ODDS[0] + _ODDS[1] * score + _ODDS[2] * first)))


def _path(clauses: Sequence[Clause], clause: Clause, titles: Mapping[int, str]) -> str:
    """The headings above an article, outermost first."""
    parts: list[str] = []
    above = clause.parent
    while above is not None:
        parts.append(titles[above])
        above = clauses[above].parent
    return " > ".join(reversed(parts))


def _share(scores: Scores) -> Scores:
    """Scores divided by the best one; zeros stay zeros."""
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores
