"""Opens the engine that a benchmark measures, and describes it for the record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import torch

from app.services import engine_config
from app.settings import load_settings
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.parts import EngineParts, load_parts
from eval.benchmarks.gpu_memory import start
from eval.benchmarks.random_model import random_parts


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """What the command line says about the engine; None leaves it to settings and defaults.
    `kv_budget_mb` in megabytes of 1,000,000 bytes. `shape`: random weights of this shape instead of
    the model's, whose tokenizer is used. `guessed_tokens` as in EngineConfig."""

    model: str | None = None
    device: str | None = None
    precision: str | None = None
    block_tokens: int | None = None
    kv_budget_mb: int | None = None
    shape: str | None = None
    linear_format: str | None = None
    kv_format: str | None = None
    guessed_tokens: int | None = None


def chosen_config(choice: EngineChoice) -> EngineConfig:
    """Blocks are read independently, whatever the environment says. Raises BadSettings,
    ModelUnavailable and UnknownModel."""
    settings = load_settings(
        model=choice.model,
        device=choice.device,
        precision=choice.precision,
        block_tokens=choice.block_tokens,
        kv_budget_mb=choice.kv_budget_mb,
        reading="independent",
        linear_format=choice.linear_format,
        kv_format=choice.kv_format,
    )
    return replace(engine_config(settings), guessed_tokens=choice.guessed_tokens)


def chosen_parts(choice: EngineChoice, config: EngineConfig) -> EngineParts:
    """Model, tokenizer and store. Raises BadParameter, CheckpointError and BackendError."""
    return load_parts(config) if choice.shape is None else random_parts(choice.shape, config)


@contextmanager
def opened(choice: EngineChoice) -> Iterator[Engine]:
    """The engine, closed after the block. Raises what `chosen_config` and `chosen_parts` raise."""
    config = chosen_config(choice)
    start(config.device)
    with closing(Engine.open(config, partial(chosen_parts, choice))) as engine:
        yield engine


def engine_fields(engine: Engine) -> dict[str, object]:
    """The engine's settings for the record."""
    return {
        "model": engine.settings.model.name,
        "checkpoint": engine.fingerprint,
        "device": engine.settings.device,
        "precision": engine.settings.resolved_precision(),
        "linear_format": engine.settings.linear_format,
        "few_rows": engine.settings.few_rows,
        "device_draws": engine.settings.device_draws,
        "kv_format": engine.settings.kv_format,
        "packed_kernels": engine.settings.packed_kernels,
        "block_tokens": engine.block_tokens,
        "read_tokens": engine.settings.resolved_read_tokens(),
        "reading": engine.settings.reading,
        "kv_pages": engine.counters.pages_total,
        "kv_page_bytes": engine.kv_page_bytes,
        "threads": torch.get_num_threads(),
    }
