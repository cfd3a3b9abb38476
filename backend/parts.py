"""Loads what an engine is made of: model, tokenizer and an empty KV store."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from backend.engine_config import EngineConfig
from backend.errors import BackendError
from backend.loader import load_checkpoint
from backend.models import Decoder, build_decoder
from backend.tokenizer import Tokenizer
from kvstore.formats import page_format
from kvstore.pool import page_bytes
from kvstore.store import KVStore
from kvstore.types import PAGE_TOKENS, KVShape


@dataclass(frozen=True, slots=True)
class EngineParts:
    """`fingerprint` names the checkpoint: KV made by one is of no use to another."""

    model: Decoder
    tokenizer: Tokenizer
    fingerprint: str
    store: KVStore


def load_parts(config: EngineConfig) -> EngineParts:
    """Load the checkpoint in the configured precision and reserve the KV pool.

    Raises CheckpointError for a model that can't be used and BackendError for a device or budget
    that can't.
    """
    if config.threads:
        torch.set_num_threads(config.threads)
    if config.block_tokens % PAGE_TOKENS:
        raise BackendError(f"block_tokens must be a multiple of {PAGE_TOKENS}")
    precision = config.resolved_precision()
    device = torch.device(config.device)
    if precision == "int8" and device.type != "cpu":
        raise BackendError("int8 weights run on CPUs only; use bfloat16 on a GPU")
    checkpoint = load_checkpoint(config.model)
    model = build_decoder(checkpoint, precision, device)
    shape = KVShape(model.config.layers, model.config.kv_heads, model.config.head_dim)
    budget = config.resolved_kv_budget()
    form = page_format(config.kv_format, model.compute_dtype)
    pages = budget // page_bytes(shape, form)
    if pages < config.block_tokens // PAGE_TOKENS + 1:
        raise BackendError(
            f"A KV budget of {budget} bytes holds {pages} pages, less than one block "
            f"of {config.block_tokens} tokens; raise it"
        )
    store = KVStore(shape, pages, model.compute_dtype, device, form)
    return EngineParts(model, checkpoint.tokenizer, checkpoint.fingerprint, store)
