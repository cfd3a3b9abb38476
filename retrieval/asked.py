"""What kind of fact a question asks for, and whether a sentence holds a fact of that kind.

By wording alone: "how long" asks for a duration, 多少违约金 for an amount or a share. It does not
know whether the fact is the right one.
"""

from __future__ import annotations

import re
from typing import Literal

AskedKind = Literal["amount", "percent", "duration", "date", "count", "party", "place", "law"]

# Order counts: the first kinds are told first in `asked_kinds`.
_QUESTION_WORDING: tuple[tuple[AskedKind, tuple[str, ...]], ...] = (
    ("duration", (
        r"how long|how many (?:\w+ )?(?:days|months|years|weeks|hours)|how soon|how quickly",
        r"how much notice|how far in advance|time limit|deadline|within what time|duration",
        r"what (?:is the )?(?:notice )?period|by when",
        r"what (?:is|are) the [\w\s-]{0,30}(?:period|term|duration|deadline)\b",
        r"多久|多长时间|多长|多少[天日年]|多少个?(?:工作日|月|小时|星期|周)|几[天日年]",
        r"几个?(?:月|工作日|小时|星期|周)|期限(?:是|为|有|多)|期(?:是|为|有)?多[久长少]",
    )),
    ("date", (
        r"\bwhen (?:is|was|does|did|will|were|must|shall|should|do|are)\b|what date|which date",
        r"on what day|what day|which day",
        r"何时|什么时候|哪天|哪一天|哪年|日期是|什么日期|几号|什么时间",
    )),
    ("percent", (
        r"what percent|percentage|what share|what proportion|interest rate|what rate",
        r"\b(?:royalty|commission|discount|tax|default) rate\b"
        r"|\brate of (?:royalty|commission|interest|discount|tax)\b",
        r"by how much|how much more|百分之几|百分之多少|百分比|比例|利率|几成|费率|涨幅",
    )),
    ("amount", (
        r"how much|what amount|how high|how (?:large|big|expensive)\b",
        r"\bcosts? (?:me|us|them|you)\b",
        r"what (?:would|will|does|do|did|could) [^?.]{0,40}\bcost\b",
        r"what (?:is|are) the (?:[\w-]+ ){0,5}"
        r"(?:price|fees?|cost|amount|salary|rent|cap|limit|deposit|penalty|payment|sum)\b",
        r"(?:maximum|total|aggregate) liability\b",
        r"多少钱|多少元|多少万|金额|价款是|总价|价格是|价值多少",
        r"多少(?:违约金|滞纳金|罚款|费用|工资|租金|利息|赔偿|损失|款|押金|定金)",
        r"(?:费用|费|价|款|金|额|资本|工资|损失|赔偿)(?:各自?|分别)?(?:为|是|有)?多少|(?:花|赔|罚|付|交|扣|收|退|补|押)多少",
    )),
    ("count", (
        r"how many|what number|how often|数量(?:是|为)",
        r"多少(?:名|人|个|次|份|套|台|吨|件|家|辆|股|平方米|亩|度|千瓦|公斤|千克|克|升|米|公里|页)",
        r"几(?:名|人|个|次|份|套|台|位|家|辆)",
    )),
    ("law", (
        r"(?:which|what)(?: \w+)?(?:'s)? law|governing law|law (?:governs|applies)",
        r"(?:什么|哪国|哪里的?)法律|适用法律",
    )),
    ("place", (
        r"\bwhere (?:is|are|will|shall|must|does|do)\b|which (?:court|city|place)",
        r"哪里|何处|什么地[方点]|地点(?:在|是)|哪个(?:法院|城市)",
    )),
    ("party", (
        r"\bwho\b|which party|whose|which side",
        r"(?<![何其])谁|哪一方|哪方|由哪|何人|哪个(?:单位|公司|部门|机关)|什么(?:单位|部门|机关)",
    )),
)  # fmt: skip
_QUESTIONS = tuple((kind, re.compile("|".join(wording))) for kind, wording in _QUESTION_WORDING)

