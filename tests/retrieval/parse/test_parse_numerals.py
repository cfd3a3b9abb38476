from __future__ import annotations

import pytest

from retrieval.parse.numerals import numeral


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (4, "decimal", "4"),
        (4, "decimalZero", "04"),
        (9, "upperRoman", "IX"),
        (14, "lowerRoman", "xiv"),
        (2, "lowerLetter", "b"),
        (28, "upperLetter", "BB"),
        (28, "lower-alpha", "ab"),
        (703, "upper-alpha", "AAA"),
        (780, "lowerLetter", "z" * 30),
        (781, "lowerLetter", "781"),
        (2**31 - 1, "upperLetter", "2147483647"),
        (4000, "lowerRoman", "4000"),
        (-1, "ideographDigital", "-1"),
        (1, "chineseCountingThousand", "一"),
        (10, "chineseCounting", "十"),
        (12, "chineseCountingThousand", "十二"),
        (20, "chineseCounting", "二十"),
        (103, "chineseCountingThousand", "一百零三"),
        (1010, "chineseCountingThousand", "一千零一十"),
        (15, "japaneseCounting", "十五"),
        (15, "ideographDigital", "一五"),
        (3, "chineseLegalSimplified", "叁"),
        (12, "chineseLegalSimplified", "壹拾贰"),
        (3, "decimalEnclosedCircleChinese", "③"),
        (12, "decimalFullWidth", "１２"),
        (1, "ideographTraditional", "甲"),
        (22, "ordinal", "22nd"),
        (11, "ordinal", "11th"),
        (21, "cardinalText", "Twenty-one"),
        (7, "bullet", ""),
        (7, "somethingNew", "7"),
    ],
)
def test_numeral(value: int, kind: str, text: str) -> None:
    assert numeral(value, kind) == text
