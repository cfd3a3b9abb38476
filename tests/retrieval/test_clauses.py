"""Clause outlines: styles, nesting, and lines that only look like headings (B10)."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.clauses import label, label_at, label_over, outline, path


def labels(text: str) -> list[str]:
    found = outline(text)
    return [label(found, clause.index) for clause in found]


def owner(text: str, phrase: str) -> str:
    """Label of the innermost clause around `phrase`."""
    return label_at(outline(text), text.index(phrase)) or ""


def test_reference_at_line_start_is_no_heading() -> None:
    zh = "11.5.1 通则\n11.5.2的规定适用于乙方。\n11.5.3中的期限为十日。\n11.5.2 付款\n按月付款。"
    assert labels(zh) == ["11.5.1", "11.5.2"]
    assert owner(zh, "十日") == "11.5.1"
    en = "Article 4 Liability\nArticle 5 applies to providers.\nThe cap is USD 1m."
    assert labels(en) == ["Article 4"]
    assert owner(en, "USD 1m") == "Article 4"


@pytest.mark.parametrize(
    "line",
    [
        "第十二条规定的情形除外。",
        "第十二条第二款适用。",
        "第十二条的规定不适用。",
        "第十二条至第十五条适用。",
    ],
)
def test_chinese_reference_inside_a_clause(line: str) -> None:
    text = f"第十一条 违约责任\n{line}\n第十二条 争议解决\n协商解决。"
    assert labels(text) == ["第十一条", "第十二条"]
    assert owner(text, line) == "第十一条"


def test_reference_after_a_hard_line_break() -> None:
    text = (
        "Section 4. Fees\nThe fees are payable as provided in\nSection 5. of this Agreement and\n"
        "Section 7 of the Plan.\nSection 5. Term\nOne year."
    )
    assert labels(text) == ["Section 4", "Section 5"]
    assert owner(text, "One year") == "Section 5"


def test_english_nesting_and_labels() -> None:
    text = (
        "1. Definitions\nWords.\n1.1 Goods\nThe goods.\n1.2 Price\nThe price:\n(a) in USD;\n"
        "(b) in EUR:\n(i) at par;\n(ii) at spot.\n2. Term\nTwo years.\n"
        "Schedule 1 Prices\n1. Valve\n"
    )
    assert labels(text) == [
        "1", "1.1", "1.2", "1.2(a)", "1.2(b)", "1.2(b)(i)", "1.2(b)(ii)", "2", "Schedule 1", "1",
    ]  # fmt: skip
    found = outline(text)
    assert [clause.title for clause in found[:3]] == ["Definitions", "Goods", "Price"]


def test_letter_i_after_h_is_a_letter_and_first_i_is_roman() -> None:
    letters = "".join(f"({letter}) item {letter};\n" for letter in "abcdefghij")
    assert labels("1. List\n" + letters)[-2:] == ["1(i)", "1(j)"]
    roman = "1. List\n(a) one:\n(i) x;\n(ii) y;\n(b) two.\n"
    assert labels(roman) == ["1", "1(a)", "1(a)(i)", "1(a)(ii)", "1(b)"]


def test_chinese_nesting_and_labels() -> None:
    text = (
        "第一章 总则\n第一条 目的\n本合同如下。\n第二章 付款\n第一节 方式\n"
        "第二条 价款\n（一）首付款；\n"
        "（二）尾款：\n１、验收后；\n２、保修期满后。\n第二条之一 税费\n由乙方承担。\n"
        "第三条 期限\n一年。"
    )
    assert labels(text) == [
        "第一章", "第一条", "第二章", "第一节", "第二条", "第二条（一）", "第二条（二）",
        "第二条（二）１", "第二条（二）２", "第二条之一", "第三条",
    ]  # fmt: skip
    found = outline(text)
    assert [clause.number for clause in path(found, 8)] == [
        "第二章",
        "第一节",
        "第二条",
        "（二）",
        "２、",
    ]


def test_enumeration_marks_of_chinese_contracts() -> None:
    text = (
        "一、标的\n钢材。\n二、价款\n１．总价\n（１）含税；\n（２）不含税。\n"
        "２．单价\n三、交货\n十日内。"
    )
    assert labels(text) == ["一", "二", "二、１", "二、１（１）", "二、１（２）", "二、２", "三"]


def test_figures_and_years_at_line_start_are_no_clauses() -> None:
    text = (
        "1. Price\n2024 is the base year.\n1.5 million dollars are due.\n10.5元每件。\n"
        "2. Term\nNone."
    )
    assert labels(text) == ["1", "2"]


def test_table_of_contents_lines_are_skipped() -> None:
    text = "1. Scope ........ 3\n2. Term ........ 4\n1. Scope\nAll goods.\n2. Term\nTwo years."
    assert labels(text) == ["1", "2"]


def test_dotted_numbers_inside_a_paragraph() -> None:
    text = (
        "2.1 The Supplier shall deliver. 2.2 The Buyer shall pay. See Section 9.9 for more. "
        "2.3 Title passes on payment."
    )
    assert labels(text) == ["2.1", "2.2", "2.3"]


def test_capital_headings_only_without_numbers() -> None:
    text = "CONFIDENTIALITY\nKeep it secret.\n\nGOVERNING LAW\nOhio.\n"
    assert [clause.title for clause in outline(text)] == ["CONFIDENTIALITY", "GOVERNING LAW"]


@settings(max_examples=60, deadline=None)
@given(
    st.text(
        alphabet=st.sampled_from(
            list("1234567890.()（）abiIVX第一二三十百条章节、：附件 \nArticleSection的")
        ),
        max_size=300,
    )
)
def test_outline_is_a_forest_of_nested_ranges(text: str) -> None:
    found = outline(text)
    for clause in found:
        assert 0 <= clause.start < clause.end <= len(text)
        if clause.parent is not None:
            parent = found[clause.parent]
            assert parent.index < clause.index
            assert parent.start <= clause.start and clause.end <= parent.end
            assert clause.level == parent.level + 1
    starts = [clause.start for clause in found]
    assert starts == sorted(starts)


def test_no_label_outside_of_clauses() -> None:
    text = "Preamble.\n1. Scope\nAll goods."
    assert label_at(outline(text), 0) is None
    assert label_at(outline(text), len(text) - 1) == "1"


@pytest.mark.parametrize("blank", [" ", "\t", ".", "…"])
def test_a_long_run_in_a_line_costs_no_time(blank: str) -> None:
    text = "1. The fee" + blank * 100_000 + "is USD 500.\n2. End.\n"
    started = time.process_time()
    assert [clause.number for clause in outline(text)] == ["1.", "2."]
    assert time.process_time() - started < 10


def test_a_heading_that_ends_in_a_word_of_reference_keeps_its_clauses() -> None:
    text = "7. Break clause\n7.1 The Tenant may end this Lease.\n7.2 It pays a fee.\n8. End\n"
    assert [clause.number for clause in outline(text)] == ["7.", "7.1", "7.2", "8."]
    text = (
        "7. Break\nThe Tenant may end this Lease as provided in clause\n7.1 of the Terms.\n8. End\n"
    )
    assert [clause.number for clause in outline(text)] == ["7.", "8."]


def test_clauses_are_numbered_beyond_a_thousand_and_years_are_no_clauses() -> None:
    english = outline("\n".join(f"{n}. The Party shall act." for n in range(1, 2101)))
    assert [clause.number for clause in english] == [f"{n}." for n in range(1, 2101)]
    chinese = outline("\n".join(f"第{n}条 双方应当履行。" for n in range(1, 2101)))
    assert chinese[-1].number == "第2100条"
    years = "1. Term\nIt runs until\n2015. Payment\n2015.1 is late.\n2. Fee\n1999. Year\n"
    assert [clause.number for clause in outline(years + "3. Law\n4. Tax\n")] == [
        "1.",
        "2.",
        "3.",
        "4.",
    ]
    assert outline("2015. Payment\n2016. Fee\n") == ()


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("六、解除\n１．协商一致的；\n２．任何一方解除合同，应提前三十日通知。", "六、２"),
        ("附件三\n１、设备清单。\n２、备件清单。", "附件三、２"),
        ("第七条 价款\n（1）预付款；\n（2）进度款。", "第七条（2）"),
        ("1. Price\n1.1 The price.\n(a) is fixed;\n(b) is due.", "1.1(b)"),
    ],
)
def test_numbers_in_each_other_do_not_read_as_another_number(text: str, cited: str) -> None:
    clauses = outline(
        text if "、" not in text[:2] else "一、甲\n二、乙\n三、丙\n四、丁\n五、戊\n" + text
    )
    assert label(clauses, clauses[-1].index) == cited


def test_a_stretch_over_several_articles_is_cited_from_the_first_to_the_last() -> None:
    text = "第一条 甲应当付款。\n第二条 乙应当交货。\n第三条 丙应当验收。\n"
    clauses = outline(text)
    second = text.index("第二条")
    assert label_over(clauses, second, len(text)) == "第二条至第三条"
    assert label_over(clauses, second, text.index("第三条") - 1) == "第二条"
    english = "1. Price\nIt is due.\n2. Law\nIt applies.\n"
    assert label_over(outline(english), 0, len(english)) == "1"
