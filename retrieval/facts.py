"""Stated facts of a kind by their form: calendar dates, amounts of money, percentages, lengths of
time.

Stricter than `asked.holds`, which also takes "the date" for a date: here a value must be written.
It does not know what the fact is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from retrieval.figures import find_figures

FactKind = Literal["date", "amount", "percent", "duration"]

# Lengths are bounded: without a bound a row of digits costs the square of its length.
_MONEY = re.compile(
    r"(?:[$€£¥￥]|\b(?:usd|eur|gbp|rmb|cny|hkd|jpy|chf)\b|人民币)\s*\d[\d,.]*"
    # Its unit belongs to the same amount: 人民币385,000元 is one and not two.
    r"(?:\s*[百千万亿]*[元圆])?"
    r"|\d[\d,.]{0,40}\s*(?:[百千万亿]*[元圆]|美元|欧元|英镑|港元|日元|dollars|euros|pounds|yuan|usd|eur|gbp|rmb|cny)"
    r"|[零一二三四五六七八九十壹贰叁肆伍陆柒捌玖拾佰仟百千万亿]{1,40}(?:元|圆)"
)
_TIME = re.compile(
    r"(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty"
    r"|forty(?:-five)?|sixty|ninety|hundred)\b)\)?[\s-]*(?:\(\d+\)\s*)?"
    r"(?:business |working |calendar |consecutive )?(?:day|week|month|year|hour)s?\b"
    r"|[\d零一二三四五六七八九十百两半]\s*个?(?:工作日|日内|日前|天|周|星期|月内|个月|年内|小时|季度)"
)


def find_facts(folded: str, kind: FactKind) -> Iterator[tuple[int, int]]:
    """The places of facts of `kind` in a text folded in place, in order."""
    if kind in ("date", "percent"):
        for figure in find_figures(folded):
            if figure.kind == kind:
                yield figure.start, figure.end
        return
    for match in (_MONEY if kind == "amount" else _TIME).finditer(folded):
        yield match.span()


def states(folded: str, kind: FactKind) -> bool:
    """Whether a text folded in place states a fact of `kind`."""
    return next(find_facts(folded, kind), None) is not None
