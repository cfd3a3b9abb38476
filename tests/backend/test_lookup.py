"""Guessing from what was seen: right guesses, and the same answers with and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.lookup import GUESSED, PromptLookup
from backend.sequence import Sequence
from backend.types import Request, SamplingParams


def test_guess_follows_the_last_time() -> None:
    lookup = PromptLookup([1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3, 8, 1, 2])
    assert lookup.guess() == []
    lookup.add(3)
    assert lookup.guess() == [8, 1, 2]
    assert len(lookup.guess()) == GUESSED
    lookup.add(50)
    assert lookup.guess() == []


def test_short_or_new_text_gives_no_guess() -> None:
    assert PromptLookup([]).guess() == []
    assert PromptLookup([1, 2]).guess() == []
    assert PromptLookup(range(50)).guess() == []


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    engine = Engine.open(EngineConfig(tiny_llama, precision="float32", kv_budget=8 << 20))
    yield engine
    engine.close()


@pytest.mark.parametrize("prompt", [[40, 41, 42, 43] * 12, [7] * 30])
def test_guessing_changes_no_answer(
    engine: Engine, prompt: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = SamplingParams(max_tokens=45, ignore_eos=True)
    request = Request("g", tuple(prompt), sampling)
    rows: list[int] = []
    extend = engine._runner.extend

    def counting(contexts: list[object], ids: list[list[int]]) -> object:
        rows.append(len(ids[0]))
        return extend(contexts, ids)  # type: ignore[arg-type]

    monkeypatch.setattr(engine._runner, "extend", counting)
    guessed = [event.token_id for event in engine.generate(request)]
    steps = len(rows)
    assert max(rows[1:]) > 1, "nothing was guessed"
    rows.clear()
    monkeypatch.setattr(Sequence, "guess", lambda self: [])
    plain = [event.token_id for event in engine.generate(request)]
    assert guessed == plain
    assert steps <= len(rows)


def test_last_tokens_are_not_overrun(engine: Engine) -> None:
    for length in range(1, 9):
        request = Request("m", (5, 6, 7, 8) * 9, SamplingParams(max_tokens=length, ignore_eos=True))
        events = list(engine.generate(request))
        assert len(events) == length
        assert events[-1].finish_reason == "length"
