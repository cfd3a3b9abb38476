"""Candidates of latent block attention, in the shape of DeepSeek-V2-Lite: 16 heads on latents of
512 channels and 64 that are rotated. An entry in a card's table is what makes the engine use the
kernel there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product

import torch

from backend.ops.block_attention import BlockRead, ReadPlan, plan_reads
from backend.ops.latent_block_attention import (
    SAFE,
    Implementation,
    Tiles,
    choose_tiles,
    latent_block_attention,
)
from eval.benchmarks.kernels.case import Setup, name_of
from eval.benchmarks.kernels.tuning.loop import Tunable, dtypes_of

_SINKS = 64
_TOLERANCE = 1e-2


@dataclass(frozen=True, slots=True)
class Sizes:
    """Heads, channels, and tokens of the blocks that are timed and of the odd ones that are
    compared."""

    heads: int = 16
    rank: int = 512
    rotated: int = 64
    large: tuple[int, ...] = (4096,) * 4
    small: tuple[int, ...] = (300, 1, 111)


@dataclass(frozen=True, slots=True)
class _Problem:
    both: torch.Tensor
    extra: torch.Tensor
    plan: ReadPlan
    rank: int
    cos: torch.Tensor
    sin: torch.Tensor

    def run(self, impl: Implementation, tiles: Tiles | None = None) -> torch.Tensor:
        q, kept = self.both[:, :-1], self.both[:, -1]
        return latent_block_attention(
            q, kept, self.plan, self.rank, 192**-0.5,
            extra=self.extra, cos=self.cos, sin=self.sin, impl=impl, tiles=tiles,
        )  # fmt: skip


def tunables(setup: Setup, dtype: torch.dtype, sizes: Sizes | None = None) -> Iterator[Tunable]:
    """One, whatever the shapes of the setup."""
    sizes = sizes or Sizes()
    small, large = (_problem(setup, dtype, sizes, one) for one in (sizes.small, sizes.large))
    in_use = asdict(choose_tiles(sizes.rank, dtype, setup.device) or SAFE)
    names = ("rows", "keys", "warps", "stages")
    every = product((16, 32, 64), (32, 64), (4, 8), (1, 2))
    choices = [dict(zip(names, values, strict=True)) for values in every]
    tokens, longest = sum(sizes.large), max(sizes.large)
    # Scores take all channels, what is read those of the latent.
    channels = 2 * sizes.rank + sizes.rotated
    yield Tunable(
        op="latent_block_attention",
        width=1 << (sizes.rank - 1).bit_length(),
        dtypes=dtypes_of(dtype),
        on=f"{tokens:,} tokens in blocks of {longest:,} with {_SINKS} sinks, "
        f"{sizes.heads} heads on latents of {sizes.rank} and {sizes.rotated}, {name_of(dtype)}",
        unit="TFLOP/s",
        work=2 * channels * sizes.heads * large.plan.scores / 1e9,
        candidates=(in_use, *(choice for choice in choices if choice != in_use)),
        expected=small.run("reference"),
        tolerance=_TOLERANCE,
        small=lambda choice: small.run("triton", Tiles(**choice)),
        large=lambda choice: large.run("triton", Tiles(**choice)),
    )


def _problem(setup: Setup, dtype: torch.dtype, sizes: Sizes, lengths: tuple[int, ...]) -> _Problem:
    generator = setup.generator(sizes.heads, sizes.rank, *lengths)
    ends = [sum(lengths[: at + 1]) for at in range(len(lengths))]
    blocks = [
        BlockRead(end - length, end, seen=_SINKS) for length, end in zip(lengths, ends, strict=True)
    ]
    plan = plan_reads(blocks, [torch.arange(_SINKS)], extra_rows=_SINKS, device=setup.device)
    steps = 10000.0 ** -(torch.arange(0, sizes.rotated, 2) / sizes.rotated)
    angles = torch.outer(torch.arange(plan.positions).float(), steps).to(setup.device)
    cos, sin = angles.cos(), angles.sin()
    width = sizes.rank + sizes.rotated
    return _Problem(
        setup.normal(generator, ends[-1], sizes.heads + 1, width, dtype=dtype),
        setup.normal(generator, _SINKS, width, dtype=dtype),
        plan,
        sizes.rank,
        torch.cat((cos, cos), -1),
        torch.cat((-sin, sin), -1),
    )
