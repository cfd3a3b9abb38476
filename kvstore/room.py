"""How many pages documents can have together, beside what is kept of others. Knows no store: it is
what the store says at one moment (`KVStore.room_for`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """`pages`: for the documents that it was asked for. `kept`: pages of blocks that are kept
    beside these, by the documents that they belong to; a block may belong to several."""

    pages: int
    kept: Mapping[str, Mapping[bytes, int]]

    def shared_with(self, *documents: str) -> int:
        """Pages if these documents share it too: what is kept of them takes nothing from it."""
        own: dict[bytes, int] = {}
        for name in documents:
            own |= self.kept.get(name, {})
        return self.pages + sum(own.values())
