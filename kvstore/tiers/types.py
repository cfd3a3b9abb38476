"""Values of the disk tier. Token ranges are half-open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the pages of one engine are: made by which model, in which format (precision, dtype and
    reading mode), how many bytes each. Pages of another stamp are of no use here."""

    model: str
    kv_format: str
    page_bytes: int


@dataclass(frozen=True, slots=True)
class DocumentLayout:
    """A document as the disk tier sees it: block i has the content key `keys[i]` and the tokens
    `token_ids[slice(*blocks[i])]`. `sinks` are the tokens that every block saw first."""

    document: str
    keys: tuple[bytes, ...]
    blocks: tuple[tuple[int, int], ...]
    token_ids: tuple[int, ...]
    sinks: tuple[int, ...] = ()

    def distinct(self) -> tuple[tuple[bytes, int, int], ...]:
        """(key, first, last) of each block, one that repeats an earlier one left out."""
        seen: dict[bytes, tuple[bytes, int, int]] = {}
        for key, (first, last) in zip(self.keys, self.blocks, strict=True):
            seen.setdefault(key, (key, first, last))
        return tuple(seen.values())
