"""Decimal clause numbers confirm each other, whatever was missed between them."""

from __future__ import annotations

import pytest

from retrieval.clauses import label_at, outline
from retrieval.decimals import backbone, follows
from retrieval.headings import candidates

BODY = """
Exhibit 10.3

LICENCE AGREEMENT

1. Definitions

1.1 Product. The goods listed in Schedule 1.

1.2 Term. The time stated in clause 9.1.

2.1 Grant. The Licensor grants a licence.
(a) for the Territory, and
(b) for the Term.

4.1 Fees. The Licensee pays the fees.

4.2 Late payment. Interest accrues as provided in
8.3 of this Agreement and under
Section 9.9 Taxes of the Master Agreement.

4.4 Records. The Licensee keeps records.

15.3 Applicable law. The laws of England apply.

15.4 Language. English prevails.
"""


def labels(text: str) -> list[str | None]:
    clauses = outline(text)
    return [label_at(clauses, clause.start) for clause in clauses]


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ((15, 3), (15, 4)),
        ((15, 3), (15, 3, 1)),
        ((15, 3, 2), (15, 4)),
        ((15, 3), (16, 1)),
        ((1, 2, 3), (1, 3, 1)),
    ],
)
def test_what_may_come_next(path: tuple[int, ...], other: tuple[int, ...]) -> None:
    assert follows(path, other)


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ((15, 3), (15, 3)),
        ((15, 3), (15, 5)),
        ((15, 4), (15, 3)),
        ((15, 3), (17, 1)),
        ((4, 2), (8, 3)),
    ],
)
def test_what_may_not(path: tuple[int, ...], other: tuple[int, ...]) -> None:
    assert not follows(path, other)


def test_clauses_behind_gaps_have_their_own_numbers() -> None:
    found = labels(BODY)
    for number in ("1.1", "1.2", "2.1", "4.1", "4.2", "15.3", "15.4"):
        assert number in found
    assert "2.1(a)" in found and "2.1(b)" in found


def test_a_quote_behind_a_gap_is_cited_by_its_clause() -> None:
    clauses = outline(BODY)
    assert label_at(clauses, BODY.index("The laws of England")) == "15.3"
    assert label_at(clauses, BODY.index("The Licensee keeps records")) == "4.4"


def test_references_that_wrap_are_no_clauses() -> None:
    found = labels(BODY)
    assert "8.3" not in found and "9.9" not in found


def test_an_index_of_terms_does_not_break_the_numbering() -> None:
    index = (
        "Closing   4.4 Company   2.3 Consent   9.9 Merger   9.10 Parent   3.1 Proxy   7.1 Trust\n"
    )
    text = BODY.replace("2.1 Grant", f"{index}\n2.1 Grant")
    clauses = outline(text)
    for words, number in (("The Licensor grants", "2.1"), ("The laws of England", "15.3")):
        assert label_at(clauses, text.index(words)) == number


def test_numbers_behind_wide_spaces_of_a_text_without_lines_are_clauses() -> None:
    text = (
        "Section 4   Exclusivity   [***]   Section 5   Consideration   5.1 Royalty. A royalty is"
        " paid.   5.2 Audit. Books are kept.   6.1 Term. Two years.   6.2 End. On notice."
    )
    clauses = outline(text)
    assert label_at(clauses, text.index("Two years")) == "6.1"
    assert label_at(clauses, text.index("Books are kept")) == "5.2"


def test_a_schedule_counts_from_one_again() -> None:
    schedule = "\nSchedule 1\n\n1.1 Goods. Steel.\n\n1.2 Price. EUR 5.\n\n2.1 Packing. Boxes.\n"
    clauses = outline(BODY + schedule)
    text = BODY + schedule
    assert label_at(clauses, text.index("EUR 5")) == "1.2"
    assert label_at(clauses, text.index("Boxes")) == "2.1"
    assert label_at(clauses, text.index("English prevails")) == "15.4"


def test_an_attachment_may_count_from_any_number() -> None:
    schedules = "".join(
        f"\nSchedule {letter}\n\n2.1 Goods {letter}. Steel.\n\n2.2 Price. EUR 5.\n"
        for letter in "ABC"
    )
    text = BODY.replace("15.", "3.").replace("4.", "2.") + schedules
    clauses = outline(text)
    for letter in "ABC":
        assert label_at(clauses, text.index(f"Goods {letter}")) == "2.1"


CONTENTS = "".join(
    f"{number} {title} {page}\n"
    for page, (number, title) in enumerate(
        [("1.1", "Product"), ("1.2", "Term"), ("4.1", "Fees"), ("4.2", "Late payment")], 3
    )
)


