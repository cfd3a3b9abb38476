"""What charts are made of: ticks, stages of a request, classes of length, which there are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.reports import plots
from eval.reports.charts import latency
from eval.reports.charts.latency import DECODE, FIRST, QUEUE, READ, REST, evenly
from eval.reports.charts.points import Bar
from eval.reports.charts.scales import short_length, short_time, ticks

Make = Callable[..., Any]


@given(st.floats(0.01, 1e6), st.floats(3, 1e5))
def test_an_axis_of_time_has_a_few_round_ticks(low: float, factor: float) -> None:
    found = ticks(low, low * factor)
    assert 2 <= len(found) <= 6
    assert found == sorted(found)
    assert all(low <= tick <= low * factor for tick in found)
    assert len({short_time(tick) for tick in found}) == len(found)


def test_ticks_are_named_as_people_write() -> None:
    assert [short_time(t) for t in (0.5, 20, 1000, 12_500)] == ["0.5 ms", "20 ms", "1 s", "12.5 s"]
    assert [short_length(t) for t in (512, 4096, 524_288)] == ["512", "4K", "512K"]


@given(st.lists(st.integers(), max_size=300), st.integers(1, 60))
def test_requests_are_picked_evenly_in_order(items: list[int], most: int) -> None:
    found = evenly(list(enumerate(items)), most)
    places = [place for place, _ in found]
    assert len(found) == min(most, len(items))
    assert places == sorted(set(places))
    gaps = {b - a for a, b in zip(places, places[1:], strict=False)}
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_stages_stand_in_the_order_they_happened(one_record: Make) -> None:
    def stages(cited: bool, **times: float) -> list[tuple[int, float]]:
        reply = one_record(1).reply
        if not cited:
            reply = replace(reply, citations=())
        blank = replace(reply.timings, queue_ms=0, read_ms=0, decode_ms=0)
        return list(plots.bar_of(replace(reply, timings=replace(blank, **times))).stages)

    generated = stages(False, queue_ms=10, read_ms=100, ttft_ms=150, decode_ms=200, total_ms=400)
    assert generated == [(QUEUE, 10), (READ, 100), (FIRST, 40), (DECODE, 200), (REST, 50)]
    quoted = stages(True, queue_ms=30, read_ms=100, ttft_ms=5, decode_ms=200, total_ms=400)
    assert quoted == [(FIRST, 5), (QUEUE, 30), (READ, 100), (REST, 65), (DECODE, 200)]


def test_a_timeline_draws_at_most_sixty_requests() -> None:
    bars = [Bar(((QUEUE, 1.0), (DECODE, 2.0))) for _ in range(200)]
    svg = latency.timeline("t", bars, "time")
    assert "60 requests" in svg
    assert len(re.findall(r"var\(--stage-0\)", svg)) >= 60


def test_a_run_without_a_model_takes_lengths_from_one_with(
    write_run: Make, open_runs: Make, some_records: Make
) -> None:
    entries = open_runs(
        write_run("model", some_records(1)),
        write_run("bm25", some_records(2, model=False), mode="bm25"),
    )
    titles = {chart.title: chart for chart in plots.charts(entries)}
    assert "length of the document, tokens" in titles["Token F1 by length of the document"].svg
    alone = {chart.title: chart for chart in plots.charts(entries[1:])}
    assert "document, characters" in alone["Token F1 by length of the document"].svg


def test_cold_and_warm_have_charts_of_their_own(
    write_run: Make, open_runs: Make, some_records: Make
) -> None:
    entries = open_runs(write_run("one", some_records()))
    titles = [chart.title for chart in plots.charts(entries)]
    for start in ("Citation hit against speed, ", "Time to first token, "):
        assert [t for t in titles if t.startswith(start)] == [f"{start}cold", f"{start}warm"]


@pytest.mark.parametrize("n", [1, 2])
def test_tiny_runs_make_a_report_too(
    write_run: Make, open_runs: Make, one_record: Make, n: int
) -> None:
    entries = open_runs(write_run("one", [one_record(k) for k in range(n)]))
    assert plots.charts(entries)


def test_a_run_that_failed_throughout_has_no_speed(
    write_run: Make, open_runs: Make, one_failure: Make
) -> None:
    entries = open_runs(write_run("one", [one_failure(k) for k in range(10)]))
    assert not [c for c in plots.charts(entries) if "speed" in c.title or "time" in c.title]
