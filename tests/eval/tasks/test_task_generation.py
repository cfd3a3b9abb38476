"""The generated answers are checked by solvers that know nothing of the generator: they read the
document."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from backend.loader import load_checkpoint
from backend.tokenizer import Tokenizer
from eval.datasets import open_dataset, write_jsonl
from eval.errors import DatasetError
from eval.tasks.generation import (
    TOLERANCE,
    TaskPlan,
    generate,
    generate_counted,
    named_tasks,
    size_name,
)
from eval.tasks.haystack import Text
from eval.tasks.texts import named_language, parse_size, read_texts
from eval.tasks.types import SWEPT, TASK_NAMES
from eval.types import EvalDocument

PLAN = TaskPlan(lengths=(4096, 6000), depths=3, seed=7)


@pytest.fixture(scope="module")
def documents(contracts: list[Text], tokenizer: Tokenizer) -> list[EvalDocument]:
    return list(generate(contracts, PLAN, tokenizer))


def of(documents: list[EvalDocument], task: str) -> list[EvalDocument]:
    found = [document for document in documents if document.kind == f"needle/{task}"]
    assert {document.lang for document in found} == {"en", "zh"}
    return found


def test_lengths_are_as_wanted(contracts: list[Text], tokenizer: Tokenizer) -> None:
    made = list(generate_counted(contracts, PLAN, tokenizer))
    assert len(made) == PLAN.total(2) == 2 * 2 * (3 + 3 + 1 + 1 + 1)
    for generated in made:
        tokens = len(tokenizer.encode(generated.document.text))
        assert generated.tokens == tokens
        wanted = 6000 if "-6000" in generated.document.doc_id else 4096
        assert abs(tokens - wanted) <= TOLERANCE * wanted
        assert f"{tokens} tokens" in generated.document.source


def test_names_are_unique_and_every_document_has_a_twin(documents: list[EvalDocument]) -> None:
    names = [document.doc_id for document in documents]
    qids = [question.qid for document in documents for question in document.questions]
    assert len(set(names)) == len(names)
    assert len(set(qids)) == len(qids)
    for document in documents:
        *answered, twin = document.questions
        assert all(question.spans and not question.is_impossible for question in answered)
        assert twin.is_impossible
        assert (twin.answers, twin.spans) == ((), ())


def test_the_thing_a_twin_asks_about_is_not_there(documents: list[EvalDocument]) -> None:
    name = re.compile(
        r"[A-Z][a-z]+-\d\d|[一-鿿]{2,3}-\d\d|[A-Z][a-z]+ Deposit|^[一-鿿]+?保证金(?=的金额是)"
    )
    for document in documents:
        for question in document.questions:
            (asked,) = name.findall(question.question) or [""]
            if asked:
                assert (asked in document.text) is not question.is_impossible
            else:
                assert not question.is_impossible


def test_one_fact_stands_once_at_its_depth(documents: list[EvalDocument]) -> None:
    for document in of(documents, "single") + of(documents, "multi-key"):
        question = document.questions[0]
        (answer,), (span,) = question.answers, question.spans
        assert document.text[slice(*span)] == answer
        assert document.text.count(answer) == 1
        depth = int(re.search(r"-d(\d+)-", document.doc_id)[1]) / 100  # type: ignore[index]
        assert abs(sum(span) / 2 / len(document.text) - depth) < 0.06


def test_other_keys_stand_around_the_wanted_one(documents: list[EvalDocument]) -> None:
    for document in of(documents, "multi-key"):
        asked, twin = document.questions
        stem = re.split(r"(?:[A-Z][a-z]+|[一-鿿]{2,3})-\d\d", asked.question)
        name = re.search(r"([A-Z][a-z]+|[一-鿿]{2,3})-\d\d", asked.question)
        assert name is not None
        near = set(re.findall(rf"{name[1]}-\d\d", document.text))
        assert len(near) == 2
        assert re.split(r"(?:[A-Z][a-z]+|[一-鿿]{2,3})-\d\d", twin.question) == stem
        assert name[1] in twin.question


def test_every_value_of_a_key_is_wanted(documents: list[EvalDocument]) -> None:
    for document in of(documents, "multi-value"):
        question = document.questions[0]
        key = re.search(r"[A-Z][a-z]+-\d\d|[一-鿿]{2,3}-\d\d", question.question)
        assert key is not None
        pattern = {
            "en": rf"An instalment of (\S+ \S+) is payable for Tooling Order {key[0]}\.",
            "zh": rf"{key[0]}号模具订单应支付一期款项(\S+?)。",
        }[document.lang]
        values = re.findall(pattern, document.text)
        assert len(values) == 4
        assert re.split("; |；", question.answers[0]) == values
        assert [document.text[slice(*span)] for span in question.spans] == values
        assert all(document.text.count(value) == 1 for value in values)


def test_chains_are_followed(documents: list[EvalDocument]) -> None:
    for document in of(documents, "variable-tracking"):
        listed, last, _ = document.questions
        if document.lang == "en":
            amounts = dict(re.findall(r"The (\w+ Deposit) is (USD [\d,.]*\d)\.", document.text))
            equals = re.findall(r"The (\w+ Deposit) shall equal the (\w+ Deposit)\.", document.text)
        else:
            amounts = dict(re.findall(r"(?m)^(\S+?保证金)为([\d,.]+元)。", document.text))
            equals = re.findall(r"(?m)^(\S+?保证金)应与(\S+?保证金)相等。", document.text)
        assert len(equals) == 8
        for _ in equals:
            amounts |= {name: amounts[other] for name, other in equals if other in amounts}
        assert len(set(amounts.values())) == 2
        wanted = last.answers[0]
        names = re.split("; |；", listed.answers[0])
        assert wanted in listed.question
        assert set(names) == {name for name, amount in amounts.items() if amount == wanted}
        assert names[-1] in last.question
        assert [document.text[slice(*span)] for span in listed.spans] == names
        assert len(last.spans) == 5


def test_deliveries_are_counted(documents: list[EvalDocument]) -> None:
    pattern = {
        "en": r"one consignment of (\S+ \w+) was received",
        "zh": r"码头收到(\S+?)一批。",
    }
    for document in of(documents, "aggregation"):
        most, count, when = document.questions
        counted = Counter(re.findall(pattern[document.lang], document.text))
        winners = [item for item, _ in counted.most_common(3)]
        assert re.split("; |；", most.answers[0]) == winners
        assert sorted(counted.values()) == [1, 1, 2, 2, 2, 6, 7, 8]
        (item,) = (item for item in counted if item in count.question)
        assert count.answers == (str(counted[item]),)
        assert [document.text[slice(*span)] for span in count.spans] == [item] * counted[item]
        assert not any(item in when.question for item in counted)


def test_the_seed_alone_decides(
    documents: list[EvalDocument], contracts: list[Text], tokenizer: Tokenizer
) -> None:
    assert list(generate(contracts, PLAN, tokenizer)) == documents
    other = TaskPlan(lengths=(4096,), depths=3, seed=8)
    texts = {document.text for document in documents}
    assert not texts & {document.text for document in generate(contracts, other, tokenizer)}


def test_what_is_generated_survives_the_file(documents: list[EvalDocument], tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    written = write_jsonl(documents, path)
    assert list(open_dataset(path)) == documents
    assert written.unanswerable == len(documents)
    assert written.unplaced == 0


def test_repeated_text_is_said(contracts: list[Text], tokenizer: Tokenizer) -> None:
    english = [text for text in contracts if text.lang == "en"]
    length = 2 * len(english[0].starts)
    plan = TaskPlan(tasks=("single",), lengths=(length,), depths=1)
    with pytest.raises(DatasetError, match="--repeat"):
        next(generate(english, plan, tokenizer))
    repeated = TaskPlan(tasks=("single",), lengths=(length,), depths=1, repeat=True, twins=False)
    (made,) = generate_counted(english, repeated, tokenizer)
    assert abs(made.tokens - length) <= TOLERANCE * length
    assert made.document.kind == "needle/single (repeated text)"
    assert re.search(r"up to [23] times", made.document.source)
    assert len(made.document.questions) == 1


def test_what_can_not_be_made_is_refused() -> None:
    with pytest.raises(DatasetError, match="1000 tokens are too few"):
        TaskPlan(lengths=(1000,))
    with pytest.raises(DatasetError, match="at least one"):
        TaskPlan(depths=0)
    with pytest.raises(DatasetError, match="no task 'needle'. There are: single, multi-key"):
        named_tasks(["single", "needle"])
    with pytest.raises(DatasetError, match="no language 'fr'"):
        named_language("fr")
    for size in ("4 KB", "-1K", "", "1.5K"):
        with pytest.raises(DatasetError, match="is no length"):
            parse_size(size)
    assert [parse_size(size) for size in ("4K", "1m", " 5000 ")] == [4096, 1 << 20, 5000]
    assert [size_name(n) for n in (4096, 1 << 20, 5000)] == ["4K", "1024K", "5000"]
    assert named_tasks(["single", "single"]) == ("single",)
    assert set(TASK_NAMES) > SWEPT


def test_texts_of_a_language_and_from_sets(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "a.txt").write_text("The Seller pays.", "utf-8")
    (tmp_path / "b.txt").write_text("买方付款。", "utf-8")
    (tmp_path / "twice.txt").write_text("The Seller pays.", "utf-8")
    (tmp_path / "set.jsonl").write_text(
        '{"doc_id": "d", "text": "The Buyer pays.", "qas": []}\n', "utf-8"
    )
    paths = sorted(tmp_path.iterdir())
    assert [t.name for t in read_texts(paths, tokenizer)] == ["a.txt", "b.txt", "d"]
    assert [t.name for t in read_texts(paths, tokenizer, "zh")] == ["b.txt"]
    with pytest.raises(DatasetError, match="no text in the language zh"):
        read_texts([tmp_path / "a.txt"], tokenizer, "zh")
    with pytest.raises(DatasetError, match="can't be opened"):
        read_texts([tmp_path / "none.txt"], tokenizer)


@pytest.mark.model
def test_lengths_by_the_default_model(default_model: Path) -> None:
    tokenizer = load_checkpoint(default_model).tokenizer
    samples = Path(__file__).parents[3] / "samples"
    texts = read_texts(sorted(samples.glob("*.docx")), tokenizer)
    plan = TaskPlan(lengths=(4096, 16384), depths=2, repeat=True)
    for generated in generate_counted(texts, plan, tokenizer):
        wanted = 16384 if "-16K" in generated.document.doc_id else 4096
        assert abs(generated.tokens - wanted) <= TOLERANCE * wanted
