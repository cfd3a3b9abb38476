"""The library of one installation: add, list, open and delete documents. Ingestion runs behind it
(`app.runner`); what a document says is `app.loading`.

Does not know HTTP or the command line.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from sqlalchemy import delete, func, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.db.models import DocumentRow, JobRow, VersionRow
from app.db.session import Database
from app.documents import DocumentRecord, LoadedDocument, Waiting, WaitReason
from app.errors import AppError, BadRequest, Conflict, NotFound
from app.jobs import OPEN, JobQueue
from app.loading import Loader
from app.names import display_name
from app.owners import LOCAL, section_of
from app.paging import Order, Page
from app.records import documents_query, find_document, record_of, text_of
from app.runner import JobRunner
from app.settings import Settings
from app.storage import FileStore, Incoming
from app.tokens import content_key, kv_key

if TYPE_CHECKING:
    from app.engines import AnyEngine

POLL_S = 0.05


class Library:
    """Documents of all owners. Thread-safe; several processes may use one database.

    `owner` narrows a call to one owner's documents (None: no narrowing); another owner's document
    is not found.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        files: FileStore,
        queue: JobQueue,
        runner: JobRunner,
        loader: Loader,
        engine: AnyEngine,
    ) -> None:
        self.settings = settings
        self.database = database
        self.files = files
        self.queue = queue
        self.runner = runner
        self.loader = loader
        self.engine = engine

    def add(
        self, source: Path | BinaryIO, filename: str, *, owner: str = LOCAL
    ) -> tuple[DocumentRecord, bool]:
        """Store a file and start its ingestion. True: this owner has the same bytes already, and
        that document is returned (started again under the new name if it had failed).

        Raises BadName, EmptyUpload, TooLargeUpload, StorageFull; nothing is left behind then.
        """
        name = display_name(filename, max_chars=self.settings.max_name_chars)
        with ExitStack() as stack:
            stream = stack.enter_context(_open(source)) if isinstance(source, Path) else source
            incoming = stack.enter_context(self.files.receive(stream))
            try:
                record, duplicate = self._insert(incoming, name, owner)
            except IntegrityError:
                # PostgreSQL: another process inserted the same bytes first.
                record, duplicate = self._insert(incoming, name, owner)
        self.runner.want(record.id)
        return record, duplicate

    def _insert(self, incoming: Incoming, name: str, owner: str) -> tuple[DocumentRecord, bool]:
        section = section_of(owner)
        with self.database.write() as session:
            self.database.lock(session, f"{section}/{incoming.sha256}")
            existing = session.execute(
                select(DocumentRow).where(
                    DocumentRow.owner == owner, DocumentRow.sha256 == incoming.sha256
                )
            ).scalar_one_or_none()
            # Under the lock, so that nobody deletes the file of the row that is being made.
            self.files.place(incoming, section)
            if existing is not None:
                if existing.status in ("failed", "cancelled"):
                    existing.name = name
                    self._restart(session, existing)
                return _record(session, existing.id), True
            row = DocumentRow(
                id=f"doc_{uuid.uuid4().hex}",
                owner=owner,
                name=name,
                sha256=incoming.sha256,
                size=incoming.size,
                status="queued",
                stage="queued",
                created_at=self.database.now(session),
            )
            session.add(row)
            session.flush()
            self.queue.enqueue(session, row.id)
            return record_of(row, None), False

    def _restart(self, session: Session, row: DocumentRow) -> None:
        if not self.queue.enqueue(session, row.id):
            return
        row.status, row.stage = "queued", "queued"
        row.progress_done = row.progress_total = 0
        row.error_code = row.error_message = None
        row.finished_at = row.computed_tokens = None

    def get(self, document_id: str, *, owner: str | None = None) -> DocumentRecord:
        """The document's state now. Raises NotFound."""
        with self.database.read() as session:
            return _record(session, document_id, owner)

    def list(
        self,
        limit: int = 20,
        after: str | None = None,
        order: Order = "desc",
        *,
        owner: str | None = None,
    ) -> Page[DocumentRecord]:
        """Documents by time of upload, `limit` of them after the document `after`."""
        where = [] if owner is None else [DocumentRow.owner == owner]
        place = tuple_(DocumentRow.created_at, DocumentRow.id)
        with self.database.read() as session:
            total = session.execute(
                select(func.count()).select_from(DocumentRow).where(*where)
            ).scalar_one()
            query = documents_query().where(*where)
            if after is not None:
                last = session.get(DocumentRow, after)
                if last is None or owner not in (None, last.owner):
                    raise NotFound(f"There is no document {after} to list after.")
                mark = tuple_(last.created_at, last.id)
                query = query.where(place > mark if order == "asc" else place < mark)
            if order == "asc":
                query = query.order_by(DocumentRow.created_at, DocumentRow.id)
            else:
                query = query.order_by(DocumentRow.created_at.desc(), DocumentRow.id.desc())
            rows = session.execute(query.limit(limit + 1)).all()
            records = tuple(record_of(row[0], row[1]) for row in rows[:limit])
        return Page(records, has_more=len(rows) > limit, total=total)

    def waiting(self, records: Iterable[DocumentRecord]) -> dict[str, Waiting]:
        """By id, what those of the documents wait for that wait, as far as this process knows."""
        found: dict[str, Waiting] = {}
        queued: list[str] = []
        for record in records:
            if record.status == "queued":
                queued.append(record.id)
            elif record.stage == "reading" and (why := self.runner.waiting(record.id)) is not None:
                found[record.id] = why
        if queued:
            reason: WaitReason = "paused" if self.runner.paused else "worker"
            ahead = self.runner.ahead(queued)
            found |= {one: Waiting(reason, count) for one, count in ahead.items()}
        return found

    def load(self, document_id: str, *, owner: str | None = None) -> LoadedDocument:
        """Everything needed to ask the document. Raises NotFound, NotReady."""
        self.get(document_id, owner=owner)
        return self.loader.load(document_id)

    def text(self, document_id: str, *, owner: str | None = None) -> str:
        """The document's text, without building its index. Raises NotFound, NotReady."""
        self.get(document_id, owner=owner)
        with self.database.read() as session:
            found = find_document(session, document_id)
            if found is None or found[1] is None:
                raise Conflict("The document has no text yet.", code="not_ready")
            return text_of(session, found[1].id)

    def delete(self, document_id: str, *, owner: str | None = None) -> None:
        """Remove the document, its KV, and its file unless another document has the same bytes.
        A running ingestion notices and stops. Raises NotFound."""
        self.get(document_id, owner=owner)
        with self.database.write() as session:
            found = find_document(session, document_id)
            if found is None:
                raise NotFound(f"There is no document {document_id}.")
            row, version = found
            section, sha256 = section_of(row.owner), row.sha256
            key = None
            if version is not None and not self._text_shared(session, row, version):
                key = content_key(row.owner, text_of(session, version.id))
            session.execute(delete(DocumentRow).where(DocumentRow.id == document_id))
        self._remove_file(section, sha256)
        shutil.rmtree(self.settings.derived_dir / document_id, ignore_errors=True)
        self.loader.drop(document_id)
        if key is not None:
            self.engine.forget(key)
        self.runner.look()

    def _text_shared(self, session: Session, row: DocumentRow, version: VersionRow) -> bool:
        other = (
            select(VersionRow.id)
            .join(DocumentRow, DocumentRow.id == VersionRow.document_id)
            .where(
                DocumentRow.owner == row.owner,
                DocumentRow.id != row.id,
                VersionRow.text_sha256 == version.text_sha256,
            )
        )
        return session.execute(other).first() is not None

    def _remove_file(self, section: str, sha256: str) -> None:
        """Remove a file that no document uses. Under the lock that `add` takes as well."""
        with self.database.write() as session:
            self.database.lock(session, f"{section}/{sha256}")
            if not self._used(session, section, sha256):
                self.files.remove(sha256, section)

    def _used(self, session: Session, section: str, sha256: str) -> bool:
        owners = select(DocumentRow.owner).where(DocumentRow.sha256 == sha256)
        return any(section_of(owner) == section for (owner,) in session.execute(owners))

    def cancel(self, document_id: str, *, owner: str | None = None) -> DocumentRecord:
        """Stop the ingestion: at once if it waits, else before the next page or block. Cancelling
        twice is harmless. Raises NotFound, Conflict when it had ended before."""
        record = self.get(document_id, owner=owner)
        if record.status == "cancelled":
            return record
        if record.final:
            raise Conflict(f"{record.name} is {record.status}; there is nothing to cancel.")
        with self.database.write() as session:
            if self.queue.request_cancel(session, document_id):
                session.execute(
                    update(DocumentRow)
                    .where(DocumentRow.id == document_id)
                    .values(status="cancelled", finished_at=self.database.now(session))
                )
            # Here, where the database is ours: afterwards it may be busy with others.
            record = _record(session, document_id)
        self.runner.look()
        return record

    def retry(self, document_id: str, *, owner: str | None = None) -> DocumentRecord:
        """Start a failed or cancelled ingestion again from the stored file. Pressing twice, or on
        a document that is well, changes nothing. Raises NotFound."""
        record = self.get(document_id, owner=owner)
        self.files.path(record.sha256, section_of(record.owner))
        with self.database.write() as session:
            row = session.get(DocumentRow, document_id)
            if row is not None and row.status in ("failed", "cancelled"):
                self._restart(session, row)
            record = _record(session, document_id)
        self.runner.want(document_id)
        return record

    def wait(
        self,
        document_id: str,
        timeout: float | None = None,
        *,
        until: Literal["askable", "final"] = "final",
    ) -> DocumentRecord:
        """The record once the document can be asked, or once its ingestion ended well or badly; or
        as it is after `timeout` seconds. Raises NotFound when it is deleted meanwhile."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            record = self.get(document_id)
            if record.final or (until == "askable" and record.askable):
                return record
            if end is not None and time.monotonic() >= end:
                return record
            time.sleep(POLL_S)

    def file_path(self, document_id: str, *, owner: str | None = None) -> Path:
        """Where the original lies. Read it, don't change it. Raises NotFound."""
        record = self.get(document_id, owner=owner)
        return self.files.path(record.sha256, section_of(record.owner))

    def sweep(self) -> int:
        """Remove files that a crash left without a document; number removed."""
        removed = 0
        for file in list(self.files.stored()):
            with self.database.read() as session:
                if self._used(session, file.section, file.sha256):
                    continue
            self._remove_file(file.section, file.sha256)
            removed += 1
        return removed

    def kv_keys(self) -> frozenset[str]:
        """The engine's names for the KV of all documents."""
        query = select(DocumentRow.owner, VersionRow.text_sha256).join(
            VersionRow, DocumentRow.id == VersionRow.document_id
        )
        with self.database.read() as session:
            rows = session.execute(query).all()
        return frozenset(kv_key(owner, digest) for owner, digest in rows)

    def open_jobs(self) -> int:
        """Ingestions waiting or running, of all processes."""
        query = select(func.count()).select_from(JobRow).where(JobRow.status.in_(OPEN))
        with self.database.read() as session:
            return session.execute(query).scalar_one()


def _record(session: Session, document_id: str, owner: str | None = None) -> DocumentRecord:
    found = find_document(session, document_id)
    if found is None or owner not in (None, found[0].owner):
        raise NotFound(f"There is no document {document_id}.")
    return record_of(*found)


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {path}.", code="file_not_found") from error
    except IsADirectoryError as error:
        raise BadRequest(
            f"{path} is a folder. Name the files in it.", code="is_a_folder"
        ) from error
    except OSError as error:
        raise AppError(f"Can't open {path}: {error.strerror}.", code="file_unreadable") from error