def test_contents_before_the_text_are_no_clauses() -> None:
    body = BODY.replace("Exhibit 10.3\n", "")
    text = "ARTICLE 1\n" + CONTENTS + "Schedule 1 Goods\nSchedule 2 Prices\n" + body
    clauses = outline(text)
    assert label_at(clauses, text.index("The Licensee pays")) == "4.1"
    assert label_at(clauses, text.index("Late payment 6")) is None
    # What stands between them is in no clause, so it is not cited by the last entry.
    assert label_at(clauses, text.index("LICENCE AGREEMENT")) is None


def test_a_short_schedule_is_no_table_of_contents() -> None:
    schedule = (
        "\n1.1 Goods. Steel.\n\n1.2 Price. EUR 5.\n\n1.3 Packing. Boxes.\n\n2.1 Port. Hamburg.\n"
    )
    text = BODY + schedule
    assert label_at(outline(text), text.index("Hamburg")) == "2.1"
    assert not backbone(list(candidates(text))).contents


def test_the_backbone_rises() -> None:
    found = backbone(list(candidates(BODY))).numbers
    paths = [found[start] for start in sorted(found)]
    assert paths == sorted(paths) and (8, 3) not in paths and (15, 4) in paths


def test_headings_of_one_level_lead_their_rows() -> None:
    added = "14. Notices\n\nIn writing.\n\n15. Law\n\n15.1 Forum. Rome.\n\n15.2 Costs. None.\n\n"
    text = BODY.replace("15.3 App", f"{added}15.3 App")
    clauses = outline(text)
    titles = {clause.number: clause.title for clause in clauses}
    assert titles["15."] == "Law"
    assert label_at(clauses, text.index("Rome")) == "15.1"


def test_chinese_headings_above_decimal_numbers_stay_in_the_outline() -> None:
    text = (
        "买卖合同\n一、标的\n1.1 钢材。\n1.2 铜材。\n二、价格\n见附件。\n三、交货\n3.1 地点。\n"
        "3.2 时间：\n（一）首批；\n（二）余量。\n3.3 包装。\n四、付款\n4.1 方式。\n五、其他\n"
    )
    found = labels(text)
    for heading in "一二三四五":
        assert heading in found
    clauses = outline(text)
    assert label_at(clauses, text.index("见附件")) == "二"
    assert label_at(clauses, text.index("余量")) == "3.2（二）"
    assert label_at(clauses, text.index("包装")) == "3.3"


def test_single_numbers_under_chinese_headings_are_cited_with_them() -> None:
    text = (
        "一、范围\n甲方供货。\n二、词语\n1、定义\n1.1 甲方。\n1.2 乙方。\n2、解释\n2.1 顺序。\n"
        "2.2 语言。\n三、权利\n3、图纸\n3.1 套数。\n3.2 保管。\n"
    )
    clauses = outline(text)
    assert label_at(clauses, text.index("图纸")) == "三、3"
    assert label_at(clauses, text.index("套数")) == "3.1"


def test_a_form_may_have_a_clause_twice_to_choose_from() -> None:
    form = (
        "第二条　价格\n2.1　总价。\n2.2　包装费。\n第三条　支付（方案一）\n3.1　电汇。\n"
        "3.2　分期。\n3.3　费用由买方负担。\n第三条　支付（方案二）\n3.1　信用证。\n"
        "3.2　单据：\n（1）发票；\n（2）汇票。\n第四条　交货\n4.1　港口。\n4.2　时间。\n"
    )
    clauses = outline(form)
    for words, number in (
        ("电汇", "3.1"), ("费用由买方", "3.3"), ("信用证", "3.1"), ("单据", "3.2"),
        ("汇票", "3.2（2）"), ("港口", "4.1"),
    ):  # fmt: skip
        assert label_at(clauses, form.index(words)) == number


RUN_TOGETHER = """
第九条 管理
９．１　董事会决定下列事项：
９．１．１　批准年度预算；９．１．２　批准购买设备；９．１．３　任免厂长．
９．１．４　批准借款，金额超过９．１．２项所列数额的除外．９．２　董事会每年开会两次．
９．３　会议记录由秘书保存．
"""


def test_numbers_within_a_line_of_chinese_text_begin_clauses() -> None:
    clauses = outline(RUN_TOGETHER)
    for words, number in (
        ("批准购买", "９．１．２"), ("任免厂长", "９．１．３"), ("每年开会", "９．２"),
    ):  # fmt: skip
        assert label_at(clauses, RUN_TOGETHER.index(words)) == number


def test_a_figure_within_a_line_of_chinese_text_begins_none() -> None:
    text = "第一条 尺寸\n１．１　板宽如下：甲板；1.2米的乙板；1.3米的丙板。\n１．２　板厚另定。\n"
    assert [clause.number for clause in outline(text)] == ["第一条", "１．１", "１．２"]
