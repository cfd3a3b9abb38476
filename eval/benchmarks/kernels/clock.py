"""Milliseconds of one call whose inputs are in no cache: CUDA events on a GPU, the process's clock
on a CPU.

Decoding streams weights and KV through the processor once a step, so a repeated call that finds
them in its cache would be measured too fast. Between two calls a buffer larger than the cache is
written (on a GPU `do_bench` does it).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from statistics import median

import torch

_SAMPLES, _LONG_SAMPLES = 9, 3
_LONG_S = 0.1
"""Calls that take this long are sampled less often."""
_FLUSH_BYTES = 128 << 20
_GPU_WARM_MS, _GPU_MS = 10, 50


def time_ms(call: Callable[[], object], device: torch.device) -> float:
    """Median of several calls, after one to warm up."""
    if device.type == "cuda":
        from triton.testing import do_bench

        return float(do_bench(call, warmup=_GPU_WARM_MS, rep=_GPU_MS, return_mode="median"))
    started = time.perf_counter()
    call()
    count = _LONG_SAMPLES if time.perf_counter() - started > _LONG_S else _SAMPLES
    samples = []
    for _ in range(count):
        _buffer().zero_()
        started = time.perf_counter()
        call()
        samples.append(time.perf_counter() - started)
    return median(samples) * 1e3


@cache
def _buffer() -> torch.Tensor:
    # Written inside and outside of inference mode.
    with torch.inference_mode(False):
        return torch.empty(_FLUSH_BYTES, dtype=torch.int8)
