"""What Linux and its control groups tell of memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from backend.hardware.memory import free_memory, machine_memory
from backend.hardware.types import Memory

MEMINFO = """MemTotal:       8000 kB
MemFree:         100 kB
MemAvailable:   4000 kB
HugePages_Total:   0
"""
MACHINE = Memory(4000 * 1024, 8000 * 1024)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text(MEMINFO)
    return folder


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_without_a_limit_it_is_the_machines(proc: Path, tmp_path: Path) -> None:
    assert machine_memory(proc, tmp_path / "none") == MACHINE
    (proc / "self" / "cgroup").write_text("0::/\n")
    group(tmp_path / "groups", memory__max="max\n", memory__current="5000\n")
    assert machine_memory(proc, tmp_path / "groups") == MACHINE


def test_a_containers_limit(proc: Path, tmp_path: Path) -> None:
    (proc / "self" / "cgroup").write_text("0::/a/b\n")
    folder = tmp_path / "groups" / "a" / "b"
    stat = "anon 1\ninactive_file 500000\n"
    group(folder, memory__max="3000000\n", memory__current="2000000\n", memory__stat=stat)
    assert machine_memory(proc, tmp_path / "groups") == Memory(1_500_000, 3_000_000)
    (folder / "memory.max").write_text("9000000\n")
    assert machine_memory(proc, tmp_path / "groups") == MACHINE, "a limit above what there is"


def test_a_limit_of_version_1(proc: Path, tmp_path: Path) -> None:
    (proc / "self" / "cgroup").write_text("12:cpu,cpuacct:/x\n4:memory:/not/seen/inside\n0::/\n")
    files = {"memory__limit_in_bytes": "2000000", "memory__usage_in_bytes": "2500000"}
    group(tmp_path / "groups" / "memory", **files)
    assert machine_memory(proc, tmp_path / "groups") == Memory(0, 2_000_000)


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    assert machine_memory(tmp_path / "nowhere", tmp_path) is None
    (tmp_path / "meminfo").write_bytes(b"MemTotal: many\n\xff\n")
    assert machine_memory(tmp_path, tmp_path) is None


def test_this_machine() -> None:
    memory = free_memory(torch.device("cpu"))
    if memory is not None:
        assert 0 < memory.free <= memory.total
