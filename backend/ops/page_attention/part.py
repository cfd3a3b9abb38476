# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""One part of a page list: some of its pages, read by all query heads of one key-value head.

Rotation by a token's position is rotation by its page's start and then by its place in the page:
keys are turned by their place, with a table of one page that stays in registers, and the few
queries once a page by what is left. So no table of positions is read beside the keys. Packed pages
are decoded in registers; products are of the queries' dtype and sums of float32.
"""

from __future__ import annotations

import triton
import triton.language as tl

from backend.ops.page_codec.codes import channel_keys, numbers_of, token_values


@triton.jit(do_not_specialize=["rows", "parts", "ahead", "entry_row"])
def part_kernel(
    q,
    data,
    words,
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
    key_fields,
    value_fields,
    key_steps,
    value_steps,
    cos_row,
    sin_row,
    rows,
    parts,
    ahead,
    scale,
    GROUP: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    ROWS: tl.constexpr,
    PAGE: tl.constexpr,
    LEAST: tl.constexpr,
    CODING: tl.constexpr,
    EACH: tl.constexpr,
    NATIVE: tl.constexpr,
):
    """One part of one list, for the query heads of one key-value head.

    CODING "plain": `data` has a token's channels `token_stride` apart from the next one's, and
    `words` is not read. Else `data` are bytes and `words` the same in the type of what stands at
    `key_fields` and `value_fields` of a cell: scales (EACH token has its own, or 32 share one), or
    the least numbers of "int4", whose step bytes are at `key_steps` and `value_steps`. Parts of
    plain lists stand at `ahead` and after, those of packed lists before it, the first one last.
    """
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
    row = tile * ROWS + tl.arange(0, ROWS)
    token = row // GROUP
    head = kv_head * GROUP + row % GROUP
    real = token < count
    if part == 0:
        # Also where a list has no packed page, and so no part.
        found = tl.cdiv(pages, each)
        bound = ahead + found if CODING == "plain" else ahead - found
        tl.store(used_parts + first_row + token, bound, mask=real)
    if (tile * ROWS >= count * GROUP) | (part * each >= pages):
        return

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
    kind = q.dtype.element_ty
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
        place = page * page_stride + layer_offset + kv_head.to(tl.int64) * head_stride
        base = data + place
        some = used[:, None] & narrow[None, :]
        if CODING == "plain":
            key = base + slot[:, None] * token_stride + column[None, :]
            key_a = tl.load(key, mask=some, other=0.0).to(tl.float32)
            key_b = tl.load(key + HALF, mask=some, other=0.0).to(tl.float32)
        elif CODING == "int4":
            byte = tl.load(base + slot[:, None] * HALF + column[None, :], mask=some, other=0)
            key_a, key_b = channel_keys(
                byte.to(tl.int32),
                words + (place + key_fields) // 2,
                base + key_steps,
                slot,
                column,
                WIDTH,
            )
        else:
            key = base + slot[:, None] * WIDTH + column[None, :]
            key_a = numbers_of(tl.load(key, mask=some, other=0), CODING == "fp8", NATIVE)
            key_b = numbers_of(tl.load(key + HALF, mask=some, other=0), CODING == "fp8", NATIVE)
        turned_a = (key_a * turn_c - key_b * turn_s).to(kind)
        turned_b = (key_b * turn_c + key_a * turn_s).to(kind)
        asked_a = (ask_a * ask_c - ask_b * ask_s).to(kind)
        asked_b = (ask_b * ask_c + ask_a * ask_s).to(kind)
        scores = tl.dot(asked_a, tl.trans(turned_a), input_precision="ieee")
        scores = tl.dot(asked_b, tl.trans(turned_b), scores, input_precision="ieee")
        if (CODING == "fp8") | (CODING == "int8"):
            # A token's scale is the same for all its channels, rotated or not.
            group = slot if EACH else slot // 32
            scores *= tl.load(words + (place + key_fields) // 4 + group, mask=used, other=0.0)[
                None, :
            ]
        seen = used[None, :] & (start + slot[None, :] <= position[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        raised = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - raised[:, None])
        fade = tl.exp2(highest - raised)
        total = total * fade + tl.sum(weights, 1)
        highest = raised
        held = weights
        inner = used[:, None] & (wide < WIDTH)[None, :]
        if CODING == "plain":
            value = tl.load(
                base + value_stride + slot[:, None] * token_stride + wide[None, :],
                mask=inner,
                other=0.0,
            )
        elif CODING == "int4":
            below = (wide < HALF)[None, :]
            at = slot[:, None] * HALF + tl.where(below, wide[None, :], wide[None, :] - HALF)
            byte = tl.load(base + value_stride + at, mask=inner, other=0).to(tl.int32)
            code = tl.where(below, byte, byte >> 4) & 15
            value = token_values(
                code,
                words + (place + value_stride + value_fields) // 2,
                base + value_stride + value_steps,
                slot,
                used,
                WIDTH,
                PADDED,
                PAGE,
            ).to(kind)
        else:
            code = tl.load(
                base + value_stride + slot[:, None] * WIDTH + wide[None, :], mask=inner, other=0
            )
            group = slot if EACH else slot // 32
            scales = words + (place + value_stride + value_fields) // 4 + group
            # Codes are exact in any of the products' dtypes: their scale goes with the weight.
            value = numbers_of(code, CODING == "fp8", NATIVE).to(kind)
            held *= tl.load(scales, mask=used, other=0.0)[None, :]
        read = tl.dot(held.to(kind), value, read * fade[:, None], input_precision="ieee")
    order = ahead + part if CODING == "plain" else ahead - 1 - part
    line = (order * rows.to(tl.int64) + first_row + token) * HEADS + head
    tl.store(partial + line[:, None] * PADDED + wide[None, :], read, mask=real[:, None])
    tl.store(marks + line * 2, highest, mask=real)
    tl.store(marks + line * 2 + 1, total, mask=real)
