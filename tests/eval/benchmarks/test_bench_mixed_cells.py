"""Loads under way: when requests are sent, the label of what they met, the figures made of them."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.benchmarks.documents import load_pieces, sample_files
from eval.benchmarks.mixed.benchmark import Conditions, run_cell, run_file, run_generated
from eval.benchmarks.mixed.clock import Clock
from eval.benchmarks.mixed.labels import label_of
from eval.benchmarks.mixed.load import LoadShape, Texts
from eval.benchmarks.mixed.rest import READ_TOKENS, RestDoor
from eval.benchmarks.mixed.summary import METRICS, cell_fields, summarise
from eval.benchmarks.mixed.tables import show_mixed
from eval.benchmarks.mixed.traffic import poisson_times, send
from eval.benchmarks.mixed.types import (
    AnswerRecord,
    CellRecord,
    Fault,
    LoadRequest,
    RequestRecord,
    Reuse,
)
from eval.errors import NotCold

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


def request_of(number: int, at_ms: float | None = None, cell: str = "cold") -> LoadRequest:
    return LoadRequest(f"r{number}", cell, f"text {number}", (), 100, "short", 1, at_ms)


def record_of(
    request: LoadRequest, timeline: Mapping[str, float], **changes: object
) -> RequestRecord:
    made = RequestRecord(request.request_id, request.kind, request.tokens, "done", dict(timeline))
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


class FakeDoor:
    """A server in this process. `known` are texts it has; `stall_s` is how long one takes."""

    api = "fake"

    def __init__(self, stall_s: float = 0.0, tells: bool = True) -> None:
        self.stall_s = stall_s
        self.tells = tells
        self.known: set[str] = set()
        self.under_way = self.peak = self.forgotten = 0
        self.served: list[str] = []

    async def prepare(self) -> dict[str, object]:
        return {}

    async def counters(self) -> Mapping[str, float]:
        return {"computed_total": float(len(self.served)), "pages": 7.0}

    async def serve(self, request: LoadRequest, arrival: float, clock: Clock) -> RequestRecord:
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        self.served.append(request.request_id)
        known = request.document in self.known
        sent = clock.now_ms()
        await asyncio.sleep(self.stall_s)
        self.known.add(request.document)
        self.under_way -= 1
        now = clock.now_ms()
        return record_of(
            request,
            {"arrival": arrival, "sent": sent, "first_text": now, "done": now},
            document_tokens=100,
            reused_tokens=(100 if known else 0) if self.tells else None,
            known=known,
        )

    def reuse(
        self,
        records: tuple[RequestRecord, ...],
        before: Mapping[str, float],
        after: Mapping[str, float],
    ) -> Reuse:
        if not self.tells:
            return Reuse(None, None, "nothing")
        reused = sum(record.reused_tokens or 0 for record in records)
        return Reuse(100 * len(records), reused, "documents")

    async def forget(self) -> None:
        self.forgotten += 1
        self.known.clear()

    async def close(self) -> None:
        pass


@given(requests=st.integers(1, 25), concurrency=st.integers(1, 12))
def test_the_closed_loop_never_exceeds_its_concurrency(requests: int, concurrency: int) -> None:
    door = FakeDoor(stall_s=0.001)
    load = [request_of(number) for number in range(requests)]
    traffic = asyncio.run(send(load, door.serve, concurrency, Clock()))
    assert door.peak == traffic.peak == min(concurrency, requests)
    assert sorted(door.served) == sorted(request.request_id for request in load)
    assert len(traffic.records) == requests


def test_the_open_loop_counts_from_the_schedule_not_from_the_sending() -> None:
    """The client is held up for 300 ms; those who were due meanwhile waited for it."""
    door = FakeDoor()

    async def run() -> list[RequestRecord]:
        async def serve(request: LoadRequest, arrival: float, clock: Clock) -> RequestRecord:
            if request.request_id == "r0":
                time.sleep(0.3)  # the whole event loop stands still
            return await door.serve(request, arrival, clock)

        load = [request_of(number, at_ms=20.0 * number) for number in range(5)]
        return (await send(load, serve, 1, Clock())).records

    records = asyncio.run(run())
    assert [record.timeline["arrival"] for record in records] == [0.0, 20.0, 40.0, 60.0, 80.0]
    for record in records:
        held = 300 - record.timeline["arrival"]
        assert record.ttft_any_ms is not None and held - 1 <= record.ttft_any_ms < held + 4000


def test_open_requests_do_not_wait_for_each_other() -> None:
    door = FakeDoor(stall_s=0.2)
    load = [request_of(number, at_ms=10.0 * number) for number in range(6)]
    traffic = asyncio.run(send(load, door.serve, 1, Clock()))
    assert traffic.peak == 6, "the concurrency holds for requests without a time only"


def test_poisson_times_have_their_rate() -> None:
    times = poisson_times(4000, 5.0, seed=3)
    gaps = [later - earlier for earlier, later in zip((0.0, *times), times, strict=False)]
    assert min(gaps) > 0
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(200, rel=0.05)
    # The gaps of a Poisson process have a standard deviation as large as their mean.
    assert (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 == pytest.approx(
        200, rel=0.1
    )
    assert times == poisson_times(4000, 5.0, seed=3) != poisson_times(4000, 5.0, seed=4)


# Labels


@pytest.mark.parametrize(
    ("tokens", "reused", "label"),
    [
        (1000, 0, "cold"),
        (1000, 1, "mixed"),
        (1000, 500, "mixed"),
        (1000, 989, "mixed"),
        (1000, 992, "warm"),
        (1000, 1000, "warm"),
        (None, None, "unknown"),
        (0, 0, "unknown"),
    ],
)
def test_the_label_is_the_measured_one(tokens: int | None, reused: int | None, label: str) -> None:
    assert label_of(Reuse(tokens, reused, "documents")) == label


def test_a_cold_claim_is_refused_at_the_first_hit() -> None:
    door = FakeDoor()
    load = [request_of(number) for number in range(10)]
    cell = asyncio.run(run_cell(door, load, 2, claim="cold"))
    assert (cell.label, cell.peak_in_flight) == ("cold", 2)
    assert cell.counters == {"computed_total": 10.0}, "what is no counter is left out"
    door.known = {load[3].document}
    with pytest.raises(NotCold, match="100 of its 1,000 document tokens.*r3"):
        asyncio.run(run_cell(door, load, 2, claim="cold"))
    door.known = {load[3].document}
    assert asyncio.run(run_cell(door, load, 2, claim="mixed")).label == "mixed"


def test_a_repeated_load_is_labelled_warm_by_itself() -> None:
    load = [request_of(number) for number in range(4)]
    conditions = Conditions(concurrency=2, rounds=2, keep=True)
    door = FakeDoor()
    rounds = asyncio.run(run_file(door, load, conditions, lambda _: None))
    assert [cell.label for cells in rounds for cell in cells] == ["cold", "warm"]
    assert door.forgotten == 0
    with pytest.raises(NotCold):
        claimed = dataclasses.replace(conditions, claim="cold")
        asyncio.run(run_file(door, load, claimed, lambda _: None))
    fresh = FakeDoor()
    dropped = dataclasses.replace(conditions, keep=False)
    rounds = asyncio.run(run_file(fresh, load, dropped, lambda _: None))
    assert [cell.label for cells in rounds for cell in cells] == ["cold", "cold"]
    assert fresh.forgotten == 2


def test_a_server_that_does_not_tell_leaves_the_label_open() -> None:
    load = [request_of(1)]
    cell = asyncio.run(run_cell(FakeDoor(tells=False), load, 1, claim="cold"))
    assert cell.label == "unknown"
    shown = show_mixed({"results": summarise([[cell]])})
    assert "does not tell" in shown and "measured: unknown (hit rate not told)" in shown


@pytest.mark.parametrize("cells", [("cold", "mixed"), ("mixed",)])
def test_a_generated_run_measures_half_of_the_mixed_load_as_hits(
    texts: Texts, cells: tuple[str, ...]
) -> None:
    door = FakeDoor()
    told: list[str] = []
    rounds = asyncio.run(run_generated(door, SHAPE, texts, cells, keep=False, tell=told.append))
    assert [[cell.cell for cell in done] for done in rounds] == [list(cells)] * 2
    mixed = [done[-1] for done in rounds]
    assert [cell.reuse.rate for cell in mixed] == [0.5, 0.5]
    assert door.forgotten == 2 and len(told) == 4


# Figures


def cell_of(records: list[RequestRecord], cell: str = "cold") -> CellRecord:
    reuse = Reuse(100 * len(records), 0, "documents")
    return CellRecord(cell, "cold", "cold", reuse, 1000.0, 2, (0.5, 3.0), {}, tuple(records))


def timed(number: int, ms: float, **changes: object) -> RequestRecord:
    timeline = {"arrival": 10.0, "sent": 11.0, "first_text": 10.0 + ms, "done": 20.0 + ms}
    return record_of(request_of(number), timeline, document_tokens=100, **changes)


def figures(rounds: list[list[CellRecord]], kind: str = "short") -> dict[str, object]:
    found = summarise(rounds)["cold"]["kinds"][kind]  # type: ignore[index]
    assert isinstance(found, dict)
    return found


def test_figures_are_medians_of_the_rounds() -> None:
    rounds = [
        [cell_of([timed(number, base + number) for number in range(11)])]
        for base in (100.0, 300.0, 200.0)
    ]
    metric = figures(rounds)["metrics"]["ttft_any_ms"]  # type: ignore[index]
    assert (metric["n"], metric["p50"]) == (33, 205.0)
    assert metric["p95"] == pytest.approx(209.5)
    assert [one["p50"] for one in metric["rounds"]] == [105.0, 305.0, 205.0]
    assert metric["p99_all_rounds"] is None


@pytest.mark.parametrize(("samples", "given_"), [(99, False), (100, True)])
def test_a_p99_needs_a_hundred_samples(samples: int, given_: bool) -> None:
    rounds = [[cell_of([timed(number, number) for number in range(samples)])]]
    metric = figures(rounds)["metrics"]["ttft_any_ms"]  # type: ignore[index]
    assert (metric["p99_all_rounds"] is not None) is given_
    assert ("P99" in show_mixed({"results": summarise(rounds)})) is given_


def test_failures_are_counted_and_listed_but_have_no_time() -> None:
    fault = Fault("any", "engine_busy", "Later.")
    records = [timed(1, 100.0), timed(2, 5.0, status="failed", fault=fault)]
    found = figures([[cell_of(records)]])
    assert (found["requests"], found["failed"]) == (2, 1)
    assert found["metrics"]["ttft_any_ms"]["n"] == 1  # type: ignore[index]
    assert found["metrics"]["ttft_any_ms"]["p50"] == 100.0  # type: ignore[index]
    shown = show_mixed({"results": summarise([[cell_of(records)]])})
    assert "1 of 2 failed: any: engine_busy (1)" in shown


def test_short_and_long_requests_are_never_in_one_figure() -> None:
    records = [timed(1, 100.0), timed(2, 900.0, kind="long")]
    assert figures([[cell_of(records)]])["metrics"]["total_ms"]["p50"] == 110.0  # type: ignore[index]
    assert (
        figures([[cell_of(records)]], "long")["metrics"]["total_ms"]["p50"] == 910.0  # type: ignore[index]
    )


def test_cold_and_mixed_are_never_in_one_table() -> None:
    rounds = [[cell_of([timed(1, 100.0)]), cell_of([timed(2, 50.0)], "mixed")]]
    shown = show_mixed({"results": summarise(rounds)})
    assert shown.index("cold load") < shown.index("100 / 100") < shown.index("mixed load")
    assert shown.index("mixed load") < shown.index("50 / 50")


def test_a_cells_record_is_plain_json() -> None:
    answer = AnswerRecord("any", 5.0, 9.0, "quote", 3, 0, True, usage={"cached_tokens": 1})
    fields = json.loads(json.dumps(cell_fields(cell_of([timed(1, 2.0, answers=(answer,))]))))
    assert fields["hit_rate"] == 0.0 and fields["client_lag_ms"]["max"] == 3.0
    (request,) = fields["requests"]
    assert request["timeline"] == {"arrival": 10.0, "sent": 11.0, "first_text": 12.0, "done": 22.0}
    assert request["ttft_any_ms"] == 2.0 and request["answers"][0]["usage"] == {"cached_tokens": 1}
    assert set(METRICS) <= set(request)


def test_what_a_failed_request_read_does_not_hide_reuse() -> None:
    met = RequestRecord(
        "met", "short", 400, "done", {}, document_tokens=400, computed_tokens=0, reused_tokens=400
    )
    failed = RequestRecord(
        "failed", "short", 400, "failed", {}, fault=Fault("grounded", "timeout", "too late"),
        document_tokens=400,
    )  # fmt: skip
    door = RestDoor("http://127.0.0.1:1", timeout_s=1.0)
    reuse = door.reuse((met, failed), {READ_TOKENS: 100.0}, {READ_TOKENS: 500.0})
    asyncio.run(door.close())
    assert (reuse.tokens, reuse.reused, label_of(reuse)) == (400, 400, "warm")
