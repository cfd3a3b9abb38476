"""The sizes of a checkpoint's layers."""

from __future__ import annotations

from app.models import resolve
from app.settings import Settings
from backend.loader import load_checkpoint
from eval.benchmarks.kernels.case import ModelShape


def shape_of(settings: Settings) -> ModelShape:
    """Of the model that the settings name. Raises ModelUnavailable, UnknownModel and
    CheckpointError."""
    path = resolve(settings)
    config = load_checkpoint(path).config
    return ModelShape(
        name=path.stem,
        kv_heads=config.kv_heads,
        group=config.heads // config.kv_heads,
        head_dim=config.head_dim,
        hidden=config.hidden_size,
        intermediate=config.intermediate_size,
        vocab=config.vocab_size,
    )
