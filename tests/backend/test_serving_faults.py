"""Requests that end in other ways than with an answer, and engines that run short: nothing is left
behind, and nobody else notices."""

from __future__ import annotations

import dataclasses
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

from backend.batch import Batch, Prefill, ReadBlocks
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import EngineBusy, RequestTooLarge
from backend.hardware.types import Memory
from backend.types import DocumentTokens, Request, SamplingParams, TokenEvent

_RANDOM = torch.Generator().manual_seed(5)
TOKENS: tuple[int, ...] = tuple(torch.randint(3, 500, (1400,), generator=_RANDOM).tolist())
QUESTION = tuple(range(40, 60))
LONG = SamplingParams(max_tokens=2000, ignore_eos=True, temperature=1.0, seed=1)
FOUR = SamplingParams(max_tokens=4, ignore_eos=True)
PAGE = 3 * 2 * 2 * 64 * 10 * 4
"""Bytes of a page of the tiny model."""


def open_engine(model: Path, **changes: object) -> Engine:
    base = EngineConfig(model=model, precision="float32", block_tokens=128, kv_budget=8 << 20)
    return Engine.open(dataclasses.replace(base, **changes))  # type: ignore[arg-type]


@pytest.fixture
def engine(tiny_llama: Path) -> Iterator[Engine]:
    engine = open_engine(tiny_llama)
    yield engine
    engine.close()


def make_document(engine: Engine, key: str, shift: int = 0, owner: str = "") -> DocumentTokens:
    tokens = (*TOKENS[shift:], *TOKENS[:shift])
    return DocumentTokens(key, tokens, engine.split_blocks(len(tokens)), owner=owner)


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def is_quiet(engine: Engine) -> bool:
    """Nothing is under way, and nothing is kept for what was."""
    left = engine._live or engine._opener._held or engine._places.taken
    return not left and engine._scheduler.idle


def settled(engine: Engine) -> tuple[int, int]:
    """(pages in use, blocks held) once nothing is under way; raises if the books don't agree."""
    wait_for(lambda: is_quiet(engine))

    def look() -> tuple[int, int]:
        engine._store.check_integrity()
        return engine.counters.pages_used, len(engine._store._holds)

    return engine._mail.call(look)


