"""Runs that differ in one switch, and chains of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eval.reports.ablation import chains, changes, cumulative, one_at_a_time

Make = Callable[..., Any]


def test_one_switch_apart_is_found_whatever_kind_it_is(
    write_run: Make, open_runs: Make, some_records: Make
) -> None:
    records = some_records()
    base = {"device": "cpu", "precision": "bfloat16", "model": "m", "fingerprint": "1"}
    entries = open_runs(
        write_run("base", records, engine=base),
        write_run("quotes", records, switches={"quotes": 1}, engine=base),
        write_run("mode", records, mode="text", engine=base),
        write_run("model", records, engine=base | {"model": "n", "fingerprint": "2"}),
        write_run(
            "precision",
            records,
            switches={"precision": "int8"},
            engine=base | {"precision": "int8", "fingerprint": "3"},
        ),
        write_run("both", records, switches={"quotes": 1, "phrase": False}, engine=base),
        write_run("bm25", records, mode="bm25"),
    )
    found = {entry.name: changes(entry, entries[0]) for entry in entries}
    assert found["base"] == frozenset()
    assert found["quotes"] == {("quotes", "1")}
    assert found["mode"] == {("mode", "text")}
    assert found["model"] == {("model", "n")}
    assert found["precision"] == {("precision", "int8")}
    assert found["both"] == {("quotes", "1"), ("phrase", "false")}
    assert found["bm25"] == {("mode", "bm25")}
    table = one_at_a_time(entries, entries[0])
    assert table is not None
    assert table.columns == (
        "A base (baseline)",
        "+ quotes = 1 (B)",
        "+ mode = text (C)",
        "+ model = n (D)",
        "+ precision = int8 (E)",
        "+ mode = bm25 (G)",
    )


def test_a_switch_back_at_its_default_is_a_change(
    write_run: Make, open_runs: Make, some_records: Make
) -> None:
    entries = open_runs(
        write_run("base", some_records(), switches={"quotes": 1}), write_run("b", some_records())
    )
    assert changes(entries[1], entries[0]) == {("quotes", "default")}


def test_runs_on_other_questions_are_no_ablation(
    write_run: Make, open_runs: Make, some_records: Make
) -> None:
    entries = open_runs(
        write_run("base", some_records()),
        write_run(
            "other", some_records(), switches={"quotes": 1}, sample={"questions": 40, "sha256": "x"}
        ),
    )
    assert one_at_a_time(entries, entries[0]) is None


def test_chains_grow_by_one_switch_each(
    write_run: Make, open_runs: Make, some_records: Make
) -> None:
    records = some_records()
    switched = [
        ("abc", {"quotes": 1, "phrase": False, "pages": False}),
        ("a", {"quotes": 1}),
        ("ab", {"quotes": 1, "phrase": False}),
        ("d", {"rerank": True}),
        ("far", {"rerank": True, "closeness": 0.5, "max_tokens": 9}),
    ]
    entries = open_runs(
        write_run("base", records),
        *(write_run(name, records, switches=given) for name, given in switched),
    )
    (chain,) = chains(entries, entries[0])
    assert [step.entry.name for step in chain] == ["base", "a", "ab", "abc"]
    assert [step.change for step in chain] == [
        None, ("quotes", "1"), ("phrase", "false"), ("pages", "false"),
    ]  # fmt: skip
    (table,) = cumulative(entries, entries[0])
    assert table.columns[-1] == "+ pages = false (B)"


def test_differences_of_a_chain_are_to_the_step_before(
    write_run: Make, open_runs: Make, one_record: Make
) -> None:
    def run(name: str, f1: float, **switches: object) -> Any:
        records = [one_record(n, scores=one_record(n).scores | {"f1": f1}) for n in range(20)]
        return write_run(name, records, switches=switches)

    entries = open_runs(
        run("base", 0.5), run("a", 0.6, quotes=1), run("ab", 0.75, quotes=1, phrase=False)
    )
    (table,) = cumulative(entries, entries[0])
    row = next(row for row in table.rows if row.label.startswith("token F1"))
    assert [cell.value for cell in row.cells] == ["50.0%", "+10.0", "+15.0"]
    alone = one_at_a_time(entries, entries[0])
    assert alone is not None and len(alone.columns) == 2
