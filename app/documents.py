"""A document as the use cases see it: its record (state, cheap to list) and its loaded form (text,
outline, search index, tokens, geometry; built once and kept for a while).

Does not know where any of it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.types import PageBox
from backend.types import DocumentTokens
from retrieval.index import SearchIndex
from retrieval.types import Clause, DocumentPage, DocumentWarning, Language

DocumentStatus = Literal["queued", "in_progress", "completed", "failed", "cancelled"]
Stage = Literal["queued", "parsing", "indexing", "reading", "done"]
ProgressUnit = Literal["pages", "chunks", "tokens"]
WaitReason = Literal["worker", "paused", "documents", "engine", "storage"]

Boxes = NDArray[np.uint16]
"""(characters, 4): x0, y0, x1, y1 of a character as fractions of the page times 65,535. A
character without a place has x0 > x1."""

BOX_SCALE = 65535


@dataclass(frozen=True, slots=True)
class DocumentTimings:
    """Milliseconds of the last ingestion. None: the stage has not ended."""

    parse_ms: float | None = None
    index_ms: float | None = None
    read_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why nothing happens to a document, and how many `documents` it waits for.

    "worker": to be taken up, behind so many of its owner's; "paused": to be taken up or read,
    behind so many of its owner's, and nothing begins for now; "documents": to be read, behind so
    many of its owner's; "storage": for space on the disk, without which its state can't be written;
    "engine": for its turn or for room in the engine, which has so many of its
    owner's under way beside it, and may be at questions or at other owners' documents.
    """

    reason: WaitReason
    documents: int


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """State of one uploaded file.

    `name` is for display only. A document can be asked when `askable`: from stage `reading` on.
    `ready_tokens` of `total_tokens` were read by the engine when it was last reported; a document
    that is `completed` may be read again after a restart. `computed_tokens` of them went through
    the model in the last reading (None: it has not ended, or is not known). `error_code` and
    `error_message` are set when `status` is `failed`.
    """

    id: str
    owner: str
    name: str
    sha256: str
    size: int
    media_type: str | None
    language: Language | None
    status: DocumentStatus
    stage: Stage
    progress_done: int
    progress_total: int
    progress_unit: ProgressUnit
    ready_tokens: int
    total_tokens: int
    page_count: int
    warnings: tuple[DocumentWarning, ...]
    error_code: str | None
    error_message: str | None
    created_at: datetime
    timings: DocumentTimings
    computed_tokens: int | None = None

    @property
    def reused_tokens(self) -> int | None:
        """Tokens whose KV was there already when the document was last read."""
        if self.computed_tokens is None:
            return None
        return max(self.ready_tokens - self.computed_tokens, 0)

    @property
    def askable(self) -> bool:
        """Text and search index are complete."""
        return self.status == "completed" or (
            self.status == "in_progress" and self.stage == "reading"
        )

    @property
    def final(self) -> bool:
        """Nothing will change any more without a request."""
        return self.status in ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class LoadedDocument:
    """A document ready to be asked. All offsets are code points of `text`, half-open.

    `token_spans` is int32 (tokens, 2): the characters each token covers. `char_boxes` gives the
    stored geometry, or None for formats without it; it is read from disk on the first call.
    `exists` says whether the document has not been deleted since.
    """

    record: DocumentRecord
    text: str
    pages: tuple[DocumentPage, ...]
    clauses: tuple[Clause, ...]
    index: SearchIndex
    tokens: DocumentTokens
    token_spans: NDArray[np.int32]
    char_boxes: Callable[[], Boxes | None] = field(repr=False)
    exists: Callable[[], bool] = field(default=lambda: True, repr=False)

    def boxes(self, start: int, end: int) -> tuple[PageBox, ...]:
        """Rectangles that cover `text[start:end]`, one per line and page, in reading order."""
        boxes = self.char_boxes()
        if boxes is None:
            return ()
        found: list[PageBox] = []
        for page in self.pages:
            first, last = max(start, page.start), min(end, page.end)
            if first < last:
                found.extend(merge_lines(page.number, boxes[first:last]))
        return tuple(found)

    def page_at(self, offset: int) -> DocumentPage:
        """The page that holds the character at `offset`; between pages, the one before."""
        holder = self.pages[0]
        for page in self.pages:
            if page.start > offset:
                break
            holder = page
        return holder


def merge_lines(page: int, boxes: Boxes) -> list[PageBox]:
    """Characters joined to one rectangle per line.

    A new rectangle starts where a character shares less than half its height with the line so far,
    or stands left of the line's start (next column), or follows a gap wider than four heights of
    the line (next table cell).
    """
    lines: list[list[int]] = []
    for x0, y0, x1, y1 in boxes.tolist():
        if x1 <= x0 or y1 <= y0:
            continue
        if lines:
            line = lines[-1]
            shared = min(line[3], y1) - max(line[1], y0)
            height = min(line[3] - line[1], y1 - y0)
            near = line[0] <= x1 and x0 - line[2] <= 4 * (line[3] - line[1])
            if 2 * shared >= height and near:
                line[:] = min(line[0], x0), min(line[1], y0), max(line[2], x1), max(line[3], y1)
                continue
        lines.append([x0, y0, x1, y1])
    return [PageBox(page, *(value / BOX_SCALE for value in line)) for line in lines]
