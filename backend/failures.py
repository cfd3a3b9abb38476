"""What is told of a failure in the middle of a step to those whom it was for."""

from __future__ import annotations

import torch

_ALLOCATOR = ("can't allocate memory", "not enough memory")
"""What torch's allocators of CPU memory say; their error has no class of its own."""


def is_shortage(error: BaseException) -> bool:
    """Whether there was no memory for a step."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _ALLOCATOR)


def describe_failure(error: BaseException) -> str:
    """The error in words; of a shortage what to do, since its own words help nobody."""
    own = str(error) or type(error).__name__
    if not is_shortage(error):
        return own
    return (
        f"The engine ran out of memory at this request ({own.splitlines()[0]}). Try again when "
        "less is going on, send a shorter prompt or a lower max_tokens; if it stays so, end other "
        "programs or lower the KV budget (FINEPRINT_KV_BUDGET_MB)"
    )
