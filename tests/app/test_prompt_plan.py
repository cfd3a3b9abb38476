"""The prompt: token ranges of evidence, and the place of the document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.prompt import document_sinks, plan_prompt, token_range
from backend.types import DocumentTokens


class PlainTokenizer:
    """One token a character."""

    def chat(self, messages: Sequence[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return "".join(f"<{m['role']}>{m['content']}</>" for m in messages)

    def encode(self, text: str, special: bool = False) -> list[int]:
        return [ord(character) for character in text]


@given(
    st.lists(st.integers(min_value=1, max_value=9), min_size=1, max_size=40),
    st.integers(min_value=0, max_value=400),
    st.integers(min_value=0, max_value=400),
)
def test_a_token_range_holds_exactly_the_tokens_that_touch_the_characters(
    lengths: list[int], one: int, other: int
) -> None:
    ends = np.cumsum(lengths)
    spans = np.stack([ends - lengths, ends], axis=1).astype(np.int32)
    start, end = sorted((min(one, int(ends[-1])), min(other, int(ends[-1]))))
    first, last = token_range(spans, start, end)
    touching = [i for i, (a, b) in enumerate(spans.tolist()) if a < end and start < b]
    if start < end:
        assert list(range(first, last)) == touching
    assert 0 <= first <= last <= len(lengths)


def plan(sinks: tuple[int, ...]) -> tuple[str, int]:
    tokens = DocumentTokens("key", tuple(range(9)), ((0, 9),), sinks=sinks)
    made = plan_prompt(
        PlainTokenizer(),  # type: ignore[arg-type]
        "What is the cap?",
        "en",
        ["The cap is 5."],
        document=tokens,
        evidence=[(0, 9)],
    )
    return "".join(map(chr, made.prompt_ids)), made.sink_len


def test_the_document_stands_inside_the_first_fence() -> None:
    sinks = document_sinks(PlainTokenizer())  # type: ignore[arg-type]
    text, sink_len = plan(sinks)
    assert sink_len == len(sinks)
    assert text[:sink_len].endswith("<contract>\n")
    assert text[sink_len:].startswith("\n</contract>\n<contract>\nThe cap is 5.\n</contract>\n")
    assert "Question: What is the cap?" in text


def test_a_document_read_with_other_sinks_comes_before_the_whole_prompt() -> None:
    assert plan((1, 2, 3))[1] == 0


def test_without_evidence_there_is_no_document() -> None:
    made = plan_prompt(PlainTokenizer(), "q?", "zh", ["押金"])  # type: ignore[arg-type]
    assert (made.document_key, made.evidence, made.sink_len) == (None, (), 0)
    assert "问题：q?" in "".join(map(chr, made.prompt_ids))
