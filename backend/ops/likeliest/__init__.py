"""The likeliest token of each row of logits, and its log-probability: all that a step of decoding
tells the host. Logits are read once, in the dtype that the head left them in."""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.likeliest import reference

Implementation = Literal["reference", "triton"]

__all__ = ["Implementation", "likeliest"]


def likeliest(logits: torch.Tensor, *, impl: Implementation) -> torch.Tensor:
    """int32 [rows, 2] for logits [rows, vocab], contiguous, of any float dtype: the token with the
    largest logit, the first of equal ones, and the bits of its log-probability in float32.

    A row with something that is no number gives the first such token, and a log-probability that is
    no number, as a row does whose largest logit is infinite. Raises ValueError for other shapes.
    """
    if logits.dim() != 2 or not logits.shape[1] or not logits.is_contiguous():
        raise ValueError(f"logits {tuple(logits.shape)}: contiguous rows of a vocabulary")
    if impl == "reference":
        return reference.likeliest(logits)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.likeliest import kernel

    return kernel.likeliest(logits)
