"""Grades such as 八级 and 10级, and ranges of them: 七级至十级 speaks of 八级 without the word.

It knows Chinese grades only (伤残等级, 资质等级), at most `_HIGHEST` of them.
"""

from __future__ import annotations

import re

from retrieval.numerals import chinese_number

_HIGHEST = 20
_NUMERAL = r"[零一二三四五六七八九十\d]"
_GRADE = re.compile(
    rf"(?<!{_NUMERAL})({_NUMERAL}{{1,3}})级?\s*(?:至|到|-|~)\s*({_NUMERAL}{{1,3}})级"
    rf"|(?<!{_NUMERAL})({_NUMERAL}{{1,3}})级"
)


def grades(folded: str) -> list[str]:
    """The grades that a folded text speaks of, as 8级, every one of a range."""
    found: list[str] = []
    for match in _GRADE.finditer(folded):
        first, last = _number(match[1] or match[3]), _number(match[2] or match[3])
        if 1 <= first <= last <= _HIGHEST:
            found.extend(f"{grade}级" for grade in range(first, last + 1))
    return found


def _number(text: str) -> int:
    return int(text) if text.isdigit() else int(chinese_number(text) or 0)
