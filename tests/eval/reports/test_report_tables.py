"""Tables that compare runs: denominators, marks, what is said about unlike runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from eval.reports import facts, tables
from eval.reports.entries import Entry
from eval.reports.types import Cell, Table

Make = Callable[..., Any]


def cell(table: Table, label: str, column: int) -> Cell:
    row = next(row for row in table.rows if row.label.startswith(label))
    return row.cells[column]


def with_hits(records: list[Any], share: float) -> list[Any]:
    """The records as answerable ones, of which `share` cite the right place."""
    dice = random.Random(7)
    return [
        replace(
            record,
            answerable=True,
            scores=record.scores | {"citation_hit": float(dice.random() < share)},
        )
        for record in records
    ]


def two(write_run: Make, open_runs: Make, one: list[Any], other: list[Any]) -> list[Entry]:
    return list(open_runs(write_run("one", one), write_run("other", other, mode="text")))


def test_failed_and_unfit_samples_count_as_wrong(
    write_run: Make, open_runs: Make, one_record: Make, one_failure: Make
) -> None:
    answerable = [n for n in range(60) if one_record(n).answerable]
    records = [
        one_record(n, scores=one_record(n).scores | {"citation_hit": 1.0}) for n in answerable[:6]
    ] + [one_failure(n) for n in answerable[6:8]]
    entries = open_runs(write_run("one", records))
    table = tables.side_by_side(entries)
    assert cell(table, "citation hit", 0).value == "75.0%"
    assert cell(table, "failed", 0).value == "2"


def test_the_best_is_marked_only_beyond_chance(
    write_run: Make, open_runs: Make, some_records: Make
) -> None:
    records = some_records(n=60, documents=12)
    clear = two(write_run, open_runs, with_hits(records, 0.9), with_hits(records, 0.1))
    assert [c.best for c in next(
        r for r in tables.side_by_side(clear).rows if r.label.startswith("citation hit")
    ).cells] == [True, False]  # fmt: skip
    assert cell(tables.common_subset(clear, clear[0]), "citation hit", 0).best  # type: ignore[arg-type]


def test_a_small_lead_is_not_marked(write_run: Make, open_runs: Make, some_records: Make) -> None:
    records = some_records(n=60, documents=12)
    close = two(write_run, open_runs, with_hits(records, 0.6), with_hits(records, 0.55))
    row = next(r for r in tables.side_by_side(close).rows if r.label.startswith("citation hit"))
    assert row.cells[0].value != row.cells[1].value
    assert not any(c.best for c in row.cells)


def test_few_documents_mark_nothing_and_are_said(
    write_run: Make, open_runs: Make, some_records: Make
) -> None:
    records = some_records(n=40, documents=2)
    entries = two(write_run, open_runs, with_hits(records, 1), with_hits(records, 0))
    table = tables.side_by_side(entries)
    assert not any(c.best for row in table.rows for c in row.cells)
    assert "Too few documents" in table.warnings[0] and "A one (2)" in table.warnings[0]


def test_the_common_table_holds_what_both_answered(
    write_run: Make, open_runs: Make, some_records: Make, one_failure: Make
) -> None:
    records = with_hits(some_records(n=40), 0.5)
    other = [one_failure(n, status="unfit") if n % 2 else r for n, r in enumerate(records)]
    entries = two(write_run, open_runs, records, other)
    table = tables.common_subset(entries, entries[0])
    assert table is not None
    assert cell(table, "questions", 0).value == "20"
    shown = cell(table, "citation hit", 1)
    assert shown.interval == "0.0 (0.0 to 0.0)"
    assert "A 40, B 20" in table.intro


def test_a_run_that_answered_nothing_is_left_out_of_the_common_table(
    write_run: Make, open_runs: Make, some_records: Make, one_failure: Make
) -> None:
    folders = [
        write_run("one", some_records(1)),
        write_run("text", some_records(2), mode="text"),
        write_run("dense", [one_failure(n, status="unfit") for n in range(40)], mode="dense"),
    ]
    entries = open_runs(*folders)
    table = tables.common_subset(entries, entries[0])
    assert table is not None
    assert table.columns == ("A one", "B text")
    assert "C dense" in table.warnings[0]


def test_cold_and_warm_times_stand_in_rows_of_their_own(
    write_run: Make, open_runs: Make, one_record: Make
) -> None:
    cold = [one_record(n, cold=True, base_ms=100) for n in range(0, 20)]
    warm = [one_record(n, base_ms=10) for n in range(20, 40)]
    table = tables.side_by_side(open_runs(write_run("one", cold + warm)))
    shown = {row.label: row.cells[0] for row in table.rows if row.label.startswith("TTFT")}
    assert set(shown) == {"TTFT, cold: median ↓", "TTFT, warm: median ↓"}
    assert all("n = 20" in value.note for value in shown.values())
    assert cell(table, "cold / warm / no pages", 0).value == "20 / 20 / 0"


def test_p99_takes_a_hundred_samples(write_run: Make, open_runs: Make, one_record: Make) -> None:
    for n, there in ((99, False), (100, True)):
        entries = open_runs(write_run(f"run{n}", [one_record(k) for k in range(n)]))
        assert ("P99" in cell(tables.side_by_side(entries), "TTFT, warm", 0).note) is there


def test_languages_are_split_when_there_are_two(
    write_run: Make, open_runs: Make, some_records: Make
) -> None:
    entries = open_runs(write_run("one", some_records()))
    table = tables.by_language(entries)
    assert table is not None
    assert {row.label.partition(":")[0] for row in table.rows} == {"English", "Chinese"}
    english = [replace(record, lang="en") for record in some_records()]
    assert tables.by_language(open_runs(write_run("english", english))) is None


def test_unlike_runs_are_said(write_run: Make, open_runs: Make, some_records: Make) -> None:
    records = some_records()
    environment = {
        "processor": "Other CPU",
        "cores": 64,
        "memory_bytes": 2**36,
        "git": {"revision": "f" * 40, "changed": True},
    }
    entries = open_runs(
        write_run("one", records),
        write_run("two", records),
        write_run("seeded", records, seed=7, sample={"questions": 40, "sha256": "ee" * 32}),
        write_run("elsewhere", records, environment=environment),
        write_run("data", records, data=[{"name": "b.jsonl", "sha256": "11" * 32}]),
        write_run("early", records[:30], finish=False),
    )
    said = "\n".join(facts.unlike(entries))
    assert "F early is not finished: partial, 30 of 40 questions." in said
    assert "Drawn by another seed or other limits than the rest: C seeded." in said
    assert "Asks other questions than the rest: C seeded." in said
    assert "Made on other hardware than the rest: D elsewhere." in said
    assert "Made from other data than the rest: E data." in said
    assert "changed source tree, so the revision does not tell all: D elsewhere." in said
    assert "A one" not in said and "B two" not in said
    assert facts.runs_table(entries).warnings == tuple(said.split("\n"))


def test_like_runs_get_no_warning(write_run: Make, open_runs: Make, some_records: Make) -> None:
    records = some_records()
    entries = open_runs(write_run("one", records), write_run("bm25", records, mode="bm25"))
    assert list(facts.unlike(entries)) == []


def test_the_facts_say_what_was_run(write_run: Make, open_runs: Make, some_records: Make) -> None:
    entries = open_runs(
        write_run("one", some_records(), switches={"phrase": False}, seed=3, lang="zh")
    )
    shown = {row.label: row.cells[0].value for row in facts.runs_table(entries).rows}
    assert shown["switches"] == "phrase = false"
    assert shown["data"] == "contracts.jsonl (SHA-256 abababababab)\ncontracts: n = 40"
    assert shown["git revision"] == "0123456789ab"
    assert shown["hardware"] == "Test CPU @ 2.0 GHz, 2 cores, 24 GiB"
    assert shown["command"] == (
        "fineprint eval run --data contracts.jsonl --mode evidence --seed 3 --limit 40 --lang zh "
        "--model smollm2-135m-instruct --switch phrase=false"
    )
    assert "block_tokens: 512" in shown["settings"]