_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
# The blank of a form stands for the number that will be written there.
_NUMBER = (
    r"(?:\d|[一二三四五六七八九十百千万两壹贰叁肆伍陆柒捌玖拾佰仟]|(?<![_×])[_×]{2,}+|[(] {1,8}[)])"
)
_ENGLISH_NUMBER = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|eighteen|twenty"
    r"|thirty|forty|forty-five|sixty|seventy|ninety|hundred)"
)
CURRENCIES = (
    "aud|cad|nzd|chf|sek|nok|dkk|jpy|sgd|inr|zar|pln|czk|krw|aed|brl|mxn|twd|myr|vnd|ils|huf"
)
"""Codes of currencies that are money before a figure."""
_FACTS: dict[AskedKind, re.Pattern[str]] = {
    "duration": re.compile(
        rf"(?:\d|(?<!_)_{{2,}}+|\b{_ENGLISH_NUMBER})\)?[\s-]*(?:\(\d+\)\s*)?(?:\w+\s)?"
        r"(?:business |calendar |working |consecutive )?(?:day|month|year|week|hour|anniversar)"
        rf"|{_NUMBER}\s*个?半?(?:日|天|年|月|周|星期|小时|工作日|季度|分钟)"
        r"|perpetual|indefinite|promptly|immediately|forthwith|as soon as|until\b"
        r"|立即|及时|当日|当天|次日|长期|永久|无限期"
    ),
    "date": re.compile(
        r"\d{4}\s*年|\d{4}[-/.]\d{1,2}|\d{1,2}/\d{1,2}/\d{2,4}"
        rf"|{_MONTH}\.?\s+\d|\d(?:st|nd|rd|th)?\s+(?:day of\s+)?{_MONTH}"
        rf"|{_NUMBER}+\s*[月日号]|\bday\b|\bdate\b|之日|日内|日前|当日|后生效|时|以前|之前|届满"
        r"|\bupon\b|\bdays?\b|\bannually|\bmonthly|quarter"
        r"|\bin advance\b|\bprepa(?:y|id)|\bon (?:demand|receipt|delivery|signature|signing)\b|预付"
    ),
    "percent": re.compile(
        rf"%|％|‰|percent|per cent|[百千万]分之|\d成|{_NUMBER}成|per annum|prime rate|libor|利率"
    ),
    "amount": re.compile(
        rf"[$€£¥￥]|\b(?:usd|eur|rmb|cny|hkd|gbp|dollars?|euros?)\b"
        rf"|\b(?:{CURRENCIES})\s?\d"
        rf"|{_NUMBER}\s*[余多]?(?:元|圆|美元|万元|港元)|人民币|美元|\[\*+\]"
        r"|\bno (?:charge|fee|cost)\b|free of charge|免费|无偿"
    ),
    "count": re.compile(
        rf"\d|\b{_ENGLISH_NUMBER}\b|{_NUMBER}|once|twice|monthly|annually|quarterly|每"
    ),
    "law": re.compile(r"\blaws?\b|法律|法规"),
    "place": re.compile(
        r"\b(?:in|at|of|to) (?:the )?[A-Z]|[市省区县镇路街国港厂]|法院|处|地|仲裁委"
    ),
    "party": re.compile(r"[A-Z][a-z]+|方|人|公司|部门|机关|院|局|者|企业|单位"),
}

# A weaker fact of the kind: a share or a formula where an amount is asked for, equal parts for a
# share.
_NEARLY: dict[AskedKind, re.Pattern[str]] = {
    "amount": re.compile(r"元|%|％|percent|[百千万]分之|\bequal to\b|倍|\bamounts?\b"),
    "percent": re.compile(
        r"\bhalf\b|\bhalves\b|\bequal(?:ly)? (?:share|part|propor|amount|contribut|between|among)"
        r"|\bpro rata\b|相等|均等|等额|平均|各半|各占|一半|对半|二分之一"
    ),
}


def asked_kinds(folded_question: str) -> tuple[AskedKind, ...]:
    """The kinds of fact asked for, in a fixed order; empty when the wording does not tell."""
    found = [kind for kind, pattern in _QUESTIONS if pattern.search(folded_question)]
    if "duration" in found and "count" in found:
        found.remove("count")
    if "percent" in found and "amount" in found:
        found.remove("amount")
    return tuple(found)


def holds(sentence: str, kinds: tuple[AskedKind, ...]) -> float:
    """How well `sentence` (width folded, case kept) holds a fact of one of the kinds, in [0, 1];
    1 when no kind is asked for."""
    if not kinds:
        return 1.0
    lower = sentence.lower()
    best = 0.0
    for kind in kinds:
        if _FACTS[kind].search(sentence if kind in ("place", "party") else lower):
            return 1.0
        if kind in _NEARLY and _NEARLY[kind].search(lower):
            best = 0.6
    return best
