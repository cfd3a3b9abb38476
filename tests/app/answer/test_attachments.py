"""What is shown beside the answers: references, definitions, amendments; and several documents."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from app.answer.attachments import Attachments
from app.answer.citations import cite
from app.types import Answer, AskOptions, Turn
from retrieval.types import DocumentPage, DocumentWarning


def load_asking() -> ModuleType:
    """The documents and the scripted engine of `tests/app/test_ask.py`; tests are no package."""
    path = Path(__file__).parents[1] / "test_ask.py"
    spec = importlib.util.spec_from_file_location("asking_for_attachments", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


ASKING = load_asking()

CONTRACT = """SUPPLY AGREEMENT

1. Definitions
"Cap" means the sum of USD 2,000,000.
"Late Rate" means 4 per cent above the base rate of the Bank of England.

2. Liability
Subject to Section 5.1, the total liability of the Supplier shall not exceed the Cap.

3. Payment
3.1 The Buyer shall pay each invoice within 30 days after receipt.
3.2 Overdue sums bear interest at the Late Rate.
3.3 The deposit is USD 40,000 and is paid on signature.
3.4 The final payment is USD 160,000 and is paid on acceptance.

4. Delivery
The Supplier shall deliver the Goods to the Site by 3 March 2026.

5. Exclusions
5.1 Nothing limits liability for death or personal injury caused by negligence.
5.2 Neither party is liable for loss of profit.

6. Insurance
6.1 The Supplier shall keep insurance of USD 5,000,000 in force.
6.2 Proof of insurance is given each year.
"""
AMENDMENT = """FIRST AMENDMENT TO SUPPLY AGREEMENT

1. Section 3.1 of the Supply Agreement is deleted and replaced by the following:
"3.1 The Buyer shall pay each invoice within 45 days after receipt."

2. All other terms remain unchanged.
"""
HALF = CONTRACT.index("4. Delivery")
PAGES = (DocumentPage(1, 0, HALF), DocumentPage(2, HALF, len(CONTRACT)))
CHINESE = """设备采购合同

第一条 付款
甲方应当在收到发票后三十日内付款。

第二条 违约责任
依照本合同第三条的约定，乙方逾期交货的，每日按合同价款的万分之五支付违约金。

第三条 交货
乙方应当在2024年6月1日前交货。

第四条 保险
乙方应当为设备投保运输保险，保险费由乙方承担。
"""
CHINESE_AMENDMENT = """补充协议

第一条 原合同第一条修改为：甲方应当在收到发票后六十日内付款。

