from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import StorageFull
from eval.datasets import open_dataset, write_jsonl
from eval.datasets.building import eval_document, unique_names
from eval.errors import DatasetError
from eval.types import EvalDocument, Question

SAMPLES = Path(__file__).parents[3] / "samples"
TEXT = "The fee is USD 500. 费用为五百元。\nThe term is\nfive years."


def line(*qas: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"doc_id": "d", "lang": "en", "kind": "k", "text": TEXT, "qas": list(qas)} | changes


def question(**changes: Any) -> dict[str, Any]:
    return {
        "qid": "q",
        "question": "?",
        "answers": ["USD 500"],
        "answer_starts": [11],
        "is_impossible": False,
    } | changes


def opened(tmp_path: Path, *lines: dict[str, Any]) -> list[EvalDocument]:
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in lines), "utf-8")
    return list(open_dataset(path))


def test_fields_and_their_defaults(tmp_path: Path) -> None:
    (document,) = opened(
        tmp_path,
        line(
            question(reference_answer=float("nan"), dataset="EQUALS", extra=1),
            question(category="fees", dataset="EQUALS", reference_answer="500"),
            question(answers=[], answer_starts=[], is_impossible=True),
            question(answers=["Yes"], answer_starts=[-1], task="yesno"),
            question(answers=["The term is five years."], answer_starts=[0]),
            question(answers=[], choices={"B": "no", "A": "yes"}, answer="B", answer_starts=None),
            lang=None,
            file="not-there.pdf",
        ),
    )
    nan, both, unsaid, verdict, spaced, choice = document.questions
    assert (document.title, document.lang, document.text) == ("d", "en", TEXT)
    assert (nan.reference_answer, nan.category, both.category) == ("", "EQUALS", "fees")
    assert (unsaid.is_impossible, verdict.spans, verdict.category) == (True, (), "yesno")
    assert spaced.answers == ("The term is\nfive years.",)
    assert TEXT[slice(*spaced.spans[0])] == spaced.answers[0]
    assert (choice.choices, choice.answer, choice.answers) == (("yes", "no"), "B", ("no",))
    assert [q.qid for q in document.questions] == ["q", "q~2", "q~3", "q~4", "q~5", "q~6"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (line(question(answer_starts=[])), "1 answers have 0 answer_starts"),
        (line(question(answer_starts=None)), 'no "answer_starts"'),
        (line(question(is_impossible=True)), "is_impossible.*but there are answers"),
        (line(question(answers=[])), "there is no answer"),
        (line(question(choices=["a", "b"], answer="C")), "none of the 2 choices"),
        (line(question(choices=["a", "b"], answer="AB")), "none of the 2 choices"),
        (line(question(answers=[], choices=["a", "b"])), "there is no answer"),
        (line(question(choices=["a"] * 27, answer="A")), "27 choices and no letters for all"),
        (line(question(choices={"1": "a"}, answer="1")), "the choices are called 1"),
        (line(question(gold_spans=[[3, 999]])), r"gold span \[3, 999\] is not inside"),
        (line(question(question=7)), '"question" has to be a string and is 7'),
        (line(lang="fr"), '"lang" is "fr"'),
        (line(text="  "), "has no text"),
        (line(text=None), 'neither "text" nor "file"'),
        (line(text=None, file="gone.txt"), '"gone.txt" is not there'),
        (line(text=None, file="empty.txt"), "empty.txt.* can't be read"),
        (line(text=None, file="../set.jsonl"), "not below the folder of the set"),
        (line(text=None, file="a/../../b.txt"), "not below the folder of the set"),
        (line(text=None, file="/etc/hostname"), "not below the folder of the set"),
        (line(text=None, file="."), "not below the folder of the set"),
        (line(text=None, file="a\0.txt"), "not below the folder of the set"),
        (line(qas=None), 'no "qas"'),
        (line(doc_id=None), 'no "doc_id"'),
    ],
)
def test_faults_name_file_line_and_remedy(
    tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    (tmp_path / "empty.txt").touch()
    with pytest.raises(DatasetError, match=words) as caught:
        # The third line, so that the form is known from a sound one.
        opened(tmp_path, line(), line(doc_id="e"), changed)
    assert caught.value.details == {"file": str(tmp_path / "set.jsonl"), "line": 3}
    assert caught.value.message.count(". ") >= 1


def test_documents_given_as_files_are_parsed_and_their_gold_is_found_again() -> None:
    documents = list(open_dataset(SAMPLES / "questions.jsonl"))
    assert {document.lang for document in documents} == {"en", "zh"}
    for document in documents:
        assert len(document.document.pages) > 1
        for asked in document.questions:
            assert asked.is_impossible or asked.spans
            for start, end in asked.spans:
                assert document.text[start:end] in asked.answers


def test_documents_come_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(line()) + "\n{torn", "utf-8")
    documents = open_dataset(path)
    assert next(documents).doc_id == "d"
    with pytest.raises(DatasetError, match="line 2"):
        next(documents)


