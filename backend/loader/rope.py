"""Reads the rotary-embedding settings of a Hugging Face config.json, old and new spelling."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend.config import RopeScaling
from backend.errors import CheckpointError

_REQUIRED = {
    "linear": ("factor",),
    "llama3": (
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
    ),
    "yarn": ("factor",),
}
_OPTIONAL = {
    "yarn": (
        "original_max_position_embeddings",
        "beta_fast",
        "beta_slow",
        "attention_factor",
        "mscale",
        "mscale_all_dim",
        "truncate",
    ),
}


def parse_rope(path: Path, raw: Mapping[str, Any]) -> tuple[float, RopeScaling | None]:
    """(rope_theta, rope_scaling) of a config; raises CheckpointError on an unknown type.

    transformers 5 writes both into `rope_parameters`, earlier versions `rope_theta` and
    `rope_scaling` (whose type was once called "type").
    """
    settings = {**(raw.get("rope_scaling") or {}), **(raw.get("rope_parameters") or {})}
    theta = float(settings.get("rope_theta", raw.get("rope_theta", 10000.0)))
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind == "default":
        return theta, None
    if kind not in _REQUIRED:
        remedy = f"Supported: default, {', '.join(_REQUIRED)}"
        raise CheckpointError(path, f"its RoPE scaling {kind!r} is not supported", remedy)
    scaling: dict[str, object] = {"rope_type": kind}
    for key in _REQUIRED[kind]:
        scaling[key] = settings[key]
    for key in _OPTIONAL.get(kind, ()):
        if settings.get(key) is not None:
            scaling[key] = settings[key]
    if kind == "yarn":
        scaling.setdefault("original_max_position_embeddings", raw["max_position_embeddings"])
    return theta, scaling
