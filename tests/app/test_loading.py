"""Documents that are loaded while something goes wrong or they are deleted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import app.ingest
import app.loading
from app.errors import DatabaseBusy, NotFound

if TYPE_CHECKING:
    from app.services import Services

TEXT = b"1. Price\nThe price is EUR 5.\n\n2. Term\nTwo years.\n"


@pytest.fixture
def settings(tmp_path: Any) -> Any:
    from app.settings import Settings

    return Settings(data_dir=tmp_path / "data", heartbeat_s=0.5)


def stored(services: Services, tmp_path: Any) -> str:
    path = tmp_path / "contract.txt"
    path.write_bytes(TEXT)
    record, _ = services.library.add(path, path.name)
    assert services.library.wait(record.id, 20).status == "completed"
    return record.id


def test_a_build_that_fails_leaves_no_lock_and_is_tried_again(
    start: Callable[..., Services], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = start()
    document_id = stored(services, tmp_path)
    loader = services.library.loader
    whole = app.loading.tokenise

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("no room")

    monkeypatch.setattr(app.loading, "tokenise", broken)
    for _ in range(3):
        with pytest.raises(OSError, match="no room"):
            loader.load(document_id)
    assert loader._building == {}
    monkeypatch.setattr(app.loading, "tokenise", whole)
    assert loader.load(document_id).text.startswith("1. Price")
    assert loader._building == {}


def test_two_who_load_at_once_build_once(
    start: Callable[..., Services], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = start()
    document_id = stored(services, tmp_path)
    loader = services.library.loader
    builds: list[str] = []
    build = loader._build

    def counted(*key: Any) -> Any:
        builds.append(key[0])
        return build(*key)

    monkeypatch.setattr(loader, "_build", counted)
    threads = [threading.Thread(target=loader.load, args=(document_id,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert builds == [document_id]


def test_a_loaded_document_knows_that_it_was_deleted(
    start: Callable[..., Services], tmp_path: Any
) -> None:
    services = start()
    document_id = stored(services, tmp_path)
    loaded = services.library.load(document_id)
    assert loaded.exists()
    services.library.delete(document_id)
    assert not loaded.exists()


def test_a_document_is_there_while_the_database_is_not(
    start: Callable[..., Services], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = start()
    loaded = services.library.load(stored(services, tmp_path))

    def away() -> Any:
        raise DatabaseBusy("The database does not answer. Try again.")

    with monkeypatch.context() as patch:
        patch.setattr(services.library.loader.database, "read", away)
        assert loaded.exists(), "an answer that waits for it is not lost"
    assert loaded.exists()


def test_a_document_deleted_while_it_is_loaded_leaves_no_files(
    start: Callable[..., Services], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = start()
    document_id = stored(services, tmp_path)
    folder = services.settings.derived_dir / document_id
    whole = app.loading.tokenise

    def deleted_first(*arguments: Any, **options: Any) -> Any:
        services.library.delete(document_id)
        assert not folder.exists()
        made = whole(*arguments, **options)
        assert folder.exists(), "without care it would stay"
        return made

    monkeypatch.setattr(app.loading, "tokenise", deleted_first)
    with pytest.raises(NotFound):
        services.library.loader.load(document_id)
    assert not folder.exists() and services.library.loader.kept() == {}


def test_a_document_deleted_while_it_is_taken_in_leaves_no_files(
    start: Callable[..., Services], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = start()
    whole = app.ingest.tokenise
    over = threading.Event()

    def deleted_first(folder: Any, *arguments: Any, **options: Any) -> Any:
        services.library.delete(folder.name)
        made = whole(folder, *arguments, **options)
        over.set()
        return made

    monkeypatch.setattr(app.ingest, "tokenise", deleted_first)
    path = tmp_path / "contract.txt"
    path.write_bytes(TEXT)
    record, _ = services.library.add(path, path.name)
    assert over.wait(20)
    folder = services.settings.derived_dir / record.id
    pause = threading.Event()
    for _ in range(200):
        if not folder.exists():
            break
        pause.wait(0.05)
    assert not folder.exists()
