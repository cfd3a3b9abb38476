"""The library: add, list, open, delete, cancel, retry, on both databases."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from app.db.models import (
    Base,
    ChunkRow,
    ClauseRow,
    DocumentRow,
    JobRow,
    PageRow,
    VersionRow,
    WorkerRow,
)
from app.errors import (
    BadName,
    BadRequest,
    Conflict,
    EmptyUpload,
    NotFound,
    NotReady,
    StorageFull,
    TooLargeUpload,
)
from app.owners import section_of
from app.services import Services
from app.settings import Settings

Start = Callable[..., Services]

ENGLISH = """SUPPLY AGREEMENT

1. Term
1.1 This Agreement lasts for two years from the Effective Date.
1.2 Either party may terminate it on 90 days' written notice.

2. Price
2.1 The price is EUR 1,250,000.00, payable in 12 instalments.
2.2 Late payments bear interest of 5% a year.
"""
CHINESE = (
    "第一条 定义\n本合同所称货物是指附件所列设备。\n第二条 违约金\n违约金为合同总价的百分之五。\n"
)
ROOT = Path(__file__).parents[2]


def add(services: Services, text: str = ENGLISH, name: str = "supply.txt", **more: Any) -> str:
    record, duplicate = services.library.add(io.BytesIO(text.encode()), name, **more)
    assert not duplicate
    return record.id


def rows(services: Services, table: type[Base]) -> int:
    with services.database.read() as session:
        return session.execute(select(func.count()).select_from(table)).scalar_one()


def files(settings: Settings) -> list[Path]:
    folders = (settings.files_dir, settings.derived_dir)
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def wait_for(services: Services, document_id: str, stage: str) -> None:
    end = time.monotonic() + 20
    while services.library.get(document_id).stage != stage:
        assert time.monotonic() < end, services.library.get(document_id)
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("text", "name", "language", "clause"),
    [(ENGLISH, "supply.txt", "en", "2.1"), (CHINESE, "采购合同（2024）.txt", "zh", None)],
)
def test_a_document_is_ingested(
    start: Start, text: str, name: str, language: str, clause: str | None
) -> None:
    services = start()
    document_id = add(services, text, name)
    record = services.library.wait(document_id, 30)
    assert (record.status, record.stage, record.error_message) == ("completed", "done", None)
    assert (record.name, record.language, record.page_count) == (name, language, 1)
    assert record.ready_tokens == record.total_tokens > 0
    assert record.progress_done == record.progress_total
    assert None not in (record.timings.parse_ms, record.timings.index_ms, record.timings.read_ms)

    loaded = services.library.load(document_id)
    assert loaded.text == services.library.text(document_id)
    assert loaded.index.search("违约金" if language == "zh" else "price of the goods")
    assert loaded.token_spans.shape == (len(loaded.tokens.token_ids), 2)
    first, last = loaded.token_spans[0]
    assert loaded.text[first:last] in text
    assert loaded.tokens.blocks[-1][1] == len(loaded.tokens.token_ids)
    assert loaded.tokens.owner == "local" and loaded.tokens.sinks
    assert loaded.boxes(0, 10) == ()
    if clause:
        assert clause in {item.number for item in loaded.clauses}


def test_a_pdf_has_boxes_on_its_pages(start: Start) -> None:
    services = start()
    sample = ROOT / "samples" / "supply-agreement-en.pdf"
    if not sample.exists():
        sample = next(iter(sorted((ROOT / "samples").rglob("*.pdf"))))
    record, _ = services.library.add(sample, sample.name)
    record = services.library.wait(record.id, 120)
    assert record.status == "completed", record.error_message
    loaded = services.library.load(record.id)
    assert record.page_count == len(loaded.pages) > 1
    page = loaded.pages[1]
    boxes = loaded.boxes(page.start, page.end)
    assert {box.page for box in boxes} == {page.number}
    assert 3 < len(boxes) < 120
    for box in boxes:
        assert 0 <= box.x0 < box.x1 <= 1 and 0 <= box.y0 < box.y1 <= 1
    word = loaded.text.index(loaded.text[page.start : page.end].split()[3], page.start)
    assert len(loaded.boxes(word, word + 3)) == 1
    across = loaded.boxes(loaded.pages[0].end - 40, page.start + 40)
    assert {box.page for box in across} == {1, 2}


def test_same_bytes_again(start: Start, settings: Settings) -> None:
    services = start()
    first = add(services)
    services.library.wait(first, 30)
    record, duplicate = services.library.add(io.BytesIO(ENGLISH.encode()), "other name.txt")
    assert duplicate and record.id == first and record.name == "supply.txt"
    assert rows(services, JobRow) == 1


def test_same_bytes_of_another_owner(start: Start, settings: Settings) -> None:
    services = start()
    mine, theirs = add(services), add(services, owner="someone")
    for document_id in (mine, theirs):
        services.library.wait(document_id, 30)
    keys = {services.library.load(item).tokens.key for item in (mine, theirs)}
    assert len(keys) == 2
    with pytest.raises(NotFound):
        services.library.get(theirs, owner="local")
    with pytest.raises(NotFound):
        services.library.load(theirs, owner="local")
    assert [item.id for item in services.library.list(owner="someone").data] == [theirs]
    assert len(list(services.library.files.stored())) == 2, "each owner has a file of its own"
    assert services.library.sweep() == 0
    services.library.delete(mine)
    assert services.library.file_path(theirs).read_text() == ENGLISH
    with services.library.files.receive(io.BytesIO(b"left by a crash")) as incoming:
        services.library.files.place(incoming, section_of("someone"))
    assert services.library.sweep() == 1
    services.library.delete(theirs)
    assert files(settings) == []


def test_same_bytes_twenty_times_at_once(start: Start) -> None:
    services = start()
    with ThreadPoolExecutor(20) as pool:
        added = list(
            pool.map(
                lambda number: services.library.add(io.BytesIO(ENGLISH.encode()), f"{number}.txt"),
                range(20),
            )
        )
    assert len({record.id for record, _ in added}) == 1
    assert sorted(duplicate for _, duplicate in added) == [False] + [True] * 19
    assert services.library.wait(added[0][0].id, 30).status == "completed"
    assert rows(services, JobRow) == 1


def test_delete_leaves_nothing(start: Start, settings: Settings, make_engine: Any) -> None:
    engine = make_engine()
    services = start(engine=engine)
    document_id = add(services)
    services.library.wait(document_id, 30)
    key = services.library.load(document_id).tokens.key
    services.library.delete(document_id)
    for table in (DocumentRow, VersionRow, PageRow, ClauseRow, ChunkRow, JobRow):
        assert rows(services, table) == 0, table
    assert files(settings) == []
    assert engine.forgotten == [key]
    for call in (services.library.get, services.library.load, services.library.delete):
        with pytest.raises(NotFound):
            call(document_id)
    assert services.library.wait(add(services), 30).status == "completed"


def test_delete_while_it_is_read(start: Start, settings: Settings, make_engine: Any) -> None:
    engine = make_engine(pace=30.0)
    services = start(engine=engine)
    document_id = add(services)
    while not engine.tickets:
        time.sleep(0.02)
    services.library.delete(document_id)
    end = time.monotonic() + 5
    while not engine.tickets[0].cancelled.is_set():
        assert time.monotonic() < end
        time.sleep(0.02)
    assert files(settings) == []


def test_kv_shared_by_two_files_with_one_text_stays(start: Start, make_engine: Any) -> None:
    engine = make_engine()
    services = start(engine=engine)
    one, other = add(services), add(services, ENGLISH.replace("\n", "\r\n"), "dos.txt")
    for document_id in (one, other):
        services.library.wait(document_id, 30)
    key = services.library.load(one).tokens.key
    assert services.library.load(other).tokens.key == key
    services.library.delete(one)
    assert engine.forgotten == []
    services.library.delete(other)
    assert engine.forgotten == [key]


def test_asked_while_it_is_read(start: Start, make_engine: Any) -> None:
    services = start(engine=make_engine(pace=30.0))
    document_id = add(services)
    record = services.library.wait(document_id, 30, until="askable")
    assert (record.status, record.stage, record.askable) == ("in_progress", "reading", True)
    assert services.library.load(document_id).index.search("price")
    assert services.library.wait(document_id, 0).status == "in_progress"


def test_documents_are_read_one_after_the_other(
    start: Start, make_engine: Any, settings: Settings
) -> None:
    engine = make_engine(pace=0.2)
    # Of two that are prepared at once the second may be ready, and be given to it, first.
    one = settings.model_copy(update={"ingest_workers": 1})
    services = start(engine=engine, settings=one)
    ids = [add(services, f"{ENGLISH}{number}", f"{number}.txt") for number in range(3)]
    for document_id in ids:
        services.library.wait(document_id, 30)
    assert len(engine.tickets) == 3
    ends = [ticket.started + engine.pace * len(ticket.document.blocks) for ticket in engine.tickets]
    assert all(
        ticket.started >= end for ticket, end in zip(engine.tickets[1:], ends[:-1], strict=True)
    )


def test_a_failed_read_is_shown_and_can_be_retried(start: Start, make_engine: Any) -> None:
    engine = make_engine(fails="out of memory")
    services = start(engine=engine)
    document_id = add(services)
    record = services.library.wait(document_id, 30)
    assert (record.status, record.error_code, record.error_message) == (
        "failed",
        "read_failed",
        "out of memory",
    )
    with pytest.raises(NotReady, match="out of memory"):
        services.library.load(document_id)
    chunks = rows(services, ChunkRow)
    engine.fails = ""
    services.library.retry(document_id)
    services.library.retry(document_id)
    record = services.library.wait(document_id, 30)
    assert (record.status, record.error_code) == ("completed", None)
    assert services.library.retry(document_id).status == "completed"
    assert rows(services, ChunkRow) == chunks
    assert rows(services, JobRow) == 2
    assert rows(services, VersionRow) == 1


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (b"%PDF-1.4 broken", "x.pdf", "damaged"),
        (b"  \n\n  ", "x.txt", "no_text"),
        (b"PK\x03\x04 not a word file", "x.docx", "damaged"),
    ],
)
def test_a_bad_file_fails_with_its_reason(
    start: Start, settings: Settings, data: bytes, name: str, code: str
) -> None:
    services = start()
    record, _ = services.library.add(io.BytesIO(data), name)
    record = services.library.wait(record.id, 60)
    assert (record.status, record.error_code) == ("failed", code)
    assert record.error_message
    for table in (VersionRow, PageRow, ChunkRow):
        assert rows(services, table) == 0
    with pytest.raises(NotReady, match="could not be read"):
        services.library.load(record.id)
    services.library.delete(record.id)
    assert files(settings) == []


def test_a_failed_file_uploaded_again_under_a_better_name(start: Start) -> None:
    services = start()
    record, _ = services.library.add(io.BytesIO(ENGLISH.encode()), "supply.pdf")
    assert services.library.wait(record.id, 30).status == "failed"
    again, duplicate = services.library.add(io.BytesIO(ENGLISH.encode()), "supply.txt")
    assert duplicate and again.id == record.id and again.name == "supply.txt"
    assert services.library.wait(record.id, 30).status == "completed"


def test_an_unexpected_fault_is_a_visible_failure(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_more: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("app.ingest.split", broken)
    services = start()
    document_id = add(services)
    record = services.library.wait(document_id, 30)
    assert (record.status, record.error_code) == ("failed", "internal")
    assert "ZeroDivisionError" in (record.error_message or "")
    assert rows(services, ChunkRow) == 0
    monkeypatch.undo()
    services.library.retry(document_id)
    assert services.library.wait(document_id, 30).status == "completed"
    assert rows(services, PageRow) == 1


@pytest.mark.parametrize("name", ["", ".", "合" * 300])
def test_bad_names_leave_nothing(start: Start, settings: Settings, name: str) -> None:
    services = start()
    with pytest.raises(BadName):
        services.library.add(io.BytesIO(b"text"), name)
    assert (files(settings), rows(services, DocumentRow)) == ([], 0)


@pytest.mark.parametrize(
    "name", ["../../outside.txt", "..\\..\\outside.txt", "/abs.txt", "CON.txt", "．．／x.txt"]
)
def test_a_name_is_never_a_path(
    start: Start, settings: Settings, tmp_path: Path, name: str
) -> None:
    services = start()
    before = set(tmp_path.parent.rglob("*outside*"))
    document_id = add(services, name=name)
    assert services.library.wait(document_id, 30).status == "completed"
    stored = services.library.file_path(document_id)
    assert stored.resolve().is_relative_to(settings.files_dir.resolve())
    assert stored.name == services.library.get(document_id).sha256
    services.library.delete(document_id)
    assert set(tmp_path.parent.rglob("*outside*")) == before
    with pytest.raises(NotFound):
        services.library.delete("../../outside.txt")


def test_bad_uploads_leave_nothing(
    start: Start, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = start(settings=settings.model_copy(update={"max_upload_mb": 1}))
    with pytest.raises(TooLargeUpload):
        services.library.add(io.BytesIO(b"x" * 1_000_001), "x.txt")
    with pytest.raises(EmptyUpload):
        services.library.add(io.BytesIO(b""), "x.txt")
    with pytest.raises(NotFound, match="There is no file"):
        services.library.add(tmp_path / "nothing.txt", "nothing.txt")
    with pytest.raises(BadRequest, match="folder"):
        services.library.add(tmp_path, "folder.txt")

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageFull):
        services.library.add(io.BytesIO(b"text"), "x.txt")
    assert (files(settings), rows(services, DocumentRow)) == ([], 0)


def test_a_disk_that_fills_up_while_indexing(
    start: Start, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    services = start()
    monkeypatch.setattr("numpy.savez_compressed", full)
    document_id = add(services)
    record = services.library.wait(document_id, 30)
    assert (record.status, record.error_code) == ("failed", "storage_full")
    assert not list(settings.derived_dir.rglob("*.npz")) + list(settings.derived_dir.rglob(".tmp*"))
    monkeypatch.undo()
    services.library.retry(document_id)
    assert services.library.wait(document_id, 30).status == "completed"


def test_cancel_while_reading(start: Start, make_engine: Any) -> None:
    engine = make_engine(pace=30.0)
    services = start(engine=engine)
    document_id = add(services)
    while not engine.tickets:
        time.sleep(0.02)
    began = time.monotonic()
    services.library.cancel(document_id)
    record = services.library.wait(document_id, 10)
    assert record.status == "cancelled" and time.monotonic() - began < 9
    assert engine.tickets[0].cancelled.is_set()
    assert services.library.cancel(document_id).status == "cancelled"
    with pytest.raises(NotReady, match="cancelled"):
        services.library.load(document_id)
    engine.pace = 0.0
    services.library.retry(document_id)
    assert services.library.wait(document_id, 30).status == "completed"
    with pytest.raises(Conflict, match="nothing to cancel"):
        services.library.cancel(document_id)


def test_cancel_between_pages(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    from retrieval.errors import ParseCancelled

    def slow(*_arguments: object, cancelled: Callable[[], bool], **_more: object) -> None:
        for _ in range(600):
            if cancelled():
                raise ParseCancelled("cancelled")
            time.sleep(0.05)

    monkeypatch.setattr("app.ingest.parse_file", slow)
    services = start()
    document_id = add(services)
    wait_for(services, document_id, "parsing")
    began = time.monotonic()
    services.library.cancel(document_id)
    assert services.library.wait(document_id, 10).status == "cancelled"
    assert time.monotonic() - began < 9
    assert rows(services, VersionRow) == 0


def test_cancel_in_the_line(start: Start, settings: Settings, make_engine: Any) -> None:
    services = start(
        engine=make_engine(), settings=settings.model_copy(update={"ingest_workers": 1})
    )
    runner = services.library.runner
    monkey = runner.queue.claim
    runner.queue.claim = lambda **_more: None  # type: ignore[method-assign]
    document_id = add(services)
    assert services.library.cancel(document_id).status == "cancelled"
    runner.queue.claim = monkey  # type: ignore[method-assign]
    time.sleep(0.3)
    assert services.library.get(document_id).status == "cancelled"


def test_lists(start: Start) -> None:
    services = start()
    ids = [add(services, f"{ENGLISH}{number}", f"{number}.txt") for number in range(5)]
    page = services.library.list(limit=2)
    assert [record.id for record in page.data] == ids[:2:-1]
    assert (page.has_more, page.total) == (True, 5)
    page = services.library.list(limit=2, after=ids[3])
    assert [record.id for record in page.data] == [ids[2], ids[1]]
    page = services.library.list(limit=9, after=ids[1], order="asc")
    assert [record.id for record in page.data] == ids[2:] and not page.has_more
    with pytest.raises(NotFound):
        services.library.list(after="doc_unknown")


def test_tokens_are_made_once_a_model(start: Start, make_engine: Any, settings: Settings) -> None:
    engine = make_engine()
    services = start(engine=engine)
    document_id = add(services)
    services.library.wait(document_id, 30)
    first = services.library.load(document_id)
    assert services.library.load(document_id).index is first.index
    assert engine.tokenizer.calls == 1
    other = make_engine()
    other.fingerprint, other.block_tokens = "fake-2", 16
    second = start(engine=other).library.load(document_id)
    assert other.tokenizer.calls == 1
    assert len(second.tokens.blocks) > len(first.tokens.blocks)
    (settings.derived_dir / document_id / "tokens.npz").write_bytes(b"PK\x03\x04damaged")
    third = start(engine=make_engine()).library.load(document_id)
    assert third.tokens == first.tokens


def test_loaded_documents_are_few(start: Start, settings: Settings, make_engine: Any) -> None:
    services = start(settings=settings.model_copy(update={"documents_in_memory": 2}))
    ids = [add(services, f"{ENGLISH}{number}", f"{number}.txt") for number in range(4)]
    for document_id in ids:
        services.library.wait(document_id, 30)
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(services.library.load, ids * 4))
    assert {item.record.id for item in loaded} == set(ids)
    assert len(services.library.loader.kept()) == 2


def test_closing_leaves_no_worker(start: Start, settings: Settings, make_engine: Any) -> None:
    from app.services import open_services

    engine = make_engine()
    with open_services(settings, engine=engine) as services:
        document_id = add(services)
        services.library.wait(document_id, 30)
    assert not engine.closed
    after = start()
    assert rows(after, WorkerRow) == 1
    assert after.library.get(document_id).status == "completed"
