"""The sampler against a plain reference, by its distribution and by exact cases."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from scipy.stats import chisquare

from backend.errors import BackendError, InvalidSampling
from backend.sampler import Sampler, validate_sampling
from backend.types import SamplingParams

DRAWS = 8_000


def reference(
    logits: list[float], params: SamplingParams, history: tuple[int, ...] = ()
) -> list[float]:
    """The distribution, written from the definitions, token by token."""
    scores = list(logits)
    for token in set(history):
        score = scores[token]
        penalty = params.repetition_penalty
        scores[token] = score / penalty if score > 0 else score * penalty
    weights = [math.exp(score / params.temperature) for score in scores]
    order = sorted(range(len(weights)), key=lambda token: -weights[token])
    kept = order[: params.top_k] if params.top_k else order
    total = sum(weights[token] for token in kept)
    nucleus, mass = [], 0.0
    for token in kept:
        if mass >= params.top_p:
            break
        nucleus.append(token)
        mass += weights[token] / total
    inside = sum(weights[token] for token in nucleus)
    return [weights[t] / inside if t in nucleus else 0.0 for t in range(len(weights))]


def counts(sampler: Sampler, logits: torch.Tensor, history: tuple[int, ...] = ()) -> list[int]:
    result = [0] * len(logits)
    for _ in range(DRAWS):
        result[sampler.next(logits, history)[0]] += 1
    return result


@pytest.mark.parametrize(
    ("params", "history"),
    [
        (SamplingParams(temperature=1.0, seed=1), ()),
        (SamplingParams(temperature=0.5, seed=2), ()),
        (SamplingParams(temperature=1.3, top_k=3, seed=3), ()),
        (SamplingParams(temperature=1.0, top_p=0.7, seed=4), ()),
        (SamplingParams(temperature=0.8, top_k=5, top_p=0.8, seed=5), ()),
        (SamplingParams(temperature=1.0, repetition_penalty=1.8, seed=6), (0, 0, 3, 6)),
        (SamplingParams(temperature=2.0, top_p=0.9, repetition_penalty=1.2, seed=7), (1, 2)),
    ],
)
def test_distribution(params: SamplingParams, history: tuple[int, ...]) -> None:
    logits = [2.0, 1.1, 0.7, -0.4, 0.1, -1.5, 1.6, -3.0, 0.9]
    wanted = reference(logits, params, history)
    drawn = counts(Sampler(params), torch.tensor(logits), history)
    assert all(count == 0 for count, p in zip(drawn, wanted, strict=True) if p == 0)
    pairs = [(count, p * DRAWS) for count, p in zip(drawn, wanted, strict=True) if p > 0]
    assert chisquare([c for c, _ in pairs], [e for _, e in pairs]).pvalue > 1e-3


def test_top_p_beyond_the_first_look() -> None:
    # A flat vocabulary of 5,000: 60% of the mass is 3,000 tokens, more than the first 1,024.
    logits = torch.linspace(1e-3, 0, 5000)
    sampler = Sampler(SamplingParams(temperature=1.0, top_p=0.6, seed=11))
    drawn = [sampler.next(logits, ())[0] for _ in range(2000)]
    assert 2900 < max(drawn) < 3000


def test_greedy_is_the_best_token_and_its_log_probability() -> None:
    logits = torch.tensor([0.5, 3.0, -1.0])
    token, logprob = Sampler(SamplingParams()).next(logits, ())
    assert token == 1
    assert logprob == pytest.approx(torch.log_softmax(logits, 0)[1].item(), abs=1e-6)


def test_log_probability_is_the_models_whatever_the_cuts() -> None:
    logits = torch.tensor([0.5, 3.0, -1.0])
    params = SamplingParams(temperature=0.3, top_k=1, repetition_penalty=2.0, seed=0)
    token, logprob = Sampler(params).next(logits, (0,))
    assert token == 1
    assert logprob == pytest.approx(torch.log_softmax(logits, 0)[1].item(), abs=1e-6)


def test_penalty_changes_the_greedy_choice_and_not_the_logits() -> None:
    logits = torch.tensor([2.0, 1.9, -1.0])
    sampler = Sampler(SamplingParams(repetition_penalty=1.2))
    assert sampler.next(logits, (0,))[0] == 1
    assert logits.tolist() == pytest.approx([2.0, 1.9, -1.0])


def test_same_seed_same_tokens_beside_others() -> None:
    generator = torch.Generator().manual_seed(5)
    rows = [torch.randn(50, generator=generator) for _ in range(40)]
    params = SamplingParams(temperature=1.0, top_p=0.95, seed=99)
    alone = Sampler(params)
    tokens = [alone.next(row, ())[0] for row in rows]
    other, again = Sampler(replace(params, seed=1)), Sampler(params)
    mixed = []
    for row in rows:
        other.next(row, ())
        torch.rand(3)
        mixed.append(again.next(row, ())[0])
    assert mixed == tokens
    different = Sampler(replace(params, seed=100))
    assert [different.next(row, ())[0] for row in rows] != tokens


def test_tiny_temperature_is_greedy() -> None:
    logits = torch.tensor([30.0, 29.0, -30.0])
    sampler = Sampler(SamplingParams(temperature=1e-300, seed=0))
    assert {sampler.next(logits, ())[0] for _ in range(20)} == {0}


def test_half_precision_logits() -> None:
    logits = torch.tensor([1.0, 4.0, 2.0], dtype=torch.bfloat16)
    assert Sampler(SamplingParams()).next(logits, (1,))[0] == 1


def test_banned_tokens_are_never_drawn() -> None:
    logits = torch.tensor([0.0, -math.inf, 0.0])
    sampler = Sampler(SamplingParams(temperature=1.0, seed=3))
    assert {sampler.next(logits, (1,))[0] for _ in range(200)} == {0, 2}


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_no_numbers_are_refused(bad: float) -> None:
    with pytest.raises(BackendError, match="not numbers"):
        Sampler(SamplingParams()).next(torch.tensor([0.0, bad]), ())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_tokens", 0),
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("top_p", math.nan),
        ("top_k", -1),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", math.nan),
        ("seed", 2**63),
        ("stop", ("",)),
    ],
)
def test_out_of_range_parameters_are_named(field: str, value: Any) -> None:
    with pytest.raises(InvalidSampling, match=field):
        validate_sampling(replace(SamplingParams(), **{field: value}))
    with pytest.raises(InvalidSampling, match=field):
        Sampler(replace(SamplingParams(), **{field: value}))


def test_defaults_and_limits_are_valid() -> None:
    validate_sampling(SamplingParams())
    validate_sampling(SamplingParams(max_tokens=1, top_p=1e-9, top_k=10**6, seed=-(2**63)))
