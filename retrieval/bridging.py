"""A question in another language than the document, with the legal ideas that it only touches.

The two languages share nothing but concepts and figures, so a wording of the vocabulary that stands
in the question in pieces (适用哪个国家的法律 for 适用法律) must count as well. The wording found is
put behind the question. It knows the vocabulary, not translation: an idea that the vocabulary does
not have stays unfound.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import rjieba

from retrieval.asked import AskedKind, asked_kinds
from retrieval.folding import fold
from retrieval.language import detect
from retrieval.stems import words
from retrieval.tokens import HAN_RUN, HAN_STOP
from retrieval.types import Language
from retrieval.vocabulary import vocabulary
from retrieval.wordlists import word_list

_MOST = 2
"""Ideas that are put behind a question: more would drown it."""
_WHICH_ONE = re.compile("哪一(?=[天日年月个方])")


@dataclass(frozen=True, slots=True)
class _Wording:
    """A wording of the concept `concept` as content words. `kinds`: what it asks for itself."""

    concept: str
    text: str
    content: frozenset[str]
    kinds: frozenset[AskedKind]


def bridged(question: str, document: Language) -> str:
    """The question as it is for a document of its own language; for another one with the wordings
    of the ideas that it holds in pieces, the most telling first."""
    if detect(question) == document:
        return question
    # The 一 of 哪一天 is no figure that a document in another language could hold.
    question = _WHICH_ONE.sub("哪", question)
    folded = fold(question)
    known = {m.concept.name for m in vocabulary().in_questions.mentions(folded, words(folded))}
    content, kinds = _content(folded), frozenset(asked_kinds(folded))
    best: dict[str, _Wording] = {}
    for wording in _wordings(detect(question)):
        if wording.concept in known or not wording.content <= content:
            continue
        if not wording.kinds <= kinds or (len(wording.content) < 2 and not wording.kinds):
            continue
        held = best.get(wording.concept)
        if held is None or len(wording.content) > len(held.content):
            best[wording.concept] = wording
    found = sorted(best.values(), key=lambda one: -len(one.content))[:_MOST]
    return " ".join([question, *(one.text for one in found)])


@lru_cache(maxsize=2)
def _wordings(language: Language) -> tuple[_Wording, ...]:
    found = []
    for concept in vocabulary().concepts:
        for text in (*concept.phrases, *concept.cues):
            content = _content(text) if detect(text) == language else frozenset()
            if content:
                kinds = frozenset(asked_kinds(text))
                found.append(_Wording(concept.name, text, content, kinds))
    return tuple(found)


@lru_cache(maxsize=4096)
def _content(folded: str) -> frozenset[str]:
    """Content words: English stems, Chinese dictionary words, without those of asking."""
    stop = word_list("english_stop") | word_list("asking_english")
    found = {w.stem for w in words(folded) if folded[w.start : w.end] not in stop}
    asking = word_list("asking_chinese")
    for run in HAN_RUN.findall(folded):
        pieces = rjieba.cut(run)
        found |= {
            piece
            for piece in pieces
            if piece not in asking and piece not in HAN_STOP and not piece.startswith("哪")
        }
    return frozenset(found)
