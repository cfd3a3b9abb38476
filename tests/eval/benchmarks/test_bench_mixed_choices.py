"""What the command line chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import AppError
from eval.benchmarks.mixed.choices import (
    PRESETS,
    choose_cells,
    choose_shape,
    choose_target,
    span_of_lengths,
)


def test_presets_are_the_protocol_and_a_small_one() -> None:
    protocol = PRESETS["protocol"]
    assert (protocol.requests, protocol.concurrency, protocol.rounds) == (50, 32, 5)
    assert (protocol.lengths[0], protocol.lengths[-1]) == (4096, 524288)
    assert protocol.long_share == PRESETS["cpu"].long_share == 0.2
    shape = choose_shape("cpu", lengths="1K-4K", rounds=None, seed=9)
    assert (shape.lengths, shape.rounds, shape.seed) == ((1024, 2048, 4096), 3, 9)


def test_without_a_seed_no_two_runs_have_the_same_documents() -> None:
    assert choose_shape("cpu").seed != choose_shape("cpu").seed


def test_ranges_of_lengths() -> None:
    assert span_of_lengths("4K-20K") == (4096, 8192, 16384, 20480)
    assert span_of_lengths("4K-4K") == (4096,)
    assert span_of_lengths("2K,1K") == (1024, 2048)


@pytest.mark.parametrize(
    "options",
    [
        {"lengths": "8K-4K"},
        {"lengths": "4K-"},
        {"hit_share": 1.5},
        {"long_share": -0.1},
        {"rate": 0.0},
        {"preset": "fast"},
    ],
)
def test_senseless_shapes_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(AppError):
        choose_shape(str(options.pop("preset", "cpu")), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"api": "grpc"},
        {"url": None},
        {"serve": True},
        {"api": "openai", "model": None},
        {"timeout_s": 0.0},
        {"key_file": Path("/no/such/file")},
    ],
)
def test_senseless_targets_are_refused(options: dict[str, object]) -> None:
    good: dict[str, object] = {
        "api": "rest",
        "url": "http://127.0.0.1:8000",
        "serve": False,
        "model": "m",
        "timeout_s": 10.0,
        "key_file": None,
    }
    choose_target(**good)  # type: ignore[arg-type]
    with pytest.raises(AppError):
        choose_target(**{**good, **options})  # type: ignore[arg-type]


def test_cells_are_chosen_by_name() -> None:
    assert choose_cells("mixed, cold") == ("cold", "mixed")
    with pytest.raises(AppError):
        choose_cells("cold,hot")
