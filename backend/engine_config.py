"""How an engine is set up. Built once, before the engine opens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from backend.layers.linear import FewRows, LinearFormat, Precision
from kvstore.formats import FormatName

Reading = Literal["independent", "chained"]

CPU_SHARE = 0.4
"""Of a CPU's memory, for the pool."""
GPU_SHARE = 0.7
"""Of a GPU's memory that is free once the weights are there, for the pool; the rest is for what a
step computes."""
AGED_SHARE = 0.2
"""Of the host's memory, for blocks that were aged."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of one engine.

    `precision` "auto" is int8 on a CPU with VNNI, float32 on other CPUs and bfloat16 on a GPU.
    `linear_format` "fp8" is for GPUs and bfloat16 (docs/benchmarks/decode-h200.md). `few_rows` says
    which layers of a GPU have a kernel of their own for the few rows of a step of decoding: those
    in "fp8" with their head, "all", or none ("library"; see docs/benchmarks/decode-h200.md).
    `block_tokens` is the unit of reading, a multiple of the page size; the default is argued in
    docs/adr/0003-blocks-of-512.md. `kv_budget` is in bytes; 0 takes the share `kv_share` of a CPU's
    memory, or of what a GPU has free once the weights are there; 0 of that is 40% or 70%. `threads`
    0 leaves torch's own choice. `max_waiting` bounds the queue of requests, `prefill_chunk`
    (tokens) the length of one step.
    With `device_draws` a GPU draws the tokens of requests that sample; without, the host does.
    `guessed_tokens` are guessed at a time when one request decodes greedily, 0 guesses none, None
    is the best for the device (see `backend.lookup`).
    `read_tokens` bounds what is read in one step, which has at least one block; 0 is always one
    block on a CPU, which it keeps busy, and 32,768 tokens on a GPU (see
    docs/benchmarks/ttft-h200.md). `kv_format` is that of the pages, in memory and on disk (see
    docs/benchmarks/kv-formats.md); sinks, the question and the answer stay as they were computed.
    With `packed_kernels` attention on a GPU reads pages of fp8, int8 and int4 as they are, which
    takes less memory; without, which is faster unless contexts are long
    (docs/benchmarks/kernels-h200.md), they are decoded when a context opens.
    One step in `step_every` of each kind is measured (see `backend.step_clock`), 0 measures none,
    None is every step on a CPU and none on a GPU.
    `first_come` serves documents and questions strictly in order of arrival, for benchmarks.
    Blocks that had to make room are kept in up to `host_budget` bytes of host memory, in
    `aged_format` if there is one (see `kvstore.tiers.memory`); None is nothing without such a
    format, where pages of a CPU would only lie in memory twice and pinned memory of a GPU's host is
    untried, and else 20% of the host's memory.
    KV is also kept in files of at most `disk_budget` bytes in `disk_folder`, for one engine at a
    time; without a folder there are none, and a budget of 0 removes those that are there.
    `tuning_folder` has tables of kernels' constants that go before the shipped ones, for all
    engines of the process (see `backend.ops.tuning`).
    """

    model: Path
    device: str = "cpu"
    precision: Precision | Literal["auto"] = "auto"
    linear_format: LinearFormat = "dense"
    few_rows: FewRows = "fp8"
    block_tokens: int = 512
    reading: Reading = "independent"
    kv_format: FormatName = "auto"
    packed_kernels: bool = False
    kv_budget: int = 0
    kv_share: float = 0.0
    host_budget: int | None = None
    aged_format: FormatName | None = None
    threads: int = 0
    max_waiting: int = 128
    prefill_chunk: int = 512
    device_draws: bool = True
    guessed_tokens: int | None = None
    read_tokens: int = 0
    first_come: bool = False
    step_every: int | None = None
    disk_folder: Path | None = None
    disk_budget: int = 0
    tuning_folder: Path | None = None

    def resolved_precision(self) -> Precision:
        """The precision that "auto" stands for on this machine."""
        if self.precision != "auto":
            return self.precision
        if self.device != "cpu":
            return "bfloat16"
        return "int8" if torch.cpu._is_vnni_supported() else "float32"

    def kv_name(self, pages: str) -> str:
        """What KV is called that this engine makes, besides its model: engines of other names make
        other numbers. `pages` is the format of its pages."""
        linear = "" if self.linear_format == "dense" else f"+{self.linear_format}"
        if self.device != "cpu" and (
            self.few_rows == "all" or (self.few_rows, self.linear_format) == ("fp8", "fp8")
        ):
            linear += "+few-rows"
        return f"{self.resolved_precision()}{linear}/{pages}/{self.reading}"

    def resolved_read_tokens(self) -> int:
        """The tokens of one step of reading that 0 stands for on this device. With 1 a step has one
        block, however short."""
        if self.read_tokens:
            return self.read_tokens
        return 1 if self.device == "cpu" else 32_768

    def resolved_kv_budget(self) -> int:
        """The KV budget in bytes that 0 stands for on this machine, now."""
        if self.kv_budget:
            return self.kv_budget
        if self.device == "cpu":
            return int(_host_memory() * (self.kv_share or CPU_SHARE))
        device = torch.device(self.device)
        free, _ = torch.cuda.mem_get_info(device)
        # What torch keeps of an engine that was closed is as good as free.
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int((free + kept) * (self.kv_share or GPU_SHARE))

    def resolved_host_budget(self) -> int:
        """The bytes of host memory for evicted blocks that None stands for on this machine."""
        if self.host_budget is not None:
            return self.host_budget
        return 0 if self.aged_format is None else int(_host_memory() * AGED_SHARE)


def _host_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