第二条 删去原合同第四条。
"""


def asked(
    question: str, *texts: tuple[str, str], history: tuple[Turn, ...] = (), **options: Any
) -> Answer:
    documents = [ASKING.loaded(text, name) for text, name in texts]
    return last_answer(question, documents, history=history, **options)


def last_answer(
    question: str, documents: list[Any], history: tuple[Turn, ...] = (), **options: Any
) -> Answer:
    events = list(
        ASKING.ask(
            ASKING.ScriptedEngine(),
            documents,
            question,
            request_id="r",
            history=history,
            options=AskOptions(phrase=False, **options),
        )  # fmt: skip
    )
    answer: Answer = events[-1].answer
    said = "".join(event.text for event in events if event.type == "answer.delta")
    assert said == answer.answer
    for check in answer.checks:
        assert check.ok and answer.answer[check.start : check.end] == check.text
    assert [event.index for event in events if event.type == "citation"] == list(
        range(1, len(answer.citations) + 1)
    )
    return answer


def roles(answer: Answer) -> list[tuple[str, str | None, bool]]:
    return [(c.role, c.clause, c.replaced) for c in answer.citations]


def test_a_referred_clause_and_a_deciding_definition_are_quoted() -> None:
    answer = asked("What is the total liability of the Supplier?", (CONTRACT, "c.txt"), quotes=1)
    shown = {c.role: c.quote for c in answer.citations}
    assert "shall not exceed the Cap" in shown["answer"]
    assert "death or personal injury" in shown["reference"]
    assert "Referred to: “5.1 Nothing limits" in answer.answer
    answer = asked("What interest rate do overdue sums bear?", (CONTRACT, "c.txt"))
    assert "4 per cent" in {c.role: c.quote for c in answer.citations}["definition"]
    assert "Definition: “" in answer.answer


def test_each_attachment_has_its_switch() -> None:
    question = "What is the total liability of the Supplier?"
    assert len({c.role for c in asked(question, (CONTRACT, "c.txt"), quotes=1).citations}) > 1
    answer = asked(question, (CONTRACT, "c.txt"), quotes=1, references=False, definitions=False)
    assert {c.role for c in answer.citations} == {"answer"}
    both = ((CONTRACT, "c.txt"), (AMENDMENT, "a.txt"))
    question = "Within how many days must the Buyer pay an invoice?"
    assert not any(c.replaced for c in asked(question, *both, amendments=False).citations)


@pytest.mark.parametrize("turned", [False, True])
def test_an_amended_clause_stands_behind_its_amendment_and_is_marked(turned: bool) -> None:
    both = [(CONTRACT, "contract.txt"), (AMENDMENT, "amendment.txt")]
    question = "Within how many days must the Buyer pay an invoice?"
    answer = asked(question, *(both[::-1] if turned else both))
    newer = next(i for i, c in enumerate(answer.citations) if "45 days" in c.quote)
    older = next(i for i, c in enumerate(answer.citations) if "30 days" in c.quote)
    assert older == newer + 1
    assert answer.citations[older].replaced and not answer.citations[newer].replaced
    assert "Earlier text, amended since: “3.1 The Buyer" in answer.answer


def test_a_clause_that_is_only_added_to_is_not_called_an_amendment() -> None:
    added = (
        "FIRST AMENDMENT\n\n1. Section 3.1 of the Supply Agreement is amended by adding the "
        'following: "Overdue drone deliveries are paid on Mondays only."\n'
    )
    both = ((CONTRACT, "c.txt"), (added, "a.txt"))
    answer = asked("When are overdue drone deliveries paid?", *both, quotes=1, references=False)
    older = next(c for c in answer.citations if c.document == "c.txt" and c.clause == "3.1")
    assert (older.role, older.replaced) in {("reference", False), ("answer", False)}
    assert "Amendment: “3.1" not in answer.answer


FIRST = """FIRST AMENDMENT TO THE SUPPLY AGREEMENT

1. Section 3.1 of the Supply Agreement is deleted and replaced by the following: "3.1 The Buyer
pays each invoice within 45 days after receipt."

2. Section 6 of the Supply Agreement is supplemented by the following: "Cover is worldwide."
"""
SECOND = """SECOND AMENDMENT TO THE SUPPLY AGREEMENT

