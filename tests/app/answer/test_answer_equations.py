"""Computed figures: their operands are shown, stand in the cited text and make the result."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answer.checks import check_text
from app.answer.equations import find_equations
from app.answer.items import find_items
from app.types import Check

SPAN = (
    "The fee is USD 1,200 in the first year and USD 300 in the second, rising by 5%. The term "
    "runs from 1 March 2024 to 31 May 2024; notice is thirty (30) days."
)
SPAN_ZH = "设备款为50万元，安装费为8万元，自2024年3月1日起算，期限为三十日，违约金为10%。"


def computed(text: str, span: str) -> list[Check]:
    return [check for check in check_text(text, [span]) if check.kind == "computed"]


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("USD 1,200 + USD 300 = USD 1,500", SPAN),
        ("USD 1,200 plus $300 equals 1,500 dollars.", SPAN),
        ("$1,200 and $300 total $1,500.", SPAN),
        ("$1,200 minus $300 is $900.", SPAN),
        ("5% of USD 1,200 is USD 60.", SPAN),
        ("1 March 2024 to 31 May 2024 is 91 days.", SPAN),
        ("1 March 2024 + 30 days = 31 March 2024", SPAN),
        ("50万元+8万元=58万元", SPAN_ZH),
        ("50万元加8万元等于580,000元。", SPAN_ZH),
        ("50万元×10%=5万元", SPAN_ZH),
        ("5% × USD 1,200.50 = USD 60.03", SPAN.replace("1,200", "1,200.50")),
        ("2024年3月1日加三十日为2024年3月31日。", SPAN_ZH),
    ],
)
def test_a_result_that_follows_from_cited_operands_passes(text: str, span: str) -> None:
    checks = computed(text, span)
    assert [check.ok for check in checks] == [True], checks
    assert len(checks[0].operands) == 2
    assert all(check.ok for check in check_text(text, [span]))
    assert text[checks[0].start : checks[0].end] == checks[0].text


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("USD 1,200 + USD 300 = USD 1,600", "follow"),
        ("USD 1,200 + USD 300 = EUR 1,500", "follow"),
        ("USD 1,200 + USD 400 = USD 1,600", "operand"),
        ("5% of USD 1,200 is USD 600.", "follow"),
        ("1 March 2024 to 31 May 2024 is 92 days.", "follow"),
        ("1 March 2024 + 30 business days = 12 April 2024", "operand"),
    ],
)
def test_a_wrong_result_or_an_operand_from_nowhere_is_marked(text: str, note: str) -> None:
    checks = computed(text, SPAN)
    assert [check.ok for check in checks] == [False]
    assert note in checks[0].note


def test_figures_of_the_cited_text_that_stand_in_a_row_compute_nothing() -> None:
    span = "付款70%，共计166.31平方米，每年500元×12，合计7,000元。"
    assert [check.kind for check in check_text(span, [span]) if not check.ok] == []


def test_a_result_without_operands_is_a_figure_like_any_other() -> None:
    checks = check_text("The total is USD 1,500.", [SPAN])
    assert [(check.kind, check.ok) for check in checks] == [("number", False)]


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=4), st.integers(-3, 3))
def test_only_the_right_sum_is_right(parts: list[int], off: int) -> None:
    said = " + ".join(f"USD {part:,}" for part in parts) + f" = USD {sum(parts) + off:,}"
    (equation,) = find_equations(said, find_items(said))
    assert equation.right is (off == 0)
    assert [item.value for item in equation.operands if hasattr(item, "value")] == [
        Decimal(part) for part in parts
    ]
