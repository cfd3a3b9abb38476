"""Outside libraries of kernels as peers: FlashInfer and FlashAttention, where they are installed.

Neither is a dependency. One that is not there, or refuses the input, has a row that says so.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch

from eval.benchmarks.kernels.case import Contender, name_of
from kvstore.types import PAGE_TOKENS

_WORKSPACE_BYTES = 128 << 20


def library_peers(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, pages: torch.Tensor, moved: float
) -> Iterator[Contender]:
    """Peers for `page_attention` on lists of one length.

    q: [requests, rows, heads, d]; keys, values: [requests, kv_heads, tokens, d]; queries and keys
    are rotated before the clock starts. `pages` [requests, pages of a list] names the pages in
    which FlashInfer finds them; FlashAttention gets them in one piece.
    """
    gemm = name_of(q.dtype)
    yield Contender("FlashInfer, pages", _Once(_flashinfer, q, keys, values, pages), moved, gemm,
                    peer=True)  # fmt: skip
    yield Contender("FlashAttention, one piece", _Once(_flash_attention, q, keys, values), moved,
                    gemm, peer=True)  # fmt: skip


class _Once:
    """A call that is prepared when it is first made, and is then cheap."""

    def __init__(self, prepare: Callable[..., Callable[[], Any]], *inputs: torch.Tensor) -> None:
        self._prepare = prepare
        self._inputs = inputs
        self._run: Callable[[], Any] | None = None

    def __call__(self) -> torch.Tensor:
        try:
            if self._run is None:
                self._run = self._prepare(*self._inputs)
            out = self._run()
        except NotImplementedError:
            raise
        except Exception as error:
            # Of whatever kind: it is told in the table.
            raise NotImplementedError(f"{type(error).__name__}: {error}") from error
        if not isinstance(out, torch.Tensor):
            raise NotImplementedError(f"it returned {type(out).__name__}, not a tensor")
        return out.reshape(-1, *out.shape[-2:])


def _flashinfer(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, pages: torch.Tensor
) -> Callable[[], Any]:
    library = _imported("flashinfer", "flashinfer-python")
    requests, rows, heads, width = q.shape
    if rows != 1:
        raise NotImplementedError("its decoding takes one query row a request")
    kv_heads, tokens = keys.shape[1:3]
    each = pages.shape[1]
    cache = q.new_zeros((requests * each, 2, kv_heads, PAGE_TOKENS, width))
    for part, source in enumerate((keys, values)):
        padded = source.new_zeros((requests, kv_heads, each * PAGE_TOKENS, width))
        padded[:, :, :tokens] = source
        paged = padded.unflatten(2, (each, PAGE_TOKENS)).transpose(1, 2).flatten(0, 1)
        cache[pages.flatten().long(), part] = paged
    wrapper = library.BatchDecodeWithPagedKVCacheWrapper(
        torch.zeros(_WORKSPACE_BYTES, dtype=torch.uint8, device=q.device),
        "HND",
        use_tensor_cores=True,
    )
    whole = torch.arange(requests + 1, dtype=torch.int32, device=q.device) * each
    last = torch.full_like(whole[1:], tokens - (each - 1) * PAGE_TOKENS)
    wrapper.plan(
        whole, pages.flatten().int(), last, heads, kv_heads, width, PAGE_TOKENS,
        pos_encoding_mode="NONE", q_data_type=q.dtype, kv_data_type=q.dtype,
    )  # fmt: skip
    asked = q[:, 0].contiguous()
    return lambda: wrapper.run(asked, cache)


def _flash_attention(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
) -> Callable[[], Any]:
    # The third version is for Hopper and has a name of its own.
    name = "flash_attn_interface" if _found("flash_attn_interface") else "flash_attn"
    library = _imported(name, "flash-attn")
    k, v = (source.transpose(1, 2).contiguous() for source in (keys, values))
    lengths = torch.full((len(q),), k.shape[1], dtype=torch.int32, device=q.device)
    return lambda: library.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, causal=True)


def _imported(name: str, package: str) -> Any:
    if not _found(name):
        raise NotImplementedError(f"not installed (pip install {package})")
    return importlib.import_module(name)


@cache
def _found(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
