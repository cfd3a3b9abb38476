"""The command line in this process, over a temporary data folder and a fake engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

Run = Callable[..., Result]


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands keep their data."""
    folder = tmp_path / "data"
    monkeypatch.setenv("FINEPRINT_DATA_DIR", str(folder))
    monkeypatch.setenv("FINEPRINT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("FINEPRINT_PRECISION", "float32")
    return folder


@pytest.fixture
def run(data_dir: Path) -> Run:
    """run("documents", "list", ...) -> exit code, stdout, stderr."""
    from app.cli import build

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(build(), list(arguments), catch_exceptions=False)

    return invoke
