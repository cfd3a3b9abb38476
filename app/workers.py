"""The processes that work on one database, and which of them are dead.

Each process has a row that it renews (a heartbeat). What a dead process left open is set free or
failed by whoever notices: its jobs go back to the line, its unfinished answers become `failed`.
Does not know what a job does.
"""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass

import psutil
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.db.models import JobRow, MessageRow, WorkerRow
from app.db.session import Database, changed

MISSED_BEATS = 6
"""A process that was silent for this many heartbeats is taken for dead (a paused machine, a lost
network). A process of this machine is looked up directly and needs no waiting."""

INTERRUPTED = "interrupted"
CLOCK_SLACK_S = 1.0
"""psutil reads a process's start time in clock ticks since boot; two readings differ by less."""


@dataclass(frozen=True, slots=True)
class Reaped:
    """What a look for dead processes found."""

    workers: int
    jobs: int
    messages: int


class Worker:
    """This process (or one `Services` in it) as others see it. Thread-safe."""

    def __init__(self, database: Database, *, heartbeat_s: float = 5.0) -> None:
        self.database = database
        self.heartbeat_s = heartbeat_s
        self.id = f"wrk_{uuid.uuid4().hex}"
        self.host = socket.gethostname()
        self.pid = os.getpid()

    def register(self) -> None:
        """Say that this process lives. Done before anything is owned."""
        with self.database.write() as session:
            session.add(self._row(self.database.now(session)))

    def beat(self) -> bool:
        """Renew the row. False: others took this process for dead and freed its work; it is
        registered anew, and running jobs notice at their next write."""
        with self.database.write() as session:
            now = self.database.now(session)
            if changed(
                session, update(WorkerRow).where(WorkerRow.id == self.id).values(beat_at=now)
            ):
                return True
            session.add(self._row(now))
            return False

    def leave(self) -> None:
        """Give everything back and remove the row."""
        with self.database.write() as session:
            _free(session, [self.id], self.database.now(session))

    def reap(self) -> Reaped:
        """Free what dead processes left."""
        with self.database.read() as session:
            now = self.database.now(session)
            rows = session.execute(select(WorkerRow).where(WorkerRow.id != self.id)).scalars()
            dead = [row.id for row in rows if self._is_dead(row, now)]
        if not dead:
            return Reaped(0, 0, 0)
        with self.database.write() as session:
            now = self.database.now(session)
            # Look again under the lock: a slow process may have beaten in between.
            rows = session.execute(select(WorkerRow).where(WorkerRow.id.in_(dead))).scalars()
            dead = [row.id for row in rows if self._is_dead(row, now)]
            jobs, messages = _free(session, dead, now)
            return Reaped(len(dead), jobs, messages)

    def _row(self, now: float) -> WorkerRow:
        started = psutil.Process(self.pid).create_time()
        return WorkerRow(
            id=self.id, host=self.host, pid=self.pid, process_started=started, beat_at=now
        )

    def _is_dead(self, row: WorkerRow, now: float) -> bool:
        if row.host == self.host:
            try:
                started = psutil.Process(row.pid).create_time()
            except psutil.NoSuchProcess:
                return True
            if abs(started - row.process_started) > CLOCK_SLACK_S:
                return True  # the number was given to another process
        return now - row.beat_at > MISSED_BEATS * self.heartbeat_s


def _free(session: Session, workers: list[str], now: float) -> tuple[int, int]:
    """Jobs back to the line and answers failed; numbers of both."""
    jobs = changed(
        session,
        update(JobRow)
        .where(JobRow.worker_id.in_(workers), JobRow.status.in_(("queued", "running")))
        .values(worker_id=None, status="queued"),
    )
    messages = changed(
        session,
        update(MessageRow)
        .where(MessageRow.worker_id.in_(workers), MessageRow.status == "in_progress")
        .values(
            status="failed",
            error_code=INTERRUPTED,
            error_message="The program stopped while it was writing this answer. Ask again.",
            worker_id=None,
            finished_at=now,
        ),
    )
    session.execute(delete(WorkerRow).where(WorkerRow.id.in_(workers)))
    return jobs, messages
