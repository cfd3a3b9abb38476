"""Token counts as people write them: 4K is 4,096 tokens, 1M is 1,048,576."""

from __future__ import annotations

import re

from app.errors import BadParameter

_FACTORS = {"": 1, "K": 1024, "M": 1024 * 1024}
_LENGTH = re.compile(r"(\d+)([KM]?)", re.IGNORECASE)


def parse_length(written: str) -> int:
    """ "4K" -> 4096. Raises BadParameter for what is no length above zero."""
    match = _LENGTH.fullmatch(written.strip())
    tokens = int(match[1]) * _FACTORS[match[2].upper()] if match else 0
    if tokens < 1:
        raise BadParameter(f"{written!r} is no length; write 512, 4K or 1M")
    return tokens


def parse_lengths(written: str) -> tuple[int, ...]:
    """ "4K,16K" -> (4096, 16384), ascending, each once. Raises BadParameter."""
    return tuple(sorted({parse_length(part) for part in written.split(",")}))


def parse_counts(written: str) -> tuple[int, ...]:
    """ "1,2,4" -> (1, 2, 4), ascending, each once. Raises BadParameter."""
    return parse_lengths(written)


def show_length(tokens: int) -> str:
    """4096 -> "4K"; what is no whole number of K stays a number."""
    for name in ("M", "K"):
        if tokens % _FACTORS[name] == 0:
            return f"{tokens // _FACTORS[name]}{name}"
    return f"{tokens:,}"
