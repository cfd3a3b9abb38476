# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Two launches: programs that look at a piece of a row each, and one a row that merges pieces.

Pieces are of one size, however many rows there are, so that a row's result is its own. A piece is
described by its largest number, the sum of the exponentials less that, and the token: the first
with the largest number, or the first that is no number, whose sum is none either.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_PIECE = 2048
"""Logits of a program: 63 programs for a row of 128,256, and 16 logits in 16 bits a thread."""
_PIECE_WARPS = 4
_NOWHERE = tl.constexpr(2**31 - 1)


def likeliest(logits: torch.Tensor) -> torch.Tensor:
    """See the package."""
    rows, vocab = logits.shape
    pieces = triton.cdiv(vocab, _PIECE)
    tops, sums = torch.empty((2, rows, pieces), dtype=torch.float32, device=logits.device)
    places = torch.empty((rows, pieces), dtype=torch.int32, device=logits.device)
    told = torch.empty((rows, 2), dtype=torch.int32, device=logits.device)
    if rows:
        _piece_kernel[(pieces, rows)](
            logits, tops, sums, places, VOCAB=vocab, PIECE=_PIECE, PIECES=pieces,
            num_warps=_PIECE_WARPS,
        )  # fmt: skip
        _merge_kernel[(rows,)](
            tops, sums, places, told, PIECES=pieces, PADDED=triton.next_power_of_2(pieces),
            num_warps=1,
        )  # fmt: skip
    return told


@triton.jit
def _finite_or_zero(top):
    """What is taken off before an exponential: nothing that makes numbers of what is none, and none
    of what are numbers."""
    return tl.where(tl.abs(top) == float("inf"), 0.0, top)


@triton.jit
def _piece_kernel(
    logits,
    tops,
    sums,
    places,
    VOCAB: tl.constexpr,
    PIECE: tl.constexpr,
    PIECES: tl.constexpr,
):
    piece = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    token = piece * PIECE + tl.arange(0, PIECE)
    inside = token < VOCAB
    given = tl.load(logits + row * VOCAB + token, mask=inside, other=float("-inf")).to(tl.float32)
    wrong = given != given
    top = tl.max(tl.where(wrong, float("-inf"), given), 0)
    first = tl.min(tl.where((given == top) & inside, token, _NOWHERE), 0)
    first_wrong = tl.min(tl.where(wrong, token, _NOWHERE), 0)
    place = row * PIECES + piece
    tl.store(tops + place, top)
    tl.store(sums + place, tl.sum(tl.exp(given - _finite_or_zero(top)), 0))
    tl.store(places + place, tl.where(first_wrong < VOCAB, first_wrong, first))


@triton.jit
def _merge_kernel(
    tops,
    sums,
    places,
    told,
    PIECES: tl.constexpr,
    PADDED: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    piece = tl.arange(0, PADDED)
    inside = piece < PIECES
    at = row * PIECES + piece
    top = tl.load(tops + at, mask=inside, other=float("-inf"))
    total = tl.load(sums + at, mask=inside, other=0.0)
    place = tl.load(places + at, mask=inside, other=_NOWHERE)
    largest = tl.max(top, 0)
    shift = _finite_or_zero(largest)
    first = tl.min(tl.where(top == largest, place, _NOWHERE), 0)
    first_wrong = tl.min(tl.where(total != total, place, _NOWHERE), 0)
    weight = tl.where(total == 0.0, 0.0, total * tl.exp(_finite_or_zero(top) - shift))
    score = largest - (shift + tl.log(tl.sum(weight, 0)))
    tl.store(told + row * 2, tl.where(first_wrong < _NOWHERE, first_wrong, first))
    tl.store(told + row * 2 + 1, score.to(tl.int32, bitcast=True))
