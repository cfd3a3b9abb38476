"""What the machine can do at best, measured in the same run: products per number format, memory.

Both are of this moment: another process on the machine lowers ceilings and kernels alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from eval.benchmarks.kernels.case import Setup, name_of
from eval.benchmarks.kernels.clock import time_ms

_GEMM_SIDE = {"cpu": 2048, "cuda": 8192}
_MEMORY_BYTES = {"cpu": 256 << 20, "cuda": 2 << 30}
_FORMATS = {
    "cpu": (torch.float32, torch.bfloat16),
    "cuda": (torch.float32, torch.bfloat16, torch.float16),
}


def measure_ceilings(setup: Setup) -> dict[str, float]:
    """`gemm_<format>_gflops` (int8: GOP/s; fp8 with a scale per row, where there is FP8),
    `copy_gbytes_per_s` (read and written bytes) and `read_gbytes_per_s`."""
    kind, generator = setup.device.type, setup.generator(0)
    side = _GEMM_SIDE[kind]
    operations = 2 * side**3
    found: dict[str, float] = {}
    for dtype in _FORMATS[kind]:
        a, b = (setup.normal(generator, side, side, dtype=dtype) for _ in range(2))
        found[f"gemm_{name_of(dtype)}_gflops"] = _per_s(operations, partial(a.matmul, b), setup)
    ints = torch.randint(-127, 128, (side, side), generator=generator, device=setup.device)
    left, right = ints.to(torch.int8), ints.to(torch.int8).t().contiguous().t()
    found["gemm_int8_gflops"] = _per_s(operations, lambda: torch._int_mm(left, right), setup)
    if has_fp8(setup.device):
        row, column = (ints.clamp(-100, 100).to(torch.float8_e4m3fn) for _ in range(2))
        scale = torch.ones(side, 1, device=setup.device)
        found["gemm_fp8_gflops"] = _per_s(
            operations,
            lambda: torch._scaled_mm(
                row, column.t(), scale, scale.t(), out_dtype=torch.bfloat16, use_fast_accum=True
            ),
            setup,
        )
    size = _MEMORY_BYTES[kind]
    source = setup.normal(generator, size // 4, dtype=torch.float32)
    target = torch.empty_like(source)
    found["copy_gbytes_per_s"] = _per_s(2 * size, lambda: target.copy_(source), setup)
    # One number a row, so that partial sums are not what is measured.
    rows = source.view(256, -1)
    found["read_gbytes_per_s"] = _per_s(size, lambda: rows.amax(1), setup)
    return found


def has_fp8(device: torch.device) -> bool:
    """Whether the device multiplies in e4m3."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 9)


def _per_s(work: float, call: Callable[[], torch.Tensor], setup: Setup) -> float:
    """Giga-units of work per second."""
    return work / time_ms(call, setup.device) / 1e6
