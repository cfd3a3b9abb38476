# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Page-list attention in Triton: parts of a list side by side, then a merge.

A program reads some pages of one request's list for one key-value head and all query heads of its
group. How many is worked out on the device, so that a recorded launch serves lists of any length.
Rotation by a token's position is rotation by its page's start and then by its place in the page:
keys are turned by their place, with a table of one page that stays in registers, and the few
queries once a page by what is left. So no table of positions is read beside the keys. Source of the
split: Dao et al., Flash-Decoding (2023).
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from backend.ops.page_attention.lists import PageLists
from kvstore.types import PAGE_TOKENS

_LEAST_ROWS = 16
"""Query rows (times heads of a group) of a program: what a product takes at least."""

_ROW_ELEMENTS = 4096
"""Most query elements of a program, so that registers hold what they read."""

_WAVES = 16
"""Programs a multiprocessor gets, if a list is long enough for as many parts: many short ones even
out (measured on an H200, 16 lists of 32,768 tokens at 8 heads of 128: 2 give 2.5 TB/s, 16 3.1)."""

_MOST_PARTS = 256
"""Parts of a list: the merge reads them all."""

_LEAST_PAGES = 2
"""Pages of a part, so that a short list has few to merge."""

_WARPS = {64: 2, 128: 4, 256: 4}
"""By padded head size (16 lists of 32,768 tokens at 3 heads of 64: 4 give 2.6 TB/s, 2 3.2)."""

_MERGED = 16
"""Parts that a merge takes at a time."""

_PROCESSORS_ELSEWHERE = 8
"""Without a GPU (under the interpreter) lists are split as for a small one."""


