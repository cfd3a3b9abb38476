"""What a question mentions is told the same by places as by going through all mentions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.query import _Reader

PIECES = [
    "合同期限", "期限", "违约金", "多少钱", "付款", "名称", "“", "”", "，", "notice period",
    "period", "governing law", "law", "liability", " ", "?", '"', "the", "payment term", "合同",
]  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_mentions_by_their_places(pieces: list[str]) -> None:
    reader = _Reader("".join(pieces))
    for start in range(len(reader.folded)):
        for end in range(start, min(start + 8, len(reader.folded)) + 1):
            naive = [m for m in reader.mentions if m.start <= start and end <= m.end]
            if end > start:
                assert reader.covering(start, end) == naive
    inside = [m for m in reader.mentions if reader.quoted(m.start)] or reader.mentions
    longest = [
        m
        for m in inside
        if not any(
            o.start <= m.start and m.end <= o.end and o.end - o.start > m.end - m.start
            for o in inside
        )
    ]
    assert reader.main() == tuple({m.concept.name: m.concept for m in longest}.values())
