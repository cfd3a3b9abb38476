"""torch's own attention kernels, as peers: each SDPA backend that takes the input, FlexAttention
on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

from eval.benchmarks.kernels.case import Contender

_BACKENDS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
_ON = {"cpu": ("math", "flash"), "cuda": ("math", "flash", "efficient", "cudnn")}


def causal_peers(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, moved: float, gemm: str
) -> Iterator[Contender]:
    """Peers for `prefix_attention`, with its shapes. K and V are repeated for the query heads of a
    group before the clock starts; the mask is causal at the lower right, as an explicit mask where
    a backend can't be told so."""
    heads, group, new, width = q.shape
    length = k.shape[1]
    flat = q.reshape(1, heads * group, new, width)
    keys, values = (x.repeat_interleave(group, 0)[None] for x in (k, v))
    visible = torch.ones(new, length, dtype=torch.bool, device=q.device).tril_(length - new)
    # The lower-right mask knows only the flash and efficient kernels of a GPU.
    told = causal_lower_right(new, length) if q.is_cuda and length > new else None

    for name in _ON[q.device.type]:

        def run(name: str = name) -> torch.Tensor:
            with sdpa_kernel(_BACKENDS[name]):
                if length == new:
                    out = scaled_dot_product_attention(flat, keys, values, is_causal=True)
                elif told is not None and name in ("flash", "efficient"):
                    out = scaled_dot_product_attention(flat, keys, values, attn_mask=told)
                else:
                    out = scaled_dot_product_attention(flat, keys, values, attn_mask=visible)
            return out.reshape(q.shape)

        yield Contender(f"sdpa {name}", run, moved, gemm, peer=True)
    if q.is_cuda and new > 1:
        yield _flex(q, k, v, moved, gemm)


def masked_peers(
    q: torch.Tensor,
    copies: Sequence[tuple[torch.Tensor, torch.Tensor]],
    hidden: torch.Tensor,
    moved: float,
    gemm: str,
) -> Iterator[Contender]:
    """Peers for `decode_attention`, with its shapes and its additive mask, on the first K and V of
    `copies` and, timed in a row, on the others. K and V are repeated as in `causal_peers`."""
    heads, group, new, width = q.shape
    flat = q.reshape(1, heads * group, new, width)
    repeated = [
        (k.repeat_interleave(group, 0)[None], v.repeat_interleave(group, 0)[None])
        for k, v in copies
    ]
    for name in _ON[q.device.type]:

        def run(keys: torch.Tensor, values: torch.Tensor, name: str = name) -> torch.Tensor:
            with sdpa_kernel(_BACKENDS[name]):
                out = scaled_dot_product_attention(flat, keys, values, attn_mask=hidden)
            return out.reshape(q.shape)

        calls = [partial(run, *pair) for pair in repeated]
        yield Contender(f"sdpa {name}", calls[0], moved, gemm, peer=True, others=tuple(calls[1:]))


def _flex(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, moved: float, gemm: str) -> Contender:
    from torch.nn.attention.flex_attention import create_block_mask

    heads, group, new, width = q.shape
    prefix = k.shape[1] - new

    def sees(b: torch.Tensor, h: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        return j <= i + prefix

    mask = create_block_mask(sees, None, None, new, k.shape[1], device=str(q.device))
    compiled = _compiled_flex()
    flat, keys, values = q.reshape(1, heads * group, new, width), k[None], v[None]

    def run() -> torch.Tensor:
        out = compiled(flat, keys, values, block_mask=mask, enable_gqa=group > 1)
        if not isinstance(out, torch.Tensor):
            raise TypeError("FlexAttention returned more than its output")
        return out.reshape(q.shape)

    return Contender("flex", run, moved, gemm, peer=True)


@cache
def _compiled_flex() -> Callable[..., object]:
    """FlexAttention is fast compiled only, and is compiled once a shape."""
    from torch.nn.attention.flex_attention import flex_attention

    # Beyond its limit torch goes on uncompiled, which would be measured as FlexAttention.
    torch._dynamo.config.recompile_limit = 256
    compiled: Callable[..., object] = torch.compile(flex_attention, dynamic=False)
    return compiled
