"""What counts as a change between two versions, and how it is told."""

from __future__ import annotations

import re
from typing import Any

import pytest

CONTRACT = """SUPPLY AGREEMENT

This Agreement is made between Acme Pumps Ltd (the "Supplier") and Borel Foods Inc. (the "Buyer")
on 1 March 2024.

1. Definitions
In this Agreement "Goods" means the pumps listed in Schedule 1.

2. Price
The price is USD 1,500,000.00, payable within thirty (30) days after receipt of an invoice.

3. Delivery
The Supplier shall deliver the Goods to the site of the Buyer in Leeds. Delivery is governed by
Section 6 and by Schedule 1.

4. Warranty
The Supplier warrants that the Goods are free from defects for a period of two years.

5. Confidentiality
Each party keeps the documents of the other party secret and returns them at the end of this
Agreement.

6. Liability
The liability of the Supplier shall not exceed the price. Nothing in Section 4 limits it further.

7. Termination
Either party may terminate this Agreement by giving sixty days' written notice to the other party.

8. Governing law
This Agreement is governed by the laws of England.

Schedule 1
Item A   Pump, cast iron   12 pieces   USD 800,000
Item B   Valve, steel   30 pieces   USD 700,000
"""

ZH = """设备采购合同

甲方：青禾乳业股份有限公司
乙方：恒岳智能装备有限公司

第一条 定义
本合同所称设备，是指附件一所列的全部机器。

第二条 价款
合同总价为人民币150万元，甲方应于收到发票后三十日内付款。

第三条 交付
乙方应于2025年6月30日前将设备运至甲方厂房。交付适用第五条的规定。

第四条 保密
双方应当对在履行过程中知悉的商业秘密予以保密，合同终止后仍然有效。

第五条 验收
设备到货后十日内，双方共同进行验收，验收合格的，由甲方签署验收证书。

第六条 解除
任何一方可以提前六十日书面通知对方解除本合同。

附件一
1 泵 12台 80万元
2 阀 30台 70万元
"""


def facts(comparison: Any) -> list[tuple[str, str, str, str]]:
    """(kind of change, category of edit, old words, new words) of everything reported."""
    found = []
    for change in comparison.changes:
        if change.kind != "changed":
            found.append((change.kind, "", *(p and p.clause for p in (change.old, change.new))))
        found += [(change.kind, e.category, e.old.text, e.new.text) for e in change.edits]
    return found


@pytest.mark.parametrize(
    ("before", "after", "edit"),
    [
        ("1,500,000.00", "1,800,000.00", ("figure", "USD 1,500,000.00", "USD 1,800,000.00")),
        ("USD 800,000", "EUR 800,000", ("figure", "USD 800,000", "EUR 800,000")),
        ("1 March 2024", "2 March 2024", ("date", "1 March 2024", "2 March 2024")),
        ("two years", "two months", ("figure", "two years", "two months")),
        ("Acme Pumps Ltd", "Zenith Pumps Ltd", ("party", "Acme", "Zenith")),
        ("shall deliver", "shall not deliver", ("negation", "", "not")),
        ("shall not exceed", "shall exceed", ("negation", "not", "")),
        ("sixty days'", "ninety days'", ("notice_period", "sixty days", "ninety days")),
        ("Nothing in Section 4", "Nothing in Section 5", ("reference", "Section 4", "Section 5")),
        ("cast iron", "grey iron", ("wording", "cast", "grey")),
        ("laws of England", "laws of Scotland", ("wording", "England", "Scotland")),
        ("the Goods to the site", "the goods to the site", ("case", "Goods", "goods")),
        ("30 pieces", "35 pieces", ("figure", "30", "35")),
        ("free from defects for", "free from defects, for", ("punctuation", "", ",")),
    ],
)  # fmt: skip
def test_one_change_is_one_edit(compared: Any, before: str, after: str, edit: Any) -> None:
    assert CONTRACT.count(before) == 1
    found = compared(CONTRACT, CONTRACT.replace(before, after))
    assert facts(found) == [("changed", *edit)]
    assert found.totals.equal_words >= found.totals.old_words - 3


@pytest.mark.parametrize(
    ("before", "after", "edit"),
    [
        ("150万元", "180万元", ("figure", "人民币150万元", "人民币180万元")),
        ("三十日内", "三十个工作日内", ("figure", "三十日", "三十个工作日")),
        ("2025年6月30日", "2025年7月30日", ("date", "2025年6月30日", "2025年7月30日")),
        ("六十日书面通知", "九十日书面通知", ("notice_period", "六十日", "九十日")),
        ("乙方应于", "乙方不应于", ("negation", "", "不")),
        ("适用第五条", "适用第六条", ("reference", "第五条", "第六条")),
        ("运至甲方", "运至乙方", ("party", "甲", "乙")),
        ("30台", "35台", ("figure", "30台", "35台")),
    ],
)
def test_one_chinese_change_is_one_edit(compared: Any, before: str, after: str, edit: Any) -> None:
    assert ZH.count(before) == 1
    assert facts(compared(ZH, ZH.replace(before, after))) == [("changed", *edit)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("USD 1,500,000.00", "USD 1.5 million"),
        ("thirty (30) days", "30 days"),
        ("1 March 2024", "March 1, 2024"),
        ("two years", "twenty-four (24) months"),
        ("12 pieces", "twelve pieces"),
    ],
)
def test_the_same_value_written_another_way_is_no_change(
    compared: Any, before: str, after: str
) -> None:
    found = compared(CONTRACT, CONTRACT.replace(before, after))
    assert found.changes == ()
    assert len(found.restated) == 1
    assert found.restated[0].old_values == found.restated[0].new_values


