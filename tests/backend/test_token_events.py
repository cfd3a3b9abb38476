"""What token events tell on request: log-probabilities; lengths that the caller fixes; counters."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import InvalidSampling
from backend.types import DocumentTokens, Request, SamplingParams, TokenEvent

PROMPT = tuple(range(40, 60))


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    engine = Engine.open(
        EngineConfig(model=tiny_llama, precision="float32", block_tokens=128, kv_budget=8 << 20)
    )
    yield engine
    engine.close()


def run(engine: Engine, sampling: SamplingParams) -> list[TokenEvent]:
    return list(engine.generate(Request("q", PROMPT, sampling)))


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_logprobs_are_those_of_scoring(engine: Engine, temperature: float) -> None:
    sampling = SamplingParams(
        max_tokens=12, temperature=temperature, seed=3, ignore_eos=True, logprobs=5
    )
    events = run(engine, sampling)
    tokens = tuple(event.token_id for event in events if event.token_id is not None)
    scored = engine.score(PROMPT, tokens)
    assert len(tokens) == 12
    for event, expected in zip(events, scored, strict=True):
        assert event.logprob == pytest.approx(expected, abs=1e-4)
        best = [logprob for _, logprob in event.best]
        assert len(best) == 5
        assert best == sorted(best, reverse=True)
        assert event.logprob is not None
        assert event.logprob <= best[0] + 1e-6
        if temperature == 0:
            assert event.best[0] == (event.token_id, pytest.approx(event.logprob))


def test_nothing_is_told_unasked_and_no_alternatives_at_zero(engine: Engine) -> None:
    plain = run(engine, SamplingParams(max_tokens=3, ignore_eos=True))
    assert {(event.logprob, event.best) for event in plain} == {(None, ())}
    chosen = run(engine, SamplingParams(max_tokens=3, ignore_eos=True, logprobs=0))
    assert [event.best for event in chosen] == [(), (), ()]
    assert all(event.logprob is not None and event.logprob < 0 for event in chosen)


def test_ignoring_the_end_goes_on_through_a_loop(engine: Engine) -> None:
    looping = run(engine, SamplingParams(max_tokens=400, repetition_penalty=0.2))
    assert looping[-1].finish_reason == "repetition", "the prompt of this test must loop"
    assert len(looping) < 400
    whole = run(engine, SamplingParams(max_tokens=400, repetition_penalty=0.2, ignore_eos=True))
    assert (len(whole), whole[-1].finish_reason) == (400, "length")


def test_the_model_cannot_end_before_min_tokens(engine: Engine) -> None:
    eager = SamplingParams(max_tokens=40, temperature=30.0)
    ends = [run(engine, dataclasses.replace(eager, seed=seed)) for seed in range(80)]
    early = [i for i, events in enumerate(ends) if events[-1].finish_reason == "stop"]
    assert early, "none of these seeds ends early, so the test shows nothing"
    for seed in early[:3]:
        held = run(engine, dataclasses.replace(eager, seed=seed, min_tokens=40))
        assert (len(held), held[-1].finish_reason) == (40, "length")
        assert not {event.token_id for event in held} & set(engine.config.eos_ids)


@pytest.mark.parametrize(
    "wrong", [{"min_tokens": 5}, {"min_tokens": -1}, {"logprobs": 21}, {"logprobs": -1}]
)
def test_ranges(engine: Engine, wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidSampling, match=next(iter(wrong))):
        run(engine, SamplingParams(max_tokens=4, **wrong))  # type: ignore[arg-type]


def test_counters_tell_reading_from_reuse(engine: Engine) -> None:
    before = engine.counters
    tokens = tuple(3 + i % 500 for i in range(300))
    document = DocumentTokens("d", tokens, engine.split_blocks(300), sinks=(10, 11))
    engine.read(document).wait(60)
    read = engine.counters
    assert read.read_tokens - before.read_tokens == 300
    assert read.pages_used - before.pages_used == 2 + 2 + 1
    assert read.pages_total == before.pages_total > read.pages_used
    same = dataclasses.replace(document, key="same")
    engine.read(same).wait(60)
    list(engine.generate(Request("q", PROMPT, SamplingParams(max_tokens=1), "same", ((0, 200),))))
    reused = engine.counters
    assert (reused.read_tokens, reused.misses) == (read.read_tokens, read.misses)
    assert reused.hits > read.hits
    assert reused.pages_used == read.pages_used
