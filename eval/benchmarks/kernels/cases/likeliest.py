"""The likeliest token of a step's rows and its log-probability, against torch's reductions.

What is compared are tokens; logits are what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch

from backend.ops.likeliest import likeliest
from eval.benchmarks.kernels.case import Case, Contender, Setup, name_of, size_of

_ROWS, _ODD_ROWS = (1, 16), (3,)
_DTYPE = torch.bfloat16


def cases(setup: Setup) -> Iterator[Case]:
    """See the package. On a CPU there is no kernel, so no case."""
    if setup.device.type != "cuda":
        return
    for shape in setup.shapes:
        for rows in (*_ODD_ROWS, *_ROWS):
            if shape.vocab:
                yield _case(setup, shape.name, rows, shape.vocab, timed=rows in _ROWS)


def _case(setup: Setup, name: str, rows: int, vocab: int, *, timed: bool) -> Case:
    generator = setup.generator(rows, vocab)
    logits = setup.normal(generator, rows, vocab, dtype=_DTYPE) * 5

    def contender(name: str, call: Callable[[], torch.Tensor], *, peer: bool) -> Contender:
        return Contender(name, partial(_tokens, call), size_of(logits), "float32", peer)

    by_torch, by_kernel = (
        partial(likeliest, logits, impl=impl) for impl in ("reference", "triton")
    )
    return Case(
        op="likeliest",
        shape=f"{name}, {rows} x {vocab}",
        dtype=name_of(_DTYPE),
        reference=partial(_tokens, by_torch),
        contenders=(
            contender("kernel", by_kernel, peer=False),
            contender("torch", by_torch, peer=True),
        ),
        flops=3.0 * rows * vocab,
        tolerance=0.0,
        timed=timed,
    )


def _tokens(call: Callable[[], torch.Tensor]) -> torch.Tensor:
    return call()[:, 0]
