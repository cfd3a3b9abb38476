"""A document's tokens, made once per tokenizer and way of cutting blocks and kept in a file.

The file is derived: when it is missing, damaged or made for another model, it is made again. Does
not know the database.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.prompt import document_sinks
from app.settings import BlockCuts
from app.storage import atomic_write
from backend.types import DocumentTokens
from retrieval.anchors import pick_anchors
from retrieval.blocks import cut_blocks

if TYPE_CHECKING:
    from app.engines import AnyEngine

FORMAT = 1
NAME = "tokens.npz"


@dataclass(frozen=True, slots=True)
class TokenisedText:
    """`spans` is int32 (tokens, 2), half-open code points of the text."""

    tokens: DocumentTokens
    spans: NDArray[np.int32]


def tokenise(
    folder: Path,
    text: str,
    owner: str,
    engine: AnyEngine,
    *,
    anchors_per_block: int,
    block_cuts: BlockCuts,
    shared: bool = False,
    cancelled: Callable[[], None] | None = None,
) -> TokenisedText:
    """The tokens of `text`, from `folder` if they are there. `shared`: their KV may serve other
    owners too.

    `cancelled` is called between the steps and may raise.
    """
    key = content_key(owner, text)
    cut = f"{engine.block_tokens}:{block_cuts}"
    label = f"{FORMAT}:{engine.fingerprint}:{cut}:{anchors_per_block}:{key}"
    path = folder / NAME
    blank = DocumentTokens(
        key=key,
        token_ids=(),
        blocks=(),
        sinks=document_sinks(engine.tokenizer),
        owner=owner,
        shared=shared,
    )
    kept = _load(path, label, blank)
    if kept is not None:
        return kept
    ids, spans = engine.tokenizer.encode_with_spans(text)
    if cancelled is not None:
        cancelled()
    blocks = block_ranges(text, spans, engine, block_cuts)
    anchors: tuple[tuple[int, ...], ...] = ()
    if anchors_per_block:
        anchors = pick_anchors(text, spans, blocks, anchors_per_block)
    if cancelled is not None:
        cancelled()
    made = TokenisedText(
        replace(blank, token_ids=tuple(ids), blocks=tuple(blocks), anchors=anchors),
        np.asarray(spans, dtype=np.int32).reshape(-1, 2),
    )
    _save(path, label, made)
    return made


def block_ranges(
    text: str, spans: Sequence[tuple[int, int]], engine: AnyEngine, cuts: BlockCuts
) -> tuple[tuple[int, int], ...]:
    """The blocks of a text as half-open token ranges; `spans` as in `TokenisedText`."""
    if cuts == "clauses":
        return cut_blocks(text, spans, engine.block_tokens)
    return engine.split_blocks(len(spans))


def content_key(owner: str, text: str) -> str:
    """The engine's name for an owner's document of this text: two owners' documents are two, also
    where their blocks may be shared."""
    return kv_key(owner, text_sha256(text))


def kv_key(owner: str, digest: str) -> str:
    """The same, for a text of which only the SHA-256 is at hand."""
    return hashlib.sha256(f"{owner}\0{digest}".encode()).hexdigest()


def text_sha256(text: str) -> str:
    """SHA-256 of the text in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def _save(path: Path, label: str, made: TokenisedText) -> None:
    anchors = made.tokens.anchors
    with atomic_write(path) as file:
        np.savez_compressed(
            file,
            label=np.array(label),
            ids=np.asarray(made.tokens.token_ids, dtype=np.int32),
            spans=made.spans,
            blocks=np.asarray(made.tokens.blocks, dtype=np.int32).reshape(-1, 2),
            anchor_counts=np.asarray([len(block) for block in anchors], dtype=np.int32),
            anchors=np.asarray([token for block in anchors for token in block], dtype=np.int32),
        )


def _load(path: Path, label: str, blank: DocumentTokens) -> TokenisedText | None:
    try:
        with path.open("rb") as stored, np.load(stored, allow_pickle=False) as file:
            if str(file["label"]) != label:
                return None
            ids, spans, blocks = file["ids"], file["spans"], file["blocks"]
            counts, flat = file["anchor_counts"], file["anchors"]
    except (FileNotFoundError, zipfile.BadZipFile, EOFError, KeyError, ValueError):
        return None  # derived: made again by the caller
    ends = np.cumsum(counts)
    anchors = tuple(
        tuple(flat[end - count : end].tolist()) for end, count in zip(ends, counts, strict=True)
    )
    tokens = replace(
        blank,
        token_ids=tuple(ids.tolist()),
        blocks=tuple((first, last) for first, last in blocks.tolist()),
        anchors=anchors,
    )
    return TokenisedText(tokens, spans)
