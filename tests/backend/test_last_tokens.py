"""Requests that are left when they are over anyway, and those behind one that is refused."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import RequestTooLarge
from backend.types import DocumentTokens, Request, SamplingParams, TokenEvent

_RANDOM = torch.Generator().manual_seed(11)
TOKENS: tuple[int, ...] = tuple(torch.randint(3, 500, (600,), generator=_RANDOM).tolist())
QUESTION = tuple(range(40, 60))
FOUR = SamplingParams(max_tokens=4, ignore_eos=True)
PAGE = 3 * 2 * 2 * 64 * 10 * 4
"""Bytes of a page of the tiny model."""


def open_engine(model: Path, pages: int) -> Engine:
    return Engine.open(
        EngineConfig(model=model, precision="float32", block_tokens=128, kv_budget=pages * PAGE)
    )


@pytest.fixture
def engine(tiny_llama: Path) -> Iterator[Engine]:
    engine = open_engine(tiny_llama, 64)
    engine.read(DocumentTokens("d", TOKENS, engine.split_blocks(len(TOKENS)))).wait(60)
    yield engine
    engine.close()


def pages_used(engine: Engine) -> int:
    end = time.monotonic() + 60
    while engine._live or engine._opener._held or not engine._scheduler.idle:
        assert time.monotonic() < end, "something is under way still"
        time.sleep(0.002)
    engine._mail.call(engine._store.check_integrity)
    return engine.counters.pages_used


@pytest.mark.parametrize("left_after", [1, 2, 3, 4])
@pytest.mark.parametrize("by_name", [False, True])
def test_a_request_left_at_a_token_leaves_nothing(
    engine: Engine, left_after: int, by_name: bool
) -> None:
    """The fourth token is the last: the engine may be done with the request already, or not."""
    asked = Request("r", QUESTION, FOUR, "d", ((0, 90), (300, 340)))
    whole = [event for event in engine.generate(asked) if isinstance(event, TokenEvent)]
    before = pages_used(engine)
    for number in range(15):
        stream = engine.generate(dataclasses.replace(asked, request_id=f"r{number}"))
        given = 0
        while given < left_after:
            event = next(stream)
            assert isinstance(event, TokenEvent)
            given += 1
        if by_name:
            engine.cancel(f"r{number}")
        stream.close()
        engine.cancel(f"r{number}")
        assert pages_used(engine) == before
    again = [event for event in engine.generate(asked) if isinstance(event, TokenEvent)]
    assert [event.token_id for event in again] == [event.token_id for event in whole]


def test_those_behind_one_that_never_fits_are_answered(tiny_llama: Path) -> None:
    engine = open_engine(tiny_llama, 4)
    try:
        with pytest.raises(RequestTooLarge, match="KV budget"):
            engine.read(DocumentTokens("big", TOKENS, engine.split_blocks(len(TOKENS))))
        engine.read(DocumentTokens("big", TOKENS, engine.split_blocks(len(TOKENS))), lazy=True)
        for number in range(3):
            parts = ((10, 20), (200, 210), (500, 510))
            with pytest.raises(RequestTooLarge, match="KV budget"):
                engine.generate(Request(f"a{number}", QUESTION, FOUR, "big", parts))
            behind = list(engine.generate(Request(f"b{number}", QUESTION, FOUR, "big", parts[:2])))
            assert behind[-1].finish_reason == "length"
            assert pages_used(engine) <= 4
    finally:
        engine.close()
