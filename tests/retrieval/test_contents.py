"""A table of contents is told from the clauses that it lists."""

from __future__ import annotations

import time

import pytest

from retrieval.chunk import split
from retrieval.clauses import label_at, outline
from retrieval.contents import find_contents, in_contents, is_contents, is_contents_line
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.scan import Scanner, wordings
from retrieval.types import Document, DocumentPage


def test_entries_with_page_numbers_are_contents() -> None:
    assert is_contents("4.1   Quality Agreement 35 4.2   Manufacturing Standards 35 4.3 Other 36")
    assert is_contents("1. Definitions ........ 3\n2. Term ........ 5")
    assert is_contents_line("第一条 定义 ……………… 3")
    assert is_contents_line("23. Insurance … 14")


def test_a_chinese_table_that_lost_its_line_breaks_is_contents() -> None:
    gap = "\u3000" * 8
    assert is_contents(f"第一条 总则{gap}3第二条 合营各方{gap}5第三条 注册资本{gap}8")
    assert not is_contents("第一条 总则\u3000合营各方同意按第二条、第三条办理。")


def test_clauses_are_no_contents() -> None:
    assert not is_contents("4.1 Quality. The Supplier shall keep 35 records.")
    assert not is_contents("3.1 The Buyer shall pay within 30 days.\n3.2 Interest runs from day 5.")
    assert not is_contents_line("The price is USD 5.00.")


CONTENTS = "第二十六条 通知 … 15\n第二十七条 争议解决与法律适用 … 16\n第二十八条 其他 … 17\n\n"
CLAUSES = (
    "第二十六条 通知\n26.1 通知应当采用书面形式。\n\n第二十七条 争议解决与法律适用\n"
    "27.1 本合同适用中华人民共和国法律，不包括冲突规范。\n\n第二十八条 其他\n"
    "28.1 本合同一式四份。\n"
)


def quotes_of(text: str, question: str) -> list[str]:
    document = Document(text, (DocumentPage(1, 0, len(text)),), "a.txt", "text/plain", "zh")
    clauses = outline(text)
    index = SearchIndex.build(text, split(document, clauses), clauses)
    return [text[one.start : one.end] for one in find_evidence(index, question).sentences]


@pytest.mark.parametrize("question", ["What is the governing law?", "本合同适用什么法律？"])
def test_a_line_of_the_contents_is_no_quote_where_clauses_speak(question: str) -> None:
    quotes = quotes_of(CONTENTS + CLAUSES, question)
    assert "适用中华人民共和国法律" in quotes[0]
    assert not any("…" in quote for quote in quotes)


def test_where_there_is_nothing_else_a_line_of_the_contents_is_offered() -> None:
    assert any("法律适用" in quote for quote in quotes_of(CONTENTS, "本合同适用什么法律？"))


GAP = "\u3000" * 8
LISTED = f"""设备租赁合同

目　录
第一条　设备{GAP}２第二条　租金{GAP}３第三条　仲裁{GAP}５附件
附件一　　设备清单
附件二　　验收标准
附件三　　租金表
本合同由出租方青石机械有限公司与承租方白河工程有限公司在平等自愿的基础上于二〇二三年三月一日订立，双方同意遵守下列各条。
第一条　设备
出租方出租附件一所列的设备。
第二条　租金
租金每月三万元。
第三条　仲裁
争议提交仲裁委员会仲裁。
附件一　设备清单
挖掘机两台。
"""


def test_a_list_of_annexes_in_front_opens_none_over_the_contract() -> None:
    clauses = outline(LISTED)
    numbers = [clause.number for clause in clauses]
    assert numbers == ["第一条", "第二条", "第三条", "附件一"]
    assert label_at(clauses, LISTED.index("本合同由")) is None
    assert label_at(clauses, LISTED.index("租金每月")) == "第二条"


def test_a_list_of_places_leaves_the_table_of_contents_out() -> None:
    scanner = Scanner(LISTED, outline(LISTED))
    places = scanner.mentions(wordings("仲裁", "zh", broad=False)[0])
    assert [place.count for place in places] == [3]
    assert not in_contents(LISTED, places[0].start)


