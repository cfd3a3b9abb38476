"""KV on the disk through the services: found again, deleted with its document, swept, switched
off."""

from __future__ import annotations

import io
import shutil
import time
from pathlib import Path

import pytest

from app.services import Services, open_services
from app.settings import Settings

TEXT = "\n".join(
    f"{number}. The Supplier shall deliver lot {number} within {number + 9} days of the Order."
    for number in range(1, 90)
)


@pytest.fixture
def settings(tmp_path: Path, tiny_llama: Path) -> Settings:
    return Settings(
        data_dir=tmp_path, model=str(tiny_llama), precision="float32", block_tokens=128,
        kv_budget_mb=16, kv_disk_mb=64,
    )  # fmt: skip


def files(settings: Settings) -> list[str]:
    return sorted(path.suffix for path in settings.kv_dir.glob("*") if path.suffix)


def taken_in(services: Services, text: str) -> str:
    record, _ = services.library.add(io.BytesIO(text.encode()), "contract.txt")
    assert services.library.wait(record.id, 60).status == "completed"
    return record.id


def written(services: Services) -> None:
    end = time.monotonic() + 20
    store = services.engine._store
    while store._unsaved or store.disk is None or not store.disk.settle():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_document_is_found_again_after_a_restart_and_goes_with_its_deletion(
    settings: Settings,
) -> None:
    with open_services(settings, serve=True) as services:
        document = taken_in(services, TEXT)
        other = taken_in(services, TEXT[::-1])
        written(services)
        assert files(settings) == [".json", ".json", ".safetensors", ".safetensors"]
    with open_services(settings, serve=True) as services:
        loaded = services.library.load(document)
        state = services.engine.read(loaded.tokens).wait(30)
        assert (state.status, state.computed_tokens) == ("done", 0)
        services.library.delete(document)
        written(services)
        services.engine.score((1,), (2,))
        written(services)
        assert files(settings) == [".json", ".safetensors"]
    # Deleted while no engine looked, as a crash between database and folder leaves it.
    with open_services(settings.model_copy(update={"kv_disk_mb": 64})) as services:
        services.engine.forget = lambda key: None  # type: ignore[method-assign]
        services.library.delete(other)
    assert files(settings) == [".json", ".safetensors"]
    with open_services(settings, serve=True) as services:
        written(services)
        assert files(settings) == []


def test_zero_keeps_nothing(settings: Settings) -> None:
    with open_services(settings) as services:
        taken_in(services, TEXT)
        written(services)
    assert files(settings) == [".json", ".safetensors"]
    with open_services(settings.model_copy(update={"kv_disk_mb": 0})) as services:
        assert services.engine.counters.disk is None
    assert files(settings) == []


def test_the_default_is_a_share_of_the_free_disk(tmp_path: Path) -> None:
    share = Settings(data_dir=tmp_path / "not" / "there").kv_disk_bytes
    assert share == pytest.approx(0.2 * shutil.disk_usage(tmp_path).free, rel=0.05)
    assert Settings(data_dir=tmp_path, kv_disk_mb=3).kv_disk_bytes == 3_000_000
