"""Grades and ranges of grades."""

from __future__ import annotations

import pytest

from retrieval.grades import grades


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("七级至十级伤残", ["7级", "8级", "9级", "10级"]),
        ("1至4级", ["1级", "2级", "3级", "4级"]),
        ("鉴定为五级、六级的", ["5级", "6级"]),
        ("评了10级", ["10级"]),
        ("一级至四级", ["1级", "2级", "3级", "4级"]),
        ("高级人民法院和上级机关", []),
        ("100级台阶", []),
    ],
)
def test_grades(text: str, found: list[str]) -> None:
    assert grades(text) == found
