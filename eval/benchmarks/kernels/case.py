"""What is measured of one op on one input. It knows no op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

Call = Callable[[], torch.Tensor]


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a model's layers; `group` query heads share a KV head. A `vocab` of 0 is unknown."""

    name: str
    kv_heads: int
    group: int
    head_dim: int
    hidden: int
    intermediate: int
    vocab: int = 0

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.kv_heads * self.group

    @property
    def label(self) -> str:
        """Name with query heads / KV heads and head size."""
        return f"{self.name} ({self.heads}/{self.kv_heads}, d{self.head_dim})"


SHAPES = {
    "cpu": (ModelShape("SmolLM2-135M", 3, 3, 64, 576, 1536, 49_152),),
    "cuda": (
        ModelShape("8B", 8, 4, 128, 4096, 14336, 128_256),
        ModelShape("0.5B", 2, 7, 64, 896, 4864, 151_936),
        ModelShape("SmolLM2-135M", 3, 3, 64, 576, 1536, 49_152),
    ),
}
"""Model shapes by kind of device, as in the tables of docs/."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Where to measure, with what randomness, in which shapes."""

    device: torch.device
    seed: int
    shapes: tuple[ModelShape, ...]

    def generator(self, *salt: int) -> torch.Generator:
        """Randomness of one case."""
        generator = torch.Generator(self.device)
        value = self.seed
        for part in salt:
            value = (value * 1_000_003 + part) % 2**63
        return generator.manual_seed(value)

    def normal(self, generator: torch.Generator, *size: int, dtype: torch.dtype) -> torch.Tensor:
        """Standard normal numbers on the device."""
        drawn = torch.randn(*size, generator=generator, device=self.device)
        return drawn.to(dtype)


@dataclass(frozen=True, slots=True)
class Contender:
    """One implementation on the case's input. `bytes` is the least it must move, `gemm` the
    number format whose GEMM ceiling its arithmetic is held to. A peer is not ours. `others` do the
    same work on other memory (see `copies_to_stream`)."""

    name: str
    call: Call
    bytes: float
    gemm: str
    peer: bool = False
    others: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One op on one input.

    `reference` is the specification; `flops` counts multiplications and additions of what is not
    masked. Ours must be within `tolerance`, relative to the reference (Frobenius norms). Inputs of
    odd shape are compared and not `timed`.
    """

    op: str
    shape: str
    dtype: str
    reference: Call
    contenders: tuple[Contender, ...]
    flops: float
    tolerance: float
    timed: bool = True


Status = Literal["measured", "compared", "wrong", "unavailable"]


STREAM_BYTES = 96 << 20
"""More than the processor's caches hold."""
_MOST_COPIES = 400


def copies_to_stream(setup: Setup, size: int) -> int:
    """How many further inputs of `size` bytes a contender needs so that none of them is in a
    processor's cache when its turn comes again, as weights and KV in a step of decoding. None on a
    GPU, where the cache is flushed between calls."""
    return 0 if setup.device.type == "cuda" else min(STREAM_BYTES // size, _MOST_COPIES)


def size_of(*tensors: torch.Tensor) -> int:
    """Bytes of the tensors together."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def name_of(dtype: torch.dtype) -> str:
    """torch.bfloat16 -> "bfloat16"."""
    return str(dtype).removeprefix("torch.")