ENGLISH = (
    "SUPPLY AGREEMENT\n\nTABLE OF CONTENTS Page\n\n1. Definitions 1\n\n2. Supply 2\n\n"
    "2.1 Orders 2 2.2 Delivery 3 2.3 Acceptance 4\n\n3. Fees 5\n\nSchedule A Goods\n\n"
    "THIS SUPPLY AGREEMENT is made as of 4 May 2021 by and between Harbour Mills Ltd. and "
    "Fenwick Foods Inc., who agree on all that is written in the following clauses of it:\n\n"
    "1. Definitions\n\nWords have their plain meaning in this agreement.\n\n2. Supply\n\n"
    "2.1 Orders. Orders are made in writing.\n\n3. Fees\n\nFees are due in 30 days.\n"
)


def test_the_preamble_behind_a_table_of_contents_belongs_to_no_clause() -> None:
    clauses = outline(ENGLISH)
    assert label_at(clauses, ENGLISH.index("THIS SUPPLY")) is None
    assert [clause.number for clause in clauses] == ["1.", "2.", "2.1", "3."]
    ((start, end),) = find_contents(ENGLISH)
    assert ENGLISH[start:end].startswith("TABLE") and ENGLISH[:end].endswith("Schedule A Goods")


def test_a_table_that_goes_on_as_the_contract_in_one_line_ends_at_its_last_entry() -> None:
    entries = " ".join(f"Section 1.0{n} Title of it {n}" for n in range(1, 9))
    text = f"TABLE OF CONTENTS {entries} AGREEMENT dated 4 May 2021 between A and B, who agree."
    ((start, end),) = find_contents(text)
    assert start == 0 and text[:end].endswith("Title of it 8")


def test_the_word_contents_alone_announces_no_table() -> None:
    text = "Contents\n\nThe contents of the boxes are listed by the carrier.\n\n1. Boxes\n\nTwo."
    assert find_contents(text) == ()
    assert [clause.number for clause in outline(text)] == ["1."]


def test_the_parties_behind_a_long_table_of_contents_are_found() -> None:
    entries = "\n\n".join(
        f"{number}. Matter of the {number}th kind with a long heading for it {number}"
        for number in range(1, 100)
    )
    clauses = "\n\n".join(
        f"{number}. Matter\n\nThe parties agree on matter {number} as is customary."
        for number in range(1, 100)
    )
    preamble = (
        'This Agreement is made as of 4 May 2021 by and between Harbour Mills Ltd. ("Supplier") '
        'and Fenwick Foods Inc. ("Buyer").'
    )
    text = f"TABLE OF CONTENTS\n\n{entries * 3}\n\n{preamble}\n\n{clauses}\n"
    quotes = quotes_of(text, "Who are the parties to this agreement?")
    assert "Harbour Mills" in quotes[0]


def test_a_contract_in_one_line_is_no_table_of_contents() -> None:
    entries = " ".join(f"{n}.1 Title of it {n}" for n in range(1, 9))
    body = " ".join(
        f"{n}.1 Title of it. The parties trade in year {n} and renew the insurance in "
        "good time, as a careful merchant of their trade would do it, and tell each other of it."
        for n in range(1, 9)
    )
    text = f"AGREEMENT TABLE OF CONTENTS {entries} The parties agree as follows. {body}"
    ((_, end),) = find_contents(text)
    assert text[:end].endswith("Title of it 8")
    scanner = Scanner(text, outline(text))
    places = scanner.mentions(wordings("insurance", "en", broad=False)[0])
    assert sum(place.count for place in places) == 8


def test_a_list_of_things_under_the_heading_is_no_table_of_contents() -> None:
    text = (
        "HOME INSURANCE\n\nContents\n\n1. Furniture\n2. Clothing\n3. Jewellery\n4. Tools\n\n"
        "The insurer pays for the loss of these things up to the sum stated in the schedule.\n"
    )
    assert find_contents(text) == ()
    assert label_at(outline(text), text.index("Jewellery")) == "3"