1. Section 1 of the First Amendment is deleted and replaced by the following: "1. The Buyer pays
each invoice within 60 days after receipt."
"""


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_an_amendment_of_an_amendment_is_shown_with_both(order: tuple[int, ...]) -> None:
    three = [(CONTRACT, "contract.txt"), (FIRST, "first.txt"), (SECOND, "second.txt")]
    question = "Within how many days must the Buyer pay an invoice?"
    answer = asked(question, *(three[at] for at in order))
    places = {
        days: next(at for at, c in enumerate(answer.citations) if f"{days} days" in c.quote)
        for days in (60, 45, 30)
    }
    assert places[60] < places[45] < places[30]
    assert [answer.citations[at].replaced for at in places.values()] == [False, True, True]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_of_two_amendments_of_a_clause_the_later_stands_first(order: tuple[int, ...]) -> None:
    later = FIRST.replace("FIRST", "SECOND").replace("45 days", "75 days")
    three = [(CONTRACT, "contract.txt"), (FIRST, "first.txt"), (later, "second.txt")]
    question = "Within how many days must the Buyer pay an invoice?"
    answer = asked(question, *(three[at] for at in order))
    shown = [
        (days, one.replaced)
        for one in answer.citations
        for days in (75, 45, 30)
        if f"{days} days" in one.quote
    ]
    assert shown == [(75, False), (45, True), (30, True)]


def test_a_quoted_amendment_stands_behind_a_later_one_of_the_same_clause() -> None:
    later = FIRST.replace("FIRST", "SECOND").replace("45 days", "75 days")
    first, second = ASKING.loaded(FIRST, "first.txt"), ASKING.loaded(later, "second.txt")
    start = first.text.index("1. Section 3.1")
    quote = replace(cite(first, start, first.text.index("2. Section 6")), role="answer")
    for documents in ((first, second), (second, first)):
        shown = Attachments([quote], documents, "When is an invoice paid?").shown(AskOptions())
        assert [(c.document, c.replaced) for c in shown] == [
            ("second.txt", False), ("first.txt", True),
        ]  # fmt: skip


def test_a_clause_of_the_contract_is_not_amended_by_an_amendment_of_an_amendment() -> None:
    second = SECOND.replace("Section 1 of", "Section 3.1 of")
    answer = asked(
        "Within how many days must the Buyer pay an invoice?",
        (CONTRACT, "contract.txt"), (second, "second.txt"), quotes=1,
    )  # fmt: skip
    assert not any(c.replaced for c in answer.citations if c.document == "contract.txt")


def test_chinese_amendments_and_references() -> None:
    both = ((CHINESE, "合同.txt"), (CHINESE_AMENDMENT, "补充协议.txt"))
    answer = asked("保险费由谁承担？", *both)
    assert roles(answer)[:2] == [("amendment", "第二条", False), ("answer", "第四条", True)]
    assert "原文（已被修改）：“" in answer.answer
    answer = asked("乙方逾期交货的违约金是多少？", (CHINESE, "合同.txt"))
    assert ("reference", "第三条", False) in roles(answer)
    assert "所引条款：“" in answer.answer


def test_replaced_text_is_not_phrased() -> None:
    engine = ASKING.ScriptedEngine("The Buyer pays within 30 days.")
    documents = [ASKING.loaded(CONTRACT, "c.txt"), ASKING.loaded(AMENDMENT, "a.txt")]
    question = "Within how many days must the Buyer pay an invoice?"
    events = list(ASKING.ask(engine, documents, question, request_id="r"))
    assert events[-1].answer.phrasing == "dropped"


def test_every_document_that_answers_is_cited_and_the_silent_ones_are_named() -> None:
    texts = [
        (CONTRACT.replace("5,000,000", f"{number},000,000"), f"c{number}.txt")
        for number in range(1, 6)
    ]
    answer = asked(
        "Which of these contracts require insurance, and how much?",
        *texts,
        ("LEASE\n\n1. Rent\nThe rent is USD 5.\n", "lease.txt"),
    )
    assert {c.document for c in answer.citations} == {name for _, name in texts}
    for number in range(1, 6):
        assert f"(c{number}.txt, Clause 6" in answer.answer
    assert "Nothing was found in: lease.txt." in answer.answer


def test_warnings_about_cited_pages_are_repeated() -> None:
    document = ASKING.loaded(CONTRACT, "c.pdf", PAGES)
    warnings = (
        DocumentWarning("garbled", "Page 1: 4 characters could not be read.", (1,)),
        DocumentWarning("garbled", "Page 2: 9 characters could not be read.", (2,)),
    )
    record = replace(document.record, warnings=warnings)
    answer = last_answer("How much is the deposit?", [replace(document, record=record)])
    assert "About the pages quoted: Page 1: 4 characters could not be read." in answer.answer
    assert "Page 2" not in answer.answer
    assert len(answer.warnings) == 2


def test_a_list_cites_every_clause_and_counts_them() -> None:
    answer = asked("Which clauses mention insurance?", (CONTRACT, "c.txt"))
    assert [c.clause for c in answer.citations] == ["6", "6.1", "6.2"]
    assert answer.answer.startswith("3 clauses mention “insurance”; all of them are shown:\n“")
    assert answer.status == "answered"
    answer = asked("哪些条款提到乙方？", (CHINESE, "合同.txt"))
    assert [c.clause for c in answer.citations] == ["第二条", "第三条", "第四条"]
    assert answer.answer.startswith("共有3处条款提到“乙方”（共出现4次），全部列出如下：")


def test_a_long_list_says_how_to_see_the_rest() -> None:
    first = asked("Which clauses mention insurance?", (CONTRACT, "c.txt"), list_limit=2)
    assert [c.clause for c in first.citations] == ["6", "6.1"]
    assert "numbers 1 to 2 are shown; to see the rest, add “from 3”" in first.answer
    turn = Turn("Which clauses mention insurance?", first.answer)
    rest = asked("The rest?", (CONTRACT, "c.txt"), history=(turn,), list_limit=2)
    assert rest.standalone_question == "Which clauses mention insurance (from 3)"
    assert [c.clause for c in rest.citations] == ["6.2"]


def test_an_empty_list_says_so() -> None:
    answer = asked("Which clauses mention dragons?", (CONTRACT, "c.txt"))
    assert answer.status == "not_found" and answer.citations == ()
    assert answer.answer.startswith("No clause was found to mention “dragons”.")
    assert asked("Which clauses mention insurance?", (CONTRACT, "c.txt"), lists=False).citations


def test_a_follow_up_is_answered_in_its_standalone_form() -> None:
    turn = Turn("How much is the deposit?", "“3.3 The deposit is USD 40,000.” (Clause 3.3) [1]")
    answer = asked("And the final payment?", (CONTRACT, "c.txt"), history=(turn,))
    assert answer.standalone_question == "How much is the final payment?"
    assert "USD 160,000" in answer.citations[0].quote
    answer = asked("And the final payment?", (CONTRACT, "c.txt"), history=(turn,), follow_up=False)
    assert answer.standalone_question is None


def test_a_sum_shows_its_operands() -> None:
    question = "What is the total of the deposit and the final payment?"
    answer = asked(question, (CONTRACT, "c.txt"))
    assert "USD 40,000 [1] + USD 160,000 [2] = USD 200,000" in answer.answer
    (check,) = [check for check in answer.checks if check.kind == "computed"]
    assert check.operands == ("USD 40,000", "USD 160,000")
    off = asked(question, (CONTRACT, "c.txt"), compute=False)
    assert not any(check.kind == "computed" for check in off.checks)


def test_a_refusal_says_what_was_searched_and_which_document_came_near() -> None:
    answer = asked("Does Mars have any life?", (CONTRACT, "c.txt"), (AMENDMENT, "a.txt"))
    assert answer.status == "not_found"
    characters = len(CONTRACT) + len(AMENDMENT)
    assert f"({characters:,} characters)" in answer.answer
    assert "2000 of 2000 tokens (100%)" in answer.answer
    assert {clause.document for clause in answer.nearest} <= {"c.txt", "a.txt"}


@pytest.mark.parametrize(
    ("question", "text", "words"),
    [
        ("发票要在多少天内付款？", "c", "within 30 days"),
        ("供应商的责任上限是多少？", "c", "shall not exceed the Cap"),
        ("定金是多少？", "c", "USD 40,000"),
        ("逾期付款的利息是多少？", "c", "Late Rate"),
        ("Who pays for the insurance?", "zh", "保险费由乙方承担"),
        ("What are the liquidated damages for late delivery?", "zh", "万分之五"),
    ],
)
def test_questions_in_the_other_language(question: str, text: str, words: str) -> None:
    document = (CONTRACT, "c.txt") if text == "c" else (CHINESE, "合同.txt")
    answer = asked(question, document)
    assert answer.language == ("zh" if text == "c" else "en")
    assert any(words in citation.quote for citation in answer.citations)


def test_a_quote_of_several_clauses_is_amended_with_any_of_them() -> None:
    text = (
        "SUPPLY AGREEMENT\n\n1. Break\n"
        "1.1 The Buyer may end this Agreement on 31 March 2027.\n"
        "1.2 On such a break the Buyer shall pay a fee of USD 900.\n"
    )
    change = "FIRST AMENDMENT\n\n1. Section 1.2 of the Supply Agreement is deleted.\n"
    contract = ASKING.loaded(text)
    start, end = text.index("1.1"), len(text)
    quote = cite(contract, start, end)
    amendment = ASKING.loaded(change, "change.txt")
    shown = Attachments([quote], (contract, amendment), "What is the fee?").shown(AskOptions())
    assert [(c.role, c.replaced) for c in shown] == [("amendment", False), ("answer", True)]


def test_amendments_that_amend_each_other_are_followed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changes = "".join(
        f"Section 3 of this Agreement is hereby amended by adding item {item}.\n"
        for item in range(12)
    )
    text = f"AGREEMENT\n\n1. Scope\nAll.\n2. Term\nOne year.\n3. Fees\nThe fee is EUR 5.\n{changes}"
    looked: list[object] = []
    amending = Attachments._amending
    monkeypatch.setattr(
        Attachments,
        "_amending",
        lambda self, place: looked.append(place) or amending(self, place),
    )
    document = ASKING.loaded(text)
    start = text.index("The fee is EUR 5.")
    answer = cite(document, start, start + len("The fee is EUR 5."))
    shown = Attachments([answer], [document], "What is the fee?").shown(AskOptions())
    assert [one.role for one in shown].count("amendment") == 12
    assert len(looked) <= 1 + 12
