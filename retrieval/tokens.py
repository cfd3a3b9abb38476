"""Index terms of a text: what the two rankers count.

English words as stems without stop words; Chinese as characters, character pairs and dictionary
words of three characters or more; figures, dates and clause references whole in normal form (see
`figures`) beside their digit groups; concepts of the vocabulary (`=termination`). Text is folded
first, so full-width, traditional and plain spellings are one term. It knows no positions: places
in the document come from chunks and sentences.
"""

from __future__ import annotations

import re

import rjieba

from retrieval.figures import find_figures
from retrieval.folding import fold
from retrieval.stems import words
from retrieval.vocabulary import vocabulary
from retrieval.wordlists import word_list

HAN_RUN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_DIGITS = re.compile(r"\d+")
HAN_STOP = frozenset("的了和或之于及等在是为与由对以其应而则所者并且吗呢啊么这那有个被把从将可")


def han_terms(run: str) -> list[str]:
    """Characters (without function words) and character pairs of one run of Chinese."""
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return [character for character in run if character not in HAN_STOP] + pairs


def long_words(folded: str) -> list[str]:
    """Dictionary words of three or more Chinese characters; shorter ones are pairs already."""
    return [
        word
        for run in HAN_RUN.findall(folded)
        if len(run) > 2
        for word in rjieba.cut(run)
        if len(word) > 2
    ]


def figure_terms(folded: str) -> list[str]:
    """Figures whole, and the digit groups they are made of. A date also stands for its month."""
    terms = []
    for figure in find_figures(folded):
        terms.append(figure.value)
        if figure.kind == "date" and len(figure.value) > 8:
            terms.append(figure.value[:8])
        if figure.kind == "clause" and "(" in figure.value:
            terms.append(figure.value.split("(")[0])
    terms.extend(_DIGITS.findall(folded))
    return terms


def terms(text: str) -> list[str]:
    """All index terms of `text`, with repetitions; empty for a text without words or figures."""
    folded = fold(text)
    stop = word_list("english_stop")
    stemmed = words(folded)
    found = [word.stem for word in stemmed if folded[word.start : word.end] not in stop]
    for run in HAN_RUN.findall(folded):
        found.extend(han_terms(run))
    found.extend(long_words(folded))
    found.extend(figure_terms(folded))
    found.extend(
        mention.concept.term for mention in vocabulary().in_documents.mentions(folded, stemmed)
    )
    return found
