from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.parse.names import MAX_CHARS, display_name, extension


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("contract.pdf", "contract.pdf"),
        ("采购合同（2024）.pdf", "采购合同（2024）.pdf"),
        ("plan-🚀.txt", "plan-🚀.txt"),
        ("../../outside.txt", "outside.txt"),
        ("..\\..\\outside.txt", "outside.txt"),
        ("/abs.txt", "abs.txt"),
        ("a/../../b.txt", "b.txt"),
        ("．．／x.txt", "x.txt"),
        ("..%2f..%2fx.txt", "x.txt"),
        ("x.txt\x00.pdf", "x.txt.pdf"),
        ("x%00.pdf", "x.pdf"),
        ("100%25.pdf", "100%25.pdf"),
        ("x\r\nSet-Cookie: y.txt", "xSet-Cookie: y.txt"),
        ("CON.txt", "_CON.txt"),
        (".", "document"),
        ("..", "document"),
        ("", "document"),
        ("\u202efdp.exe", "fdp.exe"),
    ],
)
def test_a_name_is_made_safe_to_show(raw: str, shown: str) -> None:
    assert display_name(raw) == shown


def test_a_long_name_keeps_its_ending() -> None:
    shown = display_name("合" * 300 + ".docx")
    assert len(shown) <= MAX_CHARS
    assert shown.endswith("….docx")


@given(st.text())
def test_no_name_holds_a_path_or_a_control(raw: str) -> None:
    shown = display_name(raw)
    assert shown
    assert not set("/\\\x00\r\n") & set(shown)
    assert shown not in (".", "..")
    assert display_name(shown) == shown


@pytest.mark.parametrize(
    ("name", "ending"), [("a.PDF", ".pdf"), ("a", ""), (".pdf", ""), ("a.b.docx", ".docx")]
)
def test_extension(name: str, ending: str) -> None:
    assert extension(name) == ending