@pytest.mark.parametrize(("before", "after"), [("150万元", "1,500,000元"), ("三十日", "30日")])
def test_the_same_chinese_value_is_no_change(compared: Any, before: str, after: str) -> None:
    found = compared(ZH, ZH.replace(before, after))
    assert found.changes == () and len(found.restated) == 1


def rewrapped(text: str) -> str:
    """The same paragraphs with other line breaks inside; headings and tables keep theirs."""
    return re.sub(r"(?<=[a-z,])\n(?=[a-zA-Z])", " ", text)


@pytest.mark.parametrize(
    "new",
    [
        CONTRACT.replace('"', "”").replace("'", "’"),
        CONTRACT.replace("   ", "\t"),
        rewrapped(CONTRACT),
        CONTRACT.replace("Confidentiality", "CONFIDENTIALITY").replace("Price", "PRICE"),
        CONTRACT.replace("documents of", "docu-\nments of"),
        CONTRACT.replace("documents of", "docu\u00adments of"),
        CONTRACT.replace("free from", "free\u00a0from"),
        CONTRACT.replace("\n\n", "\n\n\n"),
        CONTRACT.replace("\n3. Delivery", "\n- 1 -\n\n3. Delivery"),
        CONTRACT.replace("\n3. Delivery", "\nPage 1 of 3\n\n3. Delivery"),
        CONTRACT.replace("\n3. ", "\nSection 3. "),
    ],
)
def test_formatting_is_no_change(compared: Any, new: str) -> None:
    assert new != CONTRACT
    found = compared(CONTRACT, new)
    assert facts(found) == []
    assert found.restated == ()
    assert found.totals.old_words == found.totals.equal_words


def test_page_numbers_and_headers_are_left_out(compared: Any) -> None:
    pages = [f"{name}. Clause {name}\n" + f"The {name} party pays. " * 60 for name in "ABCDE"]
    old = "\n\n".join(pages)
    new = "".join(
        f"{page}\n\n- {number} -\n\nAcme Supply Agreement, draft of May\n\n"
        for number, page in enumerate(pages, 1)
    )
    found = compared(old, new)
    assert facts(found) == []
    assert found.totals.furniture >= 10


def test_a_lone_number_is_not_taken_for_a_page_number(compared: Any) -> None:
    found = compared(CONTRACT, CONTRACT.replace("\n3. Delivery", "\n17\n\n3. Delivery"))
    assert facts(found) == [("changed", "figure", "", "17")]


def test_deleted_clause_brings_the_numbers_and_references_with_it(compared: Any) -> None:
    new = CONTRACT[: CONTRACT.index("5. Conf")] + CONTRACT[CONTRACT.index("6. Liab") :]
    for number in (6, 7, 8):
        new = new.replace(f"\n{number}. ", f"\n{number - 1}. ")
    new = new.replace("Section 6", "Section 5")
    found = compared(CONTRACT, new)
    assert facts(found) == [("deleted", "", "5", None)]
    (change,) = found.changes
    assert change.old.text.startswith("5. Confidentiality")
    assert [(one.kind, one.old.text, one.new.text) for one in change.follows] == [
        ("renumbered", "6.", "5."),
        ("renumbered", "7.", "6."),
        ("renumbered", "8.", "7."),
        ("reference", "Section 6", "Section 5"),
    ]
    totals = found.totals
    assert (totals.deleted, totals.renumbered, totals.changed) == (1, 3, 0)


def test_a_reference_that_does_not_follow_is_a_change(compared: Any) -> None:
    new = CONTRACT[: CONTRACT.index("5. Conf")] + CONTRACT[CONTRACT.index("6. Liab") :]
    for number in (6, 7, 8):
        new = new.replace(f"\n{number}. ", f"\n{number - 1}. ")
    found = compared(CONTRACT, new.replace("Section 6", "Section 7"))
    assert ("changed", "reference", "Section 6", "Section 7") in facts(found)


def test_added_clause(compared: Any) -> None:
    clause = "4A. Spare parts\nThe Supplier keeps spare parts in stock for ten years.\n\n"
    new = CONTRACT.replace("5. Confidentiality", clause + "5. Confidentiality")
    found = compared(CONTRACT, new)
    (change,) = found.changes
    assert change.kind == "added" and change.old is None
    assert change.new.text == clause.strip()


