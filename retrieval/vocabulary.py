"""The reviewed bilingual vocabulary (`vocabulary.toml`) and where its concepts stand in a text.

A concept is one legal idea with its English and Chinese wordings. Texts are annotated with the
concepts they hold, so that "how do I get out of it", "termination" and "解除" meet in one index
term. It does not know contexts: 保证 is found for every concept that lists it.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from retrieval.errors import RetrievalError
from retrieval.folding import fold
from retrieval.stems import Word, words

_FILE = Path(__file__).with_name("vocabulary.toml")
_HAN = re.compile("[\u3400-\u9fff]")
_KEYS = {"en", "zh", "ask", "front", "share"}


@dataclass(frozen=True, slots=True)
class Concept:
    """`phrases` stand in contracts, `cues` only in questions, both folded. `front`: what
    kind of passage at the start of the document usually answers (see `front`), or empty.
    `share`: part of commercial contracts that hold such a clause, None when not measured."""

    name: str
    phrases: tuple[str, ...]
    cues: tuple[str, ...]
    front: str
    share: float | None

    @property
    def term(self) -> str:
        """The index term of this concept."""
        return f"={self.name}"


@dataclass(frozen=True, slots=True)
class Mention:
    """A phrase of a concept at `text[start:end]`."""

    concept: Concept
    start: int
    end: int


class PhraseTable:
    """Finds phrases in a folded text, English ones by stems and Chinese ones by characters."""

    def __init__(self, phrases: Sequence[tuple[str, Concept]]) -> None:
        self._english: dict[str, list[tuple[tuple[str, ...], Concept]]] = defaultdict(list)
        self._chinese: dict[str, list[Concept]] = defaultdict(list)
        lengths: dict[str, set[int]] = defaultdict(set)
        for phrase, concept in phrases:
            if _HAN.search(phrase):
                self._chinese[phrase].append(concept)
                lengths[phrase[0]].add(len(phrase))
            else:
                stems = tuple(word.stem for word in words(phrase))
                self._english[stems[0]].append((stems, concept))
        self._lengths = {first: tuple(sorted(found)) for first, found in lengths.items()}
        starts = "".join(map(re.escape, self._lengths)) or "\0"
        self._starts = re.compile(f"[{starts}]")

    def mentions(self, folded: str, stemmed: Sequence[Word]) -> Iterator[Mention]:
        """Every mention in `folded`, whose English words are `stemmed` (see `stems.words`)."""
        for index, word in enumerate(stemmed):
            for stems, concept in self._english.get(word.stem, ()):
                if len(stems) == 1:
                    yield Mention(concept, word.start, word.end)
                    continue
                last = index + len(stems)
                if last <= len(stemmed) and all(
                    stemmed[index + offset].stem == part for offset, part in enumerate(stems)
                ):
                    yield Mention(concept, word.start, stemmed[last - 1].end)
        for match in self._starts.finditer(folded):
            start = match.start()
            for length in self._lengths[match.group()]:
                for concept in self._chinese.get(folded[start : start + length], ()):
                    yield Mention(concept, start, start + length)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All concepts; `in_documents` finds contract wording, `in_questions` also the cues."""

    concepts: tuple[Concept, ...]
    in_documents: PhraseTable
    in_questions: PhraseTable

    def concept(self, name: str) -> Concept:
        """The concept of that name. Raises RetrievalError when there is none."""
        for concept in self.concepts:
            if concept.name == name:
                return concept
        raise RetrievalError(f"the vocabulary has no concept {name}")


def read_vocabulary(path: Path) -> Vocabulary:
    """Reads a vocabulary file. Raises RetrievalError when the file has an unknown key."""
    concepts = []
    for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        unknown = set(table) - _KEYS
        if unknown:
            raise RetrievalError(f"{path.name}: unknown keys {sorted(unknown)} in [{name}]")
        phrases = tuple(fold(phrase) for phrase in [*table.get("en", ()), *table.get("zh", ())])
        cues = _for_either_name(fold(cue) for cue in table.get("ask", ()))
        concepts.append(
            Concept(name, phrases, cues, str(table.get("front", "")), table.get("share"))
        )
    stated = [(phrase, concept) for concept in concepts for phrase in concept.phrases]
    asked = [(cue, concept) for concept in concepts for cue in concept.cues]
    return Vocabulary(tuple(concepts), PhraseTable(stated), PhraseTable(stated + asked))


def _for_either_name(cues: Iterable[str]) -> tuple[str, ...]:
    """The cues, and those that speak of the agreement or contract by its other name too."""
    found: dict[str, None] = {}
    for cue in cues:
        found[cue] = None
        for name, other in (("agreement", "contract"), ("contract", "agreement")):
            found[re.sub(rf"\b{name}\b", other, cue)] = None
    return tuple(found)


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """The vocabulary shipped with the package, read once."""
    return read_vocabulary(_FILE)
