# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""What a kernel that may overlap with others begins with."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

_LINE = tl.constexpr(128)
"""Bytes of a cache line."""


@triton.jit
def wait_for_others(OVERLAP: tl.constexpr):
    """Every program of an overlapping kernel calls it before it reads or writes what other kernels
    write or read, and before it may end: who comes after waits for this one alone."""
    if OVERLAP:
        gdc_launch_dependents()
        gdc_wait()


@triton.jit
def ask_for_lines(start, BYTES: tl.constexpr):
    """Have the cache fetch `BYTES` bytes, a power of two, at each of the addresses `start` [n]."""
    line = tl.arange(0, (BYTES + _LINE - 1) // _LINE) * _LINE
    address = start.to(tl.uint64)[:, None] + line.to(tl.uint64)[None, :]
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; // dummy $0", "=r,l", [address], dtype=tl.int32, is_pure=False,
        pack=1,
    )  # fmt: skip
