"""`fineprint eval run` from the outside: arguments, output, exit status, a kill in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import build
from app.settings import child_environment
from eval.metrics.names import STABLE_KEYS
from eval.runs.folder import load_run
from eval.types import ReplyTimings, ReplyUsage, SampleRecord

Maker = Callable[..., Path]


def _run(*arguments: object) -> Result:
    words = ["eval", "run", *map(str, arguments)]
    return CliRunner().invoke(build(), words, catch_exceptions=False)


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FINEPRINT_CACHE_DIR", str(tmp_path / "no-models"))
    monkeypatch.chdir(tmp_path)


def test_a_shell_pattern_after_data_names_several_files(question_set: Maker) -> None:
    files = [question_set(f"{name}.jsonl") for name in "abc"]
    result = _run("--data", *files, "--limit", 6, "--mode", "bm25", "--json")
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary["n"] == 6 and summary["failed"] == 0
    assert set(STABLE_KEYS) <= set(summary)
    run = load_run(Path(summary["run"]))
    assert {record.dataset for record in run.records} == {"a", "b", "c"}
    assert [item["name"] for item in run.config["data"]] == ["a.jsonl", "b.jsonl", "c.jsonl"]
    # --data given more than once means the same.
    again = _run(
        "--data", files[0], "--data", files[1], files[2], "--mode", "bm25", "--limit", 6, "--json"
    )
    assert json.loads(again.stdout)["run"] == summary["run"]


def test_retrieval_needs_no_model(question_set: Maker) -> None:
    path = question_set(documents=5)
    result = _run("--data", path, "--mode", "bm25", "--out", "run", "--json")
    summary = json.loads(result.stdout)
    assert summary["recall_at_10"] == 1.0
    assert summary["citation_verified"] == 1.0
    assert summary["refusal_accuracy"] == 1.0
    records = load_run(Path("run")).records
    assert all(r.doc_tokens is None and r.reply and r.reply.nll is None for r in records)
    evidence = _run("--data", path, "--mode", "evidence", "--out", "other", "--json")
    assert evidence.exit_code == 1
    assert json.loads(evidence.stdout)["error"]["code"] == "model_unavailable"


def test_a_question_as_long_as_a_book_is_unfit_and_counts_as_wrong(question_set: Maker) -> None:
    path = question_set(documents=1)
    line = json.loads(path.read_text("utf-8"))
    line["qas"][0]["question"] += " Say why." * 1000
    path.write_text(json.dumps(line), "utf-8")
    summary = json.loads(_run("--data", path, "--mode", "bm25", "--out", "run", "--json").stdout)
    assert (summary["n"], summary["unfit"], summary["failed"]) == (3, 1, 0)
    assert summary["recall_at_10"] == 0.5
    assert "takes 4,000 at most" in next(r.error for r in load_run(Path("run")).records if r.error)


def test_people_get_a_table(question_set: Maker) -> None:
    result = _run("--data", question_set(), "--mode", "bm25", "--out", "run")
    assert "recall_at_10" in result.stdout and "bm25" in result.stdout
    assert "9 questions on 3 documents" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--mode", "bm25"], "--data"),
        (["--data", "none.jsonl", "--mode", "bm25"], "no file none.jsonl"),
        (["--data", "SET", "--mode", "best"], "evidence, text, dense, bm25, peer"),
        (["--data", "SET", "--mode", "bm25", "--only", "some"], "unanswerable"),
        (["--data", "SET", "--mode", "bm25", "--form", "xml"], "squad"),
        (["--data", "SET", "--mode", "bm25", "--switch", "nll=on"], "quotes"),
        (["--data", "SET", "--mode", "bm25", "--model", "x"], "opens no model"),
        (["--data", "SET", "--mode", "peer"], "--endpoint"),
        (["--data", "SET", "--mode", "bm25", "--endpoint", "http://h/v1"], "--mode peer"),
        (["--data", "SET", "--mode", "evidence", "--model", "x"], "No model 'x'"),
    ],
)
def test_wrong_input_is_told_and_exits_with_2(
    question_set: Maker, arguments: list[str], told: str
) -> None:
    path = question_set()
    result = _run(*(str(path) if word == "SET" else word for word in arguments), "--json")
    assert result.exit_code == 2
    assert told in json.loads(result.stdout)["error"]["message"]
    assert told in result.stderr


def test_another_run_in_the_folder_is_refused(question_set: Maker) -> None:
    path = question_set()
    assert _run("--data", path, "--mode", "bm25", "--out", "run").exit_code == 0
    other = _run("--data", path, "--mode", "bm25", "--out", "run", "--seed", 7)
    assert other.exit_code == 2 and "seed was 0 and is now 7" in other.stderr
    dropped = _run("--data", path, "--mode", "bm25", "--out", "run", "--seed", 7, "--restart")
    assert dropped.exit_code == 0


@pytest.mark.parametrize("mode", ["bm25", "evidence"])
def test_a_run_goes_on_after_a_kill(
    question_set: Maker, tmp_path: Path, mode: str, tiny_llama: Path
) -> None:
    documents, filler = (25, 60) if mode == "bm25" else (12, 4)
    path = question_set(documents=documents, filler=filler)
    engine = ["--model", str(tiny_llama), "--device", "cpu", "--switch", "max_tokens=8"]
    arguments = [
        "eval", "run", "--data", str(path), "--mode", mode,
        *(engine if mode == "evidence" else []), "--out", "killed", "--json",
    ]  # fmt: skip
    command = [sys.executable, "-c", "from app.cli import main; main()", *arguments]
    source = str(Path(__file__).parents[3])
    process = subprocess.Popen(
        command, cwd=tmp_path, env=child_environment(PYTHONPATH=source),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    records = tmp_path / "killed" / "records.jsonl"
    deadline = time.monotonic() + 120
    while not records.exists() or records.read_bytes().count(b"\n") < 6:
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    before = records.read_bytes()
    whole = before[: before.rfind(b"\n") + 1]
    ended = whole.count(b"\n")
    assert 6 <= ended < 3 * documents
    assert not (tmp_path / "killed" / "summary.json").exists()
    # As if the kill had come in the middle of a line.
    records.write_bytes(whole + b'{"qid": "set-9')

    continued = _run(*arguments[2:])
    assert continued.exit_code == 0, continued.stderr
    assert f"{ended} have ended before" in continued.stderr
    assert records.read_bytes().startswith(whole)
    uninterrupted = _run(*arguments[2:-2], "other", "--json")
    assert _quality(json.loads(continued.stdout)) == _quality(json.loads(uninterrupted.stdout))
    assert json.loads(continued.stdout)["mixed_sources"] is False
    one, other = load_run(tmp_path / "killed"), load_run(tmp_path / "other")
    assert len(one.sessions) == 2
    assert [_stripped(r) for r in one.records] == [_stripped(r) for r in other.records]


def _stripped(record: SampleRecord) -> SampleRecord:
    """The record without what depends on the clock or on what was read before."""
    if record.reply is None:
        return record
    reply = replace(record.reply, timings=ReplyTimings(None, 0.0), usage=ReplyUsage())
    return replace(record, reply=reply)


def _quality(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary without times and place."""
    if isinstance(summary, dict):
        return {k: _quality(v) for k, v in summary.items() if "_ms" not in k and k != "run"}
    return summary


def test_an_interrupt_keeps_the_records(
    question_set: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eval.runs import asking

    real, asked = asking.score, []

    def interrupted(*arguments: Any) -> Any:
        asked.append(arguments)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(asking, "score", interrupted)
    path = question_set()
    result = _run("--data", path, "--mode", "bm25", "--out", "run", "--json")
    assert result.exit_code == 130
    assert "same command" in json.loads(result.stdout)["error"]["message"]
    assert len(load_run(Path("run")).records) == 3
    monkeypatch.setattr(asking, "score", real)
    # Somebody changed the program meanwhile: that is told, and stands in the summary.
    monkeypatch.setattr("eval.runs.running.source_digest", lambda: "another")
    continued = _run("--data", path, "--mode", "bm25", "--out", "run", "--json")
    assert json.loads(continued.stdout)["mixed_sources"] is True
    assert "another state of this program" in continued.stderr
    assert len(load_run(Path("run")).records) == 9
    restarted = _run("--data", path, "--mode", "bm25", "--out", "run", "--json", "--restart")
    assert json.loads(restarted.stdout)["mixed_sources"] is False
