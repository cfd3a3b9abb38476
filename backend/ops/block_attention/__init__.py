"""Attention that reads documents block by block: inside a block full and causal, before it the
sinks and anchors of a prefix list and, if asked for, the tokens just before the block.

Many blocks of many documents go through one launch. Keys come unrotated; each stands at the
position its block gives it (see `BlockRead`).
"""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.block_attention import reference
from backend.ops.block_attention.plan import BlockRead, ReadPlan, plan_reads
from backend.ops.block_attention.tiles import (
    HopperTiles,
    Tiles,
    choose_hopper_tiles,
    choose_tiles,
)

Implementation = Literal["reference", "triton", "hopper"]

__all__ = [
    "BlockRead",
    "HopperTiles",
    "Implementation",
    "ReadPlan",
    "Tiles",
    "block_attention",
    "choose_implementation",
    "plan_reads",
]

_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_WIDEST = 256


def block_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    plan: ReadPlan,
    *,
    extra: tuple[torch.Tensor, torch.Tensor] | None = None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    impl: Implementation,
    tiles: Tiles | HopperTiles | None = None,
    fp8: bool = False,
) -> torch.Tensor:
    """What each query reads, [tokens, heads, d] in the dtype of q.

    q: [tokens, heads, d]; k, v: [tokens, kv_heads, d]; `extra`: keys and values that are no tokens
    of this launch, [extra_rows, kv_heads, d]; all before rotation, contiguous in the last dimension
    only. Query head h reads key-value head h // (heads / kv_heads). cos, sin: tables of
    `backend.layers.rope.Rope.tables(0, n)` with n at least `plan.positions`. Memory beyond the
    output: the launch's keys and values once more (not with "reference"). "hopper" needs compute
    capability 9.0, 16-bit elements and d of 64 or 128. `tiles` replaces the tuned tile sizes, with
    `HopperTiles` for "hopper" and `Tiles` for "triton". Raises ValueError for shapes that don't
    fit.

    With `fp8` queries, keys (after rotation) and values are rounded to e4m3, each row of a head
    with a power of two as its scale, so that no row is rounded otherwise because of another; not
    with "hopper". Where the GPU multiplies e4m3, a weight of the softmax is rounded to it too, and
    the sums of one tile are those of its tensor cores, which have fewer bits than float32 on
    Hopper; from tile to tile they are float32. Nothing uses it: its speed is not measured.
    """
    _check(q, k, v, plan, extra, cos, sin)
    if impl == "reference":
        return reference.block_attention(q, k, v, plan, extra, cos, sin, fp8)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    if impl == "hopper":
        if isinstance(tiles, Tiles):
            raise ValueError("the Hopper kernel takes HopperTiles")
        if fp8:
            raise ValueError("the Hopper kernel has no e4m3: take the Triton kernel")
        from backend.ops.block_attention import hopper

        return hopper.block_attention(q, k, v, plan, extra, cos, sin, tiles)
    if isinstance(tiles, HopperTiles):
        raise ValueError("the Triton kernel takes Tiles")
    from backend.ops.block_attention import kernel

    if tiles is None:
        kind = torch.float8_e4m3fn if fp8 else q.dtype
        tiles = choose_tiles(1 << (q.shape[2] - 1).bit_length(), kind, q.device)
    return kernel.block_attention(q, k, v, plan, extra, cos, sin, tiles, fp8)


def choose_implementation(width: int, dtype: torch.dtype, device: torch.device) -> Implementation:
    """The fastest implementation for heads of `width` on `device`."""
    if device.type != "cuda":
        return "reference"
    return "triton" if choose_hopper_tiles(width, dtype, device) is None else "hopper"


def _check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    plan: ReadPlan,
    extra: tuple[torch.Tensor, torch.Tensor] | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> None:
    if q.dim() != 3 or k.dim() != 3 or k.shape != v.shape or q.shape[::2] != k.shape[::2]:
        raise ValueError(f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)} don't fit")
    tokens, heads, width = q.shape
    if heads % k.shape[1] or width % 2 or width > _WIDEST:
        raise ValueError(f"{heads} heads of {width} don't fit {k.shape[1]} key-value heads")
    if tokens != plan.tokens:
        raise ValueError(f"the plan is for {plan.tokens} tokens, q has {tokens}")
    rows = 0 if extra is None else extra[0].shape[0]
    if rows != plan.extra_rows:
        raise ValueError(f"the plan is for {plan.extra_rows} extra rows, not {rows}")
    tensors = [q, k, v] if extra is None else [q, k, v, *extra]
    if extra is not None and not extra[0].shape == extra[1].shape == (rows, *k.shape[1:]):
        raise ValueError(f"extra {tuple(extra[0].shape)}, {tuple(extra[1].shape)} don't fit k")
    for tensor in tensors:
        if tensor.dtype != q.dtype or tensor.device != q.device:
            raise ValueError("q, k, v and extra differ in dtype or device")
        if tensor.stride(-1) != 1:
            raise ValueError("q, k, v and extra must be contiguous in the last dimension")
    if q.dtype not in _DTYPES and q.dtype != torch.float64:
        raise ValueError(f"{q.dtype} is no dtype of attention")
    if plan.table.device != q.device:
        raise ValueError(f"the plan is on {plan.table.device}, q on {q.device}")
    for name, table in (("cos", cos), ("sin", sin)):
        if table.dtype != torch.float32 or table.device != q.device or table.stride(-1) != 1:
            raise ValueError(f"{name} must be float32 rows beside q")
        if table.dim() != 2 or table.shape[0] < plan.positions or table.shape[1] != width:
            raise ValueError(
                f"{name} {tuple(table.shape)} doesn't fit {plan.positions} positions of {width}"
            )