def page_attention(
    q: torch.Tensor,
    data: torch.Tensor,
    layer: int,
    lists: PageLists,
    cos: torch.Tensor,
    sin: torch.Tensor,
    parts: int | None,
) -> torch.Tensor:
    """See the package."""
    rows, heads, width = q.shape
    kv_heads, requests = data.shape[3], len(lists.requests)
    group = heads // kv_heads
    wanted = triton.next_power_of_2(lists.most_rows * group)
    padded = triton.next_power_of_2(width)
    tile = max(_LEAST_ROWS, min(wanted, _ROW_ELEMENTS // padded))
    row_tiles = triton.cdiv(lists.most_rows * group, tile)
    parts = parts or min(
        parts_of(q.device, row_tiles * kv_heads * requests),
        triton.cdiv(lists.most_pages, _LEAST_PAGES),
    )
    partial = torch.empty((parts, rows, heads, padded), dtype=torch.float32, device=q.device)
    # Highest score and sum of weights of a part; one past the end of a list adds nothing.
    marks = torch.empty((parts, rows, heads, 2), dtype=torch.float32, device=q.device)
    # How many parts a row's list has in fact.
    used = torch.empty(rows, dtype=torch.int32, device=q.device)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    _part_kernel[(row_tiles * parts, kv_heads, requests)](
        q,
        data,
        partial,
        marks,
        used,
        lists.refs,
        lists.requests,
        lists.requests.stride(0),
        cos,
        sin,
        q.stride(0),
        q.stride(1),
        data.stride(0),
        layer * data.stride(1),
        data.stride(2),
        data.stride(3),
        data.stride(4),
        cos.stride(0),
        sin.stride(0),
        rows,
        parts,
        width**-0.5 * math.log2(math.e),
        GROUP=group,
        HEADS=heads,
        WIDTH=width,
        PADDED=padded,
        ROWS=tile,
        PAGE=PAGE_TOKENS,
        LEAST=_LEAST_PAGES,
        num_warps=_WARPS.get(padded, 4),
        # At 256 two stages would take more shared memory than an L20 has.
        num_stages=3 if padded <= 128 else 1,
    )
    _merge_kernel[(rows, heads)](
        partial,
        marks,
        used,
        out,
        out.stride(0),
        out.stride(1),
        rows,
        HEADS=heads,
        WIDTH=width,
        PADDED=padded,
        PARTS=_MERGED,
        num_warps=4,
    )
    return out


def parts_of(device: torch.device, programs: int) -> int:
    """Parts of a list that fill the device when each part takes `programs` programs."""
    processors = _PROCESSORS_ELSEWHERE
    if device.type == "cuda":
        processors = torch.cuda.get_device_properties(device).multi_processor_count
    return min(-(-_WAVES * processors // programs), _MOST_PARTS)


@triton.jit(do_not_specialize=["rows", "parts", "entry_row"])
def _part_kernel(
    q,
    data,
    partial,
    marks,
    used_parts,
    refs,
    requests,
    entry_row,
    cos,
    sin,
    q_row,
    q_head,
    page_stride,
    layer_offset,
    value_stride,
    head_stride,
    token_stride,
    cos_row,
    sin_row,
    rows,
    parts,
    scale,
    GROUP: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    ROWS: tl.constexpr,
    PAGE: tl.constexpr,
    LEAST: tl.constexpr,
):
    HALF: tl.constexpr = WIDTH // 2
    PADDED_HALF: tl.constexpr = PADDED // 2
    part = tl.program_id(0) % parts
    tile = tl.program_id(0) // parts
    kv_head = tl.program_id(1)
    entry = requests + tl.program_id(2) * entry_row
    first_page = tl.load(entry)
    pages = tl.load(entry + 1)
    first_row = tl.load(entry + 2)
    count = tl.load(entry + 3)
    tokens = tl.load(entry + 4)
    each = tl.maximum(tl.cdiv(pages, parts), LEAST)
    if (tile * ROWS >= count * GROUP) | (part * each >= pages):
        return

    row = tile * ROWS + tl.arange(0, ROWS)
    token = row // GROUP
    head = kv_head * GROUP + row % GROUP
    real = token < count
    position = tokens - count + token
    column = tl.arange(0, PADDED_HALF)
    narrow = column < HALF
    asked = q + (first_row + token).to(tl.int64) * q_row + head * q_head
    inside = real[:, None] & narrow[None, :]
    ask_a = tl.load(asked[:, None] + column[None, :], mask=inside, other=0.0).to(tl.float32)
    ask_b = tl.load(asked[:, None] + HALF + column[None, :], mask=inside, other=0.0).to(tl.float32)
    # The two halves of a table hold the same cosines, and sines of opposite sign.
    slot = tl.arange(0, PAGE)
    whole = narrow[None, :] & (slot >= 0)[:, None]
    turn_c = tl.load(cos + slot[:, None] * cos_row + column[None, :], mask=whole, other=0.0)
    turn_s = tl.load(sin + slot[:, None] * sin_row + HALF + column[None, :], mask=whole, other=0.0)

    highest = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    read = tl.zeros([ROWS, PADDED], tl.float32)
    wide = tl.arange(0, PADDED)
    kind = data.dtype.element_ty
    last_page = tl.minimum(part * each + each, pages) - 1
    ref = refs + (first_page + part * each) * 4
    next_page = tl.load(ref)
    next_first = tl.load(ref + 1)
    next_count = tl.load(ref + 2)
    next_start = tl.load(ref + 3)
    for index in range(part * each, last_page + 1):
        page = next_page.to(tl.int64)
        first = next_first
        start = next_start - first
        used = (slot >= first) & (slot < first + next_count) & (slot < tokens - start)
        # The next page is looked up early: its keys would wait for that, one memory access after
        # the other.
        ref = refs + (first_page + tl.minimum(index + 1, last_page)) * 4
        next_page = tl.load(ref)
        next_first = tl.load(ref + 1)
        next_count = tl.load(ref + 2)
        next_start = tl.load(ref + 3)
        angle = tl.maximum(position - start, 0).to(tl.int64)[:, None]
        ask_c = tl.load(cos + angle * cos_row + column[None, :], mask=inside, other=0.0) * scale
        ask_s = (
            tl.load(sin + angle * sin_row + HALF + column[None, :], mask=inside, other=0.0) * scale
        )
        base = data + page * page_stride + layer_offset + kv_head.to(tl.int64) * head_stride
        key = base + slot[:, None] * token_stride + column[None, :]
        some = used[:, None] & narrow[None, :]
        key_a = tl.load(key, mask=some, other=0.0).to(tl.float32)
        key_b = tl.load(key + HALF, mask=some, other=0.0).to(tl.float32)
        turned_a = (key_a * turn_c - key_b * turn_s).to(kind)
        turned_b = (key_b * turn_c + key_a * turn_s).to(kind)
        asked_a = (ask_a * ask_c - ask_b * ask_s).to(kind)
        asked_b = (ask_b * ask_c + ask_a * ask_s).to(kind)
        scores = tl.dot(asked_a, tl.trans(turned_a), input_precision="ieee")
        scores = tl.dot(asked_b, tl.trans(turned_b), scores, input_precision="ieee")
        seen = used[None, :] & (start + slot[None, :] <= position[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        raised = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - raised[:, None])
        fade = tl.exp2(highest - raised)
        total = total * fade + tl.sum(weights, 1)
        highest = raised
        value = tl.load(
            base + value_stride + slot[:, None] * token_stride + wide[None, :],
            mask=used[:, None] & (wide < WIDTH)[None, :],
            other=0.0,
        )
        read = tl.dot(weights.to(kind), value, read * fade[:, None], input_precision="ieee")
    place = (part * rows.to(tl.int64) + first_row + token) * HEADS + head
    tl.store(partial + place[:, None] * PADDED + wide[None, :], read, mask=real[:, None])
    tl.store(marks + place * 2, highest, mask=real)
    tl.store(marks + place * 2 + 1, total, mask=real)
    if part == 0:
        tl.store(used_parts + first_row + token, tl.cdiv(pages, each), mask=real)


@triton.jit(do_not_specialize=["rows"])
def _merge_kernel(
    partial,
    marks,
    used_parts,
    out,
    out_row,
    out_head,
    rows,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    PARTS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    column = tl.arange(0, PADDED)
    highest = -1e30
    total = 0.0
    read = tl.zeros([PADDED], tl.float32)
    parts = tl.load(used_parts + row)
    for first in range(0, parts, PARTS):
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
