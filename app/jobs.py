"""The line of ingestion jobs, in the database.

A job belongs to one process at a time; every write a job makes first proves that it still has it
(`hold`), so a process that was taken for dead can't write over its successor's work.

Does not know what the stages do.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, ScalarSelect, Select, and_, func, or_, select, true, update
from sqlalchemy.orm import Session, aliased

from app.db.models import DocumentRow, JobRow
from app.db.session import Database, changed
from app.workers import INTERRUPTED, Worker

OPEN = ("queued", "running")
INTERRUPTED_TEXT = (
    "The program stopped several times while it was reading this document. Press retry; if it "
    "stops again, the document is probably too much for this machine's memory."
)


class LeaseLost(Exception):
    """The job was taken away or its document was deleted: drop the work, write nothing."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job this process has. `attempts` counts starts, this one included; `created_at` (seconds
    since 1970) stays the same in all of them. `size`: bytes of the document's file."""

    id: str
    document_id: str
    attempts: int
    created_at: float
    size: int


class JobQueue:
    """Jobs as one process sees them. Thread-safe; no state of its own."""

    def __init__(self, database: Database, worker: Worker, *, max_attempts: int = 3) -> None:
        self.database = database
        self.worker = worker
        self.max_attempts = max_attempts

    def enqueue(self, session: Session, document_id: str) -> bool:
        """Open a job for the document in this process's line. False: it has one already."""
        open_job = select(JobRow.id).where(
            JobRow.document_id == document_id, JobRow.status.in_(OPEN)
        )
        if session.execute(open_job).first() is not None:
            return False
        session.add(
            JobRow(
                id=f"job_{uuid.uuid4().hex}",
                document_id=document_id,
                status="queued",
                worker_id=self.worker.id,
                created_at=self.database.now(session),
            )
        )
        session.flush()
        return True

    def claim(
        self,
        *,
        resume: bool,
        wanted: Collection[str] = (),
        largest: int | None = None,
        pausing: Collection[str] = (),
    ) -> Job | None:
        """The next job of this process's line, or a free one: any with `resume`, else only of
        `wanted` documents; with `largest` of those whose files have at most so many bytes; none of
        the jobs whose ids are `pausing`. The next is of the owner with the fewest under way; of one
        owner's the first that came. A job started too often fails as `interrupted`."""
        available = self._available(resume, wanted)
        if largest is not None:
            short = select(DocumentRow.id).where(DocumentRow.size <= largest)
            available = available.where(JobRow.document_id.in_(short))
        if pausing:
            available = available.where(JobRow.id.not_in(pausing))
        with self.database.read() as session:
            if session.execute(available.with_only_columns(JobRow.id)).first() is None:
                return None
        with self.database.write() as session:
            while True:
                row = session.execute(available.with_for_update(skip_locked=True)).scalar()
                if row is None:
                    return None
                if row.cancel_requested:
                    self._end(session, row, "cancelled", None, None)
                elif row.attempts >= self.max_attempts:
                    self._end(session, row, "failed", INTERRUPTED, INTERRUPTED_TEXT)
                else:
                    break
            row.status = "running"
            row.worker_id = self.worker.id
            row.attempts += 1
            row.started_at = self.database.now(session)
            size = session.execute(
                select(DocumentRow.size).where(DocumentRow.id == row.document_id)
            ).scalar_one()
            return Job(row.id, row.document_id, row.attempts, row.created_at, size)

    def _in_line(self, resume: bool, wanted: Collection[str]) -> ColumnElement[bool]:
        free = JobRow.worker_id.is_(None)
        taken = free if resume else and_(free, JobRow.document_id.in_(list(wanted)))
        return and_(JobRow.status == "queued", or_(JobRow.worker_id == self.worker.id, taken))

    def _available(self, resume: bool, wanted: Collection[str]) -> Select[JobRow]:
        return (
            select(JobRow)
            .where(self._in_line(resume, wanted))
            .order_by(_under_way(), JobRow.created_at, JobRow.id)
            .limit(1)
        )

    def _end(
        self, session: Session, row: JobRow, status: str, code: str | None, message: str | None
    ) -> None:
        now = self.database.now(session)
        row.status, row.worker_id, row.finished_at = status, None, now
        session.execute(
            update(DocumentRow)
            .where(DocumentRow.id == row.document_id)
            .values(status=status, error_code=code, error_message=message, finished_at=now)
        )
        session.flush()

    def hold(self, session: Session, job: Job) -> None:
        """Prove, inside a write transaction, that the job is still ours. Raises LeaseLost."""
        held = changed(
            session,
            update(JobRow)
            .where(
                JobRow.id == job.id,
                JobRow.worker_id == self.worker.id,
                JobRow.status == "running",
                JobRow.attempts == job.attempts,
            )
            .values(status="running"),
        )
        if not held:
            raise LeaseLost(job.id)

    def finish(self, session: Session, job: Job, status: str) -> None:
        """End the job as completed, failed or cancelled. Raises LeaseLost."""
        self.hold(session, job)
        session.execute(
            update(JobRow)
            .where(JobRow.id == job.id)
            .values(status=status, worker_id=None, finished_at=self.database.now(session))
        )

    def release(self, job: Job) -> None:
        """Put the job back, uncounted, for whoever comes next (an orderly stop)."""
        with self.database.write() as session:
            self.hold(session, job)
            session.execute(
                update(JobRow)
                .where(JobRow.id == job.id)
                .values(status="queued", worker_id=None, attempts=JobRow.attempts - 1)
            )

    def request_cancel(self, session: Session, document_id: str) -> bool:
        """Cancel a job that is not running at once (True); ask a running one to stop (False)."""
        waiting = changed(
            session,
            update(JobRow)
            .where(JobRow.document_id == document_id, JobRow.status == "queued")
            .values(status="cancelled", worker_id=None, finished_at=self.database.now(session)),
        )
        session.execute(
            update(JobRow)
            .where(JobRow.document_id == document_id, JobRow.status == "running")
            .values(cancel_requested=true())
        )
        return waiting > 0

    def ahead(
        self, document_ids: Collection[str], *, resume: bool, wanted: Collection[str] = ()
    ) -> dict[str, int]:
        """By document, how many jobs of the same owner this process takes up before the one that
        waits. Those whose job it would not `claim` are left out: when that is, it can't tell."""
        asked = aliased(DocumentRow)
        owners = select(asked.owner).where(asked.id.in_(document_ids))
        place = func.row_number().over(
            partition_by=DocumentRow.owner, order_by=(JobRow.created_at, JobRow.id)
        )
        line = (
            select(JobRow.document_id, (place - 1).label("ahead"))
            .join(DocumentRow, DocumentRow.id == JobRow.document_id)
            .where(self._in_line(resume, wanted), DocumentRow.owner.in_(owners))
            .subquery()
        )
        query = select(line.c.document_id, line.c.ahead)
        with self.database.read() as session:
            rows = session.execute(query.where(line.c.document_id.in_(document_ids)))
            return {document_id: ahead for document_id, ahead in rows}

    def held(self) -> set[tuple[str, int]]:
        """Ids and attempts of the jobs that this process has now."""
        query = select(JobRow.id, JobRow.attempts).where(
            JobRow.worker_id == self.worker.id, JobRow.status == "running"
        )
        with self.database.read() as session:
            return {(job_id, attempts) for job_id, attempts in session.execute(query)}

    def cancel_requests(self) -> set[str]:
        """Ids of this process's running jobs that someone wants stopped."""
        query = select(JobRow.id).where(
            JobRow.worker_id == self.worker.id, JobRow.status == "running", JobRow.cancel_requested
        )
        with self.database.read() as session:
            return set(session.execute(query).scalars())


def _under_way() -> ScalarSelect[int]:
    """How many jobs of the same owner are running, for each job of a query."""
    other, its, own = aliased(JobRow), aliased(DocumentRow), aliased(DocumentRow)
    return (
        select(func.count())
        .select_from(other)
        .join(its, its.id == other.document_id)
        .join(own, own.owner == its.owner)
        .where(other.status == "running", own.id == JobRow.document_id)
        .correlate(JobRow)
        .scalar_subquery()
    )
