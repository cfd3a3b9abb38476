"""Milliseconds of one call whose inputs are in no cache: CUDA events on a GPU, the process's clock
on a CPU.

On a GPU a call is recorded (a CUDA graph) and replayed, as the engine's steps are: launched from
Python, 0.1 ms and more of an operation are the host's. One that can't be recorded is called.

Decoding streams weights and KV through the processor once a step, so a repeated call that finds
them in its cache would be measured too fast. A call that comes with others on other memory is
timed as one of the row; before any other, a buffer larger than the cache is written (on a GPU
`do_bench` does it). After the buffer the threads of a product have to be woken, which makes a call
alone 0.1 to 0.3 ms slower: calls of less come in rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from statistics import median

import torch

Call = Callable[[], object]

_SAMPLES, _LONG_SAMPLES = 9, 3
_LONG_S = 0.1
"""Calls that take this long are sampled less often."""
_FLUSH_BYTES = 128 << 20
_GPU_WARM_MS, _GPU_MS = 10, 50


def time_ms(call: Call, device: torch.device, others: Sequence[Call] = ()) -> float:
    """Median of several calls (or rows of calls), after one to warm up."""
    if device.type == "cuda":
        from triton.testing import do_bench

        launch = _recorded(call)
        return float(do_bench(launch, warmup=_GPU_WARM_MS, rep=_GPU_MS, return_mode="median"))
    row = (call, *others)
    once = _seconds(row)
    samples = []
    for _ in range(_LONG_SAMPLES if once > _LONG_S else _SAMPLES):
        if not others:
            _buffer().zero_()
        samples.append(_seconds(row))
    return median(samples) / len(row) * 1e3


def _recorded(call: Call) -> Call:
    """What replays the call, or the call itself where it waits for the GPU or does something else
    that has no record."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        call()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            call()
    except RuntimeError:
        torch.cuda.synchronize()
        return call
    return graph.replay


def _seconds(row: Sequence[Call]) -> float:
    started = time.perf_counter()
    for call in row:
        call()
    return time.perf_counter() - started


@cache
def _buffer() -> torch.Tensor:
    # Written inside and outside of inference mode.
    with torch.inference_mode(False):
        return torch.empty(_FLUSH_BYTES, dtype=torch.int8)
