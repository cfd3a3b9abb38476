"""Normal forms as people read them, and hostile text in key terms and comparisons."""

from __future__ import annotations

from typing import Any

import pytest

from ui.compare_view import comparison_html
from ui.terms_view import readable, terms_html


@pytest.mark.parametrize(
    ("value", "english", "chinese"),
    [
        ("84 month", "84 months", "84 个月"),
        ("1 day", "1 day", "1 日"),
        ("10 business day", "10 business days", "10 个工作日"),
        ("9000000 GBP", "9,000,000 GBP", "9,000,000 GBP"),
        ("1250000.5 EUR", "1,250,000.5 EUR", "1,250,000.5 EUR"),
        ("0.6 %", "0.6 %", "0.6 %"),
        ("2024-03-01", "2024-03-01", "2024-03-01"),
        ("3 fortnight", "3 fortnight", "3 fortnight"),
    ],
)
def test_normal_forms_are_readable(value: str, english: str, chinese: str) -> None:
    assert readable(value, "en") == english
    assert readable(value, "zh") == chinese


def place(text: str, start: int = 0) -> dict[str, Any]:
    return {"start": start, "end": start + len(text), "text": text, "clause": "1", "page": 1,
            "page_label": None}  # fmt: skip


def term(state: str, **more: Any) -> dict[str, Any]:
    shape = {"name": "amounts", "state": state, "values": [], "conflicting": False, "reason": "",
             "nearest": None}  # fmt: skip
    return shape | more


def test_terms_escape_the_document_and_leave_out_what_the_words_say_already() -> None:
    def value(words: str, normal: str | None) -> dict[str, Any]:
        return {"value": normal, "words": place(words), "passage": place(words), "blank": False,
                "names": [place("<b>x</b>")]}  # fmt: skip

    values = [value("<script>1</script>", None), value("GBP 3,150", "3150 GBP")]
    values.append(value("nine months", "9 month"))
    terms = {"document_id": "doc", "warnings": [], "terms": [term("stated", values=values)]}
    shown = terms_html(terms, "en")
    assert "<script>" not in shown and "<b>" not in shown
    assert "3,150" in shown and "= 3" not in shown
    assert "= 9 months" in shown


def test_conflicts_blanks_and_silence_are_said() -> None:
    blank = {"value": None, "words": place("____"), "passage": place("____"), "blank": True,
             "names": []}  # fmt: skip
    terms = {
        "document_id": "doc",
        "warnings": [{"code": "x", "message": "Page 3 was not readable.", "pages": [3]}],
        "terms": [
            term("left_blank", values=[blank], conflicting=True),
            term("not_stated", nearest=place("The price")),
        ],
    }
    shown = terms_html(terms, "en")
    for said in ("left blank", "more than one value", "not stated", "closest passage", "Page 3"):
        assert said in shown


def comparison(changes: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    totals = dict.fromkeys(
        ("same", "changed", "added", "deleted", "moved", "renumbered", "formatting", "furniture"), 0
    )
    side = {"document_id": "doc", "name": "a.txt"}
    shape = {"old": side, "new": side, "identical": not changes, "changes": changes,
             "restated": [], "totals": totals, "warnings": []}  # fmt: skip
    return shape | more


def test_edits_stand_at_their_place_in_the_new_text() -> None:
    old, new = place("Pay 30 days <i>", 10), place("Pay 45 days <i>", 20)
    edit = {"category": "figure", "old": place("30", 14), "new": place("45", 24),
            "old_values": ["30 day"], "new_values": ["45 day"], "others": 2}  # fmt: skip
    change = {"kind": "changed", "category": "figure", "old": old, "new": new, "edits": [edit],
              "follows": []}  # fmt: skip
    shown = comparison_html(comparison([change]), "en")
    assert "Pay <del>30</del> <ins>45</ins> days &lt;i&gt;" in shown
    assert "30 days → 45 days" in shown and "and 2 more places" in shown


def test_what_went_out_keeps_its_distance() -> None:
    old, new = place("have any liability"), place("have liability")
    edit = {"category": "wording", "old": place("any", 5), "new": place("", 4),
            "old_values": [], "new_values": [], "others": 0}  # fmt: skip
    change = {"kind": "changed", "category": "wording", "old": old, "new": new, "edits": [edit],
              "follows": []}  # fmt: skip
    shown = comparison_html(comparison([change]), "en")
    assert "have<del> any</del> liability" in shown


def test_no_difference_is_said() -> None:
    assert "Nothing differs but formatting." in comparison_html(comparison([]), "en")
    assert "除格式外没有差异" in comparison_html(comparison([]), "zh")
