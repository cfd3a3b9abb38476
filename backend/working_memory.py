"""What a request needs of the device's memory beside the KV pool, and whether it can be had.

An estimate of the largest moment, from the model's shape: the context (a copy of all that it sees,
growing token by token), the copies while it is opened or grows, and the activations of a step.
Knows no requests.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from backend.config import ModelConfig
from backend.errors import OutOfMemory, RequestTooLarge
from backend.hardware.memory import free_memory
from backend.hardware.types import Memory
from kvstore.formats.plain import PlainFormat
from kvstore.pool import page_bytes
from kvstore.types import PAGE_TOKENS, KVShape

RESERVE = 1 / 32
"""Of the device's memory, left to everything that is not estimated."""
_TILE = 128
"""Rows of scores that attention on a CPU holds at a time."""
_HEAP = 512_000_000
"""Bytes at most that a growing context leaves unused in a process's heap: freed tensors of less
than 32 MB, too small for the next ones. A prompt of 1,500 tokens took 214 MB with SmolLM2-135M at
its largest moment, one of 3,000 377 MB, where contexts and copies alone make up 53 and 104 MB."""
_SPARE = 1_024
"""Tokens that a context in pages has room for beyond what it may need, and some more."""


class WorkingMemory:
    """Safe from any thread."""

    def __init__(
        self,
        config: ModelConfig,
        shape: KVShape,
        dtype: torch.dtype,
        device: torch.device,
        step_tokens: int,
        *,
        paged_tokens: int = 0,
        look: Callable[[torch.device], Memory | None] = free_memory,
    ) -> None:
        """`shape` and `dtype` are those of a context's KV, `step_tokens` the most prompt tokens of
        a step. Contexts of up to `paged_tokens` tokens stand in pages that are there already.
        `look` tells the device's memory."""
        self._token = page_bytes(shape, PlainFormat(dtype)) // PAGE_TOKENS
        channels = 4 * config.hidden_size + 3 * config.intermediate_size
        channels += 2 * (config.heads + 2 * config.kv_heads) * config.head_dim
        self._step = step_tokens * channels * 4 + config.vocab_size * 4
        # On a GPU no row of scores is ever whole.
        self._scores = config.heads * _TILE * 2 * 4 if device.type == "cpu" else 0
        self._device = device
        self._paged_tokens = paged_tokens
        self._look = look

    def needed(self, seen: int, room: int) -> int:
        """Bytes of a request that sees `seen` tokens, to which at most `room` are appended; 0 for
        one whose context stands in pages. Those that don't are rare on a GPU, where this estimate
        is untried."""
        tokens = seen + room
        if tokens + _SPARE <= self._paged_tokens:
            return 0
        # Opening holds what it gathers twice beside the context; growing copies half of it.
        context = max(3 * seen, tokens * 3 // 2) * self._token
        heap = min(4 * room * self._token, _HEAP) if self._device.type == "cpu" else 0
        return context + heap + tokens * self._scores + self._step

    def growth(self, room: int) -> int:
        """Bytes that an open context may still take."""
        return room * self._token

    def require_ever(self, seen: int, room: int) -> None:
        """Raises RequestTooLarge for a request that the device can't hold even alone."""
        needed = self.needed(seen, room)
        memory = self._look(self._device) if needed else None
        if memory is not None and needed > memory.total * (1 - RESERVE):
            raise RequestTooLarge(
                f"The request needs about {_mb(needed)} of memory for its {seen + room:,} tokens "
                f"and there are {_mb(memory.total)} altogether: send a shorter prompt, less "
                "evidence or a lower max_tokens"
            )

    def lacking(self, needed: int, promised: int = 0) -> OutOfMemory | None:
        """Why `needed` bytes can't be had now, `promised` of what is free being for others; None
        when they can."""
        memory = self._look(self._device) if needed else None
        if memory is None or needed + promised <= memory.free - memory.total * RESERVE:
            return None
        return OutOfMemory(
            f"The request needs about {_mb(needed)} of memory and only {_mb(memory.free)} are "
            "free. Try again when less is going on, send a shorter prompt or a lower max_tokens; "
            "if it stays so, end other programs or lower the KV budget (FINEPRINT_KV_BUDGET_MB)"
        )


def _mb(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
