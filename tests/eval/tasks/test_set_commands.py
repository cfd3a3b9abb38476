"""`fineprint eval generate` and `fineprint eval convert` as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli import build
from eval.datasets import open_dataset

SAMPLES = Path(__file__).parents[3] / "samples"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(build(), ["eval", *map(str, arguments)], catch_exceptions=False)


def test_generate(tmp_path: Path, tiny_llama: Path) -> None:
    out = tmp_path / "tasks.jsonl"
    arguments = ("generate", SAMPLES / "equipment-contract.zh.docx", "--model", tiny_llama)
    options = ("--task", "single,aggregation", "--lengths", "4K, 5000", "--depths", 2)
    result = run(*arguments, *options, "--count", 2, "--out", out, "--json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["documents"] == len(told["tokens"]) == 2 * 2 * (2 + 1)
    documents = list(open_dataset(out))
    assert len(documents) == told["documents"]
    assert {document.lang for document in documents} == {"zh"}
    assert sum(len(document.questions) for document in documents) == told["questions"]
    plain = run(*arguments, *options, "--out", out)
    assert (plain.exit_code, plain.stdout) == (0, "")
    assert "6 documents with 14 questions (6 not answerable)" in plain.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--task", "needle"), "no task 'needle'"),
        (("--lengths", "4KB"), "'4KB' is no length"),
        (("--lang", "fr"), "no language 'fr'"),
        (("--lang", "en"), "no text in the language en"),
        (("--lengths", "512K"), "--repeat"),
        (("--model", "none"), "No model 'none'"),
    ],
)
def test_generate_refuses_with_a_reason(
    tmp_path: Path, tiny_llama: Path, options: tuple[str, str], words: str
) -> None:
    out = tmp_path / "tasks.jsonl"
    source = SAMPLES / "equipment-contract.zh.docx"
    result = run("generate", source, "--model", tiny_llama, "--out", out, *options, "--json")
    assert result.exit_code == 2
    assert words in json.loads(result.stdout)["error"]["message"]
    assert list(tmp_path.iterdir()) == []


def test_convert(tmp_path: Path) -> None:
    source, out = tmp_path / "dev.json", tmp_path / "dev.jsonl"
    qas = [
        {"id": "1", "question": "When?", "answers": [{"text": "30 days", "answer_start": 7}]},
        {"id": "2", "question": "Why?", "answers": [{"text": "reasons", "answer_start": 0}]},
        {"id": "3", "question": "Who?", "answers": [], "is_impossible": True},
    ]
    paragraph = {"context": "Within 30 days.", "qas": qas}
    source.write_text(json.dumps({"data": [{"title": "T", "paragraphs": [paragraph]}]}), "utf-8")
    result = run("convert", source, "--out", out, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "out": str(out),
        "form": "squad",
        "documents": 1,
        "questions": 3,
        "unanswerable": 1,
        "unplaced": 1,
    }
    assert list(open_dataset(out)) == list(open_dataset(source))
    assert "read as squad" in run("convert", source, "--out", out).stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "Name either"),
        (("x.json", "--hub", "O/N"), "Name either"),
        (("--hub", "O/N"), "Say with --form"),
        (("x.json", "--file", "y"), "go with --hub"),
        (("x.json", "--form", "squat"), "There are: jsonl, squad"),
        (("x.json",), "no such file"),
    ],
)
def test_convert_refuses_with_a_reason(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    result = run("convert", *options, "--out", tmp_path / "out.jsonl", "--json")
    assert result.exit_code == 2
    assert words in json.loads(result.stdout)["error"]["message"]
    assert list(tmp_path.iterdir()) == []