class Held:
    """The engine's thread stands still inside the block."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._go = threading.Event()

    def __enter__(self) -> None:
        held = threading.Event()

        def stand() -> None:
            held.set()
            assert self._go.wait(60)

        self._engine._mail.send(stand)
        assert held.wait(60)

    def __exit__(self, *_: object) -> None:
        self._go.set()


def test_a_hundred_requests_cancelled_at_random_points(engine: Engine) -> None:
    rng = random.Random(7)
    read = make_document(engine, "read")
    engine.read(read).wait(60)
    before = settled(engine)
    assert before[1] == 0
    for number in range(100):
        # Of every other one the document is not read yet.
        key = "read" if number % 2 else f"unread {number}"
        if key != "read":
            engine.read(make_document(engine, key, shift=number), lazy=True)
        ranges = [(first, first + 40) for first in rng.sample(range(0, 1300), 4)]
        name = f"request {number}"
        stream = engine.generate(Request(name, QUESTION * 30, LONG, key, tuple(ranges)))
        way = rng.choice(["at once", "by name", "later", "in the middle", "forgotten"])
        if way == "by name":
            engine.cancel(name)
        elif way == "later":
            time.sleep(rng.random() * 0.05)
        elif way == "in the middle":
            for _ in range(rng.randint(1, 20)):
                next(stream)
        elif way == "forgotten" and key != "read":
            engine.forget(key)
        if way == "by name":
            assert list(stream)[-1].finish_reason == "cancelled"
        stream.close()
        engine.cancel(name)
        if key != "read":
            engine.forget(key)
        assert settled(engine) == before, way


@pytest.mark.parametrize("moment", ["waits", "reads", "fills", "answers"])
def test_one_that_is_cancelled_holds_nothing_a_step_later(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    run, left = engine._steps.run, []
    later: list[tuple[bool, bool, int]] = []
    before = settled(engine)
    engine.read(make_document(engine, "d"), lazy=True)

    def watched(batch: Batch) -> None:
        # Counted in steps, which go on for another: what is late is late on any machine.
        for one in left:
            known = one in engine._scheduler.sequences()
            later.append((known, one.context is not None, len(engine._store._holds)))
        sequence = None if left else engine._live.get("left")
        if sequence is not None and moment_of(batch, sequence) == moment:
            left.append(sequence)
            engine.cancel("left")
        run(batch)

    monkeypatch.setattr(engine._steps, "run", watched)
    with closing(engine.generate(Request("other", QUESTION, LONG))) as other:
        next(other)
        asked = Request("left", QUESTION * 40, LONG, "d", ((0, 200),))
        assert list(engine.generate(asked))[-1].finish_reason == "cancelled"
        wait_for(lambda: len(later) > 3)
    assert later[1] == (False, False, 0), "one step after the one that it was cancelled in"
    engine.forget("d")
    assert settled(engine) == before


def moment_of(batch: Batch, sequence: Any) -> str:
    """What a step is to this request."""
    if isinstance(batch, ReadBlocks):
        return "reads" if batch.asker is sequence else ""
    if isinstance(batch, Prefill):
        return "fills" if batch.sequence is sequence else ""
    if sequence in batch.sequences:
        return "answers"
    return "waits" if sequence.context is None else ""


def test_many_at_once_cancelled_in_any_order_leave_the_others_alone(engine: Engine) -> None:
    rng = random.Random(8)
    engine.read(make_document(engine, "d")).wait(60)
    before = settled(engine)
    asked = Request("kept", QUESTION, dataclasses.replace(FOUR, max_tokens=40), "d", ((0, 90),))
    alone = [event.token_id for event in engine.generate(asked)]
    with Held(engine):
        kept = engine.generate(asked)
        streams = [
            engine.generate(Request(f"r{number}", QUESTION * 9, LONG, "d", ((number, 700),)))
            for number in range(30)
        ]
        for stream in rng.sample(streams, 10):
            stream.close()
    rng.shuffle(streams)
    for stream in streams:
        stream.close()
    assert [event.token_id for event in kept] == alone
    assert settled(engine) == before


def first_tokens(engine: Engine, requests: Sequence[Request]) -> list[str]:
    """Names of the requests in the order in which they got their first token, all being there
    before the engine begins."""
    order: list[str] = []

    def follow(name: str, stream: Iterator[TokenEvent]) -> None:
        for event in stream:
            if event.index == 0 and name not in order:
                order.append(name)

    with Held(engine):
        streams = [(one.request_id, engine.generate(one)) for one in requests]
    started = []
    for name, stream in streams:
        thread = threading.Thread(target=follow, args=(name, stream))
        thread.start()
        started.append(thread)
    for thread in started:
        thread.join(60)
    return order


def test_fifty_questions_of_one_owner_do_not_delay_anothers_first(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[str] = []
    prefill = engine._steps._prefill

    def note(batch: Any) -> None:
        served.append(batch.sequence.request.owner)
        prefill(batch)

    monkeypatch.setattr(engine._steps, "_prefill", note)
    requests = [Request(f"m{number}", QUESTION, FOUR, owner="many") for number in range(50)]
    names = first_tokens(engine, [*requests, Request("o", QUESTION, FOUR, owner="one")])
    assert len(names) == 51
    assert "one" in served[:2], "at most one step of another owner"
    served.clear()
    first_tokens(engine, [Request("o", QUESTION, FOUR), *requests])
    assert served[:2] == ["", "many"], "those who came first stay first"


def test_twenty_documents_of_one_owner_do_not_delay_anothers(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    read = engine._steps.read

    def note(reading: Any, indexes: Any, asker: Any = None) -> None:
        order.append(reading.document.owner)
        read(reading, indexes, asker)

    monkeypatch.setattr(engine._steps, "read", note)
    with Held(engine):
        tickets = [
            engine.read(make_document(engine, f"d{number}", shift=number, owner="many"))
            for number in range(20)
        ]
        tickets.append(engine.read(make_document(engine, "o", shift=50, owner="one")))
    assert tickets[-1].wait(60).status == "done"
    blocks = len(engine.split_blocks(len(TOKENS)))
    last = len(order) - 1 - order[::-1].index("one")
    assert order[: last + 1].count("many") <= blocks + 1, "they take turns"
    for ticket in tickets:
        ticket.cancel()


def test_two_that_take_each_others_blocks_are_both_answered(tiny_llama: Path) -> None:
    # Each needs six of the eight pages, and owners take turns with every block.
    engine = open_engine(tiny_llama, kv_budget=8 * PAGE)
    try:
        ranges = ((0, 10), (200, 210), (300, 310))
        requests = []
        for number, owner in enumerate("ab"):
            engine.read(make_document(engine, owner, shift=number * 300), lazy=True)
            requests.append(Request(owner, QUESTION, FOUR, owner, ranges, owner=owner))
        with Held(engine):
            streams = [engine.generate(request) for request in requests]
        for stream in streams:
            last = list(stream)[-1]
            assert (last.finish_reason, last.error) == ("length", "")
        assert settled(engine)[1] == 0
        scores = engine.score(QUESTION[:1], QUESTION[1:], document_key="a", evidence=ranges)
        assert len(scores) == len(QUESTION) - 1
    finally:
        engine.close()


def test_the_chunk_of_a_step_changes_no_answer(tiny_llama: Path) -> None:
    answers = []
    for chunk in (16, 100, 512):
        engine = open_engine(tiny_llama, prefill_chunk=chunk, read_tokens=chunk * 3)
        try:
            engine.read(make_document(engine, "d")).wait(60)
            prompt = TOKENS[200:500]
            sampling = SamplingParams(max_tokens=12, ignore_eos=True)
            requests = [
                Request(f"{number}", prompt[number:], sampling, "d", ((number * 90, 500),))
                for number in range(3)
            ]
            streams = [engine.generate(request) for request in requests]
            answers.append([[event.token_id for event in stream] for stream in streams])
        finally:
            engine.close()
    assert answers[0] == answers[1] == answers[2]


def test_a_full_queue_refuses_but_for_another_owners_first(tiny_llama: Path) -> None:
    engine = open_engine(tiny_llama, max_waiting=3)
    try:
        with Held(engine):
            streams = [engine.generate(Request(f"{n}", QUESTION, FOUR)) for n in range(3)]
            with pytest.raises(EngineBusy, match="3 questions"):
                engine.generate(Request("4", QUESTION, FOUR))
            streams.append(engine.generate(Request("5", QUESTION, FOUR, owner="another")))
        assert [list(stream)[-1].finish_reason for stream in streams] == ["length"] * 4
        assert settled(engine)[1] == 0
    finally:
        engine.close()


def look_as(free: int, total: int) -> Callable[[Any], Memory]:
    return lambda _: Memory(free, total)


def test_a_request_beyond_the_devices_memory_is_refused_at_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = engine._memory.needed(0, 20 + 4)
    monkeypatch.setattr(engine._memory, "_look", look_as(10**12, needed))
    with pytest.raises(RequestTooLarge, match="memory for its 24 tokens"):
        engine.generate(Request("q", QUESTION, FOUR))
    assert engine._places.taken == 0


def test_without_free_memory_a_request_waits_for_others_or_is_told(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = engine._runner.step

    def slow(*arguments: Any, **options: Any) -> Any:
        # So that it is not over before the other has come.
        time.sleep(0.02)
        return step(*arguments, **options)

    monkeypatch.setattr(engine._runner, "step", slow)
    running = engine.generate(Request("running", QUESTION, LONG))
    next(running)
    monkeypatch.setattr(engine._memory, "_look", look_as(1, 10**12))
    waits = engine.generate(Request("waits", QUESTION, FOUR))
    wait_for(lambda: engine._scheduler.waiting == 1)
    for _ in range(5):
        next(running)
    assert engine._scheduler.waiting == 1, "it waits for what the other gives back"
    monkeypatch.undo()
    assert list(waits)[-1].finish_reason == "length"
    running.close()
    settled(engine)
    monkeypatch.setattr(engine._memory, "_look", look_as(1, 10**12))
    told = list(engine.generate(Request("told", QUESTION, FOUR)))[-1]
    assert told.finish_reason == "error"
    assert "of memory and only 0 MB are free" in told.error
    monkeypatch.undo()
    assert list(engine.generate(Request("again", QUESTION, FOUR)))[-1].finish_reason == "length"


def fails(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


OUT_OF_MEMORY = [
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
]


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["extend", "read_block", "open_context"])
def test_no_memory_for_a_step_ends_its_request_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception, where: str
) -> None:
    engine.read(make_document(engine, "d"), lazy=True)
    before = settled(engine)
    asked = Request("q", QUESTION * 40, FOUR, "d", ((0, 200),))
    with monkeypatch.context() as patch:
        patch.setattr(engine._runner, where, fails(error))
        last = list(engine.generate(asked))[-1]
    assert last.finish_reason == "error"
    assert "ran out of memory" in last.error and "FINEPRINT_KV_BUDGET_MB" in last.error
    engine.forget("d")
    assert settled(engine) == before, "pages are given back"
    engine.read(make_document(engine, "d"), lazy=True)
    assert list(engine.generate(asked))[-1].finish_reason == "length"


def test_no_memory_for_a_decoding_step_ends_the_largest_request_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = SamplingParams(max_tokens=90, ignore_eos=True, temperature=1.0, seed=3)
    small = Request("small", QUESTION, sampling)
    alone = [event.token_id for event in engine.generate(small)]
    step, failed = engine._runner.step, []

    def scarce(contexts: Any, *arguments: Any, **options: Any) -> Any:
        if len(contexts) > 1:
            failed.append(len(contexts))
            raise MemoryError
        return step(contexts, *arguments, **options)

    monkeypatch.setattr(engine._runner, "step", scarce)
    with Held(engine):
        streams = [
            engine.generate(one) for one in (small, Request("large", QUESTION * 9, sampling))
        ]
    kept, ended = (list(stream) for stream in streams)
    assert failed, "they were never in one step"
    assert ended[-1].finish_reason == "error" and "ran out of memory" in ended[-1].error
    assert [event.token_id for event in kept] == alone
    assert engine.alive


@pytest.mark.parametrize("where", ["extend", "step", "read_block"])
def test_a_step_that_fails_is_logged_with_those_whom_it_was_for(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    engine.read(make_document(engine, "d"), lazy=True)
    asked = Request("ans_7", QUESTION * 40, FOUR, "d", ((0, 200),))
    with monkeypatch.context() as patch:
        patch.setattr(engine._runner, where, fails(RuntimeError("the device is lost")))
        assert list(engine.generate(asked))[-1].finish_reason == "error"
    named = {"read_block": "reading document d for ans_7"}.get(where, "the prompt of ans_7")
    assert f"a step of the engine failed: {named}" in caplog.text
    both = [Request(name, QUESTION, FOUR) for name in ("ans_8", "ans_9")]
    monkeypatch.setattr(engine._steps, "_decode", fails(RuntimeError("the device is lost")))
    with Held(engine):
        streams = [engine.generate(request) for request in both]
    assert [list(stream)[-1].finish_reason for stream in streams] == ["error"] * 2
    assert "ans_8" in caplog.text and "ans_9" in caplog.text


def test_a_document_without_memory_fails_with_a_reason(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = settled(engine)
    with monkeypatch.context() as patch:
        patch.setattr(engine._runner, "read_block", fails(MemoryError()))
        state = engine.read(make_document(engine, "d")).wait(60)
    assert state.status == "failed" and "ran out of memory" in state.error
    assert settled(engine) == before
    assert engine.read(make_document(engine, "d")).wait(60).status == "done"


def test_a_document_waits_for_pages_that_are_held_for_a_question(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(tiny_llama, kv_budget=6 * PAGE)
    try:
        engine.read(make_document(engine, "held"), lazy=True)
        with monkeypatch.context() as patch:
            patch.setattr(engine._opener, "_has_room", lambda *_: False)
            stream = engine.generate(Request("q", QUESTION, FOUR, "held", ((0, 384),)))
            wait_for(lambda: len(engine._store._holds) == 3)
            other = DocumentTokens("other", TOKENS[:256], engine.split_blocks(256), owner="o")
            ticket = engine.read(other)
            begun = engine._pulse.steps
            wait_for(lambda: engine._pulse.steps > begun + 20)
            state = ticket.progress()
            assert (state.status, state.read_tokens) == ("reading", 0)
        assert list(stream)[-1].finish_reason == "length"
        assert ticket.wait(60).status == "done"
        assert settled(engine)[1] == 0
    finally:
        engine.close()


def test_a_request_in_a_wrong_moment_does_not_end_the_thread(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(engine._store, "enrol", fails(OSError("the disk is gone")))
        state = engine.read(make_document(engine, "d")).wait(60)
    assert state.status == "failed" and "the disk is gone" in state.error
    with monkeypatch.context() as patch:
        patch.setattr(engine._store, "forget_document", fails(OSError("the disk is gone")))
        engine.forget("d")
        engine.score(QUESTION[:1], QUESTION[1:])
    assert engine.alive
    assert list(engine.generate(Request("q", QUESTION, FOUR)))[-1].finish_reason == "length"


def test_the_pulse_tells_a_hanging_step_from_a_rest(engine: Engine) -> None:
    settled(engine)
    wait_for(lambda: engine.step_seconds == 0.0)
    steps = engine._pulse.steps
    with Held(engine):
        wait_for(lambda: engine.step_seconds > 0.05)
    wait_for(lambda: engine.step_seconds == 0.0)
    assert engine._pulse.steps > steps
