"""What is asked about a court's account of a case, and the marks by which an account speaks of it.

"什么时候" asks for a date, 判决结果 for a verdict: an account that holds no date, or no 判决如下,
does not answer. It knows wordings only, not whether a date is that of the event asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"[\d零一二三四五六七八九十百千万两壹贰叁肆伍陆柒捌玖拾佰仟]"
_VERDICT = (
    r"(?:判决|审理|审判|裁判|最终|处理|认定|裁定)的?(?:结果|情况|如何|是什么|怎样)|怎么判|如何判"
    r"|结果(?:是|为|如何|怎样)|判了|判决书|判刑|刑期|判处|判决|宣判"
)


@dataclass(frozen=True, slots=True)
class Matter:
    """Questions with `asked` ask for it, a text with `marks` speaks of it; both patterns are for
    folded text."""

    name: str
    asked: re.Pattern[str]
    marks: re.Pattern[str]


_MATTERS = (
    ("verdict", _VERDICT, r"判决如下|判处|判令|判决:|裁决如下|裁决:|作出.{0,12}(?:判决|裁决)|驳回"),
    (
        "claims",
        r"诉求|诉讼请求|诉请|请求(?:是|为|有|什么)|哪些请求|起诉请求",
        r"诉讼请求|请求判令|请求法院|要求被告|要求:|诉称|请求:",
    ),
    (
        "reason",
        r"为何|为什么|原因|因何|何故|缘由|缘何|为啥|理由|怎么造成",
        r"因|由于|为由|理由|导致|原因|致使|以致|造成|故|系",
    ),
    (
        "evidence",
        r"证据|证人|佐证|证明材料|哪些材料|什么材料",
        r"证据|为证|佐证|证实|证言|笔录|在卷|材料|鉴定|收据|书证|陈述",
    ),
    (
        "attitude",
        r"态度|异议|意见是|看法|认可|承认|认罪|辩称|辩护|辩解|辩诉|答辩",
        r"异议|认可|承认|否认|供认|表示|辩称|认罪|拒绝|不予理|置之不理|同意|仍",
    ),
    ("court fee", r"诉讼费|受理费", r"诉讼费|受理费"),
    ("whereabouts", r"去向|下落|逃匿|逃到|逃往|藏", r"逃|下落|去向|现由|现在|藏匿|至今|归其"),
    ("recovered", r"追回|找回|退赔|退回", r"追回|找回|退还|返还|退赔|退回|归还"),
    ("caught", r"抓获|归案|到案|抓捕|落网|逮捕", r"抓获|归案|到案|抓捕|投案|拘留|逮捕|传唤"),
    (
        "person",
        r"年龄|几岁|多大年|性别|文化程度|学历|民族|户籍|籍贯",
        r"岁|出生|文化|民族|户籍",
    ),
    ("job", r"职业|职务|职位|担任什么|身份", r"职务|担任|任|系|职工|员工|经理|从事|岁"),
    ("purpose", r"目的|用途", r"用途|用于|目的|为了|用来|资金|为"),
    ("mediation", r"调解|和解|协商", r"调解|和解|协商|达成"),
    ("relation", r"什么关系|何关系|的关系", r"系|关系"),
    (
        "who",
        r"谁|何人|哪一方|哪些人|哪方|哪位|哪家",
        r"[\u4e00-\u9fff]x?\d|x{2,}|某|公司|原告|被告|[甲乙丙]方|厂|局|院|委员会|银行|人",
    ),
    (
        "date",
        r"何时|什么时候|什么时间|哪天|哪年|哪一天|日期|时间",
        rf"\d{{4}}年|\d{{1,2}}月|\d{{1,2}}日|{_NUMBER}+[月日号]|当日|当天|次日|同日|之日",
    ),
    (
        "duration",
        r"多久|多长|期限|几年|几个月|几天",
        rf"{_NUMBER}+个?(?:年|月|天|日|周|小时|工作日|分钟)|至|止|起",
    ),
    (
        "amount",
        r"多少钱|多少元|金额|价格|总价|费用|多少(?!人|名|次|个)",
        rf"{_NUMBER}+\.?\d*余?[万千亿]?(?:元|美元|港币)|[¥￥$]|%|分之"
        rf"|{_NUMBER}+(?:‰|平方|㎡|米|亩|吨|公斤|克|度|mg|倍|股|棵|头|台|辆|公里)",
    ),
    (
        "count",
        r"多少(?:人|名|次|个|套|份)|几[名个人次套份张]",
        rf"{_NUMBER}+余?(?:人|名|次|个|套|份|张|间|位|层|辆|台|处|项|笔|期)",
    ),
    (
        "place",
        r"哪里|何处|何地|地点|什么地方|哪儿|地址|位置",
        r"[市省区县镇乡村路街国港厂号楼室院站店处]",
    ),
    ("manner", r"如何|怎么|怎样|方式|方法", r"方式|通过|以|用|采取|按|由"),
)
MATTERS = tuple(Matter(name, re.compile(a), re.compile(m)) for name, a, m in _MATTERS)


def matters_asked(folded: str) -> tuple[Matter, ...]:
    """The matters that a folded question asks for; empty for most yes-or-no questions."""
    return tuple(matter for matter in MATTERS if matter.asked.search(folded))
