"""Memory on a GPU: what a run took at most, beside what its sizes say."""

from __future__ import annotations

import torch

from backend.config import ModelConfig
from backend.engine import Engine
from backend.engine_config import EngineConfig


def start(device: str) -> None:
    """Peaks are counted from here."""
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(torch.device(device))


def memory_fields(engine: Engine) -> dict[str, object] | None:
    """`peak_bytes` that torch had in use, and the plan; None without a GPU."""
    if not engine.settings.device.startswith("cuda"):
        return None
    plan = planned_bytes(engine.config, engine.settings)
    plan["kv_pages"] = engine.counters.pages_total * engine.kv_page_bytes
    plan["contexts"] = engine.context_bytes
    peak = torch.cuda.max_memory_allocated(torch.device(engine.settings.device))
    total = sum(plan.values())
    return {
        "peak_bytes": peak,
        "planned_bytes": total,
        "peak_to_plan": peak / total,
        "plan": plan,
    }


def planned_bytes(config: ModelConfig, settings: EngineConfig) -> dict[str, int]:
    """`weights`, and what one pass of reading keeps beside them at its widest (`pass`): the stream,
    its norm, gate and up, and their product."""
    hidden, wide = config.hidden_size, config.intermediate_size
    attention = (2 * config.heads + 2 * config.kv_heads) * config.head_dim * hidden
    per_layer = attention + 3 * hidden * wide
    each = 1 if settings.linear_format == "fp8" else 2
    heads = 1 if config.tie_embeddings else 2
    rows = settings.resolved_read_tokens()
    return {
        "weights": config.layers * per_layer * each + heads * 2 * config.vocab_size * hidden,
        "pass": rows * 2 * (2 * hidden + 3 * wide),
    }
