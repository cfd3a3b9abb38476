"""The folder of one run.

    run.json        what is measured and with what; written once, sessions are added
    records.jsonl   one SampleRecord a line, appended and flushed as each question ends
    summary.json    written when every question has ended
    run.lock        held while somebody writes

A process that is killed leaves at most a last line without its end, which is dropped. Knows neither
modes nor metrics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from app.db.session import make_folder, translate_os_error
from app.storage import atomic_write
from eval.errors import RunError
from eval.runs.records import record_fields, record_of
from eval.types import SampleRecord

FORMAT = 1
_RUN, _RECORDS, _SUMMARY, _LOCK = "run.json", "records.jsonl", "summary.json", "run.lock"


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it lies on disk. `config` is what was asked for, `environment` what its first
    session ran on; `records` hold the last record of each question, in the order of their first
    one; `summary` is empty while the run is not finished."""

    folder: Path
    config: dict[str, Any]
    environment: dict[str, Any]
    records: tuple[SampleRecord, ...]
    summary: dict[str, Any]
    started: str = ""
    sessions: tuple[dict[str, Any], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every question has ended."""
        return bool(self.summary)


def load_run(folder: Path) -> Run:
    """Reads a run, finished or not; changes nothing. Raises RunError."""
    head = _read_json(folder / _RUN)
    if head is None:
        raise RunError(f"{folder} holds no run (no {_RUN}). Name a folder of fineprint eval run.")
    if head.get("format") != FORMAT:
        raise RunError(f"{folder / _RUN} has format {head.get('format')}; this is format {FORMAT}.")
    try:
        config, environment = dict(head["config"]), dict(head["environment"])
        sessions = tuple(dict(session) for session in head["sessions"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder / _RUN} is damaged: {error}. Run into a new folder.") from error
    return Run(
        folder=folder,
        config=config,
        environment=environment,
        records=tuple(_records(folder / _RECORDS).values()),
        summary=_read_json(folder / _SUMMARY) or {},
        started=str(head.get("started", "")),
        sessions=sessions,
    )


class RunFolder:
    """A run that is being written. Holds the lock from `open` to the end of the `with` block."""

    def __init__(self, folder: Path, lock: FileLock, run: Run) -> None:
        """Use `RunFolder.open`."""
        self.folder = folder
        self._lock = lock
        self._run = run
        self.environments = [dict(session["environment"]) for session in run.sessions]
        self.records = {record.qid: record for record in run.records}
        self._file = (folder / _RECORDS).open("ab", buffering=0)

    @classmethod
    def open(
        cls,
        folder: Path,
        config: Mapping[str, object],
        environment: Mapping[str, object],
        *,
        restart: bool = False,
    ) -> RunFolder:
        """Begin the run of `config` in `folder`, or go on with it.

        `restart` drops what a former run of any configuration left there. Raises RunError when the
        folder holds another configuration (naming what differs), holds other things, or another
        process writes to it.
        """
        make_folder(folder)
        lock = FileLock(folder / _LOCK, thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            raise RunError(
                f"Another process writes to {folder}. Wait for it, or give this run its own folder "
                "with --out."
            ) from error
        try:
            return cls(folder, lock, _begun(folder, config, environment, restart))
        except BaseException:
            lock.release()
            raise

    def ask_again(self, environment: Mapping[str, object]) -> None:
        """Some questions of a finished run are to be asked again: it is not finished any more, and
        this session is one of its own. Changes nothing of an unfinished run."""
        if self._run.complete:
            (self.folder / _SUMMARY).unlink()
            _write_json(self.folder / _RUN, _head(self._run, _session(environment)))

    def add(self, record: SampleRecord) -> None:
        """Append one record; it is with the operating system when this returns. Raises StorageFull
        (what was written of it is dropped when the run goes on) and other AppErrors of storage."""
        line = json.dumps(record_fields(record), ensure_ascii=False, allow_nan=False)
        left = memoryview(f"{line}\n".encode())
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise translate_os_error(error, self.folder / _RECORDS) from error
        self.records[record.qid] = record

    def finish(self, summary: Mapping[str, object]) -> None:
        """Write the summary, whole or not at all."""
        _write_json(self.folder / _SUMMARY, summary)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._lock.release()


def differences(
    old: Mapping[str, object], new: Mapping[str, object], prefix: str = ""
) -> Iterator[str]:
    """One sentence for each value that two configurations do not share."""
    for name in sorted({*old, *new}):
        before, now = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(now, dict):
            yield from differences(before, now, f"{prefix}{name}.")
        elif before != now:
            yield f"{prefix}{name} was {json.dumps(before)} and is now {json.dumps(now)}"


def _begun(
    folder: Path, config: Mapping[str, object], environment: Mapping[str, object], restart: bool
) -> Run:
    if restart:
        for name in (_SUMMARY, _RECORDS, _RUN):
            (folder / name).unlink(missing_ok=True)
    session = _session(environment)
    if not (folder / _RUN).exists():
        others = [p.name for p in folder.iterdir() if p.name != _LOCK and p.name[:5] != ".tmp-"]
        if others:
            raise RunError(
                f"{folder} holds other things ({', '.join(sorted(others)[:3])}). Choose an empty "
                "folder with --out."
            )
        head = {
            "format": FORMAT,
            "started": session["started"],
            "config": dict(config),
            "environment": dict(environment),
            "sessions": [session],
        }
        _write_json(folder / _RUN, head)
        return load_run(folder)
    run = load_run(folder)
    # By way of JSON, so that tuples and lists are one thing.
    plain = json.loads(json.dumps(dict(config)))
    if differing := list(differences(run.config, plain)):
        raise RunError(
            f"{folder} holds another run: {'; '.join(differing)}. Choose another --out, or drop "
            "the old run with --restart."
        )
    _drop_torn_line(folder / _RECORDS)
    if not run.complete:
        _write_json(folder / _RUN, _head(run, session))
    return load_run(folder)


def _session(environment: Mapping[str, object]) -> dict[str, Any]:
    return {"started": datetime.now(UTC).isoformat(), "environment": dict(environment)}


def _head(run: Run, session: Mapping[str, object]) -> dict[str, object]:
    """What `run.json` holds when a session is added."""
    return {
        "format": FORMAT,
        "started": run.started,
        "config": run.config,
        "environment": run.environment,
        "sessions": [*run.sessions, session],
    }


def _records(path: Path) -> dict[str, SampleRecord]:
    """The last record of each question; a last line without its end is passed over."""
    found: dict[str, SampleRecord] = {}
    if not path.exists():
        return found
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                break
            try:
                record = record_of(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise RunError(
                    f"{path}, line {number} is damaged: {error}. Remove the line to ask its "
                    "question again, or drop the run with --restart."
                ) from error
            found[record.qid] = record
    return found


def _drop_torn_line(path: Path) -> None:
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RunError(f"{path} can't be read: {error.strerror}. Name another folder.") from error
    except ValueError as error:
        raise RunError(f"{path} is no JSON: {error}. Drop the run with --restart.") from error
    if not isinstance(body, dict):
        raise RunError(f"{path} holds no JSON object. Drop the run with --restart.")
    return body


def _write_json(path: Path, body: Mapping[str, object]) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(body, ensure_ascii=False, indent=1).encode() + b"\n")
