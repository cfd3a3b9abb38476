"""Works out what a request's attention is to see, and which blocks must be read for it.

It knows the books of the KV store but no tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from backend.errors import RequestTooLarge, UnknownDocument
from backend.reading import DocumentReading
from backend.types import Request
from kvstore.store import KVStore, page_table
from kvstore.types import PageTable


@dataclass(frozen=True, slots=True)
class ContextPlan:
    """Sinks, anchors and evidence of one request. `source` is None without a document."""

    sinks: tuple[int, ...]
    anchors: tuple[int, ...]
    evidence: tuple[tuple[int, int], ...]
    source: DocumentReading | None

    @property
    def reading(self) -> DocumentReading:
        """The document. Raises UnknownDocument for a request without one."""
        if self.source is None:
            raise UnknownDocument("the request names no document")
        return self.source

    def needed(self) -> list[int]:
        """Blocks that the request needs, in the order in which to read them."""
        if self.source is None:
            return []
        needed: dict[int, None] = {}
        ranges = [*self.evidence, *((place, place + 1) for place in self.anchors)]
        # The best evidence comes last in the list and is read first.
        for first, last in reversed(ranges):
            for index in self.source.blocks_of(first, last):
                needed.update(dict.fromkeys(self.source.needed_before(index)))
                needed[index] = None
        return list(needed)

    def block_keys(self) -> list[bytes]:
        """Content keys of the needed blocks."""
        return [self.reading.keys[index] for index in self.needed()]

    def missing(self) -> list[int]:
        """The needed blocks that have no KV."""
        needed = self.needed()
        return self.reading.missing(needed) if needed else []

    def table(self, store: KVStore) -> PageTable:
        """The page list of the evidence; all its blocks must have KV."""
        if self.source is None:
            return PageTable(())
        parts = []
        for first, last in self.evidence:
            for index in self.source.blocks_of(first, last):
                start, end = self.source.document.blocks[index]
                block = store.lookup(self.source.keys[index], self.source.tokens_of(index))
                if block is None:
                    raise RequestTooLarge(
                        "The evidence does not fit in the KV pool at once: raise the KV budget"
                    )
                parts.append((block, max(first, start) - start, min(last, end) - start))
        return page_table(parts)

    def anchor_places(self, store: KVStore) -> list[tuple[int, int]]:
        """(page, token) places of the anchors."""
        if self.source is None:
            return []
        places = []
        for block, page, slot in map(self.source.locate, self.anchors):
            places.append((store.block(self.source.keys[block]).pages[page], slot))
        return places


def plan_context(request: Request, source: DocumentReading | None) -> ContextPlan:
    """The plan of a request. Raises RequestTooLarge for evidence or anchors outside the document.

    Without a document, evidence and anchors name nothing and are left out.
    """
    sinks = request.prompt_ids[: request.sink_len]
    if source is None:
        return ContextPlan(sinks, (), (), None)
    size = len(source.document.token_ids)
    for first, last in request.evidence:
        if not 0 <= first < last <= size:
            raise RequestTooLarge(
                f"Evidence [{first}, {last}) is not in the document's {size} tokens"
            )
    for place in request.anchors:
        if not 0 <= place < size:
            raise RequestTooLarge(f"Anchor {place} is not among the document's {size} tokens")
    if request.sink_len == 0:
        sinks = source.document.sinks
    return ContextPlan(sinks, request.anchors, request.evidence, source)
