"""Answers in a model's own words: what it is told about silence, and how its silence is recognised.

Does not know who writes: our engine or a peer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.answer.checks import check_text
from eval.types import Question
from retrieval.types import Language

_HINT: dict[Language, str] = {
    "en": "{} (If the text does not say, write only: Not in the document.)",
    "zh": "{}（如果文中没有说明，只写：文件中没有说明。）",
}
_CHOOSE: dict[Language, str] = {
    "en": "{}\n{}\nWrite only the letter of the right choice.",
    "zh": "{}\n{}\n只写正确选项的字母。",
}
_REFUSAL = re.compile(
    r"^\W*(?:(?:this|that|it|the (?:answer|information|text|document|contract|agreement))\W+)?"
    r"(?:is\W+)?(?:not (?:in|stated in|mentioned in|specified in|found in|addressed in|provided in)"
    r" (?:the|this) (?:document|text|contract|agreement)"
    r"|(?:does|do) not (?:say|state|specify|mention)\b|not (?:stated|specified|mentioned|found)\b"
    r"|no (?:information|mention|answer)\b|i (?:do not|don't) know\b"
    r"|i (?:cannot|can't) (?:find|answer))"
    r"|^\W*(?:本?文件?中?|合同中?|原文中?|文中)?(?:并?没有|并?未|无法)(?:说明|提及|提到|规定|约定|找到|回答|载明)",
    re.IGNORECASE,
)
_LETTER = re.compile(r"(?<![A-Za-z])([A-Z])(?![A-Za-z])")
_MAX_REFUSAL = 200
"""Characters; what is longer says something besides."""


def hinted(question: str, language: Language) -> str:
    """The question with what to write when the text holds no answer."""
    return _HINT[language].format(question)


def with_choices(question: Question, letters: str, language: Language) -> str:
    """The question with its choices, to be answered by a letter."""
    listed = zip(letters, question.choices, strict=False)
    choices = "\n".join(f"{letter}. {words}" for letter, words in listed)
    return _CHOOSE[language].format(question.question, choices)


def is_refusal(answer: str) -> bool:
    """Whether a free answer says that there is none: it is short and opens with such words. Other
    ways of saying so are not recognised and count as answers."""
    words = answer.strip()
    return not words or (len(words) <= _MAX_REFUSAL and _REFUSAL.search(words) is not None)


def chosen_letter(answer: str, count: int, letters: str) -> str | None:
    """The first of the first `count` letters that stands alone in the answer."""
    allowed = letters[:count]
    return next((m[1] for m in _LETTER.finditer(answer) if m[1] in allowed), None)


def unverified(answer: str, passages: Sequence[str]) -> tuple[str, ...]:
    """What the product's checks would mark: figures, dates, names, quotes of the answer that do not
    stand in the passages."""
    return tuple(check.text for check in check_text(answer, passages) if not check.ok)
