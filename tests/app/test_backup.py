"""Backup and restore: everything comes back, beside a running server, or nothing is touched."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.api_keys import ApiKeys
from app.backup import backup, restore
from app.errors import AlreadyServing, BadRequest, Conflict, Corrupted, NotFound, Unavailable
from app.owners import LOCAL
from app.services import Services, open_services
from app.settings import Settings

Start = Callable[..., Services]
TEXT = b"1. Term\nTwo years.\n2. Price\nEUR 100."


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def saved(settings: Settings, tmp_path: Path, make_engine: Any) -> tuple[Path, str]:
    """A backup made while the server runs, and the id of the document in it."""
    target = tmp_path / "saved.tar"
    with open_services(settings, engine=make_engine(), serve=True) as services:
        record, _ = services.library.add(io.BytesIO(TEXT), "a.txt")
        services.library.wait(record.id, 30)
        conversation = services.conversations.create(document_ids=[record.id])
        services.conversations.start_answer(conversation.id, question="How long?")
        assert backup(settings, target) == target.stat().st_size
        later, _ = services.library.add(io.BytesIO(b"1. Later"), "later.txt")
        services.library.wait(later.id, 30)
    return target, record.id


def test_everything_comes_back(saved: tuple[Path, str], tmp_path: Path, make_engine: Any) -> None:
    target, document_id = saved
    elsewhere = Settings(data_dir=tmp_path / "elsewhere")
    assert restore(elsewhere, target) is None
    with open_services(elsewhere, engine=make_engine(), serve=True) as services:
        assert [record.id for record in services.library.list().data] == [document_id]
        assert services.library.load(document_id).index.search("price")
        assert services.library.file_path(document_id).read_bytes() == TEXT
        (conversation,) = services.conversations.list().data
        assert services.conversations.messages(conversation.id)[0].content == "How long?"
    assert sorted(path.name for path in elsewhere.data_dir.glob("restore-*")) == []


def test_owners_and_keys_come_back(settings: Settings, tmp_path: Path, make_engine: Any) -> None:
    target = tmp_path / "saved.tar"
    with open_services(settings, engine=make_engine(), serve=True) as services:
        _, key = ApiKeys(services.database).create("Alice")
        for owner in (LOCAL, "Alice"):
            record, _ = services.library.add(io.BytesIO(TEXT), "a.txt", owner=owner)
            services.library.wait(record.id, 30)
        backup(settings, target)
    elsewhere = Settings(data_dir=tmp_path / "elsewhere")
    restore(elsewhere, target)
    with open_services(elsewhere, engine=make_engine(), serve=True) as services:
        assert ApiKeys(services.database).authenticate(key).owner == "Alice"
        for owner in (LOCAL, "Alice"):
            (record,) = services.library.list(owner=owner).data
            assert services.library.file_path(record.id, owner=owner).read_bytes() == TEXT


def test_data_is_put_aside_not_lost(
    saved: tuple[Path, str], settings: Settings, make_engine: Any
) -> None:
    target, document_id = saved
    with pytest.raises(Conflict, match="holds data"):
        restore(settings, target)
    aside = restore(settings, target, replace=True)
    assert aside is not None and (aside / "fineprint.sqlite").is_file()
    with open_services(settings, engine=make_engine()) as services:
        assert [record.id for record in services.library.list().data] == [document_id]


def test_not_under_a_running_server(
    saved: tuple[Path, str], settings: Settings, make_engine: Any
) -> None:
    with (
        open_services(settings, engine=make_engine(), serve=True),
        pytest.raises(AlreadyServing),
    ):
        restore(settings, saved[0], replace=True)


@pytest.mark.parametrize("harm", ["cut", "text", "no database", "no file", "changed file"])
def test_a_damaged_backup_changes_nothing(
    saved: tuple[Path, str], settings: Settings, tmp_path: Path, harm: str
) -> None:
    target, _ = saved
    damaged = tmp_path / "damaged.tar"
    if harm == "cut":
        damaged.write_bytes(target.read_bytes()[:3000])
    elif harm == "text":
        damaged.write_text("not a tar file")
    else:
        with tarfile.open(target) as old, tarfile.open(damaged, "w") as new:
            for member in old.getmembers():
                data = old.extractfile(member).read()  # type: ignore[union-attr]
                original = member.name.startswith("files/")
                if harm == "no database" and not original:
                    continue
                if harm == "no file" and original:
                    continue
                if harm == "changed file" and original:
                    data = data.replace(b"100", b"900")
                new.addfile(member, io.BytesIO(data))
    before = sorted(path for path in settings.data_dir.rglob("*") if path.is_file())
    with pytest.raises(Corrupted):
        restore(settings, damaged, replace=True)
    after = sorted(path for path in settings.data_dir.rglob("*") if path.is_file())
    assert [path for path in after if path.name != "serve.lock"] == [
        path for path in before if path.name != "serve.lock"
    ]


def test_a_member_outside_the_folder_is_refused(settings: Settings, tmp_path: Path) -> None:
    evil = tmp_path / "evil.tar"
    with tarfile.open(evil, "w") as archive:
        member = tarfile.TarInfo("../outside.txt")
        member.size = 4
        archive.addfile(member, io.BytesIO(b"evil"))
    with pytest.raises(Corrupted):
        restore(settings, evil)
    assert not list(tmp_path.rglob("outside.txt"))


def test_a_document_deleted_meanwhile(
    saved: tuple[Path, str], settings: Settings, tmp_path: Path
) -> None:
    (original,) = [path for path in settings.files_dir.glob("??/*") if path.read_bytes() == TEXT]
    original.unlink()
    target = tmp_path / "again.tar"
    with pytest.raises(Unavailable, match="deleted"):
        backup(settings, target)
    assert not target.exists()


def test_nothing_to_back_up(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no database"):
        backup(settings, tmp_path / "x.tar")
    with pytest.raises(NotFound, match="no file"):
        restore(settings, tmp_path / "x.tar")
    other = Settings(data_dir=tmp_path, database_url="postgresql://u@h/d")
    with pytest.raises(BadRequest, match="pg_dump"):
        backup(other, tmp_path / "x.tar")
