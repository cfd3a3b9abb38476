"""Candidates of block reading attention: the Triton kernel, and the Hopper kernel where the card
is one that it is written for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product

import torch

from backend.layers.rope import Rope
from backend.ops.block_attention import (
    BlockRead,
    HopperTiles,
    Implementation,
    ReadPlan,
    Tiles,
    block_attention,
    plan_reads,
)
from backend.ops.block_attention.tiles import HOPPER_WIDTHS, choose_hopper_tiles, choose_tiles
from backend.ops.tuning import Choice, card_of
from eval.benchmarks.kernels.case import ModelShape, Setup, name_of
from eval.benchmarks.kernels.tuning.loop import Tunable, dtypes_of
from eval.benchmarks.random_model import shape_config

_SEEN = 64
"""Sinks, and anchors of each earlier block."""
_TOLERANCE = 1e-2
_REGISTERS = {2: (168, 240), 3: (128, 160)}
"""By consumers: registers that are left to a thread at launch and to one in a consumer."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of the blocks of the input that is timed and of the odd one that is compared."""

    large: tuple[int, ...] = (4096,) * 16
    small: tuple[int, ...] = (1000, 1, 111)


@dataclass(frozen=True, slots=True)
class _Problem:
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    plan: ReadPlan
    cos: torch.Tensor
    sin: torch.Tensor

    def run(self, impl: Implementation, tiles: Tiles | HopperTiles | None = None) -> torch.Tensor:
        return block_attention(
            self.q, self.k, self.v, self.plan, cos=self.cos, sin=self.sin, impl=impl, tiles=tiles
        )


def tunables(setup: Setup, dtype: torch.dtype, sizes: Sizes | None = None) -> Iterator[Tunable]:
    """One for each kernel and head size of the shapes."""
    sizes = sizes or Sizes()
    widths = {1 << (shape.head_dim - 1).bit_length(): shape for shape in reversed(setup.shapes)}
    for width, shape in sorted(widths.items()):
        in_use = choose_tiles(width, dtype, setup.device)
        names = ("rows", "keys", "warps", "stages")
        every = product((64, 128), (32, 64, 128), (4, 8), (2, 3))
        choices = [dict(zip(names, values, strict=True)) for values in every]
        yield _tunable(setup, dtype, sizes, shape, "triton", asdict(in_use), choices)
        if shape.head_dim not in HOPPER_WIDTHS:
            continue
        card, hopper = card_of(setup.device), choose_hopper_tiles(width, dtype, setup.device)
        if hopper is None and card and card.capability == (9, 0):
            hopper = HopperTiles(2, 64, 2, *_REGISTERS[2])
        if hopper is not None:
            choices = [
                asdict(HopperTiles(consumers, keys, stages, *_REGISTERS[consumers]))
                for consumers, keys, stages in product((2, 3), (64, 128), (2, 3, 4))
            ]
            yield _tunable(setup, dtype, sizes, shape, "hopper", asdict(hopper), choices)


def _tunable(
    setup: Setup,
    dtype: torch.dtype,
    sizes: Sizes,
    shape: ModelShape,
    impl: Implementation,
    in_use: Choice,
    choices: list[dict[str, int]],
) -> Tunable:
    small = _problem(setup, dtype, shape, sizes.small)
    large = _problem(setup, dtype, shape, sizes.large)
    make = HopperTiles if impl == "hopper" else Tiles
    total, longest = sum(sizes.large), max(sizes.large)
    return Tunable(
        op="block_attention_hopper" if impl == "hopper" else "block_attention",
        width=1 << (shape.head_dim - 1).bit_length(),
        dtypes=dtypes_of(dtype),
        on=f"{total:,} tokens in blocks of {longest:,} with {_SEEN} sinks and {_SEEN} anchors a "
        f"block, {shape.heads}/{shape.kv_heads} heads of {shape.head_dim}, {name_of(dtype)}",
        unit="TFLOP/s",
        work=4 * shape.head_dim * shape.heads * large.plan.scores / 1e9,
        candidates=(in_use, *(choice for choice in choices if choice != in_use)),
        expected=small.run("reference"),
        tolerance=_TOLERANCE,
        small=lambda choice: small.run(impl, make(**choice)),
        large=lambda choice: large.run(impl, make(**choice)),
    )


def _problem(
    setup: Setup, dtype: torch.dtype, shape: ModelShape, lengths: tuple[int, ...]
) -> _Problem:
    """Blocks one after another; each sees the first tokens of all earlier ones."""
    generator = setup.generator(shape.heads, shape.head_dim, *lengths)
    blocks: list[BlockRead] = []
    listed: list[torch.Tensor] = []
    first = seen = 0
    for length in lengths:
        blocks.append(BlockRead(first, first + length, seen=seen))
        listed.append(torch.arange(first, first + min(length, 2 * _SEEN if not seen else _SEEN)))
        seen += len(listed[-1])
        first += length
    plan = plan_reads(blocks, [torch.cat(listed)], device=setup.device)
    config = replace(shape_config("8b"), head_dim=shape.head_dim)
    cos, sin = Rope(config, setup.device).tables(0, plan.positions)
    size = (first, shape.heads + 2 * shape.kv_heads, shape.head_dim)
    heads = (shape.heads, shape.kv_heads, shape.kv_heads)
    # As the decoder gives them: slices of one product.
    q, k, v = setup.normal(generator, *size, dtype=dtype).split(heads, 1)
    return _Problem(q, k, v, plan, cos, sin)
