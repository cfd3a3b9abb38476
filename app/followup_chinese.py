"""Rules for Chinese follow-up questions.

Knows wording: parties, ordinals, years and clause numbers that can take one another's place,
question words, 它/这/该. Does not know grammar.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from retrieval.folding import fold
from retrieval.vocabulary import vocabulary

_N = "[一二三四五六七八九十百\\d]"
_PARTY = (
    "甲方|乙方|丙方|丁方|买方|卖方|出租人|承租人|出租方|承租方|发包人|承包人|发包方|承包方|供方|需方"
    "|供应商|采购方|委托人|受托人|委托方|受托方|出卖人|买受人|贷款人|借款人|保证人|用人单位|劳动者|员工"
    "|许可方|被许可方|转让方|受让方|对方|我方|我们"
)
_KINDS = tuple(
    re.compile(kind)
    for kind in (
        f"第{_N}+条(?:第{_N}+[款项])?",
        f"(?:第{_N}+|首|最后一|上一|下一)(?:年度?|期|笔|次|批|阶段|个?月|季度|条生产线|套|台|部分|个)",
        f"(?:19|20)\\d\\d年?(?:{_N}+月)?|{_N}+月份?",
        _PARTY,
    )
)
_OPENING = re.compile(
    r"^(?:那么?(?![笔个种项些条份])|然后|还有|另外|那要是|那如果|如果是|要是|换成|换作|至于)[，,]?"
)
_ELLIPSIS = re.compile(r"^(?P<thing>[^？?。]{1,24}?)的?(?:话)?(?:又|又是|也)?呢[？?]*$")
_ALONE = re.compile(r"^(?P<thing>[^？?。]{1,12})[？?]+$")
_WHY = re.compile(
    r"^(?:这?是?)?(?P<asks>为什么|为何|凭什么|什么原因|原因是什么|原因呢)(?:呢|这样|啊)?[？?]*$"
)
_BARE_WORD = re.compile(
    r"^(?:是)?(?P<asks>什么时候|何时|多久|多长时间|多少钱?|谁|哪一?方|在?哪里|怎么办|怎么算|几天|几次"
    r"|向谁|由谁)(?:呢|啊)?[？?]*$"
)
_ASKING = (
    "是多少|有多少|为多少|多少|是什么|有什么|什么时候|什么|多久|多长时间|多长|何时|哪一天|哪天|哪里"
    "|哪些|哪个|哪一方|哪方|是谁|由谁|谁|几天|几个|几次|怎么|如何|吗|呢|是否|能否|可否"
)
_TAIL = re.compile(rf"(?:{_ASKING})[^，,]{{0,3}}[？?]*$")
_TOPIC = re.compile(
    rf"^(?:请问)?(?P<thing>[^，,？?]{{2,24}}?)(?:应当|应该|可以|能|会|要|需要)?(?:{_ASKING})"
)
_COUNTED = re.compile(r"(?:多少|什么|哪些|哪种|哪个)(?P<thing>[\u4e00-\u9fff]{2,8})[？?]*$")
_PRONOUN = re.compile(
    r"它们?(?:的)?|(?:这|那)(?=是|算|能|可以|要|会|由|属于|适用|什么|怎么|多久)|(?:这|那|该|此|上述|前述)"
    r"(?:个|笔|种|项|些)?(?:期限|时间|金额|款项?|钱|费用|比例|日期|权利|义务|限制|上限|情况|情形|违约金|规定)"
)
_CLAUSE_MEANT = re.compile(r"(?:这|那|该|此|上述|前述)(?:一)?条(?:款|规定)?(?!生产)")
_NEW_QUESTION = re.compile(_ASKING)
_NO_SUBJECT = re.compile(
    r"^(?:从?什么时候|何时|多久|怎么|如何|可以|能不能|能否|是否|可不可以|要不要)[^，,？?]{0,3}?"
    r"(?:退还?|返还|归还|到期|结束|开始|起算|生效|失效|延长|续期?|交|缴纳?|支付|付|扣除?|计?算|抵扣|没收)"
    r"(?:吗|的)?[？?]*$"
)


def rewritten(question: str, before: str, clause: str | None) -> str | None:
    """`question` after the question `before`, whose answer cited `clause` first; None when no rule
    fits."""
    whole = question.strip()
    asked = _OPENING.sub("", whole)
    stated = before.strip().rstrip("？?。 ")
    if why := _WHY.match(asked):
        return f"{_reason(stated)}？" if why else None
    if bare := _BARE_WORD.match(asked):
        return f"{_TAIL.sub('', stated) or stated}{bare['asks']}？"
    if clause and _CLAUSE_MEANT.search(asked):
        return _CLAUSE_MEANT.sub(clause, asked, count=1)
    ellipsis = _ELLIPSIS.match(asked)
    if ellipsis and not _NEW_QUESTION.search(ellipsis["thing"]):
        return _with_fragment(ellipsis["thing"], stated, marked=asked != whole)
    alone = _ALONE.match(asked)
    if alone and not _NEW_QUESTION.search(alone["thing"]):
        return _in_place(alone["thing"], stated)
    return _without_pronoun(asked, stated)


def _reason(stated: str) -> str:
    body = _TAIL.sub("", stated)
    if body == stated or len(body) < 2:
        return f"为什么{stated}"
    # A noun is left of 违约金是多少, a sentence of 甲方可以解除合同吗.
    sentence = stated.endswith(("吗", "么")) or len(body) > 10
    return f"为什么{body}" if sentence else f"为什么这样约定{body}"


def _in_place(thing: str, stated: str) -> str | None:
    """`stated` with `thing` in the place of what is of its kind; None when there is none."""
    for kind in _KINDS:
        mine, theirs = kind.fullmatch(thing), kind.search(stated)
        if mine and theirs and mine[0] != theirs[0]:
            return f"{stated[: theirs.start()]}{mine[0]}{stated[theirs.end() :]}？"
    return None


def _with_fragment(thing: str, stated: str, *, marked: bool) -> str | None:
    if (found := _in_place(thing, stated)) is not None:
        return found
    for kind in _KINDS:
        if kind.fullmatch(thing):
            party = kind is _KINDS[3]
            return f"对{thing}来说，{stated}？" if party else f"{thing}{_joined(stated)}？"
    if (found := _sharing_characters(thing, stated)) is not None:
        return f"{found}？"
    folded = fold(thing)
    if any(vocabulary().in_questions.mentions(folded, ())):
        return None
    return f"{thing}，{stated}？" if marked else None


def _joined(stated: str) -> str:
    """的 between a time and a noun phrase: 第二年的租金是多少."""
    return f"的{stated}" if re.match(r"[^，,]{1,8}(?:是|为|有)", stated) else stated


def _sharing_characters(thing: str, stated: str) -> str | None:
    """迟延付款 takes the place of 迟延交货: the same two characters at its start or end."""
    if len(thing) < 3:
        return None
    for at in range(len(stated) - len(thing) + 1):
        piece = stated[at : at + len(thing)]
        same = piece[:2] == thing[:2] or piece[-2:] == thing[-2:]
        if same and piece != thing and not _NEW_QUESTION.search(piece):
            return stated[:at] + thing + stated[at + len(thing) :]
    return None


def _without_pronoun(asked: str, stated: str) -> str | None:
    found = _PRONOUN.search(asked)
    topic = _topic(stated)
    if found is None and topic is not None and _NO_SUBJECT.match(asked):
        return topic + asked
    if found is None or found.start() > 4:
        return None
    if topic is None or SequenceMatcher(None, topic, asked).ratio() > 0.9:
        return None
    owner = "的" if found[0].endswith("的") else ""
    return asked[: found.start()] + topic + owner + asked[found.end() :]


def _topic(stated: str) -> str | None:
    """What a question is about: the thing counted or named, or what stands before its question
    word."""
    counted = _COUNTED.search(stated)
    if counted and not re.search("时候|时间|地方", counted["thing"]):
        return counted["thing"]
    before = _TOPIC.match(stated)
    return before["thing"].rstrip("是为的有") if before else None
