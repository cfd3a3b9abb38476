"""Numbers written in words or in Chinese numerals, as plain values.

Knows Chinese numerals through cn2an (十二, 伍佰万, 1500万) and the English number words of
contracts (thirty, one hundred). It knows no grammar: the caller decides what is a number.
"""

from __future__ import annotations

import re
from functools import lru_cache

from cn2an import cn2an

from retrieval.number_words import BELOW_TWENTY, TENS

NUMERAL_CLASS = "零〇○一二三四五六七八九十百千万亿两壹贰叁肆伍陆柒捌玖拾佰仟萬億貳參陸"
_ANY_DIGIT = re.compile("[零〇○一二三四五六七八九两壹贰叁肆伍陆柒捌玖貳參陸十拾]")
_VARIANTS = str.maketrans("○貳參陸萬億", "〇贰叁陆万亿")

_UNITS = {word: value for value, word in enumerate(BELOW_TWENTY)}
_TENS = {word: 10 * value for value, word in enumerate(TENS, start=2)}
_MOST = 10**15
"""Above it a row of number words is no number that anybody wrote."""
ENGLISH_NUMBER_WORDS = frozenset(_UNITS) | frozenset(_TENS) | {"hundred", "thousand", "million"}


@lru_cache(maxsize=16_384)
def chinese_number(text: str) -> float | None:
    """The value of a Chinese numeral (十二, 一百二十, 伍佰万, 二〇二四); None when it is none."""
    if not _ANY_DIGIT.search(text):
        return None
    try:
        return float(cn2an(text.translate(_VARIANTS), "smart"))
    except (ValueError, KeyError, OverflowError):
        # cn2an looks up a unit that it does not know for some malformed numerals; a row of
        # hundreds of them is no number that anybody wrote.
        return None


@lru_cache(maxsize=4_096)
def english_number(words: str) -> int | None:
    """The value of number words ("thirty", "forty-five", "two hundred"); None when unclear."""
    total, current = 0, 0
    seen = False
    for word in re.split(r"[\s-]+", words.lower()):
        if word == "and" and seen:
            continue
        if word in _UNITS:
            current += _UNITS[word]
        elif word in _TENS:
            current += _TENS[word]
        elif word == "hundred":
            current = max(current, 1) * 100
        elif word in ("thousand", "million"):
            total += max(current, 1) * (1_000 if word == "thousand" else 1_000_000)
            current = 0
        else:
            return None
        seen = True
    return total + current if seen and total + current < _MOST else None
