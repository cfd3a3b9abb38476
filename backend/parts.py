"""Loads what an engine is made of: model, tokenizer and an empty KV store."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from backend.engine_config import EngineConfig
from backend.errors import BackendError
from backend.loader import load_checkpoint
from backend.models import Decoder, build_decoder
from backend.ops.tuning import use_tables
from backend.paged.arena import Arena
from backend.paged.packed import PackedArena
from backend.tokenizer import Tokenizer
from kvstore.formats import page_format
from kvstore.formats.plain import PlainFormat
from kvstore.formats.types import PageFormat
from kvstore.pool import PagePool, page_bytes
from kvstore.store import KVStore
from kvstore.types import PAGE_TOKENS, KVShape


@dataclass(frozen=True, slots=True)
class EngineParts:
    """`fingerprint` names the checkpoint: KV made by one is of no use to another."""

    model: Decoder
    tokenizer: Tokenizer
    fingerprint: str
    store: KVStore
    arena: Arena | None = None


ARENA_SHARE = 10
"""A tenth of a GPU's KV budget is for the contexts of requests under way."""

ARENA_TOKENS = 65_536
"""Most tokens of all contexts together: sixteen of 4,096."""


def load_parts(config: EngineConfig) -> EngineParts:
    """Load the checkpoint in the configured precision and reserve the KV pool.

    Raises CheckpointError for a model that can't be used and BackendError for a device or budget
    that can't.
    """
    if config.threads:
        torch.set_num_threads(config.threads)
    precision = config.resolved_precision()
    device = torch.device(config.device)
    if precision == "int8" and device.type != "cpu":
        raise BackendError("int8 weights run on CPUs only; use bfloat16 on a GPU")
    if config.linear_format == "fp8" and (device.type == "cpu" or precision != "bfloat16"):
        raise BackendError("Linear layers in fp8 run on GPUs beside bfloat16 only")
    checkpoint = load_checkpoint(config.model)
    model = build_decoder(checkpoint, precision, device, config.linear_format, config.few_rows)
    return make_parts(config, model, checkpoint.tokenizer, checkpoint.fingerprint)


def make_parts(
    config: EngineConfig, model: Decoder, tokenizer: Tokenizer, fingerprint: str
) -> EngineParts:
    """The parts around a model that is loaded. Raises BackendError for a budget that is too small
    and for blocks that are not made of pages."""
    if config.block_tokens % PAGE_TOKENS:
        raise BackendError(f"block_tokens must be a multiple of {PAGE_TOKENS}")
    if config.tuning_folder is not None:
        use_tables(config.tuning_folder)
    shape = model.config.kv_shape
    budget = config.resolved_kv_budget()
    # A step with latents or experts can't be recorded: their contexts stand outside.
    paged = model.device.type == "cuda" and model.config.latent is None
    form = page_format(config.kv_format, model.compute_dtype)
    if config.packed_kernels and (not paged or form.plain):
        raise BackendError(
            "The packed kernels are for pages in fp8, int8 or int4 on a GPU, and for models "
            "without latents; unset FINEPRINT_KV_PACKED_KERNELS"
        )
    packed = form if config.packed_kernels else None
    arena = make_arena(model, shape, budget, packed) if paged else None
    left = budget if arena is None else budget - arena.bytes
    pages = left // page_bytes(shape, form)
    if pages < config.block_tokens // PAGE_TOKENS + 1:
        raise BackendError(
            f"A KV budget of {budget} bytes holds {pages} pages, less than one block "
            f"of {config.block_tokens} tokens; raise it"
        )
    store = KVStore(shape, pages, model.compute_dtype, model.device, form)
    return EngineParts(model, tokenizer, fingerprint, store, arena)


def make_arena(
    model: Decoder, shape: KVShape, budget: int, packed: PageFormat | None = None
) -> Arena:
    """The arena that a KV budget of so many bytes gives. With `packed` half of it is for evidence
    in that format."""
    dtype, device = model.compute_dtype, model.device
    longest = -(-model.config.max_positions // PAGE_TOKENS)
    share = budget // ARENA_SHARE

    def pool_of(form: PageFormat, share: int) -> PagePool:
        most = ARENA_TOKENS // PAGE_TOKENS
        return PagePool(
            shape, max(min(share // page_bytes(shape, form), most), 2), dtype, device, form
        )

    if packed is None:
        pool = pool_of(PlainFormat(dtype), share)
        return Arena(pool, context_pages=min(pool.total, 2 * longest))
    pool, evidence = pool_of(PlainFormat(dtype), share // 2), pool_of(packed, share // 2)
    return Arena(
        pool,
        context_pages=min(pool.total, 2 * longest),
        packed=PackedArena(evidence, context_pages=min(evidence.total, 2 * longest)),
    )
