"""A question taken apart for retrieval: weighted index terms, content words, clause references.

Instruction words ("highlight the parts of this contract", 请问) and scene-setting ("Consider the
agreement between X and Y;") weigh little. It knows the vocabulary and nothing of any document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import rjieba

from retrieval.asked import AskedKind, asked_kinds
from retrieval.figures import find_figures
from retrieval.folding import fold
from retrieval.language import detect
from retrieval.stems import words
from retrieval.tokens import HAN_RUN, HAN_STOP
from retrieval.types import Language
from retrieval.vocabulary import Concept, Mention, vocabulary
from retrieval.wordlists import word_list

_CONTEXT = re.compile(r"^\s*consider\b[^;]{0,400};")
_PRESENCE = re.compile(
    r"\(if any\)|\bis there (?:a|an|any)\b|\bare there (?:any)?\b"
    r"|does (?:the|this) (?:contract|agreement) (?:contain|include|have)"
    r"|有没有|是否(?:有|存在|包含|约定了)"
)
_QUOTED = re.compile(r'"([^"]{2,80})"|「([^」]{2,40})」|《([^》]{2,40})》')

# A dictionary welds the words of asking to what is asked about: 合营期是多少年 would hold 期是.
_ASKED_ZH = re.compile(
    r"(?:(?:各自?|分别)?(?<![认以因作成所没享持拥负具占行])[是为有占由]|各自?|分别)?"
    r"(?P<core>多[少久长大高]|几(?=[个名人年天日月次份周成])|什么|谁|哪[个些里种]?"
    r"|(?<![如任])何[时处地人])"
    r"|(?P<whether>是否|有没有|[能可]否|是不是)"
)

# A term of nothing is the contract's own; 付款期限 is another.
_OWN_TERM = re.compile(
    r"(?:^|[^\u4e00-\u9fff])(?:请问)?(?:[本该此]|这[份个])?(?:合同|协议)?的?(?P<term>期限)"
    r"(?=[是为有]?(?:多[少久长]|几|到))"
)

LOW = 0.15
_LIGHT = 0.4
# How telling a Chinese word is by its part of speech (rjieba's tags, first letter).
_TAG_WEIGHT = {
    "d": 0.3, "r": 0.15, "c": 0.15, "p": 0.15, "u": 0.1, "m": 0.4, "q": 0.3, "t": 0.5, "f": 0.3,
    "y": 0.1, "e": 0.1, "o": 0.1,
}  # fmt: skip
_CONCEPT_WEIGHT = 1.4
_NAME_WEIGHT = 1.6
"""Of a capitalised word inside a question that is no legal idea: a name tells more than a verb."""
_FIGURE_WEIGHT = 3.0


@dataclass(frozen=True, slots=True)
class Unit:
    """One content word of the question. A text covers it with any of `terms`, or in part with
    `parts` (the character pairs of a longer Chinese word)."""

    surface: str
    terms: tuple[str, ...]
    parts: tuple[str, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Query:
    """`terms` are the weighted index terms for ranking; `clauses` the normal forms (§12.3) of
    clauses that the question names. `main` are the concepts of what stands in quotation marks, or
    all; `label` its content words, or all. `presence`: the question asks whether there is a
    clause, so that a clause which denies the matter is no answer. `names` are the stems of words
    written like names. `own` are the question's own terms where those of another wording were
    added (see `widened`)."""

    text: str
    language: Language
    terms: Mapping[str, float]
    units: tuple[Unit, ...]
    concepts: tuple[Concept, ...]
    clauses: tuple[str, ...]
    figures: tuple[str, ...]
    asked: tuple[AskedKind, ...]
    front: tuple[str, ...] = ()
    main: tuple[Concept, ...] = ()
    label: tuple[Unit, ...] = ()
    presence: bool = False
    names: tuple[str, ...] = ()
    own: Mapping[str, float] | None = None

    def widened(self, other: Query, share: float) -> Query:
        """The question with the words of another wording of it, which count for `share` of what
        they count there."""
        known = {unit.terms[0] for unit in self.units}
        more = tuple(
            replace(unit, weight=share * unit.weight)
            for unit in other.units
            if unit.terms[0] not in known
        )
        terms = {term: share * weight for term, weight in other.terms.items()}
        for term, weight in self.terms.items():
            terms[term] = max(weight, terms.get(term, 0.0))
        front = tuple(sorted({*self.front, *other.front}))
        units = (*self.units, *more)
        return replace(self, terms=terms, units=units, front=front, own=self.terms)


class _Reader:
    """Collects terms and units of one question."""

    def __init__(self, question: str) -> None:
        self.folded = fold(question)
        self._written = question
        written = question.split()
        lower = sum(word[:1].islower() for word in written)
        same_places = len(question) == len(self.folded)
        self._capitals = same_places and 2 * lower > len(written)
        self.terms: dict[str, float] = {}
        self.units: list[Unit] = []
        self.label: list[Unit] = []
        self.names: list[str] = []
        context = _CONTEXT.match(self.folded)
        self.context_end = context.end() if context else 0
        self._quoted = [match.span() for match in _QUOTED.finditer(self.folded, self.context_end)]
        stemmed = words(self.folded)
        table = vocabulary().in_questions
        self.mentions = [
            mention
            for mention in table.mentions(self.folded, stemmed)
            if mention.start >= self.context_end
        ]
        if own := _OWN_TERM.search(self.folded, self.context_end):
            self.mentions.append(Mention(vocabulary().concept("term"), *own.span("term")))
        self._stemmed = stemmed
        self._over = _over(self.mentions)

    def place_weight(self, start: int) -> float:
        if start < self.context_end:
            return LOW
        return 1.4 if any(left <= start < right for left, right in self._quoted) else 1.0

    def is_name(self, start: int) -> bool:
        """Whether the word at `start` is written like a name: capitalised, where the question does
        not capitalise most of its words, and not its first word."""
        return self._capitals and start > 0 and self._written[start].isupper()

    def add(self, term: str, weight: float) -> None:
        self.terms[term] = max(self.terms.get(term, 0.0), weight)

    def covering(self, start: int, end: int) -> list[Mention]:
        return [m for m in self._over.get(start, ()) if end <= m.end]

    def unit(self, unit: Unit, place: int) -> None:
        self.units.append(unit)
        if self.quoted(place):
            self.label.append(unit)

    def english(self) -> None:
        for word in self._stemmed:
            surface = self.folded[word.start : word.end]
            concepts = self.covering(word.start, word.end)
            if surface in word_list("english_stop") or len(surface) == 1:
                continue
            weight = self.place_weight(word.start)
            if surface in word_list("asking_english"):
                weight = min(weight, LOW)
            elif surface in word_list("light_english"):
                weight *= _LIGHT
            elif not concepts and self.is_name(word.start):
                weight *= _NAME_WEIGHT
                if not self.quoted(word.start):
                    self.names.append(word.stem)
            self.add(word.stem, weight)
            names = tuple(mention.concept.term for mention in concepts)
            self.unit(Unit(surface, (word.stem, *names), (), weight), word.start)

    def chinese(self) -> None:
        for run in HAN_RUN.finditer(self.folded):
            for start, end in _apart(self.folded, *run.span()):
                self._chinese_words(self.folded[start:end], start)
            if run.end() - run.start() == 1:
                self.add(run.group(), 1.0)

    def _chinese_words(self, text: str, start: int) -> None:
        at = start
        for piece, tag in rjieba.tag(text):
            self._chinese_word(piece, at, 1.0 if tag == "vn" else _TAG_WEIGHT.get(tag[:1], 1.0))
            at += len(piece)
        for place in range(len(text) - 1):
            self.add(text[place : place + 2], 0.25 * self.place_weight(start + place))

    def _chinese_word(self, piece: str, at: int, telling: float) -> None:
        weight = self.place_weight(at) * telling
        concepts = self.covering(at, at + len(piece))
        names = tuple(mention.concept.term for mention in concepts)
        if any(mention.concept.front == "title" for mention in concepts):
            # 合同名称 asks for a line that holds neither word.
            weight = 0.0
        if piece in word_list("asking_chinese") or (len(piece) == 1 and piece in HAN_STOP):
            weight = min(weight, LOW)
            if piece in HAN_STOP:
                return
        if len(piece) == 1:
            self.add(piece, 0.3 * weight)
            self.units.append(Unit(piece, (piece, *names), (), 0.4 * weight))
            return
        pairs = tuple(piece[i : i + 2] for i in range(len(piece) - 1))
        self.add(piece, weight)
        for pair in pairs:
            self.add(pair, (0.5 if len(piece) > 2 else 1.0) * weight)
        for character in piece:
            if character not in HAN_STOP:
                self.add(character, 0.08 * weight)
        self.units.append(
            Unit(piece, (piece, *names), pairs if len(piece) > 2 else tuple(piece), weight)
        )

    def quoted(self, place: int) -> bool:
        return any(left <= place < right for left, right in self._quoted)

    def main(self) -> tuple[Concept, ...]:
        """Concepts mentioned inside quotation marks, the longest wording of each place only."""
        inside = [m for m in self.mentions if self.quoted(m.start)] or self.mentions
        over = _over(inside)
        longest = [
            m
            for m in inside
            if not any(
                m.end <= o.end and o.end - o.start > m.end - m.start for o in over.get(m.start, ())
            )
        ]
        return tuple({m.concept.name: m.concept for m in longest}.values())

    def concepts(self) -> tuple[Concept, ...]:
        found: dict[str, Concept] = {}
        for mention in self.mentions:
            surface = self.folded[mention.start : mention.end]
            weight = _CONCEPT_WEIGHT * self.place_weight(mention.start)
            if surface in word_list("asking_english") or surface in word_list("asking_chinese"):
                weight *= 0.4
            self.add(mention.concept.term, weight)
            found[mention.concept.name] = mention.concept
        return tuple(found.values())

    def figures(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        clauses, values = [], []
        for figure in find_figures(self.folded):
            surface = self.folded[figure.start : figure.end]
            # "one" in a question is nearly always a pronoun or an article.
            if figure.start < self.context_end or surface == "one":
                continue
            self.add(figure.value, _FIGURE_WEIGHT)
            for digits in re.findall(r"\d+", self.folded[figure.start : figure.end]):
                self.add(digits, 0.3)
            if figure.kind == "clause":
                clauses.append(figure.value)
            else:
                values.append(figure.value)
                self.units.append(Unit(surface, (figure.value,), (), 1.2))
        return tuple(clauses), tuple(values)


def _over(mentions: Sequence[Mention]) -> dict[int, list[Mention]]:
    """The mentions over each place, in their order: a question of 4,000 characters may have
    thousands."""
    found: dict[int, list[Mention]] = {}
    for mention in mentions:
        for place in range(mention.start, mention.end):
            found.setdefault(place, []).append(mention)
    return found


def _apart(folded: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A run of Chinese characters cut before and behind its words of asking, without the linking
    characters before them (各是, 为)."""
    at = start
    for asked in _ASKED_ZH.finditer(folded, start, end):
        core = asked.span(str(asked.lastgroup))
        yield from (span for span in ((at, asked.start()), core) if span[0] < span[1])
        at = asked.end()
    if at < end:
        yield at, end


def read_question(question: str) -> Query:
    """Takes a question apart. A question of stop words and marks only has no terms."""
    reader = _Reader(question)
    reader.english()
    reader.chinese()
    concepts = reader.concepts()
    clauses, figures = reader.figures()
    return Query(
        text=question,
        language=detect(question),
        terms=reader.terms,
        units=tuple(reader.units),
        concepts=concepts,
        clauses=clauses,
        figures=figures,
        asked=asked_kinds(reader.folded[reader.context_end :]),
        front=tuple(sorted({concept.front for concept in concepts} - {""})),
        main=reader.main(),
        label=tuple(reader.label or reader.units),
        presence=bool(_PRESENCE.search(reader.folded)),
        names=tuple(reader.names),
    )
