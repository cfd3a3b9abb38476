"""Words of the parties' names and roles, to tell that a change concerns who is bound.

Reads organisations by their legal form and roles by how a contract introduces them ("the
Supplier", 以下简称甲方). A party that is a person without a role is not recognised.
"""

from __future__ import annotations

import re

from retrieval.folding import fold

_FORMS = (
    r"Inc|Ltd|Limited|LLC|L\.L\.C|LLP|L\.P|LP|Corp|Corporation|Company|Co|plc|PLC|GmbH|AG|S\.A|SA|N\.V"
    r"|B\.V|Pty|Bank|Trust|Foundation|University|Institute"
)
_ORGANISATION = re.compile(
    rf"(?:(?:[A-Z][\w&’'.-]*|&|of|and|de),?\s+){{1,7}}(?:{_FORMS})\b\.?", re.UNICODE
)
_ROLE = re.compile(
    r"(?:hereinafter|hereafter|collectively|together|each|the|a|an|or|\()[^()\n]{0,40}?[\"“']"
    r"([A-Z][\w&’' -]{1,40}?)[\"”'][^()\n]{0,40}\)"
)
_ROLE_PLAIN = re.compile(r"\(the ([A-Z][a-z]+(?: [A-Z][a-z]+)?)\)")
# A name begins behind a mark, a blank or a word that introduces it.
_ZH_ORGANISATION = re.compile(
    '(?:^|[\\s:：、,，。;；“"（(_＿]|甲方|乙方|买方|卖方|名称)'
    "([\u4e00-\u9fff（）()]{2,20}?(?:有限责任公司|股份有限公司|有限公司|集团|银行|研究院|事务所|大学))",
    re.MULTILINE,
)
_ZH_ROLE = re.compile(
    "甲方|乙方|丙方|丁方|买方|卖方|发包人|承包人|发包方|承包方|出租人|承租人|出租方|承租方|委托人|受托人"
    "|委托方|受托方|保险人|投保人|被保险人|受益人|出卖人|买受人|贷款人|借款人|贷款方|借款方|保证人|债权人"
    "|债务人|供方|需方|许可方|被许可方|转让方|受让方|寄托人|保管人|存货方|保管方|供电方|用电方|出让方"
)
_ORDINARY = frozenset(
    re.findall(
        r"\w+",
        """
        inc ltd limited llc llp lp corp corporation company co plc gmbh ag sa nv bv pty bank trust
        the foundation university institute of and de agreement contract party parties section
        article schedule exhibit annex appendix effective date products product services term
        confidential information this any each such if in for upon by to with under all no either
        neither not
        """,
    )
)
_OPENING = 20_000
"""Roles are introduced here, in characters."""


def party_words(text: str) -> frozenset[str]:
    """Latin words that are part of a party's name or role, folded."""
    found: set[str] = set()
    for match in _ORGANISATION.finditer(text):
        found.update(_parts(match.group()))
    opening = text[:_OPENING]
    for pattern in (_ROLE, _ROLE_PLAIN):
        for match in pattern.finditer(opening):
            if len(match[1].split()) <= 3:
                found.update(_parts(match[1]))
    return frozenset(found)


def _parts(name: str) -> set[str]:
    return {
        word
        for word in re.findall(r"[a-z0-9]{2,}", fold(name))
        if word not in _ORDINARY and not word.isdigit()
    }


def organisations(text: str) -> frozenset[str]:
    """Chinese organisations by their full names."""
    return frozenset(match[1] for match in _ZH_ORGANISATION.finditer(text))


def names_in(text: str, known: frozenset[str]) -> list[tuple[int, int]]:
    """Where Chinese roles and the organisations `known` stand in a short stretch of text."""
    spans = [match.span() for match in _ZH_ROLE.finditer(text)]
    for name in known:
        at = text.find(name)
        while at >= 0:
            spans.append((at, at + len(name)))
            at = text.find(name, at + 1)
    return spans
