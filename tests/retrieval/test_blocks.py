"""Cuts at clauses: whole cover, sizes, and that a change of the text stays where it is."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.blocks import cut_blocks

MOST = 128

_TOKEN = re.compile(r"\w+|\s|[^\w\s]")
WORDS = (
    *("the", "Supplier", "shall", "deliver", "goods", "notice", "within", "days", "written"),
    *("party", "agreement", "terminate", "price", "payment", "interest", "fees", "damages"),
    *("confidential", "information", "disclose", "law", "court", "claim", "costs"),
)
HAN = "合同双方应当按照约定履行付款义务违约责任争议解决法院管辖通知期限终止货物交付验收质量保证"


def spans_of(text: str) -> list[tuple[int, int]]:
    """Words, blanks and signs as tokens."""
    return [match.span() for match in _TOKEN.finditer(text)]


def contract(source: random.Random, clauses: int, language: str = "en") -> list[str]:
    """Numbered clauses, each with its line break."""
    made = []
    for number in range(1, clauses + 1):
        words = source.randint(8, 60)
        if language == "zh":
            body = "".join(source.choice(HAN) for _ in range(words))
            made.append(f"第{number}条 {body}。\n")
        else:
            body = " ".join(source.choice(WORDS) for _ in range(words))
            made.append(
                f"{number // 9 + 1}.{number % 9 + 1} {body} {source.randint(1, 99)} days.\n"
            )
    return made


def token_blocks(text: str, most: int = MOST) -> list[tuple[str, ...]]:
    spans = spans_of(text)
    tokens = [text[first:last] for first, last in spans]
    return [tuple(tokens[first:last]) for first, last in cut_blocks(text, spans, most)]


def changed(old: str, new: str) -> int:
    """Blocks of the new text that the old one does not have."""
    known = set(token_blocks(old))
    return sum(block not in known for block in token_blocks(new))


@given(
    text=st.text(st.sampled_from("ab1. \n；。第条(（\u3000\ud800"), max_size=900),
    most=st.integers(1, 100),
)
def test_blocks_cover_any_text_in_order_and_are_of_the_sizes_promised(text: str, most: int) -> None:
    spans = spans_of(text)
    blocks = cut_blocks(text, spans, most)
    assert [first for first, _ in blocks] == [0, *(last for _, last in blocks[:-1])][: len(blocks)]
    assert (blocks[-1][1] if blocks else 0) == len(spans)
    sizes = [last - first for first, last in blocks]
    assert all(size <= most for size in sizes)
    if len(blocks) > 1:
        assert min(sizes) >= max(int(most * 3 / 8), 1)
    assert cut_blocks(text, spans, most) == blocks


@pytest.mark.parametrize("language", ["en", "zh"])
def test_blocks_begin_with_clauses(language: str) -> None:
    text = "".join(contract(random.Random(2), 120, language))
    spans = spans_of(text)
    lines = {0, *(match.end() for match in re.finditer("\n", text))}
    starts = [spans[first][0] for first, _ in cut_blocks(text, spans, MOST)]
    # A clause may be longer than the range in which a block may end.
    assert sum(start in lines for start in starts) > 0.8 * len(starts)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_edited_and_an_inserted_clause_change_few_blocks(language: str) -> None:
    counts = []
    for seed in range(40):
        source = random.Random(seed)
        clauses = contract(source, 200, language)
        old = "".join(clauses)
        assert changed(old, old) == 0
        place = source.randrange(len(clauses))
        edited = [*clauses]
        edited[place] = edited[place].replace("days", "weeks").replace("。", "，但另有约定的除外。")
        counts.append(changed(old, "".join(edited)))
        place = source.randrange(20)
        extra = contract(source, 1, language)
        counts.append(changed(old, "".join([*clauses[:place], *extra, *clauses[place:]])))
    assert max(counts) <= 4
    assert sum(count > 3 for count in counts) <= 1
    assert sum(counts) < 1.8 * len(counts)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), place=st.floats(0, 1), removed=st.integers(0, 200))
def test_what_is_far_from_a_change_stays(seed: int, place: float, removed: int) -> None:
    """A change reaches as far as blocks do, not to the end of the document."""
    source = random.Random(seed)
    old = "".join(contract(source, 150))
    at = int(place * len(old))
    new = old[:at] + " not " + old[at + removed :]
    assert changed(old, new) <= 12


def test_one_line_without_any_sign_is_cut_all_the_same() -> None:
    text = "x " * 1000
    sizes = [last - first for first, last in cut_blocks(text, spans_of(text), MOST)]
    assert sum(sizes) == 2000
    assert max(sizes) <= MOST
    assert cut_blocks("", [], MOST) == ()
    assert cut_blocks("one two", spans_of("one two"), MOST) == ((0, 3),)


@pytest.mark.parametrize("text", ["ab1x" * 60_000, "abc" + "\n" * 120_000, "same row 7\n" * 20_000])
def test_the_same_again_and_again_is_cut_in_no_time(text: str) -> None:
    spans = [(first, min(first + 4, len(text))) for first in range(0, len(text), 4)]
    started = time.process_time()
    blocks = cut_blocks(text, spans, 512)
    # Over a minute when equal places were taken from the left.
    assert time.process_time() - started < 5
    assert all(192 <= last - first <= 512 for first, last in blocks)
