import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from eval import environment as module
from eval.environment import environment


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository in the place of the source tree."""
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one", "utf-8")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "one")
    monkeypatch.setattr(module, "_SOURCE", tmp_path.resolve())
    return tmp_path


def revision() -> dict[str, Any]:
    found = environment()["git"]
    assert isinstance(found, dict)
    return found


def test_the_record_is_plain_and_says_what_ran() -> None:
    record = environment()
    json.dumps(record, allow_nan=False)
    assert record["gpu"] is None
    assert record["processor"]
    assert isinstance(record["memory_bytes"], int)
    assert record["memory_bytes"] > 1 << 28
    versions = record["versions"]
    assert isinstance(versions, dict)
    assert versions["torch"] != "not installed"


def test_a_changed_tree_is_told(checkout: Path) -> None:
    clean = revision()
    assert len(clean["revision"]) == 40
    assert clean["changed"] is False
    (checkout / "new").write_text("untracked", "utf-8")
    assert revision() == clean
    (checkout / "file").write_text("two", "utf-8")
    assert revision() == clean | {"changed": True}


def test_another_projects_commit_is_not_ours(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = checkout / "site-packages"
    inside.mkdir()
    monkeypatch.setattr(module, "_SOURCE", inside.resolve())
    found = revision()
    assert found["revision"] is None
    assert "not a git checkout" in found["problem"]


def test_outside_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SOURCE", tmp_path)
    found = revision()
    assert (found["revision"], found["changed"]) == (None, None)
    assert "not a git repository" in found["problem"]


def test_a_git_that_is_missing_or_hangs(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = tmp_path_factory.mktemp("commands")
    monkeypatch.setenv("PATH", str(commands))
    assert revision()["problem"] == "git is not installed"
    sleep = shutil.which("sleep", path="/usr/bin:/bin")
    (commands / "git").write_text(f"#!/bin/sh\nexec {sleep} 30\n", "utf-8")
    (commands / "git").chmod(0o755)
    monkeypatch.setattr(module, "_GIT_SECONDS", 0.2)
    assert "did not answer" in revision()["problem"]


def test_a_containers_limits_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CGROUP", tmp_path)
    free = environment()
    (tmp_path / "memory.max").write_text("1073741824\n", "utf-8")
    (tmp_path / "cpu.max").write_text("50000 100000\n", "utf-8")
    record = environment()
    assert record["memory_bytes"] == 1 << 30
    assert record["cores"] == 0.5
    (tmp_path / "memory.max").write_text("max\n", "utf-8")
    (tmp_path / "cpu.max").write_text("max 100000\n", "utf-8")
    assert environment()["cores"] == free["cores"]
    assert environment()["memory_bytes"] == free["memory_bytes"]


@pytest.mark.parametrize("content", [None, "processor\t: 0\nBogoMIPS\t: 50.00\n"])
def test_a_processor_without_a_name(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "cpuinfo"
    if content is not None:
        info.write_text(content, "utf-8")
    monkeypatch.setattr(module, "_CPU_INFO", info)
    assert environment()["processor"]
