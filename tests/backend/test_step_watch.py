"""Who is cancelled in the middle of a step is gone before the next layer; nobody else notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from backend.batch import Batch, Decode, Prefill, ReadBlocks
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.stream import TokenStream
from backend.types import DocumentTokens, Request, SamplingParams, TokenEvent

LAYERS = 3
EIGHT = SamplingParams(max_tokens=8, ignore_eos=True)
_RANDOM = torch.Generator().manual_seed(7)
TOKENS: tuple[int, ...] = tuple(torch.randint(3, 500, (700,), generator=_RANDOM).tolist())
PROMPT = tuple(range(40, 100))


@pytest.fixture
def engine(tiny_llama: Path) -> Iterator[Engine]:
    engine = Engine.open(
        EngineConfig(tiny_llama, precision="float32", block_tokens=128, kv_budget=8 << 20)
    )
    yield engine
    engine.close()


class Between:
    """Does something once, before the second layer of the first step that is meant; counts the
    layers of that step that were begun."""

    def __init__(self, engine: Engine, meant: Callable[[Batch], bool], act: Callable[[], None]):
        self._engine = engine
        self._meant = meant
        self._act = act
        self._look = engine._watch.look
        self._batch: Batch | None = None
        self.layers = 0
        engine._runner.look = self

    def __call__(self) -> None:
        batch = self._engine._watch._batch
        if batch is not None and self._batch is None and self._meant(batch):
            self._batch = batch
        if batch is None or batch is not self._batch:
            self._look()
            return
        if self.layers == 1:
            self._act()
        self._look()
        self.layers += 1


def settled(engine: Engine) -> int:
    """Pages in use; raises if the books don't agree."""

    def look() -> int:
        engine._store.check_integrity()
        return engine.counters.pages_used

    return engine._mail.call(look)


def tokens_of(engine: Engine, request: Request) -> list[int | None]:
    return [event.token_id for event in engine.generate(request)]


def ends(engine: Engine, request: Request) -> str | None:
    return list(engine.generate(request))[-1].finish_reason


def make_document(engine: Engine) -> DocumentTokens:
    return DocumentTokens("d", TOKENS, engine.split_blocks(len(TOKENS)))


@pytest.mark.parametrize("kind", [Prefill, Decode])
def test_a_step_of_a_cancelled_request_is_left(engine: Engine, kind: type) -> None:
    asked = Request("q", PROMPT, EIGHT)
    alone = tokens_of(engine, asked)
    before = settled(engine)
    between = Between(engine, lambda batch: isinstance(batch, kind), lambda: engine.cancel("q"))
    assert ends(engine, asked) == "cancelled"
    assert between.layers == 1 < LAYERS
    assert settled(engine) == before
    assert tokens_of(engine, asked) == alone


def test_blocks_that_are_read_for_a_cancelled_request_are_left(engine: Engine) -> None:
    document = make_document(engine)
    engine.read(document, lazy=True)
    between = Between(
        engine, lambda batch: isinstance(batch, ReadBlocks), lambda: engine.cancel("q")
    )
    asked = Request("q", PROMPT, EIGHT, "d", ((10, 600),))
    assert ends(engine, asked) == "cancelled"
    assert between.layers == 1
    assert settled(engine) == 0
    assert not engine._store._holds


def test_a_block_of_a_cancelled_document_is_left(engine: Engine) -> None:
    document = make_document(engine)
    before: list[int] = []

    def cancel() -> None:
        before.append(engine._steps.read_tokens)
        engine._documents["d"].cancelled = True

    def second(batch: Batch) -> bool:
        return isinstance(batch, ReadBlocks) and batch.indexes == (1,)

    between = Between(engine, second, cancel)
    assert engine.read(document).wait(60).status == "cancelled"
    assert between.layers == 1
    assert settled(engine) == 2
    assert before == [engine._steps.read_tokens] == [128]
    again = engine.read(document).wait(60)
    assert (again.status, again.computed_tokens) == ("done", len(TOKENS) - 128)


def test_a_block_of_a_document_that_is_deleted_is_left(engine: Engine) -> None:
    between = Between(
        engine, lambda batch: isinstance(batch, ReadBlocks), lambda: engine.forget("d")
    )
    ticket = engine.read(make_document(engine))
    assert ticket.wait(60).status == "cancelled"
    assert settled(engine) == 0
    assert between.layers == 1
    assert engine.progress("d") is None and engine._scheduler.idle
    assert engine.read(make_document(engine)).wait(60).computed_tokens == len(TOKENS)


def test_a_step_that_is_left_is_no_finished_one(engine: Engine) -> None:
    engine.read(make_document(engine), lazy=True)
    between = Between(
        engine, lambda batch: isinstance(batch, ReadBlocks), lambda: engine.cancel("q")
    )
    assert ends(engine, Request("q", PROMPT, EIGHT, "d", ((10, 600),))) == "cancelled"
    assert settled(engine) == 0
    assert between.layers == 1
    steps = engine.steps_of("q")
    assert steps is not None
    assert ([name for name, _ in steps.marks], steps.ranges) == (["read_begun"], ())
    assert sum(engine.step_times.steps["read"].counts) == 0


def together(engine: Engine, requests: list[Request]) -> list[list[TokenEvent]]:
    """The events of requests that come at once."""
    streams: list[TokenStream] = []
    engine._mail.call(lambda: streams.extend(map(engine.generate, requests)))
    return [list(stream) for stream in streams]


def test_others_are_gone_before_the_step_is_over(engine: Engine) -> None:
    asked = Request("stays", PROMPT, EIGHT)
    alone = tokens_of(engine, asked)
    gone: list[bool] = []

    def cancel() -> None:
        sequence = engine._live["leaves"]
        engine.cancel("leaves")
        engine._watch.look()
        gone.append(sequence.finished)

    between = Between(engine, lambda batch: isinstance(batch, Prefill), cancel)
    stays, leaves = together(engine, [asked, Request("leaves", PROMPT[::-1], EIGHT)])
    assert gone == [True]
    assert [event.finish_reason for event in leaves] == ["cancelled"]
    assert between.layers == LAYERS
    assert [event.token_id for event in stays] == alone


def test_one_of_many_that_decode_ends_with_the_step(engine: Engine) -> None:
    many = SamplingParams(max_tokens=200, ignore_eos=True)
    asked = [Request(f"q{number}", PROMPT[number:], many) for number in range(3)]
    alone = [tokens_of(engine, one) for one in asked]

    def all_decode(batch: Batch) -> bool:
        return isinstance(batch, Decode) and len(batch.sequences) == 3

    between = Between(engine, all_decode, lambda: engine.cancel("q1"))
    first, second, third = together(engine, asked)
    assert between.layers == LAYERS
    assert second[-1].finish_reason == "cancelled"
    assert [[event.token_id for event in one] for one in (first, third)] == [alone[0], alone[2]]


def test_nothing_is_looked_at_outside_of_steps(engine: Engine) -> None:
    engine._watch.look()
    logprobs = engine.score(PROMPT, (5, 6, 7))
    assert len(logprobs) == 3
