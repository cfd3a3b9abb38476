"""Drawing where the logits are: token for token what the sampler on the host draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.drawing import FIRST_LOOK, Draw, Drawer
from backend.errors import BackendError
from backend.sampler import Sampler
from backend.types import SamplingParams

CPU = torch.device("cpu")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
PARAMS = [
    SamplingParams(temperature=1.0, seed=1),
    SamplingParams(temperature=0.3, seed=2),
    SamplingParams(temperature=1e-300, seed=3),
    SamplingParams(temperature=1.3, top_k=3, seed=4),
    SamplingParams(temperature=0.9, top_k=1, seed=5),
    SamplingParams(temperature=1.0, top_p=0.7, seed=6),
    SamplingParams(temperature=1.5, top_p=1e-9, seed=7),
    SamplingParams(temperature=0.8, top_k=50, top_p=0.9, seed=8),
    SamplingParams(temperature=1.0, top_k=900, seed=9),
]


def draw(logits: torch.Tensor, draws: Sequence[Draw | None]) -> list[tuple[int, float] | None]:
    drawer = Drawer(logits.device, 32)
    drawer.begin(logits, draws)
    if logits.is_cuda:
        torch.cuda.synchronize()
    return drawer.told()


def draws_of(samplers: Sequence[Sampler]) -> list[Draw]:
    found = [sampler.draw() for sampler in samplers]
    assert all(one is not None for one in found)
    return [one for one in found if one is not None]


@pytest.mark.parametrize("vocab", [7, 800, 5000])
@pytest.mark.parametrize("place", DEVICES)
def test_the_same_tokens_as_the_host(vocab: int, place: str) -> None:
    generator = torch.Generator().manual_seed(vocab)
    here, there = ([Sampler(one) for one in PARAMS] for _ in range(2))
    different = set()
    for _ in range(60):
        logits = torch.randn(len(PARAMS), vocab, generator=generator) * 3
        logits[:, 1] = -math.inf
        drawn = draw(logits.to(place), draws_of(there))
        for row, mine, theirs, one in zip(logits, here, there, drawn, strict=True):
            token, logprob = mine.next(row, ())
            assert one is not None
            assert theirs.take(one)[0] == token
            assert one[1] == pytest.approx(logprob, abs=1e-5)
            different.add(token)
    assert len(different) > min(vocab, 100) / 2
    assert 1 not in different


@given(
    st.lists(st.integers(-120, 120).map(lambda n: n / 4), min_size=2, max_size=40, unique=True),
    st.floats(0.05, 5), st.integers(0, 45), st.floats(0.01, 1), st.floats(0, 1, exclude_max=True),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_a_token_is_where_its_point_lies(
    scores: list[float], temperature: float, top_k: int, top_p: float, point: float
) -> None:
    """Against the definition."""
    logits = torch.tensor([scores])
    (found,) = draw(logits, [Draw(temperature, top_k, top_p, point)])
    assert found is not None
    scaled = [math.exp((score - max(scores)) / temperature) for score in scores]
    kept = list(range(len(scores)))
    if 0 < top_k < len(scores) or top_p < 1:
        kept.sort(key=lambda token: -scaled[token])
        kept = kept[: top_k or len(kept)]
        mass = sum(scaled[token] for token in kept) * top_p
        before = [sum(scaled[token] for token in kept[:at]) for at in range(len(kept))]
        kept = [t for t, seen in zip(kept, before, strict=True) if seen <= mass * (1 + 1e-9)]
    assert found[0] in kept
    # Which of the last ones is still inside is a matter of rounding, and what they weigh with it.
    sure = kept[:-1] or kept
    weights, at = [scaled[token] for token in kept], kept.index(found[0])
    assert sum(weights[:at]) <= point * sum(weights) * (1 + 1e-9)
    assert sum(weights[: at + 1]) >= point * sum(scaled[token] for token in sure) * (1 - 1e-8)


@pytest.mark.parametrize("place", DEVICES)
def test_a_row_knows_nothing_of_the_others(place: str) -> None:
    logits = torch.randn(9, 700, generator=torch.Generator().manual_seed(3)).to(place)
    draws = draws_of([Sampler(one) for one in PARAMS])
    together = draw(logits, draws)
    for row, one in enumerate(draws):
        assert draw(logits[row : row + 1], [one]) == together[row : row + 1]
    spoiled = logits.clone()
    spoiled[::2] = math.nan
    assert draw(spoiled, draws)[1::2] == together[1::2]
    order = list(reversed(range(len(draws))))
    assert draw(logits[order], [draws[at] for at in order]) == together[::-1]


def test_rows_in_which_nothing_is_drawn() -> None:
    logits = torch.zeros(3, 5)
    (one,) = draws_of([Sampler(PARAMS[0])])
    assert [found is None for found in draw(logits, [None, one, None])] == [True, False, True]


def test_what_takes_a_longer_look_is_left_to_the_host() -> None:
    # A flat vocabulary: 60% of the mass are 3,000 tokens.
    logits = torch.linspace(1e-3, 0, 5000)
    params = SamplingParams(temperature=1.0, top_p=0.6, seed=11)
    asked, alone = Sampler(params), Sampler(params)
    for _ in range(20):
        assert draw(logits[None], draws_of([asked])) == [None]
        # The point that was told is the point that is used.
        assert asked.next(logits, ()) == alone.next(logits, ())
    # With so many that top-k leaves, nothing more than those is looked at.
    cut = replace(params, top_k=FIRST_LOOK)
    assert draw(logits[None], draws_of([Sampler(cut)]))[0] is not None
    assert Sampler(replace(params, top_k=FIRST_LOOK + 1)).draw() is None


def test_what_a_device_does_not_draw() -> None:
    assert Sampler(SamplingParams()).draw() is None
    assert Sampler(SamplingParams(temperature=1.0, repetition_penalty=1.1)).draw() is None


def test_a_draw_that_is_asked_again_is_the_same() -> None:
    sampler = Sampler(PARAMS[0])
    first = sampler.draw()
    assert first is not None
    assert sampler.draw() == first
    sampler.take((3, -1.0))
    assert sampler.draw() != first
    seeded = torch.Generator().manual_seed(1)
    assert first.point == float(torch.rand((), generator=seeded, dtype=torch.float64))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_no_numbers_are_told(bad: float) -> None:
    sampler = Sampler(PARAMS[0])
    logits = torch.tensor([[0.0, bad, 1.0]])
    (found,) = draw(logits, draws_of([sampler]))
    assert found is not None
    with pytest.raises(BackendError, match="not numbers"):
        sampler.take(found)
