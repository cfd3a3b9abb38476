from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.errors import Undecodable
from retrieval.parse.decode import decode

CONTRACT = "第一条 定义\r\n第二条 违约金为合同总价的百分之五。"
TRADITIONAL = "第一條 定義\r\n第二條 違約金為合同總價的百分之五，甲方應於收到發票後三十日內付款。"


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("gbk", "gb18030"),
        ("gb18030", "gb18030"),
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
    ],
)
def test_a_chinese_contract_in_every_encoding_gives_the_same_text(
    encoding: str, found: str
) -> None:
    assert decode(CONTRACT.encode(encoding), "a.txt") == (CONTRACT, found)


def test_gb18030_with_a_rare_character() -> None:
    text = CONTRACT + "签约人：㐂䶮𠮷"
    assert decode(text.encode("gb18030"), "a.txt") == (text, "gb18030")


def test_big_endian_utf16_with_its_mark() -> None:
    assert decode(b"\xfe\xff" + CONTRACT.encode("utf-16-be"), "a.txt")[0] == CONTRACT


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_mark_or_latin_characters(encoding: str) -> None:
    text = "甲方应当于收到发票之日起三十日内向乙方支付合同总价款，逾期付款的应当承担违约责任。"
    assert decode(text.encode(encoding), "a.txt") == (text, encoding)


def test_big5_is_told_from_gb18030() -> None:
    text, encoding = decode(TRADITIONAL.encode("big5"), "a.txt")
    assert (text, encoding) == (TRADITIONAL, "big5")


def test_traditional_characters_in_gbk_stay_gbk() -> None:
    text, encoding = decode(TRADITIONAL.encode("gbk"), "a.txt")
    assert (text, encoding) == (TRADITIONAL, "gb18030")


def test_english_utf16_without_a_mark() -> None:
    text = "Clause 1. Term: two years."
    assert decode(text.encode("utf-16-le"), "a.txt") == (text, "utf-16-le")


def test_curly_quotes_of_windows_are_not_chinese() -> None:
    text = "The “Supplier” shall pay £100 – and the Buyer’s costs under § 5. " * 3
    assert decode(text.encode("cp1252"), "a.txt") == (text, "cp1252")


@given(st.text(st.characters(min_codepoint=1, max_codepoint=126), max_size=60))
def test_ascii_is_never_guessed_as_anything_else(text: str) -> None:
    assert decode(text.encode("ascii"), "a.txt") == (text, "utf-8")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Co", "Cn"]), max_size=60))
def test_utf8_stays_utf8(text: str) -> None:
    data = text.encode("utf-8")
    if not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        assert decode(data, "a.txt") == (text, "utf-8")


def test_a_wrong_mark_is_refused_with_the_encoding_named() -> None:
    with pytest.raises(Undecodable, match="utf-8-sig"):
        decode(b"\xef\xbb\xbfabc\xff\xfe", "a.txt")


def test_noise_is_refused_with_the_encodings_tried() -> None:
    noise = bytes((i * 7919 + 13) % 251 + 1 for i in range(997))
    with pytest.raises(Undecodable, match="gb18030, big5"):
        decode(noise, "a.txt")
