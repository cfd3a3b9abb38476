"""Block reading attention for Hopper (compute capability 9.0), written in Gluon.

One warp fetches tiles of keys and values with the bulk copy engine; two or three warpgroups of 64
query rows each consume them. A warpgroup starts the scores of the next tile and the product with
the values of the last one together; the warpgroups drift apart, so that one multiplies while
another exponentiates. Programs stay on their multiprocessor and take tile after tile. Rows of a
tile are (token, query head) pairs as in `kernel`. Source of the design: Shah et al.,
FlashAttention-3 (arXiv 2407.08608).

Tried on an H200 and left out, TFLOP/s at head sizes 128 and 64 beside what it was compared with:
softmax of a warpgroup beside its own product with the values (571 and 390, against 577 and 447),
turns that order the warpgroups' products (576 and 440, against 583 and 443), queries fetched ahead
into the cache (580 and 440). One barrier for both tiles instead of two gave 457 at 64; sums kept by
thread until the end 464.
"""

from __future__ import annotations

import math

import torch
import triton
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from backend.ops.block_attention.hopper_kernel import attention_kernel
from backend.ops.block_attention.pack import pack
from backend.ops.block_attention.plan import ReadPlan
from backend.ops.block_attention.tiles import HOPPER_WIDTHS, HopperTiles, choose_hopper_tiles

_GROUP_ROWS = 64
"""Query rows of a warpgroup: what one wgmma instruction takes."""


_GLUON = {torch.float16: gl.float16, torch.bfloat16: gl.bfloat16}


def block_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    plan: ReadPlan,
    extra: tuple[torch.Tensor, torch.Tensor] | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    tiles: HopperTiles | None = None,
) -> torch.Tensor:
    """See the package. Raises ValueError for what this kernel is not made for."""
    heads, width = q.shape[1:]
    if width not in HOPPER_WIDTHS or q.dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"hopper takes heads of {HOPPER_WIDTHS} in 16 bit, not {width} {q.dtype}")
    if q.device.type != "cuda" or torch.cuda.get_device_capability(q.device)[0] != 9:
        raise ValueError("hopper needs a GPU of compute capability 9.0; use triton")
    tiles = tiles or choose_hopper_tiles(width, q.dtype, q.device)
    if tiles is None:
        raise ValueError("no tuning table has tiles of hopper for this GPU; use triton")
    keys, values = pack(k, v, plan, extra, cos, sin)
    kv_heads, rows, _ = keys.shape
    group = heads // kv_heads
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    per_block = triton.cdiv(plan.longest * group, _GROUP_ROWS * tiles.consumers)
    work = per_block * kv_heads * len(plan.blocks)
    processors = torch.cuda.get_device_properties(q.device).multi_processor_count
    shape = [tiles.keys, width]
    layout = gl.NVMMASharedLayout.get_default_for(shape, _GLUON[q.dtype])
    k_desc, v_desc = (
        TensorDescriptor.from_tensor(packed.view(-1, width), shape, layout)
        for packed in (keys, values)
    )
    attention_kernel[(min(work, processors),)](
        q,
        k_desc,
        v_desc,
        out,
        plan.table,
        cos,
        sin,
        q.stride(0),
        q.stride(1),
        out.stride(0),
        out.stride(1),
        cos.stride(0),
        sin.stride(0),
        rows,
        per_block,
        kv_heads,
        len(plan.blocks),
        width**-0.5 * math.log2(math.e),
        GROUP=group,
        WIDTH=width,
        KEYS=tiles.keys,
        STAGES=tiles.stages,
        CONSUMERS=tiles.consumers,
        REGISTERS=tiles.consumer_registers,
        num_warps=4,
        maxnreg=tiles.launch_registers,
    )
    return out
