"""What the engine remembers of its steps: order and number, never how long they took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from backend import step_clock
from backend.batch import Decode, Prefill, ReadBlocks
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.step_clock import BOUNDS_S, StepClock
from backend.step_times import RequestSteps, StepHistogram
from backend.step_watch import StepLeft
from backend.types import DocumentTokens, Request, SamplingParams

BLOCK = 128


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    opened = Engine.open(
        EngineConfig(model=tiny_llama, precision="float32", block_tokens=BLOCK, kv_budget=8 << 20)
    )
    yield opened
    opened.close()


class Asked:
    """As much of a sequence as the clock looks at."""

    def __init__(self, request_id: str) -> None:
        self.request = Request(request_id, (1,))
        self.tokens: list[int] = []
        self.finished = False


def run(clock: StepClock, batch: Any, *answering: Asked) -> None:
    with clock.step(batch):
        for one in answering:
            one.tokens.append(7)


def known(clock: StepClock, request_id: str) -> RequestSteps:
    found = clock.of(request_id)
    assert found is not None
    return found


def test_a_request_is_known_by_its_id_from_its_blocks_to_its_last_token(engine: Engine) -> None:
    ids = tuple(3 + place % 500 for place in range(3 * BLOCK))
    blocks = tuple((first, first + BLOCK) for first in range(0, len(ids), BLOCK))
    engine.read(DocumentTokens("doc", ids, blocks), lazy=True)
    request = Request(
        "asked", tuple(range(5, 25)), SamplingParams(max_tokens=9, ignore_eos=True),
        document_key="doc", evidence=((0, 2 * BLOCK),),
    )  # fmt: skip
    assert engine.steps_of("asked") is None
    events = list(engine.generate(request))
    assert len(events) == 9
    steps = engine.steps_of("asked")
    assert steps is not None and steps.request_id == "asked"
    at = dict(steps.marks)
    names = ["read_begun", "read_done", "admitted", "first_token", "last_token"]
    assert list(at) == names
    assert [at[name] for name in names] == sorted(at.values())
    # A guess that holds gives several tokens in one step.
    assert 1 <= len(steps.tokens) <= 9
    assert (steps.tokens[0], steps.tokens[-1]) == (at["first_token"], at["last_token"])
    kinds = [one.kind for one in steps.ranges]
    assert kinds[:3] == ["read", "read", "gather"] and kinds[3] == "prefill"
    assert set(kinds[4:]) <= {"decode"} and len(kinds) == 3 + len(steps.tokens)
    assert all(one.seconds > 0 for one in steps.ranges)
    starts = [one.started for one in steps.ranges]
    assert starts == sorted(starts)
    counted = {kind: sum(one.counts) for kind, one in engine.step_times.steps.items()}
    assert all(counted[kind] >= kinds.count(kind) for kind in counted)
    assert sum(engine.step_times.between_tokens.counts) == len(steps.tokens) - 1


def test_reading_ahead_is_counted_for_nobody(engine: Engine) -> None:
    before = sum(engine.step_times.steps["read"].counts)
    ids = tuple(90 + place % 400 for place in range(2 * BLOCK))
    ticket = engine.read(DocumentTokens("ahead", ids, ((0, BLOCK), (BLOCK, 2 * BLOCK))))
    assert ticket.wait(60).status == "done"
    assert sum(engine.step_times.steps["read"].counts) == before + 2


def test_one_step_in_so_many_is_measured_and_every_token_is_noted() -> None:
    clock = StepClock(torch.device("cpu"), every=4)
    asked = Asked("r")
    for _ in range(10):
        run(clock, Decode((cast(Any, asked),)), asked)
    steps = known(clock, "r")
    assert [one.kind for one in steps.ranges] == ["decode"] * 3
    assert len(steps.tokens) == 10
    assert sum(clock.times().between_tokens.counts) == 9
    none = StepClock(torch.device("cpu"), every=0)
    run(none, Decode((cast(Any, asked),)), asked)
    assert known(none, "r").ranges == () and len(known(none, "r").tokens) == 1


def test_a_step_that_gives_no_token_notes_none() -> None:
    clock, asked = StepClock(torch.device("cpu")), Asked("r")
    run(clock, Prefill(cast(Any, asked), 5))
    assert known(clock, "r").marks == () and known(clock, "r").tokens == ()
    run(clock, Prefill(cast(Any, asked), 5), asked)
    run(clock, Decode((cast(Any, asked),)))
    assert len(known(clock, "r").tokens) == 1
    assert [one.kind for one in known(clock, "r").ranges] == ["prefill", "prefill", "decode"]


def test_an_answer_that_is_made_again_under_the_same_id_is_noted_too() -> None:
    clock, first, again = StepClock(torch.device("cpu")), Asked("r"), Asked("r")
    admitted = []
    for asked, tokens in ((first, 5), (again, 3)):
        with clock.gather(cast(Any, asked)):
            pass
        for _ in range(tokens):
            run(clock, Decode((cast(Any, asked),)), asked)
        admitted.append(dict(known(clock, "r").marks)["admitted"])
    steps = known(clock, "r")
    assert len(steps.tokens) == 8 and admitted[0] == admitted[1]
    # The time between the two answers is none between tokens.
    assert sum(clock.times().between_tokens.counts) == 4 + 2


def test_a_step_that_fails_is_measured_too() -> None:
    clock, asked = StepClock(torch.device("cpu")), Asked("r")
    with pytest.raises(RuntimeError), clock.gather(cast(Any, asked)):
        raise RuntimeError("out of memory")
    assert sum(clock.times().steps["gather"].counts) == 1
    run(clock, ReadBlocks(cast(Any, None), (0,)))
    assert sum(clock.times().steps["read"].counts) == 1


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_step_that_is_left_is_not_measured(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(FakeEvent, "over", True)
    clock, asked = StepClock(torch.device(device), every=1), Asked("r")
    batch = Decode((cast(Any, asked),))
    with pytest.raises(StepLeft), clock.step(batch):
        raise StepLeft
    assert sum(clock.times().steps["decode"].counts) == 0
    run(clock, batch, asked)
    assert sum(clock.times().steps["decode"].counts) == 1
    assert len(known(clock, "r").ranges) == 1


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("KEPT", 3), ("MOST_RANGES", 5), ("MOST_TOKENS", 4)):
        monkeypatch.setattr(step_clock, name, most)
    clock = StepClock(torch.device("cpu"))
    for number in range(5):
        asked = Asked(str(number))
        for _ in range(8):
            run(clock, Decode((cast(Any, asked),)), asked)
    assert [clock.of(str(number)) is None for number in range(5)] == [True] * 2 + [False] * 3
    steps = known(clock, "4")
    assert (len(steps.ranges), len(steps.tokens)) == (5, 4)
    assert dict(steps.marks)["last_token"] > steps.tokens[-1]
    assert sum(clock.times().steps["decode"].counts) == 40


def test_a_request_that_goes_on_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_clock, "KEPT", 3)
    clock, long, others = StepClock(torch.device("cpu")), Asked("long"), []
    run(clock, Decode((cast(Any, long),)), long)
    for number in range(8):
        # Half of them are held by somebody, as those whose events are not all taken.
        others.append(Asked(str(number)))
        run(clock, Decode((cast(Any, others[-1]),)), others[-1])
        others[-1].finished = True
        if number % 2:
            others.pop()
    run(clock, Decode((cast(Any, long),)), long)
    assert len(known(clock, "long").tokens) == 2
    assert [clock.of(str(number)) is None for number in range(8)] == [True] * 6 + [False] * 2
    long.finished = True
    run(clock, Decode((cast(Any, Asked("new")),)))
    assert clock.of("long") is None, "the oldest of those that are over"
    # More than are kept go on: none of them is forgotten.
    live = [Asked(f"live {number}") for number in range(5)]
    for _ in range(2):
        for one in live:
            run(clock, Decode((cast(Any, one),)), one)
    assert [len(known(clock, f"live {number}").tokens) for number in range(5)] == [2] * 5
    for one in live:
        one.finished = True
    run(clock, Decode((cast(Any, Asked("last")),)))
    assert len(clock._requests) == 3


def test_durations_are_counted_by_their_upper_bound() -> None:
    histogram = step_clock._Histogram()
    for seconds in (0.0, 0.001, 0.0011, 5.0, 5.1, 100.0):
        histogram.add(seconds)
    told = histogram.told()
    assert (told.counts[0], told.counts[1], told.counts[-2], told.counts[-1]) == (2, 1, 1, 2)
    assert isinstance(told, StepHistogram) and told.bounds == BOUNDS_S
    assert sum(told.counts) == 6 and told.total == pytest.approx(110.1021)


class FakeEvent:
    """A CUDA event that is over when it is told to be."""

    over = False

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.recorded = True

    def query(self) -> bool:
        return FakeEvent.over

    def elapsed_time(self, end: FakeEvent) -> float:
        assert self.recorded and end.recorded
        return 250.0


def test_on_a_gpu_events_are_taken_when_they_are_over_and_never_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(FakeEvent, "over", False)
    clock, asked = StepClock(torch.device("cuda"), every=2), Asked("r")
    for _ in range(4):
        run(clock, Decode((cast(Any, asked),)), asked)
    assert known(clock, "r").ranges == () and len(known(clock, "r").tokens) == 4
    monkeypatch.setattr(FakeEvent, "over", True)
    assert [one.seconds for one in known(clock, "r").ranges] == [0.25, 0.25]
    # Not tried on one yet, so nothing is measured there unless it is asked for.
    off = StepClock(torch.device("cuda"))
    run(off, Decode((cast(Any, asked),)), asked)
    assert off.times().steps["decode"].total == 0.0
