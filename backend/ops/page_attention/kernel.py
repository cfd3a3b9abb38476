"""Page-list attention in Triton: parts of a list side by side, then a merge.

A program reads some pages of one request's list for one key-value head and all query heads of its
group. How many is worked out on the device, so that a recorded launch serves lists of any length.
Packed pages are a second launch, whose parts are merged with those of the first. Source of the
split: Dao et al., Flash-Decoding (2023).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton

from backend.ops.page_attention.lists import PackedPages, PageLists
from backend.ops.page_attention.merge import merge_kernel
from backend.ops.page_attention.part import part_kernel
from backend.ops.page_attention.tiles import (
    WARP_ROWS,
    WarpTiles,
    choose_page_tiles,
    choose_warp_tiles,
)
from backend.ops.page_codec.decode import native_fp8
from kvstore.formats.packed import Coding
from kvstore.types import PAGE_TOKENS

_LEAST_ROWS = 16
"""Query rows (times heads of a group) of a program: what a product takes at least."""

_ROW_ELEMENTS = 4096
"""Most query elements of a program, so that registers hold what they read."""

_MOST_PARTS = 256
"""Parts of a list: the merge reads them all."""

_LEAST_PAGES = 2
"""Pages of a part, so that a short list has few to merge."""

_LISTS = 32
"""Requests that one compiled kernel serves at least: as many as a step of the engine has."""

_MERGED = 16
"""Parts that a merge takes at a time."""

_PROCESSORS_ELSEWHERE = 8
"""Without a GPU (under the interpreter) lists are split as for a small one."""


_LEAST_WIDTH = 32
"""Padded head size: what a product of halves and a group of four-bit values take at least."""


@dataclass(frozen=True, slots=True)
class _Cells:
    """How the kernel reads a pool: `words` beside its bytes, where the fields of keys and values
    are, (0, 0) for a plain one."""

    coding: Coding | str
    words: torch.Tensor
    fields: tuple[int, int] = (0, 0)
    steps: tuple[int, int] = (0, 0)
    each: bool = True


def page_attention(
    q: torch.Tensor,
    data: torch.Tensor,
    layer: int,
    lists: PageLists,
    cos: torch.Tensor,
    sin: torch.Tensor,
    parts: int | None,
    packed: PackedPages | None,
) -> torch.Tensor:
    """See the package."""
    rows, heads, width = q.shape
    kv_heads, requests = data.shape[3], len(lists.requests)
    group = heads // kv_heads
    wanted = triton.next_power_of_2(lists.most_rows * group)
    padded = max(triton.next_power_of_2(width), _LEAST_WIDTH)
    tile = max(_LEAST_ROWS, min(wanted, _ROW_ELEMENTS // padded))
    row_tiles = triton.cdiv(lists.most_rows * group, tile)
    plain = _Cells("plain", data)
    few = lists.most_rows * group <= WARP_ROWS

    def warp_tiles(data: torch.Tensor, cells: _Cells, most_pages: int) -> WarpTiles | None:
        if not few or not _suits_warps(q, data, cells, cos, sin):
            return None
        return choose_warp_tiles(width, data.dtype, q.device, most_pages * requests)

    def parts_for(most_pages: int, data: torch.Tensor, apart: WarpTiles | None) -> int:
        most = -(-most_pages // _LEAST_PAGES)
        if apart is not None:
            # The first and the last part of a list may be short ones.
            return min(warp_programs(most_pages, apart), most + 1)
        waves = choose_page_tiles(padded, data.dtype, q.device).waves
        return parts or min(parts_of(q.device, row_tiles * kv_heads * requests, waves), most)

    def warp_programs(most_pages: int, tiles: WarpTiles) -> int:
        if parts:
            wanted = parts * requests
        else:
            wanted = max(tiles.waves * _processors(q.device) // kv_heads, 1)
        return min(wanted, -(-most_pages // _LEAST_PAGES) * requests)

    own_apart = warp_tiles(data, plain, lists.most_pages)
    own = parts_for(lists.most_pages, data, own_apart)
    ahead, ahead_apart, packed_cells = 0, None, None
    if packed is not None:
        packed_cells = _cells(packed, width)
        ahead_apart = warp_tiles(packed.data, packed_cells, packed.most_pages)
        ahead = parts_for(max(packed.most_pages, 1), packed.data, ahead_apart)
    every = ahead + own
    partial = torch.empty((every, rows, heads, padded), dtype=torch.float32, device=q.device)
    # Highest score and sum of weights of a part; one past the end of a list adds nothing.
    marks = torch.empty((every, rows, heads, 2), dtype=torch.float32, device=q.device)
    # The parts that a row's lists have in fact: [begins, ends).
    begins, ends = torch.empty((2, rows), dtype=torch.int32, device=q.device)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)

    def read(
        data: torch.Tensor,
        cells: _Cells,
        used: torch.Tensor,
        refs: torch.Tensor,
        requests: torch.Tensor,
        most_pages: int,
        parts: int,
        apart: WarpTiles | None,
    ) -> None:
        if apart is not None:
            programs = warp_programs(most_pages, apart)
            read_by_warps(data, cells, used, refs, requests, programs, apart)
            return
        tiles = choose_page_tiles(padded, data.dtype, q.device)
        part_kernel[(row_tiles * parts, kv_heads, len(requests))](
            q,
            data,
            cells.words,
            partial,
            marks,
            used,
            refs,
            requests,
            requests.stride(0),
            cos,
            sin,
            q.stride(0),
            q.stride(1),
            data.stride(0),
            layer * data.stride(1),
            data.stride(2),
            data.stride(3),
            data.stride(4),
            *cells.fields,
            *cells.steps,
            cos.stride(0),
            sin.stride(0),
            rows,
            parts,
            ahead,
            width**-0.5 * math.log2(math.e),
            GROUP=group,
            HEADS=heads,
            WIDTH=width,
            PADDED=padded,
            ROWS=tile,
            PAGE=PAGE_TOKENS,
            LEAST=_LEAST_PAGES,
            CODING=cells.coding,
            EACH=cells.each,
            NATIVE=native_fp8(q.device),
            num_warps=tiles.warps,
            num_stages=tiles.stages,
        )

    def read_by_warps(
        data: torch.Tensor,
        cells: _Cells,
        used: torch.Tensor,
        refs: torch.Tensor,
        requests: torch.Tensor,
        programs: int,
        tiles: WarpTiles,
    ) -> None:
        from backend.ops.page_attention.warp_part import warp_part_kernel

        words = data.view(torch.int32)
        warp_part_kernel[(programs, kv_heads)](
            q,
            words,
            words.view(torch.float32),
            partial,
            marks,
            used,
            refs,
            requests,
            requests.stride(0),
            len(requests),
            cos,
            sin,
            q.stride(0),
            q.stride(1),
            words.stride(0),
            layer * words.stride(1),
            words.stride(2),
            words.stride(3),
            cells.fields[0] // 4,
            cells.fields[1] // 4,
            cos.stride(0),
            sin.stride(0),
            rows,
            ahead,
            width**-0.5 * math.log2(math.e),
            GROUP=group,
            HEADS=heads,
            WIDTH=width,
            ROWS=WARP_ROWS,
            PAGE=PAGE_TOKENS,
            LEAST=_LEAST_PAGES,
            CODING=cells.coding,
            EACH=cells.each,
            STAGES=tiles.stages,
            LISTS=max(triton.next_power_of_2(len(requests)), _LISTS),
            num_warps=4,
            maxnreg=tiles.registers,
        )

    if packed is not None and packed_cells is not None:
        most = max(packed.most_pages, 1)
        pages = packed.refs, packed.requests, most
        read(packed.data, packed_cells, begins, *pages, ahead, ahead_apart)
    read(data, plain, ends, lists.refs, lists.requests, lists.most_pages, own, own_apart)
    merge_kernel[(rows, heads)](
        partial,
        marks,
        begins,
        ends,
        out,
        out.stride(0),
        out.stride(1),
        rows,
        HEADS=heads,
        WIDTH=width,
        PADDED=padded,
        PARTS=_MERGED,
        PACKED=packed is not None,
        num_warps=4,
    )
    return out


def _suits_warps(
    q: torch.Tensor, data: torch.Tensor, cells: _Cells, cos: torch.Tensor, sin: torch.Tensor
) -> bool:
    """Whether the kernel whose warps have tokens of their own reads such cells: codes of a byte or
    numbers of 16 bit without gaps, and tables whose places fit into 32 bits."""
    if cells.coding == "int4" or q.dtype not in (torch.float16, torch.bfloat16):
        return False
    if q.device.type != "cuda" or (cells.coding == "fp8" and not native_fp8(q.device)):
        return False
    if cells.coding == "plain" and data.stride(4) != data.shape[5]:
        return False
    longest = max(cos.stride(0) * cos.shape[0], sin.stride(0) * sin.shape[0])
    return longest < 2**31 and data.data_ptr() % 16 == 0


def _cells(packed: PackedPages, width: int) -> _Cells:
    form = packed.form
    keys, values = form.starts(width, 0), form.starts(width, 1)
    fields = (keys[1], values[1])
    if form.coding == "int4":
        words = packed.data.view(torch.int16)
        return _Cells(form.coding, words, fields, (keys[2], values[2]))
    each = form.fields(width, 0)[1].rows == PAGE_TOKENS
    return _Cells(form.coding, packed.data.view(torch.float32), fields, each=each)


def parts_of(device: torch.device, programs: int, waves: int) -> int:
    """Parts of a list that give each multiprocessor `waves` programs, when a part takes `programs`
    of them."""
    return min(-(-waves * _processors(device) // programs), _MOST_PARTS)


def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return _PROCESSORS_ELSEWHERE
    return torch.cuda.get_device_properties(device).multi_processor_count
