# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""The parts of a list into one: each is weighed by its highest score and its sum of weights."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows"])
def merge_kernel(
    partial,
    marks,
    begins,
    ends,
    out,
    out_row,
    out_head,
    rows,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    PARTS: tl.constexpr,
    PACKED: tl.constexpr,
):
    """`out` of a row and head, from its parts [begin, end); without PACKED they begin at 0."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    column = tl.arange(0, PADDED)
    highest = -1e30
    total = 0.0
    read = tl.zeros([PADDED], tl.float32)
    parts = tl.load(ends + row)
    begin = 0
    if PACKED:
        begin = tl.load(begins + row)
    for first in range(begin, parts, PARTS):
        part = first + tl.arange(0, PARTS)
        there = part < parts
        place = (part * rows.to(tl.int64) + row) * HEADS + head
        mark = tl.load(marks + place * 2, mask=there, other=-1e30)
        raised = tl.maximum(highest, tl.max(mark, 0))
        fade = tl.exp2(highest - raised)
        share = tl.exp2(mark - raised)
        sums = tl.load(marks + place * 2 + 1, mask=there, other=0.0)
        total = total * fade + tl.sum(sums * share, 0)
        values = tl.load(
            partial + place[:, None] * PADDED + column[None, :], mask=there[:, None], other=0.0
        )
        read = read * fade + tl.sum(values * share[:, None], 0)
        highest = raised
    result = (read / total).to(out.dtype.element_ty)
    tl.store(out + row * out_row + head * out_head + column, result, mask=column < WIDTH)
