"""Loaded documents, built when they are asked for and kept while there is room.

Two questions on one document build it once. Does not know jobs.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.db.models import DocumentRow
from app.db.session import Database
from app.documents import Boxes, LoadedDocument
from app.errors import AppError, NotFound, NotReady
from app.geometry import load_boxes
from app.indexing import build_index
from app.records import chunks_of, clauses_of, find_document, pages_of, record_of, text_of
from app.settings import Settings
from app.tokens import tokenise

if TYPE_CHECKING:
    from app.engines import AnyEngine

log = logging.getLogger(__name__)

Key = tuple[str, int]
"""Document id and version id."""


class Loader:
    """Thread-safe cache of the documents used last."""

    def __init__(self, settings: Settings, database: Database, engine: AnyEngine) -> None:
        self.settings = settings
        self.database = database
        self.engine = engine
        self._kept: OrderedDict[Key, LoadedDocument] = OrderedDict()
        self._building: dict[Key, threading.Lock] = {}
        self._lock = threading.Lock()

    def load(self, document_id: str) -> LoadedDocument:
        """The document, complete, with its record as it is now.

        Raises NotFound, or NotReady when it can't be asked (yet).
        """
        with self.database.read() as session:
            found = find_document(session, document_id)
        if found is None:
            raise NotFound(f"There is no document {document_id}.")
        record = record_of(*found)
        if not record.askable or found[1] is None:
            raise NotReady(_why_not(record.name, record.status, record.error_message))
        key = (document_id, found[1].id)
        with self._lock:
            building = self._building.setdefault(key, threading.Lock())
        with building:
            try:
                loaded = self._kept_or_built(key)
            finally:
                # Also when it failed, or every failure would leave its lock here.
                with self._lock:
                    if self._building.get(key) is building:
                        del self._building[key]
        return replace(loaded, record=record)

    def _kept_or_built(self, key: Key) -> LoadedDocument:
        with self._lock:
            loaded = self._kept.get(key)
        built = loaded is None
        if loaded is None:
            loaded = self._build(*key)
        with self._lock:
            self._kept[key] = loaded
            self._kept.move_to_end(key)
            while len(self._kept) > self.settings.documents_in_memory:
                self._kept.popitem(last=False)
        if built:
            self._require_there(key[0])
        return loaded

    def _require_there(self, document_id: str) -> None:
        """Raises NotFound for a document that was deleted while it was built, and removes what that
        wrote. One that is deleted later is removed by who deletes it, rows first, files after."""
        with self.database.read() as session:
            if find_document(session, document_id) is not None:
                return
        shutil.rmtree(self.settings.derived_dir / document_id, ignore_errors=True)
        self.drop(document_id)
        raise NotFound(f"There is no document {document_id} any more.")

    def _build(self, document_id: str, version_id: int) -> LoadedDocument:
        with self.database.read() as session:
            found = find_document(session, document_id)
            if found is None or found[1] is None or found[1].id != version_id:
                raise NotFound(f"There is no document {document_id} any more.")
            row, version = found[0], found[1]
            text = text_of(session, version.id)
            pages = pages_of(session, version.id)
            clauses = clauses_of(session, version.id)
            chunks = chunks_of(session, version.id)
            record = record_of(row, version)
        folder = self.settings.derived_dir / document_id
        tokenised = tokenise(
            folder,
            text,
            record.owner,
            self.engine,
            anchors_per_block=self.settings.anchors,
            block_cuts=self.settings.block_cuts,
            shared=self.settings.kv_sharing == "all",
        )
        return LoadedDocument(
            record=record,
            text=text,
            pages=pages,
            clauses=clauses,
            index=build_index(self.settings, text, chunks, clauses),
            tokens=tokenised.tokens,
            token_spans=tokenised.spans,
            char_boxes=_boxes_once(folder, version.has_boxes),
            exists=partial(self._exists, document_id),
        )

    def _exists(self, document_id: str) -> bool:
        query = select(DocumentRow.id).where(DocumentRow.id == document_id)
        try:
            with self.database.read() as session:
                return session.execute(query).first() is not None
        except (AppError, SQLAlchemyError) as error:
            # An answer that waits is not lost for it: it is asked again soon.
            log.warning("can't tell whether document %s is there: %s", document_id, error)
            return True

    def drop(self, document_id: str) -> None:
        """Forget a document that was deleted."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == document_id]:
                del self._kept[key]

    def kept(self) -> dict[str, str]:
        """Documents in memory, with the engine's key of each."""
        with self._lock:
            return {key[0]: loaded.tokens.key for key, loaded in self._kept.items()}


def _boxes_once(folder: Path, has_boxes: bool) -> Callable[[], Boxes | None]:
    lock = threading.Lock()
    read: list[Boxes] = []

    def boxes() -> Boxes | None:
        if not has_boxes:
            return None
        with lock:
            if not read:
                read.append(load_boxes(folder))
        return read[0]

    return boxes


def _why_not(name: str, status: str, error: str | None) -> str:
    if status == "failed":
        return f"{name} could not be read: {error} Retry it or delete it."
    if status == "cancelled":
        return f"Reading {name} was cancelled. Retry it first."
    return f"{name} is still being prepared. It can be asked as soon as it is indexed."
