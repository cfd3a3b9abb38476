"""Which figures of a passage belong to a term: told from the words right before and after each.

A sentence often gives several periods: the first term and that of a renewal, the days of a notice,
the months that a limit of liability looks back on. It knows wordings, not what a sentence means.
"""

from __future__ import annotations

import re

from app.terms.rules import ValueKind
from retrieval.folding import fold_width

_BEFORE = 200
_AFTER = 60
_NEEDED: dict[ValueKind, tuple[re.Pattern[str], re.Pattern[str]]] = {
    # What stands before a value, or what follows it, where not every figure of a passage counts.
    "notice": (
        re.compile(
            r"(?:\bnotice\b|\bnotif\w+|\bat least|\bless than|\blater than|提前|不少于)"
            r"[^.;。；]{0,30}$"
        ),
        re.compile(
            r"^[)'’\s]*(?:(?:[\w-]+\s+){0,3}notice|(?:\w+\s+)?(?:before|prior)\b|in\s+advance|之?[前内]|以[前内])"
        ),
    ),
    "within": (
        re.compile(r"(?:\bwithin|\bnet|\blater\s+than)[^.;。；]{0,30}$"),
        re.compile(r"^[)'’\s]*(?:(?:of|after|from|following)\b|之?[内前]|以[内前])"),
    ),
    "cap": (
        re.compile(
            r"(?:\bexceed\w*|\blimit\w*|\bgreater|\blesser|\bmaximum|\bcap\w*|\bexcess|超过|最高|最多|上限|限额|为限|限于|总额)"
            r"[^.;。；]{0,120}$"
        ),
        re.compile(r"^[^.;。；，,]{0,12}(?:为限|为上限|封顶)"),
    ),
    "duration": (
        re.compile(
            r"(?:\brenew|\bextend|\bextension|\bsuccessive|\badditional|\bthereafter|续|延|展期)"
            r"[^;；]*$"
        ),
        re.compile(
            r"^[)\s-]*(?:(?:successive|consecutive|additional|further|automatic|renewal|extension)\b)"
        ),
    ),
}
_NOTICE = (
    re.compile(
        r"(?:\bnotice(?:\s+of)?(?:\s+(?:at\s+least|not\s+less\s+than))?\s+|提前[^。；]{0,8}|前\s*)$"
    ),
    re.compile(
        r"^[)'’\s]*(?:(?:(?!(?:by|up)?on\b|by\b|with|unless\b|if\b)[\w-]+\s+){0,3}notice\b|(?:\w+\s+)?(?:before|prior)\b|in\s+advance|以?之?前)"
    ),
)
_IN_TIME = (re.compile(r"\bwithin\s+$"), re.compile(r"^\s*(?:之内|以内|内)"))
_RENEWED = re.compile(r"\brenew|\bextend|\bextension|\bsuccessive|\bthereafter|续|延|展期")
_FIRST_TERM = (
    re.compile(
        r"(?:\binitial|\boriginal|\bfirst|\bprimary)\s[^;,]{0,30}$"
        r"|(?:初始|首期|首个|原(?:合同)?的?期限)[^,，;；。续延展满后]{0,12}$"
    ),
    re.compile(r"^[)\s-]*(?:initial|original|first|primary)\s"),
)
_LOOKS_BACK = (
    re.compile(r"(?:\b(?:preceding|previous|prior|last|past)[\s(]+|(?:过去|此前|最近)的?)$"),
    re.compile(
        r"^[)'’\s]*(?:periods?\s+)?(?:immediately\s+|next\s+)?preceding\b"
        r"|^[)'’\s]*(?:periods?\s+(?:immediately\s+)?|immediately\s+)(?:prior|before)\b"
        r"|^[)'’\s]*(?:prior\s+to|before)\s+(?:the\s+)?(?:\w+\s+){0,3}?"
        r"(?:claim|event|incident|cause|breach|loss|occurrence|act|date\s+on\s+which)"
        r"|^(?:之?内|以内)?[^。；，]{0,8}(?:已|实际|累计|所)(?:经|际)?[^。；，]{0,6}(?:支付|收取|付)"
    ),
)
_REFUSED: dict[ValueKind, tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]] = {
    "within": (_LOOKS_BACK,),
    "duration": (_NOTICE, _IN_TIME, _FIRST_TERM, _LOOKS_BACK),
    "time": (_NOTICE,),
}


def belongs(text: str, start: int, end: int, kind: ValueKind) -> bool:
    """Whether the figure at `text[start:end]` is one of the term that a rule of `kind` reads."""
    folded = fold_width(text).lower()
    before, after = folded[max(0, start - _BEFORE) : start], folded[end : end + _AFTER]
    if any(left.search(before) or right.match(after) for left, right in _REFUSED.get(kind, ())):
        return False
    if kind not in _NEEDED:
        return True
    left, right = _NEEDED[kind]
    return bool(left.search(before) or right.match(after))


def renewed(text: str, first_end: int, start: int) -> bool:
    """Whether the figure at `start` is the length of a renewal that follows the first period, which
    ends at `first_end`."""
    return bool(_RENEWED.search(fold_width(text[first_end:start]).lower()))
