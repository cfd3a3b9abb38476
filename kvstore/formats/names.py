"""The formats by name."""

from __future__ import annotations

from typing import Literal, get_args

import torch

from kvstore.formats.fp8 import Fp8Format
from kvstore.formats.int4 import GROUP, Int4Format
from kvstore.formats.int8 import Int8Format
from kvstore.formats.plain import PlainFormat
from kvstore.formats.types import PageFormat

FormatName = Literal["auto", "bf16", "fp16", "fp8_tokens32", "fp8_token_head", "int8", "int4"]
"""auto: the dtype that the model computes in, so that nothing is converted."""

FORMATS: tuple[FormatName, ...] = get_args(FormatName)


def page_format(name: FormatName, compute: torch.dtype) -> PageFormat:
    """The format of this name for a model that computes in `compute`."""
    if name == "fp8_tokens32":
        return Fp8Format(GROUP, "tokens32")
    if name == "fp8_token_head":
        return Fp8Format(1, "token_head")
    if name == "int8":
        return Int8Format()
    if name == "int4":
        return Int4Format()
    return PlainFormat({"bf16": torch.bfloat16, "fp16": torch.float16}.get(name, compute))
