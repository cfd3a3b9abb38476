"""Names of uploads: shown, never followed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadName
from app.names import display_name


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("contract.pdf", "contract.pdf"),
        ("采购合同（2024）.pdf", "采购合同（2024）.pdf"),
        ("plan-🚀.txt", "plan-🚀.txt"),
        ("../../outside.txt", "outside.txt"),
        ("..\\..\\outside.txt", "outside.txt"),
        ("/abs.txt", "abs.txt"),
        ("C:\\docs\\a.txt", "a.txt"),
        ("a/../../b.txt", "b.txt"),
        ("CON.txt", "CON.txt"),
        ("x.txt\u0000.pdf", "x.txt.pdf"),
        ("x\r\nSet-Cookie: y.txt", "xSet-Cookie: y.txt"),
        ("．．／outside.txt", "outside.txt"),
        ("甲／乙合同.docx", "甲／乙合同.docx"),
        ("pdf\u202efdp.exe", "pdffdp.exe"),
        ("  spaced name.txt ", "spaced name.txt"),
        ("cafe\u0301.txt", "café.txt"),
        ("bad\udcff.txt", "bad.txt"),
    ],
)
def test_shown(raw: str, shown: str) -> None:
    assert display_name(raw) == shown


@pytest.mark.parametrize("raw", ["", ".", "..", "../..", "/", "\\", "\0", "...", "．．／", "a/ "])
def test_nothing_to_show(raw: str) -> None:
    with pytest.raises(BadName, match="Rename it"):
        display_name(raw)


def test_too_long() -> None:
    assert len(display_name("合" * 251 + ".txt")) == 255
    with pytest.raises(BadName, match="300"):
        display_name("合" * 300)


@given(st.text(max_size=60))
def test_never_a_path(raw: str) -> None:
    try:
        shown = display_name(raw)
    except BadName:
        return
    assert "/" not in shown and "\\" not in shown
    assert shown not in (".", "..")
    assert shown.isprintable() or " " in shown or not shown.isascii()
    assert not any(ord(char) < 32 or ord(char) == 127 for char in shown)
    shown.encode()
