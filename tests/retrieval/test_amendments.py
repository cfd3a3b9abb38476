"""Clauses that change other clauses."""

from __future__ import annotations

import pytest

from retrieval.amendments import amendment_number, amendments_of, find_amendments
from retrieval.clauses import outline

EN = """FIRST AMENDMENT

1. Clause 5 of the Original Agreement is deleted and replaced by the following:
"5. Payment. The Buyer shall pay within 45 days."

2. Section 2.1(b) is hereby amended to read as follows: The term is five years.

3. Clause 7 shall be deleted in its entirety.

4. Section 9 is amended by deleting "30 days" and substituting "60 days".

5. Section 10 is amended by adding a new paragraph.
"""
ZH = """补充协议
第一条 原合同第二条修改为：甲方应当在六十日内付款。
第二条 删去原合同第六条。
第三条 将原合同第八条第二款变更为“违约金为百分之五”。
第四条 原合同第九条不再适用。
"""


def test_english_amendments_are_found_with_their_new_text() -> None:
    found = find_amendments(EN, outline(EN))
    assert [(a.target, a.kind) for a in found] == [
        ("§5", "replaced"), ("§2.1(b)", "replaced"), ("§7", "deleted"), ("§9", "changed"),
        ("§10", "added"),
    ]  # fmt: skip
    assert EN[found[0].start : found[0].end].rstrip().endswith('within 45 days."')
    assert "five years" in EN[found[1].start : found[1].end]
    assert all(a.elsewhere for a in found)


def test_chinese_amendments_are_found_with_their_new_text() -> None:
    found = find_amendments(ZH, outline(ZH))
    assert [(a.target, a.kind) for a in found] == [
        ("§2", "replaced"), ("§6", "deleted"), ("§8", "replaced"), ("§9", "deleted"),
    ]  # fmt: skip
    assert "六十日内" in ZH[found[0].start : found[0].end]
    assert "百分之五" in ZH[found[2].start : found[2].end]


@pytest.mark.parametrize(
    "text",
    [
        "Section 5 may be amended only in writing.",
        "If Section 5 is deleted, the rest stays in force.",
        "as Section 5 is amended from time to time",
        "The Buyer may terminate under Section 5.",
        "未经甲方同意，第五条不得修改为其他内容。",
        "乙方应当依照第五条的约定付款。",
        "如第五条修改为其他内容，应当书面通知。",
    ],
)
def test_what_might_be_amended_is_not_amended(text: str) -> None:
    assert find_amendments(text, ()) == ()


def test_an_amendment_speaks_of_its_own_document_or_of_another() -> None:
    inside = "5. Payment\nIn 30 days.\n12. Changes\nClause 5 of this Agreement is replaced by: x.\n"
    (own,) = find_amendments(inside, outline(inside))
    assert list(amendments_of([own], ["§5"], same_document=True)) == [own]
    other = find_amendments(EN, outline(EN))[0]
    assert list(amendments_of([other], ["§5"], same_document=True)) == []
    assert list(amendments_of([other], ["§5"], same_document=False)) == [other]
    assert list(amendments_of([other], ["§6"], same_document=False)) == []


@pytest.mark.parametrize(
    ("said", "target", "kind"),
    [
        ('In clause 5.5 of the Lease, the words "48 hours\'" are replaced by "72 hours\'".',
         "§5.5", "changed"),
        ('In Section 4 the figure "USD 5.5 million" shall be deleted and replaced by "USD 6".',
         "§4", "changed"),
        ('The words "30 days" in Section 3.1 of the Agreement are replaced by "45 days".',
         "§3.1", "changed"),
        ('In Section 6, after the word "fire" the words "and flood" are inserted.', "§6", "added"),
    ],
)  # fmt: skip
def test_words_of_a_clause_are_changed(said: str, target: str, kind: str) -> None:
    text = f"FIRST AMENDMENT\n\n1. {said}\n"
    (found,) = find_amendments(text, outline(text))
    assert (found.target, found.kind) == (target, kind)
    assert text[found.start : found.end].endswith(said)


@pytest.mark.parametrize(
    "text",
    [
        "In Section 7, the words used have the meaning given in Section 1.",
        "Unless the words in Section 4 are deleted, nothing changes.",
        "The amount set out in Section 9 is payable.",
    ],
)
def test_words_of_a_clause_that_stay_are_no_amendment(text: str) -> None:
    assert find_amendments(text, ()) == ()


@pytest.mark.parametrize(
    "said",
    [
        'Section 5.2 is supplemented by the following sentence: "It may be renewed once."',
        "Section 5.2 of the Agreement is hereby supplemented as follows: It may be renewed once.",
        'The following sentence is added at the end of Section 5.2: "It may be renewed once."',
        "A new paragraph is inserted after Section 5.2.",
        "The Parties supplement Section 5.2 with the following: It may be renewed once.",
        "原合同第五条补充如下：期满可续签一次。",
        "对第五条作如下补充：期满可续签一次。",
        "在第五条中增加以下内容：期满可续签一次。",
        "第五条后增加一款：期满可续签一次。",
    ],
)
def test_what_is_added_to_stays_in_force(said: str) -> None:
    text = f"AMENDMENT\n\n1. {said}\n" if said.isascii() else f"补充协议\n一、{said}\n"
    (found,) = find_amendments(text, outline(text))
    assert (found.kind, found.elsewhere) == ("added", True)
    assert found.target == ("§5.2" if said.isascii() else "§5")


@pytest.mark.parametrize(
    "text",
    [
        "乙方应按第五条补充如下材料。",
        "未经同意，不得对第五条作如下补充。",
        "The Agent shall add to Section 5 of its manual the words of the Buyer.",
        "if anything is added to Section 5",
    ],
)
def test_what_only_sounds_like_an_addition_is_none(text: str) -> None:
    assert find_amendments(text, ()) == ()


def test_an_amendment_of_an_amendment_says_so() -> None:
    text = "SECOND AMENDMENT\n\n1. Section 3 of the First Amendment is deleted in its entirety.\n"
    (found,) = find_amendments(text, outline(text))
    assert (found.target, found.elsewhere, found.of_amendment) == ("§3", True, True)


@pytest.mark.parametrize(
    ("title", "number"),
    [
        ("FIRST AMENDMENT TO LEASE", 1),
        ("Second Supplemental Agreement", 2),
        ("Amendment No. 12 to the Supply Agreement", 12),
        ("ADDENDUM 3", 3),
        ("补充协议（二）", 2),
        ("补充协议三", 3),
        ("第二次补充协议", 2),
        ("补充协议\n2024年3月1日签订", 0),
        ("AMENDMENT TO LEASE", 0),
        ("FIRST LEASE OF PREMISES", 0),
        ("采购合同（二）", 0),
    ],
)
def test_the_number_of_an_amendment(title: str, number: int) -> None:
    assert amendment_number(f"{title}\n\n1. Payment\nIn 30 days.\n") == number
