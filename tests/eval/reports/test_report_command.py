"""`fineprint eval report`: files, messages, exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eval.benchmarks.record import make_record, write_record
from eval.cli import commands
from eval.runs.folder import RunFolder

Make = Callable[..., Any]


def report(*arguments: object) -> Result:
    return CliRunner().invoke(commands, ["report", *map(str, arguments)])


def test_two_files_are_written_and_the_default_is_said(
    write_run: Make, some_records: Make, tmp_path: Path
) -> None:
    one, two = write_run("one", some_records(1)), write_run("two", some_records(2), mode="text")
    done = report(one, two, "--out", tmp_path / "out", "--title", "July", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["default"] in ("evidence", "text") and said["default_run"] in said["runs"]
    assert (said["runs"], said["baseline"]) == (["A one", "B two"], "A one")
    assert said["why"].startswith(f"{said['default']} is the default")
    html = Path(said["html"]).read_text("utf-8")
    assert html.startswith("<!doctype html>") and "<h1>July</h1>" in html
    assert Path(said["markdown"]).read_text("utf-8").startswith("# July\n")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report.html", "report.md",
    ]  # fmt: skip


def test_people_get_the_sentence_and_the_paths(
    write_run: Make, some_records: Make, tmp_path: Path
) -> None:
    one, two = write_run("one", some_records(1)), write_run("two", some_records(2), mode="text")
    done = report(one, two, "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert done.stdout.split() == [
        str(tmp_path / "out" / f"report.{end}") for end in ("html", "md")
    ]
    assert "is the default" in done.stderr


@pytest.mark.parametrize("name", ["two", "B"])
def test_the_baseline_is_named_by_name_or_letter(
    write_run: Make, some_records: Make, tmp_path: Path, name: str
) -> None:
    one, two = write_run("one", some_records(1)), write_run("two", some_records(2), mode="text")
    done = report(one, two, "--out", tmp_path / "out", "--baseline", name, "--json")
    assert json.loads(done.stdout)["baseline"] == "B two"


def test_an_unfinished_run_is_reported_as_partial(
    write_run: Make, some_records: Make, tmp_path: Path
) -> None:
    folder = write_run("early", some_records(n=40), finish=False, questions=100)
    done = report(folder, "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert "partial, 40 of 100 questions" in done.stderr
    assert "partial: 40 of 100" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_runs_of_one_name_are_told_apart(
    write_run: Make, some_records: Make, tmp_path: Path
) -> None:
    one, two = write_run("en/run", some_records(1)), write_run("zh/run", some_records(2))
    done = report(one, two, "--out", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["runs"] == ["A en/run", "B zh/run"]


def test_a_benchmark_alone_makes_a_report(tmp_path: Path) -> None:
    path = tmp_path / "ttft.json"
    results = {"cold": [], "warm": [], "dense_cold": [], "dense_warm": [], "ratios": []}
    write_record(path, make_record("ttft", device="cpu", config={}, rounds=[], results=results))
    done = report("--bench", path, "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["default"] is None
    assert "ttft.json" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_errors_say_what_to_do(write_run: Make, some_records: Make, tmp_path: Path) -> None:
    good = write_run("good", some_records())
    (tmp_path / "empty").mkdir()
    with RunFolder.open(tmp_path / "asked nothing", {"mode": "bm25"}, {}):
        pass
    cases = (
        ([], "Nothing to report on"),
        ([tmp_path / "empty"], "holds no run"),
        ([tmp_path / "missing"], "holds no run"),
        ([tmp_path / "asked nothing"], "has no records yet"),
        ([good, good], "given twice"),
        ([good, "--baseline", "other"], "Give --baseline a letter or name of: A good"),
        (["--bench", good / "run.json"], "no record of fineprint bench"),
        (["--bench", good / "run.json", "--baseline", "A"], "no record of fineprint bench"),
    )
    for arguments, said in cases:
        done = report(*arguments, "--out", tmp_path / "out", "--json")
        assert done.exit_code == 2, (arguments, done.output)
        assert said in json.loads(done.stdout)["error"]["message"]
        assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_help_loads_neither_plots_nor_numbers() -> None:
    code = (
        "import sys, eval.reports.command\n"
        "heavy = {'matplotlib', 'numpy', 'jinja2', 'torch'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
