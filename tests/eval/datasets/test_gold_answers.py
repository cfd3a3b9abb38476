from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eval.datasets.gold import AnswerFinder

TEXT = "甲方😀应付 USD 500, then USD 500.\nThe fee is 1500 and the cap is\n  2 million. NOTICE"


def test_a_right_offset_is_used_though_the_answer_stands_elsewhere_too() -> None:
    second = TEXT.rindex("USD 500")
    assert AnswerFinder(TEXT).near("USD 500", second) == (second, second + 7)


def test_offsets_in_other_units_are_mended() -> None:
    start = TEXT.index("USD 500")
    utf16 = len(TEXT[:start].encode("utf-16-le")) // 2
    assert utf16 != start
    assert AnswerFinder(TEXT).near("USD 500", utf16) == (start, start + 7)
    fee = TEXT.index("fee is")
    assert AnswerFinder(TEXT).near("fee is", len(TEXT[:fee].encode())) == (fee, fee + 6)


def test_no_answer_begins_or_ends_inside_a_number_or_word() -> None:
    finder = AnswerFinder(TEXT)
    assert finder.near("50", 3) is None
    assert finder.only("NO") is None
    assert finder.only("150") is None
    assert finder.only("1500") == (TEXT.index("1500"), TEXT.index("1500") + 4)


def test_white_space_is_no_difference() -> None:
    found = AnswerFinder(TEXT).near("the cap is 2 million", 999)
    assert found is not None
    assert TEXT[slice(*found)] == "the cap is\n  2 million"


def test_an_answer_without_a_place_is_taken_only_where_it_is_clear() -> None:
    finder = AnswerFinder(TEXT + " Yes")
    assert finder.only("USD 500") is None
    assert finder.only("Yes") is None
    assert finder.only("2 million") is not None
    assert finder.near("nowhere", 0) is None


def test_locate_drops_empty_answers_and_repetitions() -> None:
    start = TEXT.index("1500")
    gold = AnswerFinder(TEXT).locate(
        [("1500", start), ("", -1), ("1500", start), ("YES", -1), ("the cap is 2 million", 0)],
        look_for_unplaced=True,
    )
    assert gold.answers == ("1500", "YES", "the cap is\n  2 million")
    assert [TEXT[slice(*span)] for span in gold.spans] == ["1500", "the cap is\n  2 million"]


@given(
    text=st.text("ab 1一\n", min_size=1, max_size=60),
    bounds=st.tuples(st.integers(0, 59), st.integers(1, 12)),
    wrong=st.integers(-5, 5),
)
def test_a_span_always_holds_its_answer(text: str, bounds: tuple[int, int], wrong: int) -> None:
    start = min(bounds[0], len(text) - 1)
    answer = text[start : start + bounds[1]]
    finder = AnswerFinder(text)
    if answer.strip():
        assert finder.near(answer, start) == (start, start + len(answer))
    gold = finder.locate([(answer, max(0, start + wrong))], look_for_unplaced=False)
    for span, held in zip(gold.spans, gold.answers, strict=False):
        assert text[slice(*span)] == held
        assert held.split() == answer.split() or "".join(held.split()) == "".join(answer.split())
