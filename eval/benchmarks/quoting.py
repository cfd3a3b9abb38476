"""Decoding answers that quote: tokens per second with and without guessing, one request at a time.

The model is asked to repeat a clause word for word, which a small one can do, so the answer stands
in the prompt as a quoted answer stands in its evidence. Guesses are checked by the model, so greedy
answers should stay the same; how many do is counted (a product over eight rows may round otherwise
than one over a single row).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from backend.engine import Engine
from backend.errors import BackendError
from backend.types import Request, SamplingParams
from eval.benchmarks.engine_settings import EngineChoice, opened

Fields = dict[str, object]
_SENTENCES = 5
_SPARE = 16
_RUN = 8
"""Tokens in a row that count as quoted."""


def measure_quoting(
    choice: EngineChoice,
    guesses: Sequence[int],
    pieces: Sequence[str],
    *,
    answers: int,
    seed: int,
    on_step: Callable[[str], None] = lambda _: None,
) -> list[Fields]:
    """One entry for each number of tokens guessed; what is guessed first is the base of `ratio` and
    `same_answers`. Raises what `opened` raises, and BackendError for a request that fails."""
    found: list[Fields] = []
    base: list[tuple[int, ...]] = []
    for guessed in guesses:
        on_step(f"{answers} quoting answers, {guessed} tokens guessed")
        with opened(replace(choice, guessed_tokens=guessed)) as engine:
            texts = _clauses(pieces, answers, seed)
            _answer(engine, texts[0])
            made = [_answer(engine, text) for text in texts]
        tokens = sum(len(ids) - 1 for ids, _, _ in made)
        speed = tokens / sum(seconds for _, seconds, _ in made)
        base = base or [ids for ids, _, _ in made]
        first = found[0]["tokens_per_s"] if found else speed
        found.append(
            {
                "guessed_tokens": guessed,
                "tokens_per_s": speed,
                "ratio": speed / first,  # type: ignore[operator]
                "same_answers": sum(
                    ids == other for (ids, _, _), other in zip(made, base, strict=True)
                ),
                "answers": answers,
                "tokens": tokens,
                "quoted_share": sum(share for _, _, share in made) / len(made),
            }
        )
    return found


def _clauses(pieces: Sequence[str], count: int, seed: int) -> list[str]:
    source = random.Random(seed)
    starts = [source.randrange(max(len(pieces) - _SENTENCES, 1)) for _ in range(count)]
    return [" ".join(pieces[at : at + _SENTENCES]) for at in starts]


def _answer(engine: Engine, clause: str) -> tuple[tuple[int, ...], float, float]:
    """Token ids, seconds from the first token to the last, and how much of it stands in the clause
    in runs of `_RUN` tokens."""
    tokenizer = engine.tokenizer
    wanted = f"Repeat this clause of the contract word for word:\n\n{clause}"
    prompt = tokenizer.encode(tokenizer.chat([{"role": "user", "content": wanted}]), special=True)
    told = tokenizer.encode(clause)
    sampling = SamplingParams(max_tokens=len(told) + _SPARE)
    events = list(engine.generate(Request("quoting", tuple(prompt), sampling)))
    last = events[-1]
    if last.error or last.timings is None:
        raise BackendError(f"A quoting answer failed: {last.error}")
    ids = tuple(event.token_id for event in events if event.token_id is not None)
    runs = {tuple(told[at : at + _RUN]) for at in range(len(told) - _RUN + 1)}
    mine = [ids[at : at + _RUN] for at in range(len(ids) - _RUN + 1)]
    share = sum(run in runs for run in mine) / len(mine) if mine else 0.0
    return ids, last.timings.decode_ms / 1e3, share
