"""Which attention kernel dense reading gets: the fastest that this machine has for it.

The candidates are timed on one layer's shape of the model. On a CPU the engine has one kernel for
reading; should torch's be faster there, the record shows it. On a GPU the engine reads through
torch's scaled_dot_product_attention, whose backend can be chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from backend.engine import Engine
from backend.ops.prefix_attention import prefix_attention
from eval.benchmarks.kernels.clock import time_ms

_LONGEST = {"cpu": 4096, "cuda": 16384}
_BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


@dataclass(frozen=True, slots=True)
class DenseAttention:
    """`layer_ms` holds the time of each candidate for one layer of `tokens` tokens in `dtype`;
    `used` is the one that dense reading is measured with."""

    used: str
    tokens: int
    dtype: str
    layer_ms: Mapping[str, float]

    @contextmanager
    def active(self) -> Iterator[None]:
        """Dense reading in the block goes through the chosen backend."""
        chosen = _BACKENDS.get(self.used)
        if chosen is None:
            yield
            return
        # A question after it brings a mask that not every backend takes: the others stay allowed.
        with sdpa_kernel(
            [chosen, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH], set_priority=True
        ):
            yield


def choose(engine: Engine, longest: int) -> DenseAttention:
    """Time the candidates on the engine's device, at up to `longest` tokens."""
    config, device = engine.config, torch.device(engine.settings.device)
    tokens = min(longest, _LONGEST[device.type])
    # What is computed with, whatever format the pages are kept in.
    precision = engine.settings.resolved_precision()
    dtype = torch.bfloat16 if precision == "int8" else getattr(torch, precision)
    group = config.heads // config.kv_heads
    q = torch.randn(config.kv_heads, group, tokens, config.head_dim, device=device, dtype=dtype)
    k, v = (
        torch.randn(config.kv_heads, tokens, config.head_dim, device=device, dtype=dtype)
        for _ in range(2)
    )
    times: dict[str, float] = {}
    with torch.inference_mode():
        if device.type == "cpu":
            times["tiled"] = time_ms(lambda: prefix_attention(q, k, v, impl="tiled"), device)
            times["sdpa"] = time_ms(lambda: prefix_attention(q, k, v, impl="fused"), device)
            return DenseAttention("tiled", tokens, str(dtype), times)
        for name, backend in _BACKENDS.items():
            try:
                with sdpa_kernel(backend):
                    times[name] = time_ms(lambda: prefix_attention(q, k, v, impl="fused"), device)
            except RuntimeError:
                # This backend does not take the model's shape: it is no candidate.
                continue
    fastest = min(times, key=times.__getitem__) if times else "torch's choice"
    return DenseAttention(fastest, tokens, str(dtype), times)
