"""Tokens drawn by the step that scored them: the same as those that the host draws."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import torch

from backend.drawing import Draw
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.loader import load_checkpoint
from backend.models import Decoder
from backend.paged.arena import Arena
from backend.parts import EngineParts, load_parts
from backend.runner import Runner, Scored
from backend.sampler import Sampler
from backend.types import Request, SamplingParams
from kvstore.pool import PagePool
from kvstore.types import PageTable

IDS: list[int] = torch.randint(3, 500, (90,), generator=torch.Generator().manual_seed(4)).tolist()
SAMPLING = (
    SamplingParams(max_tokens=30, temperature=1.2, seed=3),
    SamplingParams(max_tokens=30, temperature=0.9, seed=4, top_p=0.8, top_k=40),
    SamplingParams(max_tokens=30),
    SamplingParams(max_tokens=30, temperature=1.0, seed=5, repetition_penalty=1.2),
    SamplingParams(max_tokens=30, temperature=1.5, seed=6, min_tokens=20),
    SamplingParams(max_tokens=30, temperature=1.5, seed=7, top_k=2_000, logprobs=2),
)


def arena_of(model: Decoder, pages: int = 40) -> Arena:
    pool = PagePool(model.config.kv_shape, pages, torch.float32)
    return Arena(pool, contexts=8, context_pages=pages)


@pytest.fixture(scope="module")
def decoder(tiny_llama: Path) -> Decoder:
    checkpoint = load_checkpoint(tiny_llama)
    return Decoder(checkpoint.config, checkpoint.tensors, "float32", torch.device("cpu"))


def make_runner(decoder: Decoder, *, device_draws: bool, pages: int = 40) -> Runner:
    pool = PagePool(decoder.config.kv_shape, 2, torch.float32)
    return Runner(decoder, pool, arena_of(decoder, pages), device_draws=device_draws)


def check(scored: Scored, sampler: Sampler, drawn: Draw | None) -> None:
    """`sampler` is in the state in which it said how to draw."""
    if drawn is None:
        assert scored.drawn is None
        return
    assert scored.drawn is not None
    token, logprob = sampler.next(scored.logits[-1], ())
    assert scored.drawn[0] == token
    assert scored.drawn[1] == pytest.approx(logprob, abs=1e-5)


@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 5, 1), (3, 3, 3), (20, 1, 17), (1,), (40,)])
@pytest.mark.parametrize("last_only", [False, True])
def test_a_step_draws_after_the_last_token(
    decoder: Decoder, counts: tuple[int, ...], last_only: bool
) -> None:
    runner = make_runner(decoder, device_draws=True)
    contexts = [runner.open_context((), [], PageTable(()), 200) for _ in counts]
    samplers = [Sampler(SAMPLING[place]) for place in (0, 2, 1)][: len(counts)]
    draws = [sampler.draw() for sampler in samplers]
    assert [draw is None for draw in draws] == [False, True, False][: len(counts)]
    ids = [IDS[place : place + count] for place, count in enumerate(counts)]
    found = runner.step(contexts, ids, last_only=last_only, draws=draws)
    for scored, sampler, draw in zip(found, samplers, draws, strict=True):
        check(scored, sampler, draw)


def test_without_the_switch_or_a_wish_nothing_is_drawn(decoder: Decoder) -> None:
    for switch in (False, True):
        runner = make_runner(decoder, device_draws=switch)
        context = runner.open_context((), [], PageTable(()), 200)
        draw = Sampler(SAMPLING[0]).draw()
        assert runner.step([context], [IDS[:1]])[0].drawn is None
        (scored,) = runner.step([context], [IDS[1:2]], draws=[draw])
        assert (scored.drawn is not None) == switch


def test_a_context_outside_of_the_arena_is_left_to_the_host(decoder: Decoder) -> None:
    runner = make_runner(decoder, device_draws=True, pages=3)
    contexts = [runner.open_context((), [], PageTable(()), room) for room in (1, 900)]
    draws = [Sampler(SAMPLING[0]).draw() for _ in contexts]
    found = runner.step(contexts, [IDS[:1], IDS[1:2]], draws=draws)
    assert [scored.drawn for scored in found] == [None, None]


def test_answers_are_the_same_whoever_draws(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    take = Sampler.take

    def counted(sampler: Sampler, token: tuple[int, float]) -> tuple[int, float]:
        drawn.append(token[0])
        return take(sampler, token)

    monkeypatch.setattr(Sampler, "take", counted)

    def load(config: EngineConfig) -> EngineParts:
        parts = load_parts(config)
        return dataclasses.replace(parts, arena=arena_of(parts.model))

    def answers(load: Callable[[EngineConfig], EngineParts], device_draws: bool) -> list[object]:
        config = EngineConfig(
            tiny_llama, precision="float32", block_tokens=128, kv_budget=8 << 20,
            device_draws=device_draws,
        )  # fmt: skip
        with closing(Engine.open(config, load)) as engine:
            streams = [
                engine.generate(Request(f"q{place}", tuple(IDS[place : place + 25]), sampling))
                for place, sampling in enumerate(SAMPLING)
            ]
            return [[(event.token_id, len(event.best)) for event in one] for one in streams]

    plain = answers(load_parts, False)
    assert len({str(one) for one in plain}) == len(SAMPLING)
    assert answers(load, False) == plain
    assert not drawn
    assert answers(load, True) == plain
    # Two sampled answers whole, and one from the token on that may end it.
    assert 40 < len(drawn) <= 70
