"""What happens to an uploaded file, stage by stage: parsing (pages), indexing (clauses, chunks,
tokens); reading by the engine follows in `app.runner`.

Each stage replaces its results in one transaction, so a stage that is run again after a crash
leaves no duplicates, and a stage that fails leaves nothing. Does not know threads or who waits.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from app.db.models import ChunkRow, ClauseRow, DocumentRow, PageRow, VersionRow
from app.db.session import Database
from app.geometry import save_boxes
from app.indexing import build_index
from app.jobs import Job, JobQueue, LeaseLost
from app.owners import section_of
from app.pace import PROGRESS_S, Throttle, check, since
from app.receipts import receipt_json, save_index_figures
from app.records import find_document, parsed_document
from app.settings import Settings
from app.storage import FileStore
from app.tokens import text_sha256, tokenise
from backend.types import DocumentTokens
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.errors import NoText
from retrieval.parse import ParseLimits, parse_file
from retrieval.types import Document

if TYPE_CHECKING:
    from app.engines import AnyEngine

NUL = "\0"


class Ingestor:
    """Runs the stages of one job. Thread-safe: holds only services."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        files: FileStore,
        queue: JobQueue,
        engine: AnyEngine,
    ) -> None:
        self.settings = settings
        self.database = database
        self.files = files
        self.queue = queue
        self.engine = engine

    def prepare(self, job: Job, stopping: Callable[[], bool]) -> DocumentTokens:
        """Parse and index the document of `job`, as far as that is not done yet.

        Raises ParseError, AppError, Stopped (when `stopping()` becomes true) or LeaseLost.
        """
        with self.database.read() as session:
            found = find_document(session, job.document_id)
            if found is None:
                raise LeaseLost(job.id)
            row, version = found
            document = None if version is None else parsed_document(session, row, version)
            indexed = version is not None and version.indexed
            owner, sha256, name = row.owner, row.sha256, row.name
        if document is None:
            path = self.files.path(sha256, section_of(owner))
            document = self._parse(job, path, sha256, name, stopping)
        return self._index(job, document, owner, indexed, stopping)

    def _parse(
        self, job: Job, path: Path, sha256: str, name: str, stopping: Callable[[], bool]
    ) -> Document:
        started = time.monotonic()
        self.report(job, stage="parsing", done=0, total=0, unit="pages")
        throttle = Throttle(PROGRESS_S)

        def progress(done: int, total: int) -> None:
            if throttle.due():
                self.report(job, stage="parsing", done=done, total=total, unit="pages")

        document = parse_file(
            path,
            name,
            limits=parse_limits(self.settings),
            on_progress=progress,
            cancelled=stopping,
        )
        check(stopping)
        has_boxes = save_boxes(self.folder(job.document_id), document)
        with self.database.write() as session:
            self.queue.hold(session, job)
            session.execute(delete(VersionRow).where(VersionRow.document_id == job.document_id))
            self._save_version(session, job.document_id, sha256, document, has_boxes)
            session.execute(
                update(DocumentRow)
                .where(DocumentRow.id == job.document_id)
                .values(parse_ms=since(started))
            )
        return document

    def _save_version(
        self, session: Session, document_id: str, sha256: str, document: Document, has_boxes: bool
    ) -> None:
        version = VersionRow(
            document_id=document_id,
            number=1,
            sha256=sha256,
            media_type=document.media_type,
            language=document.language,
            encoding=document.encoding,
            text=document.text,
            text_sha256=text_sha256(document.text),
            page_count=len(document.pages),
            has_boxes=has_boxes,
            warnings=[
                {"code": item.code, "message": item.message, "pages": list(item.pages)}
                for item in document.warnings
            ],
            receipt=receipt_json(document.receipt),
            created_at=self.database.now(session),
        )
        session.add(version)
        session.flush()
        rows = [asdict(page) | {"version_id": version.id} for page in document.pages]
        session.execute(insert(PageRow), rows)

    def _index(
        self,
        job: Job,
        document: Document,
        owner: str,
        indexed: bool,
        stopping: Callable[[], bool],
    ) -> DocumentTokens:
        started = time.monotonic()
        self.report(job, stage="indexing", done=0, total=0, unit="chunks")
        if not indexed:
            self._save_outline(job, document, stopping)
        tokenised = tokenise(
            self.folder(job.document_id),
            document.text,
            owner,
            self.engine,
            anchors_per_block=self.settings.anchors,
            block_cuts=self.settings.block_cuts,
            shared=self.settings.kv_sharing == "all",
            cancelled=lambda: check(stopping),
        )
        total = len(tokenised.tokens.token_ids)
        with self.database.write() as session:
            self.queue.hold(session, job)
            session.execute(
                update(VersionRow)
                .where(VersionRow.document_id == job.document_id)
                .values(indexed=True)
            )
            values = {
                "stage": "reading",
                "progress_done": 0,
                "progress_total": total,
                "progress_unit": "tokens",
                "ready_tokens": 0,
                "total_tokens": total,
            }
            if not indexed:
                values["index_ms"] = since(started)
            session.execute(
                update(DocumentRow).where(DocumentRow.id == job.document_id).values(**values)
            )
        return tokenised.tokens

    def _save_outline(self, job: Job, document: Document, stopping: Callable[[], bool]) -> None:
        clauses = outline(document.text)
        check(stopping)
        chunks = split(document, clauses, max_chars=self.settings.chunk_chars)
        check(stopping)
        # Built again by whoever asks; built here so that a text that can't be searched fails now.
        index = build_index(self.settings, document.text, chunks, clauses)
        if not any(index.terms):
            raise NoText("The file holds no words to search for. Choose a file with text in it.")
        check(stopping)
        with self.database.write() as session:
            self.queue.hold(session, job)
            version_id = session.execute(
                select(VersionRow.id).where(VersionRow.document_id == job.document_id)
            ).scalar_one()
            session.execute(delete(ClauseRow).where(ClauseRow.version_id == version_id))
            session.execute(delete(ChunkRow).where(ChunkRow.version_id == version_id))
            for table, items in ((ClauseRow, clauses), (ChunkRow, chunks)):
                rows = []
                for item in items:
                    row = asdict(item) | {"version_id": version_id}
                    row["position"] = row.pop("index")
                    rows.append(row)
                if rows:
                    session.execute(insert(table), rows)
            save_index_figures(session, version_id, document.text, chunks)
            session.execute(
                update(DocumentRow)
                .where(DocumentRow.id == job.document_id)
                .values(progress_done=len(chunks), progress_total=len(chunks))
            )

    def report(self, job: Job, *, stage: str, done: int, total: int, unit: str) -> None:
        """Write where the job is. Raises LeaseLost."""
        values = {
            "status": "in_progress",
            "stage": stage,
            "progress_done": done,
            "progress_total": total,
            "progress_unit": unit,
        }
        if stage == "reading":
            values |= {"ready_tokens": done, "total_tokens": total}
        self._update(job, values)

    def require_ours(self, job: Job) -> None:
        """Raises LeaseLost when the job went to another process or its document was deleted."""
        with self.database.write() as session:
            self.queue.hold(session, job)

    def complete(self, job: Job, total: int, computed: int, read_ms: float) -> None:
        """The document was read: `computed` of its `total` tokens now, the others before."""
        self._end(
            job,
            "completed",
            stage="done",
            progress_done=total,
            progress_total=total,
            ready_tokens=total,
            computed_tokens=computed,
            read_ms=read_ms,
        )

    def complete_unread(self, job: Job, reason: str) -> None:
        """The document is more than the engine can hold. It can be asked all the same: what a
        question needs is read then."""
        warning = {
            "code": "read_on_demand",
            "message": f"Not read ahead, so each answer takes longer. {reason}",
            "pages": [],
        }
        with self.database.write() as session:
            self.queue.hold(session, job)
            version = session.execute(
                select(VersionRow).where(VersionRow.document_id == job.document_id)
            ).scalar_one()
            others = [item for item in version.warnings if item["code"] != warning["code"]]
            version.warnings = [*others, warning]
        self._end(job, "completed", stage="done")

    def fail(self, job: Job, code: str, message: str) -> None:
        """The job ends with an error that the user sees."""
        self._end(job, "failed", error_code=code, error_message=message.replace(NUL, ""))

    def cancel(self, job: Job) -> None:
        """The job ends because someone asked for it."""
        self._end(job, "cancelled")

    def remove_if_deleted(self, job: Job) -> None:
        """Removes what was written for a document that was deleted meanwhile."""
        with self.database.read() as session:
            if find_document(session, job.document_id) is not None:
                return
        shutil.rmtree(self.folder(job.document_id), ignore_errors=True)

    def folder(self, document_id: str) -> Path:
        """Where the derived files of a document lie."""
        return self.settings.derived_dir / document_id

    def _end(self, job: Job, status: str, **values: object) -> None:
        with self.database.write() as session:
            self.queue.finish(session, job, status)
            session.execute(
                update(DocumentRow)
                .where(DocumentRow.id == job.document_id)
                .values(status=status, finished_at=self.database.now(session), **values)
            )

    def _update(self, job: Job, values: dict[str, object]) -> None:
        with self.database.write() as session:
            self.queue.hold(session, job)
            session.execute(
                update(DocumentRow).where(DocumentRow.id == job.document_id).values(**values)
            )


def parse_limits(settings: Settings) -> ParseLimits:
    """The parser's limits out of the settings."""
    return ParseLimits(
        max_bytes=settings.max_upload_bytes,
        max_pages=settings.parse_max_pages,
        timeout_seconds=settings.parse_timeout_s,
        memory_bytes=settings.parse_memory_mb * 1_000_000,
    )
