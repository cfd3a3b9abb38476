"""One layer's reading of a long document, as random tensors, and how to time it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import torch

from backend.ops.block_attention import (
    BlockRead,
    Implementation,
    ReadPlan,
    Tiles,
    block_attention,
    plan_reads,
)

TOKENS, BLOCK, ANCHORS, SINKS = 524_288, 4_096, 64, 64


@dataclass(frozen=True, slots=True)
class Shape:
    """Heads of a model."""

    name: str
    heads: int
    kv_heads: int
    width: int


SHAPES = (
    Shape("8B (32/8, d128)", 32, 8, 128),
    Shape("0.5B (14/2, d64)", 14, 2, 64),
    Shape("SmolLM2-135M (9/3, d64)", 9, 3, 64),
    Shape("32/8, d64", 32, 8, 64),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Tensors of one shape."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    extra: tuple[torch.Tensor, torch.Tensor]
    plan: ReadPlan
    cos: torch.Tensor
    sin: torch.Tensor

    @property
    def flops(self) -> int:
        """Operations of the scores that the mask leaves."""
        return 4 * self.q.shape[2] * self.q.shape[1] * self.plan.scores

    def run(
        self, impl: Implementation, tiles: Tiles | None = None, *, fp8: bool = False
    ) -> torch.Tensor:
        """One call of the op."""
        return block_attention(
            self.q,
            self.k,
            self.v,
            self.plan,
            extra=self.extra,
            cos=self.cos,
            sin=self.sin,
            impl=impl,
            tiles=tiles,
            fp8=fp8,
        )

    def error(self, out: torch.Tensor, indices: tuple[int, ...] = (0, 1, -1)) -> float:
        """Largest relative error of some blocks against the reference, NaN if there is one."""
        errors = [self._block_error(out, self.plan.blocks[index]) for index in indices]
        return math.nan if any(map(math.isnan, errors)) else max(errors)

    def _block_error(self, out: torch.Tensor, block: BlockRead) -> float:
        # A launch of this block alone: the rows it sees as `extra`, one key-value head at a time.
        rows = self.plan.prefixes[block.prefix][: block.seen].to(out.device)
        seen = [torch.cat(pair)[rows] for pair in zip(self.extra, (self.k, self.v), strict=True)]
        plan = plan_reads(
            [BlockRead(0, block.last - block.first, seen=block.seen)],
            [torch.arange(block.seen)],
            extra_rows=block.seen,
            device=out.device,
        )
        part, group = slice(block.first, block.last), self.q.shape[1] // self.k.shape[1]
        distance, size = 0.0, 0.0
        for head in range(self.k.shape[1]):
            one, asked = slice(head, head + 1), slice(head * group, head * group + group)
            expected = block_attention(
                self.q[part, asked],
                self.k[part, one],
                self.v[part, one],
                plan,
                extra=(seen[0][:, one], seen[1][:, one]),
                cos=self.cos,
                sin=self.sin,
                impl="reference",
            ).float()
            distance += (out[part, asked].float() - expected).square().sum().item()
            size += expected.square().sum().item()
        return math.sqrt(distance / size)


def make_problem(shape: Shape, tokens: int = TOKENS) -> Problem:
    """Random tensors as slices of one product, as the decoder gives them; anchors at random."""
    dtype, device = torch.bfloat16, "cuda"
    width, kv_heads = shape.width, shape.kv_heads
    product = torch.randn(tokens, shape.heads + 2 * kv_heads, width, device=device, dtype=dtype)
    extra = torch.randn(2, SINKS, kv_heads, width, device=device, dtype=dtype)
    firsts = range(0, tokens, BLOCK)
    picked = [SINKS + first + torch.randperm(BLOCK)[:ANCHORS].sort().values for first in firsts]
    blocks = [
        BlockRead(first, min(first + BLOCK, tokens), seen=SINKS + ANCHORS * index)
        for index, first in enumerate(firsts)
    ]
    prefix = torch.cat([torch.arange(SINKS), *picked])
    plan = plan_reads(blocks, [prefix], extra_rows=SINKS, device=device)
    frequencies = 500_000.0 ** -(torch.arange(0, width, 2, device=device) / width)
    angles = torch.outer(torch.arange(plan.positions, device=device), frequencies)
    cos = torch.cat((angles.cos(), angles.cos()), 1)
    sin = torch.cat((-angles.sin(), angles.sin()), 1)
    q, k, v = product.split((shape.heads, kv_heads, kv_heads), 1)
    return Problem(q, k, v, (extra[0], extra[1]), plan, cos, sin)


def seconds(call: Callable[[], object], rounds: int, warm: int) -> list[float]:
    """Times of `rounds` calls by CUDA events, after `warm` calls."""
    for _ in range(warm):
        call()
    times = []
    for _ in range(rounds):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return times


def line(times: list[float], flops: int, error: float | None = None) -> dict[str, object]:
    """A line of results."""
    median = statistics.median(times)
    return {
        "ms": round(median * 1e3, 3),
        "tflops": round(flops / median / 1e12, 1),
        "error": error,
        "rounds_ms": [round(value * 1e3, 3) for value in times],
    }
