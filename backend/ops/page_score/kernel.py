# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""One program a page and key-value head: bounds over its tokens, scores over its distances."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from backend.ops.page_codec.codes import channel_keys, numbers_of
from backend.ops.page_codec.decode import native_fp8
from kvstore.formats.packed import PackedFormat
from kvstore.types import PAGE_TOKENS


def page_bounds(
    data: torch.Tensor,
    layer: int,
    refs: torch.Tensor,
    width: int,
    form: PackedFormat | None,
) -> torch.Tensor:
    """See the package."""
    kv_heads = data.shape[3]
    out = torch.empty((len(refs), kv_heads, 2, width), dtype=torch.float32, device=data.device)
    words, fields, steps, each, coding = data, 0, 0, True, "plain"
    if form is not None:
        fields, steps = form.starts(width, 0)[1:3]
        each, coding = form.fields(width, 0)[1].rows == PAGE_TOKENS, form.coding
        words = data.view(torch.int16 if form.coding == "int4" else torch.float32)
    half = -(-width // 2)
    _bounds_kernel[(len(refs), kv_heads)](
        data,
        words,
        out,
        refs,
        data.stride(0),
        layer * data.stride(1),
        data.stride(3),
        data.stride(4),
        fields,
        steps,
        HEADS=kv_heads,
        WIDTH=width,
        HALF=half,
        PADDED=triton.next_power_of_2(half),
        PAGE=PAGE_TOKENS,
        CODING=coding,
        EACH=each,
        NATIVE=native_fp8(data.device),
        num_warps=4,
    )
    return out


def page_score(
    q: torch.Tensor,
    bounds: torch.Tensor,
    reduce: str,
    refs: torch.Tensor | None,
    first: int,
    cos: torch.Tensor | None,
    sin: torch.Tensor | None,
) -> torch.Tensor:
    """See the package."""
    rows, heads, width = q.shape
    pages, kv_heads = bounds.shape[:2]
    out = torch.empty((kv_heads, pages), dtype=torch.float32, device=q.device)
    _score_kernel[(pages, kv_heads)](
        q,
        bounds,
        out,
        bounds if refs is None else refs,
        bounds if cos is None else cos,
        bounds if sin is None else sin,
        q.stride(0),
        q.stride(1),
        0 if cos is None else cos.stride(0),
        0 if sin is None else sin.stride(0),
        rows,
        first,
        pages,
        width**-0.5,
        GROUP=heads // kv_heads,
        KV_HEADS=kv_heads,
        HALF=width // 2,
        PADDED=triton.next_power_of_2(width // 2),
        PAGE=1 if refs is None else PAGE_TOKENS,
        PLACED=refs is not None,
        SUM=reduce == "sum",
        num_warps=4,
    )
    return out


@triton.jit
def _bounds_kernel(
    data,
    words,
    out,
    refs,
    page_stride,
    layer_offset,
    head_stride,
    token_stride,
    fields,
    steps,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    HALF: tl.constexpr,
    PADDED: tl.constexpr,
    PAGE: tl.constexpr,
    CODING: tl.constexpr,
    EACH: tl.constexpr,
    NATIVE: tl.constexpr,
):
    number = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    page = tl.load(refs + number * 4).to(tl.int64)
    first = tl.load(refs + number * 4 + 1)
    count = tl.load(refs + number * 4 + 2)
    slot = tl.arange(0, PAGE)
    column = tl.arange(0, PADDED)
    used = ((slot >= first) & (slot < first + count))[:, None]
    of_a = used & (column < HALF)[None, :]
    of_b = of_a & (HALF + column < WIDTH)[None, :]
    place = page * page_stride + layer_offset + head * head_stride
    base = data + place
    if CODING == "plain":
        key = base + slot[:, None] * token_stride + column[None, :]
        key_a = tl.load(key, mask=of_a, other=0.0).to(tl.float32)
        key_b = tl.load(key + HALF, mask=of_b, other=0.0).to(tl.float32)
    elif CODING == "int4":
        byte = tl.load(base + slot[:, None] * HALF + column[None, :], mask=of_a, other=0)
        key_a, key_b = channel_keys(
            byte.to(tl.int32), words + (place + fields) // 2, base + steps, slot, column, WIDTH
        )
    else:
        key = base + slot[:, None] * WIDTH + column[None, :]
        group = slot if EACH else slot // 32
        scale = tl.load(words + (place + fields) // 4 + group)[:, None]
        key_a = numbers_of(tl.load(key, mask=of_a, other=0), CODING == "fp8", NATIVE) * scale
        key_b = numbers_of(tl.load(key + HALF, mask=of_b, other=0), CODING == "fp8", NATIVE) * scale
    target = out + (number * HEADS + head) * 2 * WIDTH + column
    least, largest = _span(key_a, of_a)
    tl.store(target, least, mask=column < HALF)
    tl.store(target + WIDTH, largest, mask=column < HALF)
    least, largest = _span(key_b, of_b)
    tl.store(target + HALF, least, mask=HALF + column < WIDTH)
    tl.store(target + WIDTH + HALF, largest, mask=HALF + column < WIDTH)


@triton.jit
def _span(key, used):
    """Least and largest of each column; no number where one is none."""
    fault = tl.max((used & (key != key)).to(tl.int32), 0) > 0
    least = tl.min(tl.where(used, key, float("inf")), 0)
    largest = tl.max(tl.where(used, key, float("-inf")), 0)
    return tl.where(fault, float("nan"), least), tl.where(fault, float("nan"), largest)


@triton.jit(do_not_specialize=["rows", "first_row", "pages"])
def _score_kernel(
    q,
    bounds,
    out,
    refs,
    cos,
    sin,
    q_row,
    q_head,
    cos_row,
    sin_row,
    rows,
    first_row,
    pages,
    scale,
    GROUP: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HALF: tl.constexpr,
    PADDED: tl.constexpr,
    PAGE: tl.constexpr,
    PLACED: tl.constexpr,
    SUM: tl.constexpr,
):
    page = tl.program_id(0).to(tl.int64)
    kv_head = tl.program_id(1)
    column = tl.arange(0, PADDED)
    inside = column < HALF
    own = bounds + (page * KV_HEADS + kv_head) * 4 * HALF + column
    least_a = tl.load(own, mask=inside, other=0.0)[None, :]
    least_b = tl.load(own + HALF, mask=inside, other=0.0)[None, :]
    largest_a = tl.load(own + 2 * HALF, mask=inside, other=0.0)[None, :]
    largest_b = tl.load(own + 3 * HALF, mask=inside, other=0.0)[None, :]
    token = tl.arange(0, PAGE)
    count = 1
    start = 0
    if PLACED:
        count = tl.load(refs + page * 4 + 2)
        start = tl.load(refs + page * 4 + 3)
    found = 0.0 if SUM else float("-inf")
    for member in tl.static_range(0, GROUP):
        best = float("-inf")
        asked = q + (kv_head * GROUP + member) * q_head + column
        for row in range(0, rows):
            a = tl.load(asked, mask=inside, other=0.0).to(tl.float32)[None, :]
            b = tl.load(asked + HALF, mask=inside, other=0.0).to(tl.float32)[None, :]
            seen = token < count
            if PLACED:
                distance = first_row + row - start - token
                seen = seen & (distance >= 0)
                angle = tl.maximum(distance, 0).to(tl.int64)[:, None]
                wanted = seen[:, None] & inside[None, :]
                c = tl.load(cos + angle * cos_row + column[None, :], mask=wanted, other=0.0)
                # The second half of the table has the sines themselves, the first their negative.
                s = tl.load(sin + angle * sin_row + HALF + column[None, :], mask=wanted, other=0.0)
                turned_a = a * c - b * s
                turned_b = b * c + a * s
            else:
                turned_a = a
                turned_b = b
            bound = tl.maximum(turned_a * least_a, turned_a * largest_a)
            bound += tl.maximum(turned_b * least_b, turned_b * largest_b)
            asked += q_row
            best = tl.maximum(best, tl.max(tl.where(seen, tl.sum(bound, 1), float("-inf")), 0))
        found = found + best if SUM else tl.maximum(found, best)
    tl.store(out + kv_head.to(tl.int64) * pages + page, found * scale)
