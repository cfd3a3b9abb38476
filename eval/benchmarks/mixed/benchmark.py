"""Runs loads against a server, cell by cell and round by round, and collects what came out.

A round of a generated load: the cold load; the mixed load, part of whose documents the cold one
brought; then everything is deleted. A load from a file is sent as it is, each of its cells once a
round. Knows no API: see `doors`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eval.benchmarks.mixed.clock import Clock, LoopLag
from eval.benchmarks.mixed.doors import Door
from eval.benchmarks.mixed.labels import label_of, require_claim
from eval.benchmarks.mixed.load import LoadShape, Texts, cold_load, mixed_load, needed_before
from eval.benchmarks.mixed.loadfile import cells_of
from eval.benchmarks.mixed.traffic import send
from eval.benchmarks.mixed.types import CellRecord, Label, LoadRequest

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Conditions:
    """`keep` leaves the documents on the server; `claim` is what the cells of a load file are said
    to be (None: nothing is said)."""

    concurrency: int
    rounds: int
    keep: bool = False
    claim: Label | None = None


async def run_generated(
    door: Door,
    shape: LoadShape,
    texts: Texts,
    cells: Sequence[str],
    *,
    keep: bool,
    tell: Tell,
) -> list[list[CellRecord]]:
    """The cells of every round. Raises NotCold, PeerError."""
    rounds = []
    for number in range(shape.rounds):
        done: list[CellRecord] = []
        cold = cold_load(shape, texts, number)
        if "cold" in cells:
            tell(f"round {number + 1} of {shape.rounds}: cold")
            done.append(await run_cell(door, cold, shape.concurrency, claim="cold"))
        if "mixed" in cells:
            mixed = mixed_load(shape, texts, number, cold)
            if "cold" not in cells:
                tell(f"round {number + 1} of {shape.rounds}: documents to be asked again")
                before = needed_before(mixed, cold)
                if before:
                    await run_cell(door, before, shape.concurrency, claim=None)
            tell(f"round {number + 1} of {shape.rounds}: mixed")
            done.append(await run_cell(door, mixed, shape.concurrency, claim="mixed"))
        if not keep:
            await door.forget()
        rounds.append(done)
    return rounds


async def run_file(
    door: Door, requests: Sequence[LoadRequest], conditions: Conditions, tell: Tell
) -> list[list[CellRecord]]:
    """The cells of a load file, every round anew. Raises NotCold, PeerError."""
    rounds = []
    for number in range(conditions.rounds):
        done = []
        for name, load in cells_of(requests).items():
            tell(f"round {number + 1} of {conditions.rounds}: {name}")
            done.append(await run_cell(door, load, conditions.concurrency, claim=conditions.claim))
        if not conditions.keep:
            await door.forget()
        rounds.append(done)
    return rounds


async def run_cell(
    door: Door, requests: Sequence[LoadRequest], concurrency: int, *, claim: Label | None
) -> CellRecord:
    """Sends one load. Raises NotCold when it was to be cold and was not, PeerError."""
    before = await door.counters()
    clock = Clock()
    async with LoopLag() as lag:
        traffic = await send(requests, door.serve, concurrency, clock)
    wall_ms = clock.now_ms()
    after = await door.counters()
    records = tuple(sorted(traffic.records, key=lambda record: record.timeline["arrival"]))
    reuse = door.reuse(records, before, after)
    cell = CellRecord(
        cell=requests[0].cell,
        claim=claim,
        label=label_of(reuse),
        reuse=reuse,
        wall_ms=wall_ms,
        peak_in_flight=traffic.peak,
        loop_lag_ms=tuple(lag.samples),
        counters={
            name: after[name] - before.get(name, 0.0)
            for name in after
            if name.partition("{")[0].endswith("_total")
        },
        records=records,
    )
    require_claim(cell)
    return cell