def test_moved_clause_with_a_change_inside(compared: Any) -> None:
    start, end = CONTRACT.index("4. Warranty"), CONTRACT.index("5. Conf")
    body = CONTRACT[start:end]
    rest = CONTRACT[:start] + CONTRACT[end:]
    new = rest.replace("8. Governing", body.replace("two years", "three years") + "8. Governing")
    (change,) = compared(CONTRACT, new).changes
    assert change.kind == "moved" and change.category == "figure"
    assert change.old.text.startswith("4. Warranty") and change.new.text.startswith("4. Warranty")
    assert [(edit.old.text, edit.new.text) for edit in change.edits] == [
        ("two years", "three years")
    ]


def test_renumbered_section_is_one_change(compared: Any) -> None:
    old = "\n\n".join(
        f"{n}. Part {word}\n{n}.1 The {word} party pays.\n{n}.2 See Section 2.1 of the {word} part."
        for n, word in enumerate(("alpha", "beta", "gamma"), 1)
    )
    new = old.replace("2. Part", "9. Part").replace("\n2.", "\n9.").replace("ion 2.1", "ion 9.1")
    (change,) = compared(old, new).changes
    assert change.kind == "renumbered"
    assert (change.old.text, change.new.text) == ("2.", "9.")
    assert [one.kind for one in change.follows] == ["renumbered"] * 2 + ["reference"] * 3


def test_identical_boilerplate_is_not_aligned_across_schedules(compared: Any) -> None:
    boilerplate = "1. Notices\nNotices are sent by letter.\n\n2. Waiver\nNo waiver is implied.\n\n"
    old = "".join(f"Schedule {n}\n{boilerplate}" for n in range(1, 7))
    at = old.index("Schedule 4")
    new = old[:at] + old[at:].replace("No waiver is implied", "A waiver is implied", 1)
    (change,) = compared(old, new).changes
    assert change.kind == "changed"
    assert old[: change.old.start].count("Schedule") == 4
    assert new[: change.new.start].count("Schedule") == 4


def test_a_party_replaced_everywhere_is_one_change(compared: Any) -> None:
    old = CONTRACT.replace("Either party", "Acme Pumps Ltd or Borel Foods Inc.")
    found = compared(old, old.replace("Acme", "Zenith"))
    assert facts(found) == [("changed", "party", "Acme", "Zenith")]
    assert found.changes[0].edits[0].others == 1


def test_figures_come_first(compared: Any) -> None:
    new = CONTRACT.replace("pumps listed", "devices listed").replace(
        "laws of England", "law of Wales"
    )
    new = new.replace("USD 700,000", "USD 750,000").replace("sixty days", "ten days")
    categories = [change.category for change in compared(CONTRACT, new).changes]
    assert set(categories[:2]) == {"figure", "notice_period"}
    assert categories[2:] == ["wording", "wording"]


def test_text_outside_of_clauses_is_compared(compared: Any) -> None:
    found = compared("Letter of intent\n\n" + "We agree on pumps. " * 9, "Letter of intent\n\n"
                     + "We agree on pumps. " * 8 + "We agree on valves. ")  # fmt: skip
    assert facts(found) == [("changed", "wording", "pumps", "valves")]
    assert found.changes[0].old.clause is None


@pytest.mark.parametrize("text", [CONTRACT, ZH, "", "x"])
def test_a_text_does_not_differ_from_itself(compared: Any, text: str) -> None:
    found = compared(text, text)
    assert found.changes == () and found.restated == ()
    assert found.totals.same == found.totals.old_clauses == found.totals.new_clauses


def test_empty_against_full(compared: Any) -> None:
    assert [change.kind for change in compared("", CONTRACT).changes].count("added") > 0
    assert {change.kind for change in compared(CONTRACT, "").changes} == {"deleted"}


@pytest.mark.parametrize(
    ("old", "new", "gone", "came", "values"),
    [
        ("three times (3x) the Cap", "two times (2x) the Cap", "three times (3x)", "two times (2x)",
         (("3 times",), ("2 times",))),
        ("pump model B205 as drawn", "pump model B206 as drawn", "B205", "B206", None),
        ("in the 2nd year", "in the 3rd year", "2nd", "3rd", None),
        ("within thirty (30) days", "within sixty (60) days", "thirty (30) days",
         "sixty (60) days", (("30 day",), ("60 day",))),
    ],
)  # fmt: skip
def test_marks_stand_at_the_borders_of_words(
    compared: Any, old: str, new: str, gone: str, came: str, values: Any
) -> None:
    before = f"1. Terms\nThe sum shall be due {old} at the place agreed.\n"
    (change,) = compared(before, before.replace(old, new)).changes
    (edit,) = change.edits
    assert (edit.old.text, edit.new.text) == (gone, came)
    assert values is None or (edit.old_values, edit.new_values) == values
