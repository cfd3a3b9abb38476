"""How an engine is set up. Built once, before the engine opens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from backend.layers.linear import Precision

Reading = Literal["independent", "chained"]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of one engine.

    `precision` "auto" is int8 on a CPU with VNNI, float32 on other CPUs and bfloat16 on a GPU.
    `block_tokens` is the unit of reading, a multiple of the page size. `kv_budget` is in bytes.
    `threads` 0 leaves torch's own choice. `max_waiting` bounds the queue of requests.
    """

    model: Path
    device: str = "cpu"
    precision: Precision | Literal["auto"] = "auto"
    block_tokens: int = 2048
    reading: Reading = "independent"
    kv_budget: int = 2 << 30
    threads: int = 0
    max_waiting: int = 64
    prefill_chunk: int = 512

    def resolved_precision(self) -> Precision:
        """The precision that "auto" stands for on this machine."""
        if self.precision != "auto":
            return self.precision
        if self.device != "cpu":
            return "bfloat16"
        return "int8" if torch.cpu._is_vnni_supported() else "float32"
