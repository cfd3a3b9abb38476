"""Defined terms, and which of them decide an answer."""

from __future__ import annotations

import pytest

from retrieval.deciding import deciding_definitions
from retrieval.definitions import find_definitions
from retrieval.query import read_question

EN = """1. Definitions
"Cap" means the sum of USD 2,000,000.
“Commencement Date” shall mean 1 June 2025.
Good Industry Practice means the care expected of an experienced maker.
"Contract Year" (or "Year") means a period that begins on the Commencement Date.
2. Parties
Northmere Grid plc, of 18 Lantern Quay (the "Buyer") and Calder Limited (hereinafter "Supplier").
3. Liability
Liability shall not exceed the Cap in each Contract Year.
"""
ZH = """第一条 定义
本合同所称“质保期”，是指自验收合格之日起二十四个月。
“总价”是指人民币100万元。
验收标准：指附件三所列的标准。
北方电网股份有限公司（以下简称“买方”）
第二条 违约金为总价的百分之五。
"""


def test_defined_terms_are_found_with_their_sentences() -> None:
    found = {d.term: EN[d.start : d.end] for d in find_definitions(EN)}
    assert found["Cap"] == '"Cap" means the sum of USD 2,000,000.'
    assert found["Commencement Date"].endswith("1 June 2025.")
    assert found["Good Industry Practice"].startswith("Good Industry Practice means")
    assert "Northmere" in found["Buyer"]
    assert {"Contract Year", "Supplier"} <= set(found)
    chinese = {d.term: ZH[d.start : d.end] for d in find_definitions(ZH)}
    assert set(chinese) == {"质保期", "总价", "验收标准", "买方"}
    assert chinese["总价"] == "“总价”是指人民币100万元。"


@pytest.mark.parametrize(
    ("text", "question", "quote", "terms"),
    [
        (EN, "How much is the liability limited to?", "Liability shall not exceed the Cap.",
         ["Cap"]),
        # Two steps: the year begins on a date that is defined.
        (EN, "When does it begin?", "It begins with the first Contract Year.",
         ["Contract Year", "Commencement Date"]),
        # The quote holds the amount: nothing more is needed.
        (EN, "How much is the cap?", "The cap on fines is USD 5.", []),
        (EN, "Which care is Good Industry Practice?", "Work follows Good Industry Practice.",
         ["Good Industry Practice"]),
        (ZH, "违约金是多少？", "违约金以总价为准。", ["总价"]),
        (ZH, "质保期是多久？", "质保期内免费维修。", ["质保期"]),
    ],
)  # fmt: skip
def test_terms_that_decide_an_answer(
    text: str, question: str, quote: str, terms: list[str]
) -> None:
    found = deciding_definitions(text, [quote], read_question(question))
    assert [definition.term for definition in found] == terms


def test_a_term_is_a_whole_word() -> None:
    cap = next(d for d in find_definitions(EN) if d.term == "Cap")
    assert cap.stands_in("not exceed the Cap.") and cap.stands_in("two Caps")
    assert not cap.stands_in("the Capital") and not cap.stands_in("a cap")
    assert cap.stands_in("a cap", any_case=True)
