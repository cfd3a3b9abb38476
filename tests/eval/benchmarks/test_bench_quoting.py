"""`bench decode --guesses`, and the sizes of what runs on GPUs, on the tiny random model."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import BadParameter
from backend.engine_config import EngineConfig
from backend.errors import BackendError
from backend.loader import load_checkpoint
from backend.parts import load_parts
from eval.benchmarks.dense_decode import decode_steps
from eval.benchmarks.engine_settings import EngineChoice, opened
from eval.benchmarks.gpu_memory import memory_fields, planned_bytes
from eval.benchmarks.quoting import measure_quoting
from eval.benchmarks.random_model import random_parts, shape_config
from eval.errors import EvalError

PIECES = tuple(f"The price of item {n} is {n} dollars." for n in range(30))


def choice_of(model: Path) -> EngineChoice:
    return EngineChoice(str(model), "cpu", "float32", 64, 16)


def test_guessing_changes_no_answer(tiny_llama: Path) -> None:
    found = measure_quoting(choice_of(tiny_llama), [0, 5], PIECES, answers=3, seed=1)
    assert [entry["guessed_tokens"] for entry in found] == [0, 5]
    assert [entry["same_answers"] for entry in found] == [3, 3]
    assert found[0]["ratio"] == 1.0
    assert found[0]["tokens"] == found[1]["tokens"]
    assert all(0 <= entry["quoted_share"] <= 1 for entry in found)  # type: ignore[operator]


def test_engine_without_guesses_guesses_nothing(tiny_llama: Path) -> None:
    with opened(
        EngineChoice(str(tiny_llama), "cpu", "float32", 64, 16, guessed_tokens=0)
    ) as engine:
        assert engine.settings.guessed_tokens == 0
        assert memory_fields(engine) is None


def test_steps_outside_of_the_engine(tiny_llama: Path) -> None:
    config = EngineConfig(model=tiny_llama, precision="float32", block_tokens=64, kv_budget=4 << 20)
    parts = load_parts(config)
    found = decode_steps(parts, [64, 256], [1, 3], steps=2)
    assert [(entry["context"], entry["batch"]) for entry in found] == [
        (64, 1), (64, 3), (256, 1), (256, 3),
    ]  # fmt: skip
    assert all(entry["ms_per_token"] > 0 for entry in found)  # type: ignore[operator]
    # All pages but the scratch page of the steps are free again.
    assert parts.store.pool.free == parts.store.pool.total - 1
    with pytest.raises(EvalError, match="free"):
        decode_steps(parts, [1 << 20], [1])


def test_shapes_are_for_gpus(tiny_llama: Path) -> None:
    with pytest.raises(BadParameter, match="8b"):
        shape_config("9b")
    with pytest.raises(BackendError, match="GPUs"):
        random_parts("8b", EngineConfig(model=tiny_llama, precision="bfloat16"))


def test_planned_weights_are_those_of_the_model(tiny_llama: Path) -> None:
    checkpoint = load_checkpoint(tiny_llama)
    tensors = checkpoint.tensors
    matrices = sum(tensors[name].numel() for name in tensors if tensors[name].dim() == 2)
    if checkpoint.config.tie_embeddings and "lm_head.weight" in tensors:
        matrices -= tensors["lm_head.weight"].numel()
    settings = EngineConfig(model=tiny_llama, precision="bfloat16")
    assert planned_bytes(checkpoint.config, settings)["weights"] == 2 * matrices
