"""Which language a text is in, by counting characters.

A Chinese character stands for about as much as half an English word, so a text with as many
Chinese characters as Latin words is called Chinese. It knows no other language: everything that
is not Chinese is treated as English.
"""

from __future__ import annotations

import re

from retrieval.types import Language

_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile("[A-Za-z]{2,}")
_SAMPLE_CHARS = 200_000


def detect(text: str) -> Language:
    """The main language of `text`; "en" when it holds neither script.

    A mixed question such as "SLA 违约金" is Chinese. Long texts are judged by their first 200,000
    characters.
    """
    sample = text[:_SAMPLE_CHARS]
    chinese = len(_CHINESE.findall(sample))
    latin = len(_LATIN_WORD.findall(sample))
    return "zh" if chinese > 0 and chinese >= latin else "en"
