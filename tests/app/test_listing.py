"""Questions for every place of something."""

from __future__ import annotations

import time

import pytest

from app.listing_request import ListRequest, continuation, read_request


@pytest.mark.parametrize(
    ("question", "request_"),
    [
        ("Which clauses mention insurance?", ListRequest("insurance")),
        ("Which sections of this agreement deal with termination?",
         ListRequest("termination", broad=True)),
        ("List all references to the Site", ListRequest("Site")),
        ("List all clauses that mention the Supplier's liability",
         ListRequest("Supplier's liability")),
        ("every place where SF6 is mentioned", ListRequest("SF6")),
        ("Where is force majeure mentioned?", ListRequest("force majeure")),
        ("How many times is interest mentioned?", ListRequest("interest")),
        ("Find all mentions of “Good Industry Practice”.", ListRequest("Good Industry Practice")),
        ("Which clauses mention interest or penalties? (from 51)",
         ListRequest("interest or penalties", first=51)),
        ("List every clause which refers to Schedule 2", ListRequest("Schedule 2")),
        ("List all amounts", ListRequest("", "amount")),
        ("List all deadlines in the contract", ListRequest("", "duration")),
        ("列出所有提到保险的条款", ListRequest("保险")),
        ("哪些条款提到违约金？", ListRequest("违约金")),
        ("合同中哪些条款涉及知识产权？", ListRequest("知识产权", broad=True)),
        ("每一处提到不可抗力的地方", ListRequest("不可抗力")),
        ("不可抗力在哪些条款中出现？", ListRequest("不可抗力")),
        ("哪里提到了仲裁？", ListRequest("仲裁")),
        ("列出与保密有关的所有条款", ListRequest("保密", broad=True)),
        ("哪些条款提到保险（从第51处起）", ListRequest("保险", first=51)),
        ("列出所有金额", ListRequest("", "amount")),
        ("请列出合同中所有期限", ListRequest("", "duration")),
    ],
)  # fmt: skip
def test_requests_for_every_place_are_read(question: str, request_: ListRequest) -> None:
    assert read_request(question) == request_


@pytest.mark.parametrize(
    "question",
    [
        "Which clause covers termination?",
        "What does the contract say about insurance?",
        'Highlight the parts (if any) of this contract related to "Audit Rights" that should be '
        "reviewed by a lawyer.",
        "All Confidential Information shall be returned.",
        "Where is the place of delivery?",
        "List the parties.",
        "劳动合同在哪些情形下可以解除？",
        "违约金是多少？",
        "哪个法院有管辖权？",
        "",
    ],
)
def test_other_questions_are_not_taken_for_lists(question: str) -> None:
    assert read_request(question) is None


def test_a_long_run_of_blanks_costs_no_time() -> None:
    started = time.process_time()
    assert read_request("list all amounts" + " " * 20_000 + "b") is None
    assert read_request("list all   amounts" + " " * 20_000) == ListRequest("", "amount")
    asked = "Which clauses mention rent?" + " " * 20_000 + "(from 3)"
    assert continuation("the rest?", asked, 50) == "Which clauses mention rent (from 53)"
    assert time.process_time() - started < 10