def test_a_table_without_pages_is_known_by_its_first_heading_coming_again() -> None:
    text = (
        "目录\n第一章　总则\n第二章　价款\n第三章　保险\n甲方与乙方订立本合同。\n"
        "第一章　总则\n双方诚实履行。\n第二章　价款\n价款五元。\n第三章　保险\n乙方投保。\n"
    )
    ((_, end),) = find_contents(text)
    assert text[:end].endswith("保险") and text[end:].startswith("\n甲方与乙方")


def test_annexes_listed_behind_a_table_of_contents_do_not_begin() -> None:
    text = (
        "TABLE OF CONTENTS\n\n1. Definitions 1\n\n2. Supply 2\n\n3. Fees 5\n\n\n\nANNEXES OF IT\n\n"
        "Annex A  Goods.\n\nAnnex B  Prices.\n\nThis agreement is made on 4 May 2021 by A and B."
        "\n\n1. Definitions\n\nWords are plain.\n\n2. Supply\n\nGoods are supplied.\n\n3. Fees\n\n"
        "Fees are due.\n\nAnnex A\n\nPumps.\n"
    )
    clauses = outline(text)
    assert label_at(clauses, text.index("This agreement")) is None
    assert [clause.number for clause in clauses] == ["1.", "2.", "3.", "Annex A"]


SPOKEN_OF = """SUPPLY AGREEMENT

1. Goods. The Supplier shall sell the goods that are listed in Schedule A.

2. Headings. The table of contents and the headings of this Agreement are
for convenience only and shall not affect its interpretation.

3. Notices. All notices under this Agreement shall be given in writing to
the addresses that are stated on the signature page.

4. Survival. The obligations of the parties under Section 3 and Section 4
shall survive.

5. Law. This Agreement is governed by the laws of
Delaware. See Section 5
too.

                                    Page 12

6. Counterparts. This Agreement may be executed in counterparts.
"""


def test_a_clause_about_the_table_of_contents_is_none() -> None:
    assert find_contents(SPOKEN_OF) == ()
    assert [clause.number for clause in outline(SPOKEN_OF)] == [f"{n}." for n in range(1, 7)]


def test_short_clauses_behind_a_table_without_dots_are_no_part_of_it() -> None:
    table = "CONTENTS\n1 Definitions 1\n2 Term 2\n3 Fees 3\n4 Notices 4\n"
    clauses = (
        "1. Definitions\n\nServices means cleaning.\n\n2. Term\n\nThree years from today.\n\n"
        "3. Fees\n\nGBP 500 a month.\n\n4. Notices\n\nIn writing.\n"
    )
    text = (
        f"SERVICES AGREEMENT\n\n{table}\nMADE on 1 May 2024 by Alpha Ltd and Beta Ltd\n\n{clauses}"
    )
    ((start, end),) = find_contents(text)
    assert text[start:end].strip() == table.strip()
    assert [clause.number for clause in outline(text)] == ["1.", "2.", "3.", "4."]


@pytest.mark.parametrize("sums", [(500, 300, 200, 150), (100, 200, 300, 400)])
def test_sums_behind_things_are_no_pages(sums: tuple[int, ...]) -> None:
    things = zip("abcd", ("Furniture", "Jewellery", "Bicycles", "Cash"), sums, strict=True)
    listed = "\n".join(f"({letter}) {thing} up to GBP {most}" for letter, thing, most in things)
    text = f"HOME POLICY\n\n1. Sums\nThe limits below apply.\nContents\n{listed}\n\n2. Theft\nNo.\n"
    assert find_contents(text) == ()


def test_a_heading_of_blanks_is_read_once() -> None:
    text = "Contents" + " " * 200_000 + "x"
    started = time.perf_counter()
    assert find_contents(text) == ()
    assert time.perf_counter() - started < 5, "the square of that takes minutes"
