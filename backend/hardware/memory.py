"""How much memory there is and how much can be had now: of the machine, or of a GPU.

Reads Linux's /proc/meminfo and the limit of the process's control group, as containers have one.
On other systems nothing is known of the machine. Never the cause of an error: a file that is
missing or odd sets no limit.
"""

from __future__ import annotations

from pathlib import Path

import torch

from backend.hardware.types import Memory

_KIB = 1024


def free_memory(device: torch.device) -> Memory | None:
    """Of the device now; None where nothing is known."""
    return machine_memory() if device.type == "cpu" else gpu_memory(device)


def gpu_memory(device: torch.device) -> Memory:
    """A GPU's. What torch keeps of tensors that are gone is as good as free."""
    free, total = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return Memory(free + kept, total)


def machine_memory(
    proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")
) -> Memory | None:
    """The machine's, or less where the control group has a limit (version 2, or version 1)."""
    machine = _numbers(proc / "meminfo")
    if "MemAvailable:" not in machine or "MemTotal:" not in machine:
        return None
    free, total = machine["MemAvailable:"] * _KIB, machine["MemTotal:"] * _KIB
    for folder, limit_file, used_file in _group_files(proc, groups):
        limit, used = _number(folder / limit_file), _number(folder / used_file)
        if limit is None or used is None or limit >= total:
            continue
        # Files that the kernel may drop count as used in a group's account.
        droppable = _numbers(folder / "memory.stat").get("inactive_file", 0)
        free = min(free, max(limit - used + droppable, 0))
        total = limit
    return Memory(free, total)


def _group_files(proc: Path, groups: Path) -> list[tuple[Path, str, str]]:
    """(folder, file of the limit, file of what is used) of the process's control groups."""
    found = []
    for line in _text(proc / "self" / "cgroup").splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        inner = path.lstrip("/")
        if number == "0" and not controllers:
            found.append((groups / inner, "memory.max", "memory.current"))
        elif "memory" in controllers.split(","):
            folder = groups / "memory" / inner
            # In a container the group's own path is not to be seen; its root is.
            folder = folder if folder.exists() else groups / "memory"
            found.append((folder, "memory.limit_in_bytes", "memory.usage_in_bytes"))
    return found


def _numbers(path: Path) -> dict[str, int]:
    """The lines "name number ..." of a file."""
    parts = [line.split() for line in _text(path).splitlines()]
    return {one[0]: int(one[1]) for one in parts if len(one) > 1 and one[1].isdecimal()}


def _number(path: Path) -> int | None:
    """A file's one number; None for "max" and for a file that is not there."""
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
