"""Loads: their documents and questions, and their files."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from eval.benchmarks.documents import load_pieces, sample_files
from eval.benchmarks.mixed.load import FACTS, LoadShape, Texts, cold_load, mixed_load, needed_before
from eval.benchmarks.mixed.loadfile import cells_of, read_load, write_load
from eval.errors import DatasetError, EvalError

_WORD = re.compile(r"\w+|[^\w\s]")


def count(text: str) -> int:
    """A token a word or sign."""
    return len(_WORD.findall(text))


SHAPE = LoadShape(
    requests=20,
    lengths=(400, 800, 1600),
    long_share=0.2,
    concurrency=3,
    rounds=2,
    hit_share=0.5,
    output_tokens=16,
    seed=5,
)


@pytest.fixture(scope="module")
def texts() -> Texts:
    return Texts(load_pieces(sample_files()[:1]), count)


def test_a_cold_load_has_the_wanted_mix_of_lengths(texts: Texts) -> None:
    load = cold_load(SHAPE, texts, 0)
    assert Counter(request.tokens for request in load) == {400: 8, 800: 8, 1600: 4}
    assert Counter(request.kind for request in load) == {"short": 16, "long": 4}
    for request in load:
        assert request.tokens - 120 < count(request.document) <= request.tokens
    assert load == cold_load(SHAPE, texts, 0)


def test_no_two_loads_share_a_document_and_no_document_a_stretch(texts: Texts) -> None:
    loads = [cold_load(SHAPE, texts, number) for number in (0, 1)]
    loads.append(cold_load(dataclasses.replace(SHAPE, seed=6), texts, 0))
    documents = [request.document for load in loads for request in load]
    assert len(set(documents)) == len(documents)
    lines = Counter(line for document in documents for line in document.splitlines())
    assert max(lines.values()) == 1, "a line of one document stands in another, or twice"


def test_every_question_has_its_answer_in_its_document_once(texts: Texts) -> None:
    cold = cold_load(SHAPE, texts, 0)
    for request in (*cold, *mixed_load(SHAPE, texts, 0, cold)):
        assert len({question.text for question in request.questions}) == 3
        for question in request.questions:
            assert request.document.count(question.expected) == 1
            line = next(x for x in request.document.splitlines() if question.expected in x)
            fee = re.fullmatch(r"What is the (.+) for lot (\S+)\?", question.text)
            assert fee is not None and fee[1] in line and fee[2] in line
            assert fee[1] in dict(FACTS)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_a_mixed_load_asks_new_questions_on_a_share_of_the_cold_documents(
    texts: Texts, share: float
) -> None:
    shape = dataclasses.replace(SHAPE, hit_share=share)
    cold = cold_load(shape, texts, 0)
    mixed = mixed_load(shape, texts, 0, cold)
    before = {request.document: request for request in cold}
    again = [request for request in mixed if request.document in before]
    assert len(again) == round(share * 20)
    assert len({request.document for request in mixed}) == 20
    assert Counter(r.tokens for r in mixed) == Counter(r.tokens for r in cold)
    for request in again:
        assert not set(request.questions) & set(before[request.document].questions)
    assert {r.document for r in needed_before(mixed, cold)} == {r.document for r in again}


def test_a_document_without_room_for_its_facts_is_refused(texts: Texts) -> None:
    with pytest.raises(EvalError, match="no room"):
        cold_load(dataclasses.replace(SHAPE, lengths=(64,)), texts, 0)


def test_a_load_comes_back_from_its_file(texts: Texts, tmp_path: Path) -> None:
    shape = dataclasses.replace(SHAPE, rate=2.0)
    cold = cold_load(shape, texts, 0)
    load = (*cold, *mixed_load(SHAPE, texts, 0, cold))
    path = tmp_path / "load.jsonl"
    write_load(path, load)
    assert read_load(path) == load
    assert list(cells_of(load)) == ["cold", "mixed"]


def test_other_clients_find_their_fields(texts: Texts, tmp_path: Path) -> None:
    open_loop, closed = (
        cold_load(dataclasses.replace(SHAPE, rate=2.0), texts, 0),
        cold_load(SHAPE, texts, 0),
    )
    write_load(tmp_path / "open", open_loop)
    write_load(tmp_path / "closed", closed)
    line = json.loads((tmp_path / "open").read_text("utf-8").splitlines()[0])
    first = open_loop[0]
    prompt = f"{first.document}\n\n{first.questions[0].text}"
    assert line["prompt"] == line["text"] == prompt
    assert line["output_tokens"] == line["output_tokens_count"] == line["output_length"] == 16
    assert line["prompt_tokens_count"] == first.tokens
    assert line["timestamp"] == line["at_ms"] == first.at_ms
    # guidellm takes the first column that has one of these names, in the order of the file.
    names = re.compile(
        "(prompt|instruction|question|input|context|content|conversation|turn|text)(es|s)?"
    )
    assert next(name for name in line if names.fullmatch(name)) == "prompt"
    timed = json.loads((tmp_path / "closed").read_text("utf-8").splitlines()[0])
    assert "timestamp" not in timed and timed["at_ms"] is None


@pytest.mark.parametrize(
    "damage",
    ["{", "[]", '{"prompt": "x"}', "kind", "asked", "document_chars", "expected"],
)
def test_damaged_load_files_are_refused_by_line(texts: Texts, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "load.jsonl"
    write_load(path, cold_load(SHAPE, texts, 0)[:2])
    good, second = path.read_text("utf-8").splitlines()
    if damage.isidentifier():
        fields = json.loads(second)
        fields[damage] = {"kind": "huge", "document_chars": 10**9}.get(damage, ["one"])
        damage = json.dumps(fields)
    path.write_text(f"{good}\n{damage}\n", "utf-8")
    with pytest.raises(DatasetError, match="line 2"):
        read_load(path)
    path.write_text("\n", "utf-8")
    with pytest.raises(DatasetError, match="no request"):
        read_load(path)
