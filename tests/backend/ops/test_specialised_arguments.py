"""Triton compiles a kernel anew for an integer of 1 and for one that 16 divides, unless it is told
not to. While it does, nobody is served: what changes from request to request must not count."""

from __future__ import annotations

import pytest

from backend.ops.block_attention import pack
from backend.ops.block_attention.hopper_kernel import attention_kernel
from backend.ops.latent_page_attention import kernel as latent_pages
from backend.ops.page_attention.part import part_kernel
from backend.ops.page_attention.warp_part import warp_part_kernel
from backend.ops.page_codec import decode

CHANGING = {
    "hopper": (attention_kernel, {"key_rows", "per_block", "blocks"}),
    "packing": (pack._pack_kernel, {"rows", "extra_rows"}),
    "page lists": (part_kernel, {"rows", "parts", "ahead", "entry_row"}),
    "page lists by warps": (warp_part_kernel, {"rows", "asked", "ahead", "entry_row"}),
    "latent page lists": (latent_pages._part_kernel, {"all_rows"}),
    "scaled pages": (decode._scaled_kernel, {"tokens", "out_part"}),
    "four-bit pages": (decode._nibble_kernel, {"tokens", "out_part"}),
}


@pytest.mark.parametrize("name", CHANGING)
def test_what_changes_from_request_to_request_is_not_compiled_for(name: str) -> None:
    kernel, changing = CHANGING[name]
    plain = {one.name for one in kernel.params if one.do_not_specialize}
    assert changing <= plain
