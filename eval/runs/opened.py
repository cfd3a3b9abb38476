"""Documents of a question set, opened as the product opens an uploaded one.

Nothing is stored: no database, no files. The engine is told of a document but reads only the blocks
that questions need. The document counts as read, as it does in the product after a restart, so
answers carry no notice that reading goes on.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from app.documents import DocumentRecord, DocumentTimings, LoadedDocument
from app.prompt import document_sinks
from app.settings import BlockCuts
from app.tokens import block_ranges, content_key
from backend.types import DocumentTokens
from retrieval.anchors import pick_anchors
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.types import Document

if TYPE_CHECKING:
    from backend.engine import Engine

OWNER = "eval"
CHUNK_CHARS = 1200


def index_document(
    doc_id: str, document: Document, *, chunk_chars: int = CHUNK_CHARS
) -> LoadedDocument:
    """The document with outline and search index and without tokens: enough to retrieve from."""
    text, clauses = document.text, outline(document.text)
    record = DocumentRecord(
        id=doc_id, owner=OWNER, name=document.name, sha256="", size=len(text),
        media_type=document.media_type, language=document.language, status="completed",
        stage="done", progress_done=0, progress_total=0, progress_unit="tokens", ready_tokens=0,
        total_tokens=0, page_count=len(document.pages), warnings=(), error_code=None,
        error_message=None, created_at=datetime.now(UTC), timings=DocumentTimings(),
    )  # fmt: skip
    return LoadedDocument(
        record=record,
        text=text,
        pages=document.pages,
        clauses=clauses,
        index=SearchIndex.build(text, split(document, clauses, max_chars=chunk_chars), clauses),
        tokens=DocumentTokens(content_key(OWNER, text), (), (), owner=OWNER),
        token_spans=np.zeros((0, 2), dtype=np.int32),
        char_boxes=lambda: None,
    )


def open_document(
    doc_id: str,
    document: Document,
    engine: Engine,
    *,
    chunk_chars: int = CHUNK_CHARS,
    anchors_per_block: int = 0,
    block_cuts: BlockCuts = "clauses",
) -> LoadedDocument:
    """The document, ready to be asked, and known to the engine. Call `engine.forget` with its
    `tokens.key` when its questions have been asked."""
    indexed = index_document(doc_id, document, chunk_chars=chunk_chars)
    ids, spans = engine.tokenizer.encode_with_spans(document.text)
    blocks = block_ranges(document.text, spans, engine, block_cuts)
    anchors: tuple[tuple[int, ...], ...] = ()
    if anchors_per_block:
        anchors = pick_anchors(document.text, spans, blocks, anchors_per_block)
    tokens = replace(
        indexed.tokens,
        token_ids=tuple(ids),
        blocks=blocks,
        anchors=anchors,
        sinks=document_sinks(engine.tokenizer),
    )
    engine.read(tokens, lazy=True)
    return replace(
        indexed,
        record=replace(indexed.record, ready_tokens=len(ids), total_tokens=len(ids)),
        tokens=tokens,
        token_spans=np.asarray(spans, dtype=np.int32).reshape(-1, 2),
    )
