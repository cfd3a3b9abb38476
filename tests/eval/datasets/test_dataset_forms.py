"""Each form on a small invented file that has the traps of the real ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.datasets import FORM_NAMES, FORMS, Form, detect_form, open_dataset
from eval.errors import DatasetError
from eval.types import EvalDocument

CONTRACT = "SUPPLY AGREEMENT\n\nThe Seller shall deliver within 30 days. Delivery: 30 days net."
FACTS = "经审理查明,被告于2019年3月1日借款20000元,约定月利率2%,至今未还。"


def save(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    return path


def save_lines(path: Path, values: Sequence[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(v, ensure_ascii=False) + "\n" for v in values), "utf-8")
    return path


def read(path: Path, form: Form) -> list[EvalDocument]:
    """By detection and by name: the same."""
    assert detect_form(path) == form
    documents = list(open_dataset(path))
    assert documents == list(open_dataset(path, form))
    for document in documents:
        for question in document.questions:
            for start, end in question.spans:
                assert document.text[start:end].strip()
    return documents


def squad(qas: list[dict[str, Any]], context: str = CONTRACT, title: str = "T") -> dict[str, Any]:
    return {
        "version": "v2.0",
        "data": [{"title": title, "paragraphs": [{"context": context, "qas": qas}]}],
    }


def test_every_form_has_a_reader() -> None:
    assert set(FORMS) == set(FORM_NAMES)


def test_squad(tmp_path: Path) -> None:
    body = squad(
        [
            {
                "id": "a",
                "question": " When? ",
                "answers": [
                    {"text": "30 days", "answer_start": 48},
                    {"text": "30 days", "answer_start": 48},
                    {"text": "within 30 days", "answer_start": 3},
                ],
                "note": "unknown field",
            },
            {
                "id": "b",
                "question": "Who pays?",
                "answers": [],
                "plausible_answers": [{"text": "Seller", "answer_start": 1}],
                "is_impossible": True,
            },
            {
                "id": "a",
                "question": "Where?",
                "answers": [{"text": "nowhere", "answer_start": 9}],
                "is_impossible": False,
            },
        ]
    )
    body["data"].append({"title": "T", "paragraphs": [{"context": "Empty.", "qas": []}] * 2})
    first, *rest = read(save(tmp_path / "dev.json", body), "squad")
    when, pays, where = first.questions
    assert (when.question, when.answers) == ("When?", ("30 days", "within 30 days"))
    assert [CONTRACT[slice(*span)] for span in when.spans] == ["30 days", "within 30 days"]
    assert (pays.is_impossible, pays.answers) == (True, ())
    assert (where.qid, where.answers, where.spans) == ("a~2", ("nowhere",), ())
    assert [document.doc_id for document in rest] == ["T#1", "T#2"]
    assert all(document.questions == () for document in rest)


def test_squad_without_gold_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "test.json", squad([{"id": "a", "question": "?", "answers": []}]))
    with pytest.raises(DatasetError, match=r'"a" has no answer .* take another'):
        list(open_dataset(path))


@pytest.mark.parametrize("suffix", ["", "_0", "_12"])
def test_cuad_keeps_the_category(tmp_path: Path, suffix: str) -> None:
    qas = [
        {
            "id": f"ACME_EX-10__Notice Period To Terminate Renewal{suffix}",
            "question": "Highlight the parts (if any) …",
            "answers": [{"text": "30 days", "answer_start": 48}],
            "is_impossible": False,
        },
        {"id": "ACME_EX-10__Rofr/Rofo/Rofn", "question": "…", "answers": [], "is_impossible": True},
    ]
    path = save(tmp_path / "CUADv1.json", squad(qas, title="ACME_EX-10"))
    (document,) = read(path, "cuad")
    assert document.kind == "contract"
    assert [question.category for question in document.questions] == [
        "Notice Period To Terminate Renewal",
        "Rofr/Rofo/Rofn",
    ]


def test_cail(tmp_path: Path) -> None:
    start = FACTS.index("20000元")
    empty = [{"answer_start": -1, "text": ""}] * 3
    qas = [
        {
            "id": "1_1",
            "question": "借款多少？",
            "is_impossible": "false",
            "answers": [
                {"answer_start": start, "text": "20000元"},
                {"answer_start": -1, "text": "借款20000元"},
                {"answer_start": start, "text": "20000元"},
            ],
        },
        {
            "id": "1_2",
            "question": "是否归还？",
            "is_impossible": "false",
            "answers": [{"answer_start": -1, "text": "NO"}] * 3,
        },
        {"id": "1_3", "question": "为何借款？", "is_impossible": "true", "answers": empty},
        {
            "id": "1_4",
            "question": "月利率？",
            "is_impossible": "true",
            "answers": [{"answer_start": FACTS.index("2%"), "text": "2%"}, *empty[:2]],
        },
    ]
    case = {
        "caseid": "1",
        "domain": "civil",
        "paragraphs": [{"casename": "民间借贷纠纷", "context": FACTS, "qas": qas}],
    }
    (document,) = read(save(tmp_path / "dev_ground_truth.json", {"data": [case]}), "cail")
    loan, verdict, reason, rate = document.questions
    assert (document.title, document.lang) == ("民间借贷纠纷", "zh")
    assert loan.answers == ("20000元", "借款20000元")
    assert [FACTS[slice(*span)] for span in loan.spans] == list(loan.answers)
    assert (verdict.answers, verdict.spans, verdict.category) == (("NO",), (), "yesno")
    assert (reason.is_impossible, reason.answers) == (True, ())
    assert (rate.is_impossible, rate.answers) == (False, ("2%",))


def contract_nli() -> dict[str, Any]:
    end = CONTRACT.index("Delivery:")
    return {
        "documents": [
            {
                "id": 7,
                "file_name": "nda.pdf",
                "text": CONTRACT,
                "spans": [[0, 16], [18, end - 1], [end, len(CONTRACT)]],
                "annotation_sets": [
                    {
                        "annotations": {
                            "nda-1": {"choice": "Entailment", "spans": [1, 2]},
                            "nda-2": {"choice": "NotMentioned", "spans": []},
                            "nda-3": {"choice": "Contradiction", "spans": [1]},
                        }
                    }
                ],
                "document_type": "search-pdf",
                "url": "https://example.com/nda.pdf",
            }
        ],
        "labels": {
            name: {"short_description": f"short {name}", "hypothesis": f"Hypothesis {name}."}
            for name in ("nda-1", "nda-2", "nda-3")
        },
    }


def test_contract_nli(tmp_path: Path) -> None:
    (document,) = read(save(tmp_path / "dev.json", contract_nli()), "contractnli")
    yes, unsaid, no = document.questions
    assert document.doc_id == "contractnli:dev-7"
    assert (yes.label, unsaid.label, no.label) == ("Entailment", "NotMentioned", "Contradiction")
    assert yes.answers == ("The Seller shall deliver within 30 days.", "Delivery: 30 days net.")
    assert (yes.question, yes.category) == ("Hypothesis nda-1.", "short nda-1")
    assert (unsaid.is_impossible, unsaid.answers, no.is_impossible) == (True, (), False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["labels"].pop("nda-3"), 'no hypothesis "nda-3"'),
        (lambda d: d["documents"][0]["spans"].append([5, 4000]), "not inside the text"),
        (lambda d: d["documents"][0]["spans"].pop(), "there is no span 2"),
        (lambda d: d.pop("labels"), 'no object "labels"'),
    ],
)
def test_contract_nli_faults(tmp_path: Path, change: Any, words: str) -> None:
    body = contract_nli()
    change(body)
    with pytest.raises(DatasetError, match=words):
        list(open_dataset(save(tmp_path / "dev.json", body)))


def test_legalbench_rag(tmp_path: Path) -> None:
    corpus = tmp_path / "set" / "corpus" / "cuad"
    corpus.mkdir(parents=True)
    # A mark at the start counts, "\r\n" counts as one: as Python's text mode reads it.
    (corpus / "A.txt").write_bytes(b"\xef\xbb\xbf" + CONTRACT.replace("\n", "\r\n").encode())
    (corpus / "B é.txt").write_text("Term: five years.", "utf-8")
    start = 1 + CONTRACT.index("30 days")
    tests = [
        {
            "query": "Consider A; when?",
            "snippets": [
                {"file_path": "cuad/A.txt", "span": [start, start + 7], "answer": "30 days"},
                {"file_path": "cuad/B é.txt", "span": [6, 16]},
            ],
            "tags": [],
        },
        {"query": "Consider A; what?", "snippets": [{"file_path": "cuad/A.txt", "span": [1, 17]}]},
    ]
    benchmark = save(tmp_path / "set" / "benchmarks" / "cuad.json", {"tests": tests})
    a, b = read(tmp_path / "set", "legalbench-rag")
    assert a.doc_id == "cuad/A.txt"
    assert [q.answers for q in a.questions] == [("30 days",), ("SUPPLY AGREEMENT",)]
    assert [q.qid for q in a.questions] == ["cuad-1", "cuad-2"]
    assert (b.questions[0].answers, b.questions[0].category) == (("five years",), "cuad")
    assert [d.doc_id for d in read(benchmark, "legalbench-rag")] == ["cuad/A.txt", "cuad/B é.txt"]
    outside = [{"query": "?", "snippets": [{"file_path": "../x.txt", "span": [0, 1]}]}]
    (tmp_path / "set" / "x.txt").write_text("secret", "utf-8")
    save(tmp_path / "set" / "benchmarks" / "outside.json", {"tests": outside})
    with pytest.raises(DatasetError, match=r"'../x.txt' is not below the folder of the corpus"):
        list(open_dataset(tmp_path / "set" / "benchmarks" / "outside.json"))
    (corpus / "A.txt").unlink()
    with pytest.raises(DatasetError, match=r'"cuad/A.txt" is not in .*corpus'):
        list(open_dataset(benchmark))


def longbench(task: str, **changes: Any) -> dict[str, Any]:
    return {
        "input": "When is delivery?",
        "context": CONTRACT,
        "answers": ["30 days", "thirty days"],
        "length": 12,
        "dataset": task,
        "language": "en",
        "all_classes": None,
        "_id": f"{task}-id",
    } | changes


def test_longbench_file_and_folder(tmp_path: Path) -> None:
    qasper = save_lines(tmp_path / "data" / "qasper.jsonl", [longbench("qasper")] * 2)
    save_lines(
        tmp_path / "data" / "gov_report_e.jsonl",
        [longbench("gov_report_e", input="", answers=["A summary."], language="python")],
    )
    save_lines(
        tmp_path / "data" / "trec.jsonl",
        [longbench("trec", answers=["Food"], all_classes=["Food", "Animal"])],
    )
    documents = read(qasper, "longbench")
    assert [d.doc_id for d in documents] == ["qasper-id", "qasper-id~2"]
    assert documents[0].questions[0].answers == ("30 days", "thirty days")
    assert documents[0].questions[0].spans == ()
    report, first, _, trec = read(tmp_path / "data", "longbench")
    assert report.questions[0].question.startswith("Write a one-page summary")
    assert (report.kind, first.kind, trec.questions[0].label) == ("gov_report_e", "qasper", "Food")


def test_longbench_task_without_a_question_is_refused(tmp_path: Path) -> None:
    path = save_lines(tmp_path / "new.jsonl", [longbench("new", input="")])
    with pytest.raises(DatasetError, match='line 1: the input is empty and the task "new"'):
        list(open_dataset(path))


@pytest.mark.parametrize("as_list", [True, False])
def test_longbench_v2(tmp_path: Path, as_list: bool) -> None:
    record = {
        "_id": "66f9",
        "domain": "Single-Document QA",
        "sub_domain": "Legal",
        "difficulty": "hard",
        "length": "short",
        "question": "Which is right?",
        "choice_A": "10 days",
        "choice_B": "20 days",
        "choice_C": "30 days",
        "choice_D": "never",
        "answer": "C",
        "context": CONTRACT,
    }
    path = tmp_path / "data.json"
    (document,) = read(
        save(path, [record]) if as_list else save_lines(path, [record]), "longbench-v2"
    )
    (question,) = document.questions
    assert question.choices == ("10 days", "20 days", "30 days", "never")
    assert (question.answer, question.answers, question.spans) == ("C", ("30 days",), ())
    assert document.kind == "Single-Document QA / Legal / hard"
    save(path, [record | {"answer": "E"}])
    with pytest.raises(DatasetError, match='"answer" is "E"'):
        list(open_dataset(path))


def test_leval(tmp_path: Path) -> None:
    record = {
        "instructions": ["Question 1. When?\nA. 30 days\nB. never", "Summarise."],
        "input": CONTRACT,
        "outputs": ["A", "A supply agreement."],
        "source": "coursera",
        "evaluation": "exam",
    }
    path = save_lines(tmp_path / "Closed-ended-tasks" / "coursera.jsonl", [record])
    (document,) = read(path, "leval")
    assert read(tmp_path, "leval") == [document]
    assert [(q.qid, q.answers) for q in document.questions] == [
        ("1", ("A",)),
        ("2", ("A supply agreement.",)),
    ]
    save_lines(path, [record | {"outputs": ["A"]}])
    with pytest.raises(DatasetError, match="line 1: 2 instructions have 1 outputs"):
        list(open_dataset(path))


def test_an_unknown_form_lists_those_there_are(tmp_path: Path) -> None:
    for content in ('{"passage": "x", "q": 1}\n', "<html>", "[]", "7"):
        path = tmp_path / "other.json"
        path.write_text(content, "utf-8")
        with pytest.raises(DatasetError) as caught:
            list(open_dataset(path))
        assert all(f"{name}: " in caught.value.message for name in FORM_NAMES)
        assert caught.value.message.count(str(path)) == 1


def test_a_missing_and_an_empty_file_need_no_list_of_forms(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    for name, words in [("empty.jsonl", "the file is empty"), ("none.jsonl", "no such file")]:
        with pytest.raises(DatasetError, match=words) as caught:
            list(open_dataset(tmp_path / name))
        assert "forms" not in caught.value.message


def test_a_folder_for_a_file_and_a_missing_file(tmp_path: Path) -> None:
    save(tmp_path / "dev.json", contract_nli())
    with pytest.raises(DatasetError, match=r"folder.*dev\.json.*Name a file"):
        list(open_dataset(tmp_path))
    with pytest.raises(DatasetError, match=r"contractnli is read from a file.*dev\.json"):
        list(open_dataset(tmp_path, "contractnli"))
    with pytest.raises(DatasetError, match="no such file"):
        list(open_dataset(tmp_path / "none.jsonl"))
    with pytest.raises(DatasetError, match="no such file"):
        list(open_dataset(tmp_path / "none.jsonl", "squad"))
