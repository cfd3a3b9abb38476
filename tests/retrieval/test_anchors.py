"""Anchors: the telling tokens of each block."""

from __future__ import annotations

import re

from retrieval.anchors import pick_anchors


def spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


BOILERPLATE = "the parties agree that the supplier shall perform the services under this contract "
FACTS = ("escrow fee 1,500,000 euro ", "arbitration seat geneva tribunal ", "违约金 百分之五 逾期 ")
TEXT = "".join(BOILERPLATE * 5 + fact for fact in FACTS)


def test_rare_words_of_a_block_are_picked() -> None:
    tokens = spans(TEXT)
    cuts = [0]
    for fact in FACTS:
        end = TEXT.index(fact) + len(fact)
        cuts.append(sum(span[0] < end for span in tokens))
    blocks = list(zip(cuts, cuts[1:], strict=False))
    picked = pick_anchors(TEXT, tokens, blocks, per_block=4)
    for fact, anchors, (first, last) in zip(FACTS, picked, blocks, strict=True):
        words = [TEXT[slice(*tokens[token])] for token in anchors]
        assert all(word in words for word in fact.split()), (fact, words)
        assert list(anchors) == sorted(set(anchors))
        assert all(first <= token < last for token in anchors)


def test_same_input_same_anchors_and_small_blocks_are_taken_whole() -> None:
    tokens = spans(TEXT)
    blocks = [(0, 3), (3, 40), (40, len(tokens))]
    once = pick_anchors(TEXT, tokens, blocks)
    assert once == pick_anchors(TEXT, tokens, blocks)
    assert once[0] == (0, 1, 2)
    assert all(len(anchors) <= 64 for anchors in once)


def test_text_without_words() -> None:
    text = "--- --- ---"
    assert pick_anchors(text, spans(text), [(0, 2), (2, 3)], per_block=1) == ((0,), (2,))
    assert pick_anchors("", [], []) == ()