def test_half_a_surrogate_pair_keeps_its_place(tmp_path: Path) -> None:
    (document,) = opened(tmp_path, line(question(answer_starts=[12]), text="\ud83d" + TEXT))
    assert document.text[0] == "\ufffd"
    assert document.questions[0].spans == ((12, 19),)
    assert write_jsonl([document], tmp_path / "again.jsonl").documents == 1


def test_half_a_surrogate_pair_can_be_written_wherever_it_stands(tmp_path: Path) -> None:
    names = ("qid", "question", "category", "label", "reference_answer")
    asked = question(choices=["\ud83d", "b"], answer="A", **dict.fromkeys(names, "\ud83d"))
    (document,) = opened(tmp_path, line(asked, doc_id="\ud83d", title="\ud83d"))
    (told,) = document.questions
    assert {getattr(told, name) for name in names} == {"\ufffd"}
    assert (document.doc_id, document.title, told.choices[0]) == ("\ufffd", "\ufffd", "\ufffd")
    assert write_jsonl([document], tmp_path / "again.jsonl").questions == 1


def test_names_are_unique_and_the_same_each_time() -> None:
    documents = [
        eval_document("x", [], doc_id=name, lang="en") for name in ("a", "a~2", "a", "a", "b")
    ]
    names = [document.doc_id for document in unique_names(documents)]
    assert names == ["a", "a~2", "a~3", "a~4", "b"]


QUESTIONS = st.builds(
    lambda spans, answers, impossible, choices, words: Question(
        qid="q",
        question="?",
        answers=() if impossible else (*answers, *(TEXT[a:b] for a, b in spans)) or ("Yes",),
        spans=() if impossible else tuple(spans),
        is_impossible=impossible,
        choices=() if impossible else tuple(choices),
        answer="A" if choices and not impossible else "",
        category=words,
        label=words,
        reference_answer=words,
    ),
    spans=st.lists(st.sampled_from([(0, 7), (11, 18), (20, 29), (35, 40)]), unique=True),
    answers=st.lists(st.sampled_from(["Yes", "five hundred"]), unique=True),
    impossible=st.booleans(),
    choices=st.sampled_from([[], ["a", "b"], ["a", "b", "c", "d"]]),
    words=st.text("ab 一", max_size=3),
)


@settings(max_examples=80, deadline=None)
@given(
    asked=st.lists(QUESTIONS, max_size=3),
    joined=st.booleans(),
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, asked: list[Question], joined: bool, text: str
) -> None:
    if joined:  # evidence that is not the words of the answer
        asked.append(Question("j", "?", answers=("a; b",), spans=((0, 3), (4, 7))))
    (document,) = unique_names(
        [eval_document(TEXT + text, asked, doc_id="d", title="t", kind="k", lang="en", source="s")]
    )
    path = tmp_path_factory.mktemp("own") / "set.jsonl"
    written = write_jsonl([document], path)
    assert list(open_dataset(path)) == [document]
    assert (written.documents, written.questions) == (1, len(asked))
    assert written.unanswerable == sum(q.is_impossible for q in asked)


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")

    def draft(**_: Any) -> tuple[int, str]:
        return os.open("/dev/full", os.O_WRONLY), str(tmp_path / ".draft")

    monkeypatch.setattr("tempfile.mkstemp", draft)
    with pytest.raises(StorageFull):
        write_jsonl([eval_document(TEXT, [], doc_id="d")], tmp_path / "out.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_only_a_file_is_written_over(tmp_path: Path) -> None:
    for place in (tmp_path, Path("/dev/null")):
        with pytest.raises(DatasetError, match="this is no file"):
            write_jsonl([], place)
    assert Path("/dev/null").is_char_device()


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"

    def broken() -> Any:
        yield eval_document(TEXT, [], doc_id="d")
        raise DatasetError("torn")

    with pytest.raises(DatasetError, match="torn"):
        write_jsonl(broken(), path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(DatasetError, match="can't be written"):
        write_jsonl([], tmp_path / "file" / "out.jsonl")
