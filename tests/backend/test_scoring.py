"""Scoring tells which tokens greedy decoding would have taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.scoring import Scores
from backend.types import Request, SamplingParams

PROMPT = tuple(range(40, 61))


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    # Prompt and continuation are cut in the middle of both.
    config = EngineConfig(tiny_llama, precision="float32", kv_budget=8 << 20, prefill_chunk=8)
    with closing(Engine.open(config)) as opened:
        yield opened


def test_what_greedy_decoding_said_is_greedy(engine: Engine) -> None:
    sampling = SamplingParams(max_tokens=20, ignore_eos=True)
    events = engine.generate(Request("q", PROMPT, sampling))
    said = tuple(event.token_id for event in events if event.token_id is not None)
    scores = engine.score(PROMPT, said)
    assert isinstance(scores, Scores)
    assert len(scores) == len(said) == 20
    assert scores.greedy == (True,) * 20


@pytest.mark.parametrize("place", [0, 2, 3, 10, 11, 19])
def test_another_token_is_not(engine: Engine, place: int) -> None:
    sampling = SamplingParams(max_tokens=20, ignore_eos=True)
    events = engine.generate(Request("q", PROMPT, sampling))
    said = [event.token_id for event in events if event.token_id is not None]
    right = engine.score(PROMPT, said)
    said[place] = said[place] % 500 + 1
    scores = engine.score(PROMPT, said)
    assert isinstance(scores, Scores)
    assert scores.greedy[: place + 1] == (True,) * place + (False,)
    assert scores[:place] == pytest.approx(right[:place], abs=1e-5)
    assert scores[place] < right[place]


def test_scores_are_numbers_first() -> None:
    scores = Scores([(-1.0, True), (-3.0, False)])
    assert scores.greedy == (True, False)
    assert sum(scores) / len(scores) == -2.0
    assert tuple(scores) == (-1.0, -3.0)
    assert Scores([]).greedy == ()
