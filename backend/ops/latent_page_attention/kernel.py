# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Latent page-list attention in Triton. It has run in the interpreter only: no size here was
measured, and the engine does not use it.

A program reads some pages of one request's list for some of its rows, row r being query head
r % heads of query row r // heads, so that a page is loaded once for many heads; what the parts of a
list read is merged in torch. Source of the split: Dao et al., Flash-Decoding (2023).
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from backend.ops.page_attention.lists import PageLists
from kvstore.types import PAGE_TOKENS

_ROWS, _KEYS = 16, 32
"""Query rows (times heads) of a program, and tokens of a page that it takes at a time."""

_LEAST = 16
"""Channels that a product takes at least."""

_LEAST_PAGES = 2
"""Pages of a part, so that a short list has few to merge."""

_WAVES = 4
"""Programs that a multiprocessor gets, if a list is long enough for as many parts."""

_PROCESSORS_ELSEWHERE = 8
"""Without a GPU (under the interpreter) lists are split as for a small one."""


def latent_page_attention(
    q: torch.Tensor,
    data: torch.Tensor,
    layer: int,
    lists: PageLists,
    rank: int,
    scale: float,
    cos: torch.Tensor,
    sin: torch.Tensor,
    parts: int | None,
) -> torch.Tensor:
    """See the package."""
    rows, heads, width = q.shape
    requests = len(lists.requests)
    padded = max(triton.next_power_of_2(rank), _LEAST)
    tiles = triton.cdiv(lists.most_rows * heads, _ROWS)
    if parts is None:
        filling = triton.cdiv(_WAVES * _processors(q.device), tiles * requests)
        parts = min(filling, triton.cdiv(lists.most_pages, _LEAST_PAGES))
    read = torch.empty((parts, rows, heads, padded), dtype=torch.float32, device=q.device)
    # Highest score and sum of weights of a part; one past the end of a list adds nothing.
    marks = torch.empty((parts, rows, heads, 2), dtype=torch.float32, device=q.device)
    _part_kernel[(tiles, parts, requests)](
        q,
        data,
        read,
        marks,
        lists.refs,
        lists.requests,
        lists.requests.stride(0),
        cos,
        sin,
        q.stride(0),
        q.stride(1),
        data.stride(0),
        layer * data.stride(1),
        data.stride(4),
        cos.stride(0),
        sin.stride(0),
        rows,
        scale * math.log2(math.e),
        HEADS=heads,
        RANK=rank,
        PADDED=padded,
        ROTATED=width - rank,
        TAIL=max(triton.next_power_of_2(width - rank), _LEAST),
        ROWS=_ROWS,
        KEYS=_KEYS,
        PAGE=PAGE_TOKENS,
        num_warps=4,
        num_stages=1,
    )
    highest, total = marks.unbind(-1)
    weights = torch.exp2(highest - highest.amax(0))
    merged = (read[..., :rank] * weights[..., None]).sum(0)
    return (merged / (total * weights).sum(0)[..., None]).to(q.dtype)


def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return _PROCESSORS_ELSEWHERE
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@triton.jit(do_not_specialize=["all_rows"])
def _part_kernel(
    q,
    data,
    read,
    marks,
    refs,
    requests,
    request_step,
    cos,
    sin,
    q_row,
    q_head,
    page_step,
    layer_at,
    token_step,
    cos_row,
    sin_row,
    all_rows,
    scale,
    HEADS: tl.constexpr,
    RANK: tl.constexpr,
    PADDED: tl.constexpr,
    ROTATED: tl.constexpr,
    TAIL: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    PAGE: tl.constexpr,
):
    tile = tl.program_id(0)
    part = tl.program_id(1)
    entry = requests + tl.program_id(2) * request_step
    start = tl.load(entry)
    pages = tl.load(entry + 1)
    first_row = tl.load(entry + 2)
    rows = tl.load(entry + 3)
    tokens = tl.load(entry + 4)
    if tile * ROWS >= rows * HEADS:
        return
    each = tl.cdiv(pages, tl.num_programs(1))

    row = tile * ROWS + tl.arange(0, ROWS)
    asker = row // HEADS
    head = row % HEADS
    there = (asker < rows)[:, None]
    channel = tl.arange(0, PADDED)
    real = (channel < RANK)[None, :]
    origin = q + (first_row + asker).to(tl.int64) * q_row + head * q_head
    asked = tl.load(origin[:, None] + channel[None, :], mask=there & real, other=0.0)
    turned = tl.arange(0, TAIL)
    rolled = (turned + ROTATED // 2) % ROTATED
    narrow = (turned < ROTATED)[None, :]
    origin += RANK
    plain = tl.load(origin[:, None] + turned[None, :], mask=there & narrow, other=0.0)
    shifted = tl.load(origin[:, None] + rolled[None, :], mask=there & narrow, other=0.0)
    position = tokens - rows + asker
    angle = position.to(tl.int64)[:, None]
    turn_c = tl.load(cos + angle * cos_row + turned[None, :], mask=there & narrow, other=0.0)
    turn_s = tl.load(sin + angle * sin_row + turned[None, :], mask=there & narrow, other=0.0)
    asked_tail = plain.to(tl.float32) * turn_c + shifted.to(tl.float32) * turn_s
    asked_tail = asked_tail.to(q.dtype.element_ty)

    # Finite, so that a row with nothing in view yet stays free of inf - inf.
    highest = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    result = tl.zeros([ROWS, PADDED], tl.float32)
    for index in range(part * each, tl.minimum((part + 1) * each, pages)):
        ref = refs + (start + index) * 4
        page = tl.load(ref).to(tl.int64) * page_step + layer_at
        first = tl.load(ref + 1)
        count = tl.load(ref + 2)
        begins = tl.load(ref + 3) - first
        for half in tl.static_range(0, PAGE, KEYS):
            slot = half + tl.arange(0, KEYS)
            stands = begins + slot
            used = (slot >= first) & (slot < first + count) & (stands < tokens)
            at = data + page + slot[:, None] * token_step
            latent = tl.load(at + channel[None, :], mask=used[:, None] & real, other=0.0)
            mask = used[:, None] & narrow
            at += RANK
            own = tl.load(at + turned[None, :], mask=mask, other=0.0).to(tl.float32)
            rolled_own = tl.load(at + rolled[None, :], mask=mask, other=0.0).to(tl.float32)
            turn = stands.to(tl.int64)[:, None]
            own_c = tl.load(cos + turn * cos_row + turned[None, :], mask=mask, other=0.0)
            own_s = tl.load(sin + turn * sin_row + turned[None, :], mask=mask, other=0.0)
            shared = (own * own_c + rolled_own * own_s).to(latent.dtype)
            scores = tl.dot(asked, tl.trans(latent), input_precision="ieee")
            scores = tl.dot(asked_tail, tl.trans(shared), scores, input_precision="ieee") * scale
            view = used[None, :] & (stands[None, :] <= position[:, None])
            scores = tl.where(view, scores, float("-inf"))
            raised = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp2(scores - raised[:, None])
            fade = tl.exp2(highest - raised)
            total = total * fade + tl.sum(weights, 1)
            highest = raised
            weights = weights.to(latent.dtype)
            result = tl.dot(weights, latent, result * fade[:, None], input_precision="ieee")
    place = (part * all_rows + first_row + asker).to(tl.int64) * HEADS + head
    tl.store(read + place[:, None] * PADDED + channel[None, :], result, mask=there)
    tl.store(marks + place * 2, highest, mask=asker < rows)
    tl.store(marks + place * 2 + 1, total, mask=asker < rows)
