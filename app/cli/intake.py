"""Takes files in for a command that needs them read: adds or finds them, waits with a progress bar
on stderr, and keeps account of what that cost."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from app.documents import DocumentRecord
from app.readiness import require_askable, start_reading
from app.services import Services

POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Intake:
    """The documents of one call, with the milliseconds and tokens that taking them in cost this
    call. Documents that were there already cost nothing to parse."""

    document_ids: tuple[str, ...]
    parse_ms: float
    index_ms: float
    read_ms: float
    read_tokens: int


def take_in(services: Services, files: Sequence[Path]) -> Intake:
    """Waits until every file is wholly read by the engine. Raises Conflict for one that could not
    be read; such a file is not kept when this call added it."""
    added = [services.library.add(path, path.name) for path in files]
    records: list[DocumentRecord] = []
    for record, _ in added:
        try:
            records.append(_prepared(services, record))
        except BaseException:
            _discard(services, [one for one, was_known in added if not was_known])
            raise
    started = time.perf_counter()
    read_tokens = _read(services, [record.id for record in records])
    new = [record for record, (_, known) in zip(records, added, strict=True) if not known]
    rereading_ms = (time.perf_counter() - started) * 1000
    return Intake(
        document_ids=tuple(dict.fromkeys(record.id for record in records)),
        parse_ms=sum(record.timings.parse_ms or 0.0 for record in new),
        index_ms=sum(record.timings.index_ms or 0.0 for record in new),
        read_ms=sum(record.timings.read_ms or 0.0 for record in new) + rereading_ms,
        read_tokens=read_tokens,
    )


def _prepared(services: Services, record: DocumentRecord) -> DocumentRecord:
    """The record once its ingestion is over."""
    with tqdm(desc=record.name, file=sys.stderr, disable=None, leave=False) as bar:
        while not record.final:
            record = services.library.wait(record.id, POLL_SECONDS)
            bar.unit = f" {record.progress_unit}"
            bar.set_postfix_str(record.stage, refresh=False)
            bar.total = record.progress_total or None
            bar.n = record.progress_done
            bar.refresh()
    require_askable(record)
    return record


def _read(services: Services, document_ids: Sequence[str]) -> int:
    """Waits until the engine of this process has read the documents; tokens it computed."""
    documents = [services.library.load(document_id) for document_id in document_ids]
    tickets = start_reading(services.engine, documents)
    for ticket in tickets:
        with tqdm(unit=" tokens", file=sys.stderr, disable=None, leave=False) as bar:
            while (progress := ticket.progress()).status in ("queued", "reading"):
                bar.total = progress.total_tokens
                bar.n = progress.read_tokens
                bar.refresh()
                ticket.wait(POLL_SECONDS)
    computed = 0
    for document in documents:
        read = services.engine.progress(document.tokens.key)
        computed += read.computed_tokens if read is not None else 0
    return computed


def _discard(services: Services, records: Sequence[DocumentRecord]) -> None:
    for record in records:
        services.library.delete(record.id)
