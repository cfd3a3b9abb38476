"""Gives the KV store the memory tier that an engine's settings ask for. Knows no blocks."""

from __future__ import annotations

from backend.engine_config import EngineConfig
from backend.errors import BackendError
from kvstore.formats import page_format
from kvstore.store import KVStore
from kvstore.tiers.memory import MemoryTier


def attach_memory(config: EngineConfig, store: KVStore) -> None:
    """Nothing without a budget. Raises BackendError for one that is too small or can't be had, and
    for ageing that would not make pages smaller or would be read into other blocks."""
    budget = config.resolved_host_budget()
    if not budget:
        if config.aged_format is not None:
            raise BackendError(
                "Pages can't age without memory for them: raise FINEPRINT_KV_HOST_MB or leave out "
                "FINEPRINT_KV_AGED_FORMAT"
            )
        return
    form = None
    if config.aged_format is not None:
        if config.reading == "chained":
            raise BackendError(
                "Pages can't age where blocks are read chained: blocks that are read later would "
                "see rounded anchors and be kept as if they had not. Leave out "
                "FINEPRINT_KV_AGED_FORMAT, or read independently (FINEPRINT_READING=independent)"
            )
        form = page_format(config.aged_format, store.pool.dtype)
    try:
        store.attach_memory(MemoryTier(store.pool, budget, form))
    except ValueError as error:
        raise BackendError(
            f"KV pages can't be kept in host memory: {error}. Change FINEPRINT_KV_HOST_MB or "
            "FINEPRINT_KV_AGED_FORMAT"
        ) from error
    except RuntimeError as error:
        raise BackendError(
            f"There are no {budget} bytes of host memory for KV pages: {error}. Lower "
            "FINEPRINT_KV_HOST_MB (0 keeps none)"
        ) from error
