"""Every clause that mentions something, against a plain look through the text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval import scan
from retrieval.clauses import outline
from retrieval.scan import Scanner, wordings
from retrieval.sentences import split

CONTRACT = """1. Insurance
1.1 The Supplier shall insure the Goods.
1.2 Proof of insurance is given each year. The insurance stays in force.
2. Price
The price is USD 5,000 and is due within 30 days after 1 March 2024.
3. Interest
Overdue sums bear interest at 4 per cent.
The limit of the total liability is stated in Schedule 2, not in Schedule 21.
"""
CHINESE = """第一条 保险
乙方应当投保运输
保险。
第二条 价款
价款为人民币5000元，于三十日内支付。
第三条 解除
甲方可以终止本合同。
"""


def found(text: str, wanted: str, *, broad: bool = False) -> list[str]:
    clauses = outline(text)
    scanner = Scanner(text, clauses)
    for wording in wordings(wanted, "zh" if "第" in text else "en", broad=broad):
        places = scanner.mentions(wording)
        if places:
            return [clauses[p.clause].number if p.clause is not None else "" for p in places]
    return []


def test_every_clause_is_found_in_its_order() -> None:
    assert found(CONTRACT, "insurance") == ["1.", "1.1", "1.2"]
    assert found(CONTRACT, "interest or price") == ["2.", "3."]


def test_a_phrase_may_hold_small_words_and_figures_are_whole() -> None:
    assert found(CONTRACT, "limit of liability") == ["3."]
    assert found(CONTRACT, "Schedule 2") == ["3."]
    assert found(CONTRACT, "Schedule 1") == []
    assert found(CONTRACT, "dragons") == []


def test_chinese_words_are_found_across_a_line_break() -> None:
    assert found(CHINESE, "保险") == ["第一条"]
    assert found(CHINESE, "运输保险") == ["第一条"]


def test_a_matter_is_found_by_its_other_wordings() -> None:
    assert found(CHINESE, "解除合同") == []
    assert found(CHINESE, "解除", broad=True) == ["第三条"]
    assert found(CHINESE, "termination") == ["第三条"]


def test_mentions_of_one_clause_are_counted_and_its_sentence_quoted() -> None:
    clauses = outline(CONTRACT)
    places = Scanner(CONTRACT, clauses).mentions(wordings("insurance", "en", broad=False)[0])
    assert [place.count for place in places] == [1, 1, 2]
    assert CONTRACT[places[2].start : places[2].end].startswith("1.2 Proof of insurance")


def test_facts_are_listed_by_their_form() -> None:
    scanner = Scanner(CONTRACT, outline(CONTRACT))
    for kind in ("amount", "duration", "date"):
        quotes = [CONTRACT[p.start : p.end] for p in scanner.facts(kind)]
        assert len(quotes) == 1 and "USD 5,000" in quotes[0]
    assert ["4 per cent" in CONTRACT[p.start : p.end] for p in scanner.facts("percent")] == [True]
    chinese = Scanner(CHINESE, outline(CHINESE))
    assert ["5000元" in CHINESE[p.start : p.end] for p in chinese.facts("amount")] == [True]
    assert ["三十日" in CHINESE[p.start : p.end] for p in chinese.facts("duration")] == [True]


def test_lines_of_a_table_of_contents_are_no_clauses() -> None:
    text = "Insurance ............ 7\n\n" + CONTRACT
    assert found(text, "insurance") == ["1.", "1.1", "1.2"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "of", "the"]), max_size=60))
def test_nothing_is_left_out(words: list[str]) -> None:
    """The mentions counted are those of a plain look."""
    lines = [" ".join(words[at : at + 7]) + "." for at in range(0, len(words), 7)]
    text = "".join(f"{number}. {line}\n" for number, line in enumerate(lines, start=1))
    scanner = Scanner(text, outline(text))
    for wanted in ("alpha", "gamma"):
        places = scanner.mentions(wordings(wanted, "en", broad=False)[0])
        assert sum(place.count for place in places) == len(re.findall(wanted, text))
        for place in places:
            assert wanted in text[place.start : place.end]


def test_a_long_stretch_is_cut_into_sentences_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = []

    def counted(text: str, *place: int) -> tuple[tuple[int, int], ...]:
        cut.append(place)
        return split(text, *place)

    monkeypatch.setattr(scan, "split", counted)
    text = "The fee is due. It is USD 5.\n" * 500
    places = Scanner(text, ()).mentions(wordings("fee", "en", broad=False)[0])
    assert len(places) == 500
    assert {text[place.start : place.end] for place in places} == {"The fee is due."}
    assert len(cut) == 1
