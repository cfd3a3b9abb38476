"""Anchor tokens: the few tokens of each block that later blocks may attend to.

A block of the document is one TF-IDF document; a model token weighs as much as the heaviest word
it overlaps, so figures, names and terms of that block are picked and boilerplate is not. It knows
no tokenizer: token places come as character spans.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from sklearn.feature_extraction.text import TfidfVectorizer

from retrieval.folding import fold_in_place
from retrieval.tokens import HAN_STOP
from retrieval.wordlists import word_list

_WORD = re.compile("[a-z]+(?:'[a-z]+)?|\\d+(?:[.,]\\d+)*|[\u3400-\u9fff]{2}|[\u3400-\u9fff]")


# Words in every block weigh this much of a word in one block only.
_COMMON = 0.05


def _words(folded: str) -> list[str]:
    stop = word_list("english_stop")
    return [word for word in _WORD.findall(folded) if word not in stop and word not in HAN_STOP]


def pick_anchors(
    text: str,
    token_spans: Sequence[tuple[int, int]],
    blocks: Sequence[tuple[int, int]],
    per_block: int = 64,
) -> tuple[tuple[int, ...], ...]:
    """For each block (a half-open token range) at most `per_block` token positions, ascending.

    `token_spans` are code point ranges of `text`, one per token of the document. The choice
    depends on the arguments alone. Words weigh TF-IDF (sublinear) over the blocks, function words
    nothing; a word counts most where it first stands in the block, ties go to the earlier token.
    """
    folded = fold_in_place(text)
    ranges = [_characters(token_spans, block) for block in blocks]
    parts = [folded[start:end] for start, end in ranges]
    if not any(map(_words, parts)):
        return tuple(tuple(range(first, min(last, first + per_block))) for first, last in blocks)
    vectorizer = TfidfVectorizer(analyzer=_words, sublinear_tf=True)
    matrix = vectorizer.fit_transform(parts).tocsr()
    columns = vectorizer.vocabulary_
    # scikit-learn adds 1 to every idf, so frequent boilerplate would beat rare terms: take it off.
    telling = (vectorizer.idf_ - 1 + _COMMON) / vectorizer.idf_
    picked = []
    for row, (block, (start, end)) in enumerate(zip(blocks, ranges, strict=True)):
        line = matrix[row]
        values = line.data * telling[line.indices]
        weights = dict(zip(line.indices.tolist(), values.tolist(), strict=True))
        heaviest = _token_weights(folded, token_spans, block, (start, end), columns, weights)
        order = sorted(range(*block), key=lambda token: (-heaviest[token - block[0]], token))
        picked.append(tuple(sorted(order[:per_block])))
    return tuple(picked)


def _characters(token_spans: Sequence[tuple[int, int]], block: tuple[int, int]) -> tuple[int, int]:
    first, last = block
    if first >= last:
        return (0, 0)
    return token_spans[first][0], token_spans[last - 1][1]


def _token_weights(
    folded: str,
    token_spans: Sequence[tuple[int, int]],
    block: tuple[int, int],
    characters: tuple[int, int],
    columns: dict[str, int],
    weights: dict[int, float],
) -> list[float]:
    """The weight of each token of a block: of the heaviest word that it overlaps."""
    first, last = block
    ends = [span[1] for span in token_spans[first:last]]
    found = [0.0] * (last - first)
    seen: set[str] = set()
    for match in _WORD.finditer(folded, *characters):
        word = match.group()
        # Later mentions add nothing to what the first one tells; half weight keeps them as fill.
        weight = weights.get(columns.get(word, -1), 0.0) * (0.5 if word in seen else 1.0)
        seen.add(word)
        token = bisect_left(ends, match.start() + 1)
        while token < len(found) and token_spans[first + token][0] < match.end():
            found[token] = max(found[token], weight)
            token += 1
    return found
