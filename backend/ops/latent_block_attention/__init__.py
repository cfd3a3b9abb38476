"""Latent attention that reads documents block by block, as `block_attention` does for grouped
heads: the same plans, one key-value head, and values that are the first channels of its keys.

Many blocks of many documents go through one launch. Keys come unrotated; each stands at the
position its block gives it, and its last channels alone are rotated.
"""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.block_attention.plan import ReadPlan
from backend.ops.block_attention.tiles import Tiles
from backend.ops.latent_block_attention import reference
from backend.ops.latent_block_attention.tiles import SAFE, choose_tiles

Implementation = Literal["reference", "triton"]

__all__ = [
    "SAFE",
    "Implementation",
    "Tiles",
    "choose_implementation",
    "choose_tiles",
    "latent_block_attention",
]


def latent_block_attention(
    q: torch.Tensor,
    kept: torch.Tensor,
    plan: ReadPlan,
    rank: int,
    scale: float,
    *,
    extra: torch.Tensor | None = None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    impl: Implementation,
    tiles: Tiles | None = None,
) -> torch.Tensor:
    """The latents that each query reads, [tokens, heads, rank] in the dtype of q.

    q: [tokens, heads, d]; kept: [tokens, d]; `extra`: rows that are no tokens of this launch,
    [extra_rows, d]; all before rotation, contiguous in the last dimension only. cos, sin: tables of
    `backend.layers.rope.Rope.tables(0, n)`, [n, d - rank], with n at least `plan.positions`.
    "triton" has run in Triton's interpreter only, on no GPU yet; `tiles` replaces its tuned or safe
    tile sizes. Raises ValueError for shapes that don't fit.
    """
    _check(q, kept, plan, rank, extra, cos, sin)
    if impl == "reference":
        return reference.latent_block_attention(q, kept, plan, rank, scale, extra, cos, sin)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.latent_block_attention import kernel

    tiles = tiles or choose_tiles(rank, q.dtype, q.device) or SAFE
    return kernel.latent_block_attention(q, kept, plan, rank, scale, extra, cos, sin, tiles)


def choose_implementation(rank: int, dtype: torch.dtype, device: torch.device) -> Implementation:
    """The kernel on cards that it was measured on (`fineprint bench kernels --tune`), elsewhere the
    reference."""
    return "reference" if choose_tiles(rank, dtype, device) is None else "triton"


def _check(
    q: torch.Tensor,
    kept: torch.Tensor,
    plan: ReadPlan,
    rank: int,
    extra: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> None:
    if q.dim() != 3 or kept.dim() != 2 or q.shape[::2] != kept.shape:
        raise ValueError(f"q {tuple(q.shape)} and latents {tuple(kept.shape)} don't fit")
    tokens, _, width = q.shape
    if tokens != plan.tokens:
        raise ValueError(f"the plan is for {plan.tokens} tokens, q has {tokens}")
    rows = 0 if extra is None else extra.shape[0]
    if rows != plan.extra_rows or (extra is not None and extra.shape != (rows, width)):
        raise ValueError(f"the plan is for {plan.extra_rows} extra rows of {width}, not {rows}")
    for tensor in (q, kept) if extra is None else (q, kept, extra):
        if tensor.dtype != q.dtype or tensor.device != q.device:
            raise ValueError("q, the latents and extra differ in dtype or device")
        if tensor.stride(-1) != 1:
            raise ValueError("q, the latents and extra must be contiguous in the last dimension")
    if plan.table.device != q.device:
        raise ValueError(f"the plan is on {plan.table.device}, q on {q.device}")
    rotated = width - rank
    if rank < 1 or rotated < 2 or rotated % 2:
        raise ValueError(f"values of {rank} of {width} channels leave {rotated} to be rotated")
    for name, table in (("cos", cos), ("sin", sin)):
        if table.dtype != torch.float32 or table.device != q.device or table.stride(-1) != 1:
            raise ValueError(f"{name} must be float32 rows beside q")
        if table.dim() != 2 or table.shape[0] < plan.positions or table.shape[1] != rotated:
            raise ValueError(
                f"{name} {tuple(table.shape)} doesn't fit {plan.positions} positions of {rotated}"
            )
