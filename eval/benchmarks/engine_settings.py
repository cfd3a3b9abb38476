"""Opens the engine that a benchmark measures, and describes it for the record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import torch

from app.services import open_engine
from app.settings import load_settings
from backend.engine import Engine


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """What the command line says about the engine; None leaves it to settings and defaults.
    `kv_budget_mb` in megabytes of 1,000,000 bytes."""

    model: str | None = None
    device: str | None = None
    precision: str | None = None
    block_tokens: int | None = None
    kv_budget_mb: int | None = None


@contextmanager
def opened(choice: EngineChoice) -> Iterator[Engine]:
    """The engine, closed after the block. Blocks are read independently, whatever the environment
    says. Raises BadSettings, ModelUnavailable, UnknownModel and CheckpointError."""
    settings = load_settings(
        model=choice.model,
        device=choice.device,
        precision=choice.precision,
        block_tokens=choice.block_tokens,
        kv_budget_mb=choice.kv_budget_mb,
        reading="independent",
    )
    with closing(open_engine(settings)) as engine:
        yield engine


def engine_fields(engine: Engine) -> dict[str, object]:
    """The engine's settings for the record."""
    return {
        "model": engine.settings.model.name,
        "checkpoint": engine.fingerprint,
        "device": engine.settings.device,
        "precision": engine.settings.resolved_precision(),
        "block_tokens": engine.block_tokens,
        "read_tokens": engine.settings.resolved_read_tokens(),
        "reading": engine.settings.reading,
        "kv_pages": engine.counters.pages_total,
        "kv_page_bytes": engine.kv_page_bytes,
        "threads": torch.get_num_threads(),
    }
